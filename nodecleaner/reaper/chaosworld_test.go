package reaper

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// The kinds of cloud of a farm.
const (
	listsEnds = iota // EC2: lists a terminated machine for an hour, and is asked by ID
	forgets          // Nova: knows nothing of a deleted one; its groups stand in a file
	plugIn           // knows only what is in a group
)

// rig is one machine as it really is.
type rig struct {
	id       cluster.InstanceID
	group    cluster.GroupID
	phase    cluster.Phase // PhaseGone: it has ended
	detached bool
	ended    time.Time
	launched time.Time
	name     string
	address  netip.Addr
	// uuid is its system UUID; empty: its hypervisor has none. machineID may be baked
	// into its image; boot is its boot ID; joins when its kubelet registers.
	uuid, machineID, boot string
	joins                 time.Time
	lies                  string // the provider ID that its kubelet reports instead of its own
	// deaf tells that its kubelet does not work, or is not heard; skew is its clock's error.
	deaf  bool
	out   time.Time // when it was taken out of its group
	heard time.Time // when its kubelet was last heard
	skew  time.Duration
}

func (r *rig) exists() bool { return r.phase != cluster.PhaseGone }

// farm is a cluster of machines whose truth the reaper does not know.
type farm struct {
	*rand.Rand
	kind    int
	now     time.Time
	policy  Policy
	rigs    []*rig
	nodes   map[cluster.NodeName]*cluster.Node
	of      map[cluster.UID]*rig // whose Node it really is: the machine that last reported by it
	renewed map[cluster.NodeName]time.Time
	asked   map[cluster.NodeName]time.Time // when a kubelet of that name last got a client certificate
	born    int
	groups  []cluster.GroupID
	left    map[cluster.GroupID]bool // groups that left the configuration
	memory  Memory
	standby Memory
	sent    map[cluster.InstanceID]bool
	gone    map[cluster.UID]time.Time // Nodes whose machine has ended, since when

	// What is wrong now.
	problem, stale, outage, mute string
	elsewhere, twin, cut         bool // another account answers, its groups have our names; lists are cut short
	credulous                    bool // by ID the cloud says what its lists say: the chaos has to find victims

	failedOver      time.Time // when another agent last took over
	died            time.Time // when a machine last died that no scale-down removed
	living, deleted int       // Nodes that were deleted: of machines that exist, and of others
	takenOver       int       // Nodes of dead machines that others use
	last            Deletion
}

func newFarm(seed uint64, kind, machines int) *farm {
	f := &farm{Rand: rand.New(rand.NewPCG(seed, 11)), kind: kind, now: noon, policy: defaults(), nodes: map[cluster.NodeName]*cluster.Node{},
		of: map[cluster.UID]*rig{}, renewed: map[cluster.NodeName]time.Time{}, asked: map[cluster.NodeName]time.Time{}, left: map[cluster.GroupID]bool{}, sent: map[cluster.InstanceID]bool{}, gone: map[cluster.UID]time.Time{},
		groups: []cluster.GroupID{"red", "blue"}}
	for range machines {
		f.launch(f.groups[f.IntN(2)])
	}
	if f.IntN(3) > 0 {
		r := f.launch("")
		f.nodes[cluster.NodeName(r.name)].ControlPlane = true
	}
	for _, r := range f.rigs {
		r.launched = noon.Add(-3 * time.Hour)
		n := f.nodes[cluster.NodeName(r.name)]
		n.Created, n.ReadySince = noon.Add(-3*time.Hour), noon.Add(-3*time.Hour)
	}
	f.round()
	return f
}

// launch starts a machine, which joins at once.
func (f *farm) launch(group cluster.GroupID) *rig {
	r := f.made(group)
	f.join(r, r.name, string(r.id))
	return r
}

// made starts a machine with a name and an address of its own.
func (f *farm) made(group cluster.GroupID) *rig {
	f.born++
	form := map[int]string{listsEnds: "aws:///eu-west-1a/i-%017x", forgets: "openstack:///00000000-0000-0000-0000-%012x", plugIn: "plug://vm-%d"}[f.kind]
	r := &rig{id: cluster.InstanceID(fmt.Sprintf(form, f.born)), group: group, phase: cluster.PhaseRunning, launched: f.now,
		name: fmt.Sprintf("w%03d", f.born), address: netip.AddrFrom4([4]byte{10, 0, byte(f.born >> 8), byte(f.born)}), heard: f.now,
		machineID: "baked", boot: fmt.Sprintf("boot-%d", f.born)}
	if f.IntN(4) > 0 {
		r.uuid = fmt.Sprintf("%08x-0000-4000-8000-000000000000", f.born)
	}
	if f.IntN(3) > 0 {
		r.machineID = fmt.Sprintf("%032x", f.born)
	}
	f.rigs = append(f.rigs, r)
	return r
}

