package nodecleaner

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// This file holds rule G, what one read of the cloud says about one instance, and
// the ledger. It is as pure as decide.go.

type state int

const (
	unknown state = iota
	alive
	gone
)

// sight is what one read says about one instance.
type sight struct {
	state    state
	positive bool // the cloud lists it as terminated
	at       time.Time
	why      string
	rule     string // B1 where it is the canary that makes the read say nothing
}

// found is an instance and the group that lists it.
type found struct {
	group    *cluster.NodeGroup
	instance cluster.Instance
}

// view is one read, indexed.
type view struct {
	groups    map[cluster.GroupID]*cluster.NodeGroup
	instances map[cluster.InstanceID]found
	names     map[string][]cluster.InstanceID // instances that exist, by the names that their Nodes may carry
	whole     string                          // why the read is not whole; empty: it is
	at        time.Time                       // the oldest ReadAt of all groups
	ready     map[cluster.InstanceID]bool
	backed    map[cluster.InstanceID]bool // some Node has it
	missing   map[string]string           // by cloud: a Ready Node of ours that the read does not list
}

// machine is what a machine is known by here. OpenStack's is written with its region and
// without, by whoever writes it (openstack:///UUID, openstack://REGION/UUID, and
// openstack://UUID by Cluster API's provider): one that lives must not look absent for that.
func machine(providerID string) cluster.InstanceID {
	if rest, ok := strings.CutPrefix(providerID, "openstack://"); ok {
		if id := rest[strings.LastIndexByte(rest, '/')+1:]; id != "" {
			return cluster.InstanceID("openstack:///" + strings.ToLower(id))
		}
	}
	return cluster.InstanceID(providerID)
}

func newView(in Input) *view {
	v := &view{groups: map[cluster.GroupID]*cluster.NodeGroup{}, instances: map[cluster.InstanceID]found{}, names: map[string][]cluster.InstanceID{},
		whole: in.ReadProblem, ready: map[cluster.InstanceID]bool{}, backed: map[cluster.InstanceID]bool{}, missing: map[string]string{}}
	if len(in.Groups) == 0 && v.whole == "" {
		v.whole = "the cloud lists no node group"
	}
	for i := range in.Groups {
		v.add(&in.Groups[i])
	}
	for id, f := range v.instances {
		if f.instance.Phase == cluster.PhasePending || f.instance.Phase == cluster.PhaseRunning {
			for _, name := range f.instance.NodeNames {
				v.names[name] = append(v.names[name], id)
			}
		}
	}
	for _, n := range in.Nodes {
		id := machine(n.ProviderID)
		v.backed[id] = true
		if n.Ready == cluster.StatusTrue {
			v.ready[id] = true
		}
	}
	return v
}

func (v *view) add(g *cluster.NodeGroup) {
	v.groups[g.ID] = g
	if g.Stale != "" && (v.whole == "" || g.Stale < v.whole) {
		v.whole = g.Stale
	}
	if v.at.IsZero() || g.ReadAt.Before(v.at) {
		v.at = g.ReadAt
	}
	for _, inst := range g.Instances {
		// What is listed twice is taken from where it looks most alive.
		id := machine(string(inst.ID))
		if old, ok := v.instances[id]; ok && compareFound(old, found{g, inst}) >= 0 {
			continue
		}
		v.instances[id] = found{group: g, instance: inst}
	}
}

// compareFound orders two listings of one instance: more alive is more. The rest only
// makes the order of a list mean nothing.
func compareFound(a, b found) int {
	vigour := func(f found) int {
		n := 0
		if f.instance.Phase != cluster.PhaseGone {
			n += 2
		}
		if f.instance.Member {
			n++
		}
		return n
	}
	return cmp.Or(cmp.Compare(vigour(a), vigour(b)), cmp.Compare(b.group.ID, a.group.ID), cmp.Compare(b.instance.Phase, a.instance.Phase),
		a.instance.Created.Compare(b.instance.Created), cmp.Compare(a.instance.Zone, b.instance.Zone), slices.Compare(a.instance.NodeNames, b.instance.NodeNames))
}

