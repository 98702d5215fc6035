package reaper

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// This file holds rule G, the judgement of one read of the cloud about one instance, and
// the ledger.

type state int

const (
	unknown state = iota
	alive
	gone
)

// observation is the statement of one read about one instance.
type observation struct {
	state    state
	positive bool // the cloud's list has it as terminated
	at       time.Time
	why      string
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
	whole     string                          // why the read is not whole; empty: it is whole
	at        time.Time                       // the oldest ReadAt of all groups
	backed    map[cluster.InstanceID]bool     // instances that have a Node
	accounts  int                             // number of accounts of the groups that are declared in a file
	nameless  map[string]nameless             // by cloud, of the instances without Node whose names the cloud does not tell, the first to be launched
}

// nameless is an instance that any Node may be of.
type nameless struct {
	id       cluster.InstanceID
	launched time.Time // at the earliest
}

// machine is the one form in which this package compares provider IDs. OpenStack's provider
// ID exists with the region and without (openstack:///UUID, openstack://REGION/UUID, and
// openstack://UUID by Cluster API's provider): a living machine must not look absent because
// of its form.
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
		whole: in.ReadProblem, backed: map[cluster.InstanceID]bool{}}
	if len(in.Groups) == 0 && v.whole == "" {
		v.whole = "the cloud lists no node group"
	}
	accounts := map[string]bool{}
	for i := range in.Groups {
		v.add(&in.Groups[i])
		if in.Groups[i].Declared {
			accounts[in.Groups[i].Quota] = true
		}
	}
	v.accounts = len(accounts)
	for id, f := range v.instances {
		if f.instance.Phase != cluster.PhaseGone {
			for _, name := range f.instance.NodeNames {
				v.names[name] = append(v.names[name], id)
			}
		}
	}
	for _, n := range in.Nodes {
		v.backed[machine(n.ProviderID)] = true
	}
	return v
}

// findNameless fills nameless. An instance whose launch time the cloud does not tell was launched after the last read of its group
// that did not list it yet, less what a list may lag; without such a read at any time.
func (v *view) findNameless(m Memory, p Policy) {
	v.nameless = map[string]nameless{}
	tells := map[string]bool{} // by cloud, whether it tells names at all
	for id, f := range v.instances {
		tells[cloudOf(id)] = tells[cloudOf(id)] || len(f.instance.NodeNames) > 0
	}
	for id, f := range v.instances {
		if f.instance.Phase == cluster.PhaseGone || v.backed[id] || tells[cloudOf(id)] {
			continue
		}
		launched := f.instance.Created
		if launched.IsZero() {
			if unlisted := m.Seen[id].Unlisted; !unlisted.IsZero() {
				launched = unlisted.Add(-p.Grace)
			}
		}
		if first, ok := v.nameless[cloudOf(id)]; !ok || launched.Before(first.launched) || launched.Equal(first.launched) && id < first.id {
			v.nameless[cloudOf(id)] = nameless{id, launched}
		}
	}
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
		// An instance that is listed twice counts by its most alive listing.
		id := machine(string(inst.ID))
		if old, ok := v.instances[id]; ok && compareFound(old, found{g, inst}) >= 0 {
			continue
		}
		v.instances[id] = found{group: g, instance: inst}
	}
}

// compareFound orders two listings of one instance: the more alive one is greater. The other
// fields make the result independent of the order of the lists.
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

// replaced reports whether another instance starts or runs that has n's name and no Node of its own
// (S1): a small subnet gives the name of a dead machine to the next one.
func (v *view) replaced(n cluster.Node) bool {
	for _, id := range v.names[string(n.Name)] {
		phase := v.instances[id].instance.Phase
		if !v.backed[id] && (phase == cluster.PhasePending || phase == cluster.PhaseRunning) { // n's own instance is backed
			return true
		}
	}
	return false
}

// look is rule G for the instance of n.
func (v *view) look(n cluster.Node, x *evaluation) observation {
	id := machine(n.ProviderID)
	if f, ok := v.instances[id]; ok {
		return listed(n, f)
	}
	s := observation{at: v.at}
	if v.whole != "" {
		s.why = v.whole
		return s
	}
	record := x.memory.Seen[id] // E5 holds a Node whose instance is neither listed nor in the ledger
	home := v.groups[record.Group]
	switch {
	case home == nil:
		s.why = "node group " + string(record.Group) + ", which had instance " + n.ProviderID + ", is not among those that the cloud lists" + byHand
	case record.Declared && home.Quota != record.Account:
		s.why = "group " + string(record.Group) + " is declared in another cloud or region now: nobody lists its machines where they were" + byHand
	default:
		s.state, s.why = gone, "the cloud does not list instance "+n.ProviderID
	}
	return s
}