// reuse starts a machine that gets the name and the address of one that has ended, and that joins at once or later. Where the
// Node of that one is still there its kubelet uses it; where it is not, the kubelet makes a Node with the machine's own provider
// ID, or with that of the other one: its image has it baked in, or somebody lies.
func (f *farm) reuse() {
	for _, dead := range f.rigs {
		if dead.exists() || dead.group == "" || dead.name == "" || f.IntN(3) > 0 {
			continue
		}
		r := f.made(dead.group)
		r.name, r.address, dead.name = dead.name, dead.address, ""
		r.joins = f.now.Add(time.Duration(f.IntN(2)*f.IntN(300)) * time.Second)
		if f.IntN(2) == 0 {
			r.lies = string(dead.id)
		}
		r.deaf = f.IntN(4) == 0
		return
	}
}

// register has the kubelets join whose time has come.
func (f *farm) register() {
	for _, r := range f.rigs {
		if r.joins.IsZero() || f.now.Before(r.joins) {
			continue
		}
		if r.joins = (time.Time{}); !r.exists() {
			continue
		}
		if n := f.nodes[cluster.NodeName(r.name)]; n != nil {
			f.of[n.UID] = r
			delete(f.gone, n.UID)
			f.reports(r, n)
			n.Ready, n.ReadySince, n.Taints, r.heard, f.asked[n.Name] = cluster.StatusTrue, f.now, nil, f.now, f.now
			f.takenOver++
			continue
		}
		f.join(r, r.name, cmp.Or(r.lies, string(r.id)))
	}
}

func (f *farm) join(r *rig, name, providerID string) {
	n := &cluster.Node{Name: cluster.NodeName(name), UID: cluster.UID(fmt.Sprintf("%s-%d", name, f.born)), ProviderID: providerID, Created: f.now,
		Ready: cluster.StatusTrue, ReadySince: f.now}
	f.reports(r, n)
	f.nodes[n.Name], f.asked[n.Name] = n, f.now
	f.of[n.UID] = r
}

// reports is a kubelet's status.
func (f *farm) reports(r *rig, n *cluster.Node) {
	n.Addresses, n.SystemUUID, n.MachineID, n.BootID, n.Heartbeat = []string{r.address.String()}, r.uuid, r.machineID, r.boot, f.now.Add(r.skew)
}

// hushes tells whether the kubelet may fall silent now. Of a plug-in's machine nobody could
// tell it from a dead one that was taken out of its group a moment ago.
func (f *farm) hushes(r *rig) bool {
	return r.exists() && (f.kind != plugIn || !r.detached || f.now.Sub(r.out) > 2*diesWithin)
}

// end ends a machine for good.
func (f *farm) end(r *rig) {
	r.phase, r.ended, r.deaf = cluster.PhaseGone, f.now, true
}

// cloudList is what a read of the cloud lists now.
func (f *farm) cloudList() []cluster.NodeGroup {
	if f.elsewhere {
		name := cluster.GroupID("theirs")
		if f.twin {
			name = f.groups[0]
		}
		return []cluster.NodeGroup{{ID: name, Target: 1, ReadAt: f.now, Declared: f.kind == forgets, Quota: f.account(),
			Instances: []cluster.Instance{{ID: "aws:///eu-west-1a/i-0fffffffffffffff1", Phase: cluster.PhaseRunning, Member: true}}}}
	}
	var out []cluster.NodeGroup
	for _, id := range f.groups {
		if f.left[id] {
			continue
		}
		g := cluster.NodeGroup{ID: id, ReadAt: f.now, Stale: f.stale, Declared: f.kind == forgets, Quota: f.account()}
		for _, r := range f.rigs {
			if r.group != id || r.detached || !r.exists() && (f.kind != listsEnds || f.now.Sub(r.ended) > time.Hour) {
				continue
			}
			if r.exists() && r.phase != cluster.PhaseDeleting {
				g.Target++
			}
			if f.cut && f.kind != plugIn && f.IntN(2) == 0 {
				continue
			}
			i := cluster.Instance{ID: r.id, Phase: r.phase, Member: r.exists(), Created: r.launched}
			if r.exists() && f.kind != plugIn {
				i.NodeNames, i.Addresses = []string{r.name}, []netip.Addr{r.address}
			}
			if f.kind == plugIn { // its protocol has no launch times
				i.Created = time.Time{}
			}
			g.Instances = append(g.Instances, i)
		}
		out = append(out, g)
	}
	return out
}