// replaced tells that another instance exists that has n's name and no Node of its own
// (S1): a small subnet gives the name of a dead machine to the next one.
func (v *view) replaced(n cluster.Node) bool {
	for _, id := range v.names[string(n.Name)] {
		if !v.backed[id] { // n's own instance is
			return true
		}
	}
	return false
}

// look is rule G for the instance of n.
func (v *view) look(n cluster.Node, x *moment) sight {
	id := machine(n.ProviderID)
	if f, ok := v.instances[id]; ok {
		return listed(n, f)
	}
	s := sight{at: v.at}
	if v.whole != "" {
		s.why = v.whole
		return s
	}
	record := x.memory.Seen[id] // what is not listed and not in the ledger is held by E5
	switch {
	case listsTerminated(id) && !record.Sent && x.in.Now.Sub(record.launched()) < x.policy.KnownFor:
		s.why = "instance " + n.ProviderID + " is not listed, and was launched less than " + x.policy.KnownFor.String() +
			" ago: this cloud goes on listing a terminated instance for about an hour"
	default:
		if s.why = v.canary(id, record); s.why != "" {
			s.rule = "B1"
			break
		}
		s.state, s.why = gone, "the cloud does not list instance "+n.ProviderID
	}
	return s
}

// listed is the sight of an instance that the read has.
func listed(n cluster.Node, f found) sight {
	s := sight{at: f.group.ReadAt}
	switch {
	case f.group.Stale != "":
		s.why = "group " + string(f.group.ID) + " is stale: " + f.group.Stale
	case f.instance.Phase == cluster.PhaseGone && !f.instance.Member:
		s.state, s.positive, s.why = gone, true, "the cloud says that instance "+n.ProviderID+" is terminated"
	case f.instance.Phase == cluster.PhaseUnknown:
		s.why = "the cloud gives no state for instance " + n.ProviderID
	default:
		s.state, s.why = alive, "instance "+n.ProviderID+" exists ("+string(f.instance.Phase)+")"
	}
	return s
}

// listsTerminated tells that the cloud of id goes on listing an instance after its
// end, so that the absence of a young one is a read that lags. AWS: "Recently
// terminated instances might appear in the returned results. This interval is usually
// less than one hour" (DescribeInstances).
func listsTerminated(id cluster.InstanceID) bool { return strings.HasPrefix(string(id), "aws://") }

func (r Record) launched() time.Time {
	if r.Launched.IsZero() {
		return r.First
	}
	return r.Launched
}

// detachedAfter is how long a Ready Node of ours may be missing from whole reads before
// it is thought to have been taken out of its group.
const detachedAfter = 24 * time.Hour

// contradicted notes a Ready Node whose instance the read should list and does not.
func (v *view) contradicted(nodes []cluster.Node, m Memory, now time.Time) {
	for _, n := range nodes {
		id := machine(n.ProviderID)
		r := m.Seen[id] // where it has none, r.Last is long ago
		if _, here := v.instances[id]; here || r.Sent || n.Ready != cluster.StatusTrue || now.Sub(r.Last) > detachedAfter {
			continue
		}
		if cloud := cloudOf(id); v.missing[cloud] == "" {
			v.missing[cloud] = string(n.Name)
		}
	}
}

// cloudOf tells clouds apart by what stands before their provider IDs: what one of
// several lists says nothing about the others.
func cloudOf(id cluster.InstanceID) string {
	scheme, _, _ := strings.Cut(string(id), "://")
	return scheme
}