// listed is the sight of an instance that the read lists.
func listed(n cluster.Node, f found) observation {
	s := observation{at: f.group.ReadAt}
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

// listsTerminated reports whether the cloud of id goes on listing an instance after its end:
// the absence of a young instance then only shows that the read lags. AWS: "Recently
// terminated instances might appear in the returned results. This interval is usually
// less than one hour" (DescribeInstances).
func listsTerminated(id cluster.InstanceID) bool { return strings.HasPrefix(string(id), "aws://") }

func (r Record) launched() time.Time {
	if r.Launched.IsZero() {
		return r.First
	}
	return r.Launched
}

// cloudOf is the scheme of a provider ID, by which clouds are told apart: the list of one
// cloud says nothing about the instances of another.
func cloudOf(id cluster.InstanceID) string {
	scheme, _, _ := strings.Cut(string(id), "://")
	return scheme
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

// learn keeps the ledger: every instance of a group that was read whole is ours.
func (m *Memory) learn(in Input, v *view, nodes []cluster.Node) {
	for id, f := range v.instances {
		if f.group.Stale != "" {
			continue
		}
		ended := f.instance.Phase == cluster.PhaseGone
		r, known := m.Seen[id]
		if !known {
			r = Record{Group: f.group.ID, First: f.group.ReadAt, Late: ended, Unlisted: m.GroupsRead[f.group.ID]}
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
			r.Leaving, r.Absent = ended || f.instance.Phase == cluster.PhaseDeleting, time.Time{}
			switch known := knownAs(f.instance); {
			case ended && r.Gone.IsZero():
				r.Gone = f.group.ReadAt
			case !ended:
				r.Late, r.Gone = false, time.Time{}
				if known != "" {
					r.Known = known
				}
			}
		}
		m.Seen[id] = r
	}
	m.dateReads(v)
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
		m.rebuild(n, id, v)
		m.remember(n, v, sent[id])
		m.miss(id, v)
		m.recognize(n, in, v)
	}
	maps.DeleteFunc(m.Seen, func(id cluster.InstanceID, r Record) bool {
		return !present[id] && in.Now.Sub(r.Last) > forgetAfter
	})
}

// dateReads stores when each group was last read whole.
func (m *Memory) dateReads(v *view) {
	if m.GroupsRead == nil {
		m.GroupsRead = map[cluster.GroupID]time.Time{}
	}
	for id, g := range v.groups {
		if g.Stale == "" {
			m.GroupsRead[id] = g.ReadAt
		}
	}
}

// rebuild restores a record of an earlier leader or of a lost file from the Node's
// annotations: the group in which an agent once saw the Node's instance live, and its machine's boot ID then.
func (m *Memory) rebuild(n cluster.Node, id cluster.InstanceID, v *view) {
	home := v.groups[cluster.GroupID(n.Annotations[cluster.AnnotationGroup])]
	if id == "" || home == nil {
		return
	}
	r := m.Seen[id]
	if r.Group == "" {
		r = Record{Group: home.ID, First: n.Created, Declared: home.Declared}
		if r.Declared {
			r.Account = home.Quota
		}
	}
	r.Late, r.BootID = false, cmp.Or(r.BootID, n.Annotations[cluster.AnnotationBoot])
	m.Seen[id] = r
}

// remember stores in the ledger that n was removed by a scale-down, and keeps it when the taint is removed
// later; it is cleared when the Node is Ready without the taint and its instance runs. A
// taint alone makes no instance ours.
func (m *Memory) remember(n cluster.Node, v *view, sent bool) {
	id := machine(n.ProviderID)
	r, ok := m.Seen[id]
	switch {
	case !ok:
		return
	case tainted(n):
		r.Sent = true
	case n.Ready == cluster.StatusTrue && !sent && v.instances[id].instance.Phase == cluster.PhaseRunning:
		// A scale-down that was taken back: the Node lives on without the taint.
		r.Sent, r.Ended = false, false
	default:
		return
	}
	m.Seen[id] = r
}

// miss stores since when the group of an instance, read whole, does not list it.
func (m *Memory) miss(id cluster.InstanceID, v *view) {
	r := m.Seen[id]
	home := v.groups[r.Group]
	if _, here := v.instances[id]; here || home == nil || v.whole != "" || !r.Absent.IsZero() {
		return
	}
	r.Absent = home.ReadAt
	m.Seen[id] = r
}

// Clone copies m, so that Decide changes nothing it was given.
func (m Memory) Clone() Memory {
	m.Seen, m.Watch, m.Doubts, m.GroupsRead = maps.Clone(m.Seen), maps.Clone(m.Watch), maps.Clone(m.Doubts), maps.Clone(m.GroupsRead)
	if m.Seen == nil {
		m.Seen = map[cluster.InstanceID]Record{}
	}
	if m.Doubts == nil {
		m.Doubts = map[cluster.UID]string{}
	}
	m.Unledgered, m.Errors = slices.Clone(m.Unledgered), slices.Clone(m.Errors)
	return m
}