func (f *farm) account() string {
	if f.kind == forgets {
		return "cloud/east"
	}
	return ""
}

// testimony is what the cloud says by ID.
func (f *farm) testimony(id cluster.InstanceID, list []cluster.NodeGroup) cluster.Testimony {
	if f.mute != "" {
		return cluster.Testimony{Why: f.mute}
	}
	listed := false
	for _, g := range list {
		for _, i := range g.Instances {
			listed = listed || i.ID == id && i.Phase != cluster.PhaseGone
		}
	}
	at := slices.IndexFunc(f.rigs, func(r *rig) bool { return r.id == id })
	switch {
	case f.kind == plugIn && listed:
		return cluster.Testimony{Existence: cluster.InstanceExists}
	case f.kind == plugIn:
		return cluster.Testimony{Existence: cluster.InstanceUnclaimed}
	case f.credulous && !listed, f.elsewhere || at < 0:
		return cluster.Testimony{Existence: cluster.InstanceNotFound}
	case f.rigs[at].exists():
		return cluster.Testimony{Existence: cluster.InstanceExists}
	case f.kind == listsEnds && f.now.Sub(f.rigs[at].ended) < time.Hour:
		return cluster.Testimony{Existence: cluster.InstanceTerminated}
	}
	return cluster.Testimony{Existence: cluster.InstanceNotFound}
}

// heartbeats let kubelets report, and Kubernetes judge them.
func (f *farm) heartbeats() {
	for _, r := range f.rigs {
		if r.exists() && r.phase != cluster.PhaseStopped && !r.deaf {
			r.heard = f.now
			if n := f.nodes[cluster.NodeName(r.name)]; n != nil && f.of[n.UID] == r {
				f.reports(r, n)
			}
		}
	}
	for _, n := range f.nodes {
		r := f.of[n.UID]
		silent := f.now.Sub(r.heard) > 50*time.Second
		switch {
		case silent && n.Ready == cluster.StatusTrue:
			n.Ready, n.ReadySince = cluster.StatusUnknown, f.now
			n.Taints = append(slices.Clone(n.Taints), cluster.Taint{Key: "node.kubernetes.io/unreachable", Effect: "NoExecute"})
		case !silent && n.Ready != cluster.StatusTrue:
			n.Ready, n.ReadySince = cluster.StatusTrue, f.now
			n.Taints = slices.DeleteFunc(slices.Clone(n.Taints), func(t cluster.Taint) bool { return t.Key == "node.kubernetes.io/unreachable" })
		}
		f.renewed[n.Name] = r.heard.Add(r.skew)
		if !r.exists() && f.gone[n.UID].IsZero() {
			f.gone[n.UID] = f.now
		}
	}
}

func (f *farm) input() Input {
	in := Input{Now: f.now, Outage: f.outage, ReadProblem: f.problem, Groups: f.cloudList(), Certified: maps.Clone(f.asked)}
	for _, name := range slices.Sorted(maps.Keys(f.nodes)) {
		in.Nodes = append(in.Nodes, *f.nodes[name])
	}
	in.Sent = slices.Sorted(maps.Keys(f.sent))
	return in
}

// round is one of the service's: it decides, asks, decides again and deletes.
func (f *farm) round() {
	f.register()
	f.heartbeats()
	in := f.input()
	plan, _ := Decide(in, f.memory, f.policy)
	if in.Outage == "" && len(plan.Ask)+len(plan.Leases) > 0 {
		in.AskedAt, in.Answers, in.Leases = f.now, map[cluster.InstanceID]cluster.Testimony{}, map[cluster.NodeName]Lease{}
		for _, id := range plan.Ask {
			in.Answers[id] = f.testimony(id, in.Groups)
		}
		for _, name := range plan.Leases {
			in.Leases[name] = Lease{Renewed: f.renewed[name]}
		}
	}
	plan, f.memory = Decide(in, f.memory, f.policy)
	f.standby = Learn(in, f.standby, f.policy)
	for _, c := range plan.Claims {
		f.nodes[c.Node].Annotations = map[string]string{cluster.AnnotationGroup: string(c.Group), cluster.AnnotationBoot: c.BootID}
	}
	for _, d := range plan.Delete {
		if f.of[d.UID].exists() {
			f.living++
			f.last = d
		} else {
			f.deleted++
		}
		delete(f.nodes, d.Node)
	}
}