// canary is B1: why a read that does not list an instance may be of another world than
// ours (a wrong account, another region, a list cut short). It lists every Ready Node
// of ours, and at least one; where there is no Ready Node, it lists the very group that
// the missing instance was of, complete (as many members as its target), and the
// instance had been sent away. A read of another account lists no group of this name,
// but for groups that are only declared (Nova): there a machine of the same cloud has to
// be Ready, or the scaler itself to have ended the missing one.
func (v *view) canary(of cluster.InstanceID, r Record) string {
	if name := v.missing[cloudOf(of)]; name != "" {
		return "the cloud does not list the instance of Ready Node " + name + " either: this read is not whole, or of the wrong account or region"
	}
	home := v.groups[r.Group]
	if r.Declared && (home == nil || home.Quota != r.Account) {
		return "group " + string(r.Group) + " is not declared any more, or in another cloud or region: nobody asks for its machines where they were"
	}
	for id := range v.ready {
		f := v.instances[id]
		if f.instance.Phase != cluster.PhaseRunning || cloudOf(id) != cloudOf(of) {
			continue
		}
		if !r.Declared || f.group.Quota == r.Account { // of several regions each proves itself
			return ""
		}
	}
	switch {
	case !r.Sent:
		return "the cloud lists nothing that is known to live: this may be the wrong account or region"
	case r.Group == "":
		// Only the taint tells that the Node was ours, and groups of another account may
		// be complete, too; found by fuzzing.
		return "the cloud lists nothing that is known to live, and nobody has seen the instance in a node group: this may be the wrong account or region"
	case r.Declared && !r.Ended:
		return "the cloud lists nothing that is known to live, and group " + string(r.Group) + " stands in a file, not in the cloud: this may be the wrong project or region"
	case home == nil || !complete(home):
		return "the cloud lists nothing that is known to live, and group " + string(r.Group) + " not complete: this may be the wrong account or region"
	}
	return ""
}

func complete(g *cluster.NodeGroup) bool {
	members := 0
	for _, i := range g.Instances {
		if i.Member && i.Phase != cluster.PhaseGone {
			members++
		}
	}
	return members == g.Target
}

// learn keeps the ledger: every member of a group that was read whole is ours.
func (m *Memory) learn(in Input, v *view, nodes []cluster.Node) {
	for id, f := range v.instances {
		if f.group.Stale != "" {
			continue
		}
		r, known := m.Seen[id]
		if !known {
			r = Record{Group: f.group.ID, First: f.group.ReadAt}
		}
		if f.group.ReadAt.After(r.Last) {
			r.Last, r.Group, r.Declared = f.group.ReadAt, f.group.ID, f.group.Declared
			if r.Account = ""; r.Declared {
				r.Account = f.group.Quota
			}
			if f.instance.Zone != "" {
				r.Zone = f.instance.Zone
			}
			if !f.instance.Created.IsZero() && (r.Launched.IsZero() || f.instance.Created.Before(r.Launched)) {
				r.Launched = f.instance.Created
			}
		}
		m.Seen[id] = r
	}
	sent := map[cluster.InstanceID]bool{}
	for _, id := range in.Sent {
		id = machine(string(id))
		sent[id] = true
		if r, ok := m.Seen[id]; ok {
			r.Sent, r.Ended = true, true
			m.Seen[id] = r
		}
	}
	present := map[cluster.InstanceID]bool{}
	for _, n := range nodes {
		id := machine(n.ProviderID)
		present[id] = true
		m.remember(n, v, sent[id], in.Now)
	}
	maps.DeleteFunc(m.Seen, func(id cluster.InstanceID, r Record) bool {
		return !present[id] && in.Now.Sub(r.Last) > forgetAfter
	})
}

// remember notes in the ledger that n was sent away, also when the taint that says so
// is stripped later, and forgets it when the Node lives on without.
func (m *Memory) remember(n cluster.Node, v *view, sent bool, now time.Time) {
	id := machine(n.ProviderID)
	r, ok := m.Seen[id]
	switch {
	case tainted(n) && id != "":
		if !ok {
			r = Record{First: now, Last: now}
		}
		r.Sent = true
	case ok && n.Ready == cluster.StatusTrue && !sent && v.instances[id].instance.Phase == cluster.PhaseRunning:
		// A scale-down that was taken back: the Node lives on without the taint.
		r.Sent, r.Ended = false, false
	default:
		return
	}
	m.Seen[id] = r
}

// clone copies m, so that Decide changes nothing it was given.
func (m Memory) clone() Memory {
	m.Seen, m.Watch = maps.Clone(m.Seen), maps.Clone(m.Watch)
	if m.Seen == nil {
		m.Seen = map[cluster.InstanceID]Record{}
	}
	m.Unledgered, m.Errors = slices.Clone(m.Unledgered), slices.Clone(m.Errors)
	return m
}
