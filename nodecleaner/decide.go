package nodecleaner

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// Input is one moment of the world. The order of its slices means nothing.
type Input struct {
	Now time.Time
	// Nodes are all Nodes of the cluster.
	Nodes []cluster.Node
	// Groups are what the cloud's last read says; ReadProblem is its error, if any.
	Groups      []cluster.NodeGroup
	ReadProblem string
	// OwnNode is the Node that this agent runs on; it is never deleted.
	OwnNode cluster.NodeName
	// Outage says why this agent could not watch the cluster just now (it does not
	// lead, the API server did not answer). Timers start again after it (B3).
	Outage string
	// Sent are instances that the scaler itself has terminated.
	Sent []cluster.InstanceID
}

// Policy is the part of Config that decides.
type Policy struct {
	SightInterval   time.Duration
	GoneGrace       time.Duration
	SentGrace       time.Duration
	Grace           time.Duration
	KnownFor        time.Duration
	MaxShare        float64
	FreezeFor       time.Duration
	MassHold        time.Duration
	UnledgeredEvery time.Duration
	Silence         time.Duration
}

// Memory is what is carried from one decision to the next. The zero Memory is safe:
// it only waits longer.
type Memory struct {
	// Seen is the ledger of instances that a whole read once listed as members of a
	// managed group.
	Seen map[cluster.InstanceID]Record `json:"seen,omitempty"`
	// Watch holds the Nodes that may be dead, by name.
	Watch map[cluster.NodeName]Watch `json:"watch,omitempty"`
	// FrozenUntil is the end of the last freeze (B3).
	FrozenUntil time.Time `json:"frozenUntil,omitzero"`
	// LastRound is when Decide was last called.
	LastRound time.Time `json:"lastRound,omitzero"`
	// LastUnledgered is when a Node that the scaler had not sent away was last deleted.
	LastUnledgered time.Time `json:"lastUnledgered,omitzero"`
	// MassSince is since when too many unledgered Nodes are gone at once (B2).
	MassSince time.Time `json:"massSince,omitzero"`
}

// Record is what the ledger keeps of an instance.
type Record struct {
	Group cluster.GroupID `json:"group"`
	First time.Time       `json:"first"`
	Last  time.Time       `json:"last"`
	// Sent tells that the scaler sent the instance away: its Node carried the
	// ToBeDeleted taint once, or the scaler said so. A taint may be stripped later by
	// a restarted Cluster Autoscaler; this stays.
	Sent bool `json:"sent,omitempty"`
}

// Watch is what is known of a Node that is not Ready.
type Watch struct {
	UID        cluster.UID `json:"uid"`
	ProviderID string      `json:"providerID"`
	// Since is when the Node began to look dead, or when an outage ended.
	Since time.Time `json:"since"`
	// LookAt is from when on a read of the cloud says something new about it.
	LookAt time.Time `json:"lookAt"`
	// First is the read that first said "gone", Last the newest one; zero: none.
	First time.Time `json:"first,omitzero"`
	Last  time.Time `json:"last,omitzero"`
	// Positive tells that both said so positively (terminated).
	Positive bool `json:"positive,omitempty"`
	// Alive counts reads in a row that said "alive": they are asked for ever more rarely.
	Alive int `json:"alive,omitempty"`
}

// Plan is what to do about the Nodes of this moment.
type Plan struct {
	Delete []Deletion
	Held   []Held
	// Breakers are the open breakers, each with its ID.
	Breakers []string
	// ReadSince asks for a read of the cloud that is no older than this, and for a
	// decision on it, as soon as ReadSince is past. Zero: no read is wanted.
	ReadSince time.Time
	// Due is when to decide again at the latest; zero: when something changes.
	Due time.Time
}

// Deletion is one Node to delete and the proof.
type Deletion struct {
	Node       cluster.NodeName
	UID        cluster.UID
	ProviderID string
	Group      cluster.GroupID
	Rule       string
	Why        string
	Ledgered   bool
}

// Held is one Node that is not Ready and stays, and the rule that holds it.
type Held struct {
	Node cluster.NodeName
	Rule string
	Why  string
}

// Times that are not worth a setting.
const (
	// aliveLook doubles up to aliveLookMax between looks at an instance that lives
	// while its Node is not Ready.
	aliveLook    = 30 * time.Second
	aliveLookMax = 10 * time.Minute
	// unknownLook is the wait after a read that said nothing.
	unknownLook = 10 * time.Second
	// forgetAfter is how long the ledger remembers an instance without a Node.
	forgetAfter = 7 * 24 * time.Hour
)

// Decide says which Nodes to delete. It is a function of its arguments: neither the
// Memory nor the Input is changed. Calling it twice with the same read counts as
// one sight.
func Decide(in Input, m Memory, p Policy) (Plan, Memory) {
	m = m.clone()
	nodes := slices.Clone(in.Nodes)
	slices.SortFunc(nodes, func(a, b cluster.Node) int { return cmp.Compare(a.Name, b.Name) })
	view := newView(in)
	m.learn(in, view, nodes)
	var plan Plan
	frozen := m.freeze(in, p)
	var gone []candidate
	watch := make(map[cluster.NodeName]Watch, len(m.Watch))
	for _, n := range nodes {
		if n.Ready == cluster.StatusTrue || n.Deleting {
			continue
		}
		if rule, why := eligible(n, in, m, view); rule != "" {
			plan.hold(n, rule, why)
			continue
		}
		w := m.watched(n, in, frozen)
		c := candidate{node: n, watch: &w, sent: m.Seen[cluster.InstanceID(n.ProviderID)].Sent, group: m.Seen[cluster.InstanceID(n.ProviderID)].Group}
		rule, why := c.judge(in, view, m, p)
		watch[n.Name] = w
		plan.wake(w.LookAt)
		if rule == "" {
			gone = append(gone, c)
			continue
		}
		plan.hold(n, rule, why)
		plan.soon(c.due)
	}
	m.Watch = watch
	m.breakers(in, p, frozen, gone, nodes, &plan)
	m.LastRound = in.Now
	return plan, m
}

// candidate is an eligible Node that is not Ready.
type candidate struct {
	node  cluster.Node
	watch *Watch
	group cluster.GroupID
	sent  bool
	due   time.Time
}

// eligible is rule E: which Nodes may ever be deleted.
func eligible(n cluster.Node, in Input, m Memory, v *view) (rule, why string) {
	switch {
	case n.ControlPlane:
		return "E1", "Node is of the control plane"
	case n.Name == in.OwnNode:
		return "E2", "Node is the agent's own"
	case n.Annotations[cluster.AnnotationKeep] != "":
		return "E3", "annotation " + cluster.AnnotationKeep + " keeps it"
	case n.ProviderID == "":
		return "E4", "Node has no provider ID: nothing can be proven about its instance"
	}
	id := cluster.InstanceID(n.ProviderID)
	if _, known := m.Seen[id]; !known && !tainted(n) && v.instances[id].group == nil {
		return "E5", "instance " + n.ProviderID + " was never seen in a managed node group"
	}
	return "", ""
}

// watched returns the memory of n, begun anew when the Node, its instance or the
// agent's view of it is not the one remembered. frozen tells whether timers must
// start again.
func (m *Memory) watched(n cluster.Node, in Input, frozen string) Watch {
	w, ok := m.Watch[n.Name]
	if !ok || w.UID != n.UID || w.ProviderID != n.ProviderID {
		// A read made before the Node stopped being Ready says nothing about now.
		since := n.ReadySince
		if since.IsZero() {
			since = n.Created
		}
		w = Watch{UID: n.UID, ProviderID: n.ProviderID, Since: since, LookAt: since}
	}
	if frozen != "" && in.Outage != "" {
		w = Watch{UID: n.UID, ProviderID: n.ProviderID, Since: in.Now, LookAt: in.Now}
	}
	return w
}

// judge looks at the newest read and tells by which rule the Node is held; no rule
// means that it is dead and gone.
func (c *candidate) judge(in Input, v *view, m Memory, p Policy) (rule, why string) {
	sight := v.look(c.node, m, p, in.Now)
	c.watch.count(sight, p)
	if sight.group != "" {
		c.group = sight.group
	}
	switch {
	case sight.state == unknown && c.watch.First.IsZero():
		return "G0", "it is not known whether the instance is gone: " + sight.why
	case c.watch.First.IsZero():
		return "G1", sight.why
	case c.watch.Last.Sub(c.watch.First) < p.SightInterval:
		return "G2", fmt.Sprintf("seen gone once (%s); a second sight is wanted %s later", sight.why, p.SightInterval)
	case sight.state == unknown:
		return "G0", "seen gone twice, but it is not known now: " + sight.why
	}
	return c.looksDead(in, p)
}

// looksDead is rule L: even a proven absence waits until Kubernetes has lost the
// Node too. A terminated instance needs no more than a Node that is not Ready.
func (c *candidate) looksDead(in Input, p Policy) (rule, why string) {
	grace := p.Grace
	switch {
	case c.watch.Positive:
		grace = p.GoneGrace
	case c.sent:
		grace = p.SentGrace
	}
	if due := c.watch.Since.Add(grace); in.Now.Before(due) {
		c.due = due
		return "L1", fmt.Sprintf("not Ready since %s, for less than %s", c.watch.Since.UTC().Format(time.RFC3339), grace)
	}
	if c.watch.Positive {
		return "", ""
	}
	if due := c.node.LeaseRenewed.Add(grace); in.Now.Before(due) {
		c.due = due
		return "L2", fmt.Sprintf("its kubelet renewed its Lease at %s", c.node.LeaseRenewed.UTC().Format(time.RFC3339))
	}
	if !unreachable(c.node) {
		return "L3", "it carries no taint node.kubernetes.io/unreachable"
	}
	return "", ""
}

// count files a sight. Only a read newer than the last one counts.
func (w *Watch) count(s sight, p Policy) {
	if s.at.Before(w.LookAt) || !s.at.After(w.Last) {
		return
	}
	switch s.state {
	case gone:
		if w.First.IsZero() || w.Positive != s.positive {
			w.First, w.Positive = s.at, s.positive
		}
		w.Last, w.Alive = s.at, 0
		if w.LookAt = w.First.Add(p.SightInterval); !w.LookAt.After(s.at) {
			w.LookAt = s.at.Add(max(p.SightInterval, unknownLook))
		}
	case alive:
		w.First, w.Last, w.Positive = time.Time{}, time.Time{}, false
		w.LookAt = s.at.Add(min(aliveLook<<min(w.Alive, 8), aliveLookMax))
		w.Alive++
	default:
		w.LookAt = s.at.Add(unknownLook)
	}
}

func (p *Plan) hold(n cluster.Node, rule, why string) {
	p.Held = append(p.Held, Held{Node: n.Name, Rule: rule, Why: why})
}

// wake asks for a read at t, the earliest of all such wishes.
func (p *Plan) wake(t time.Time) {
	if p.ReadSince.IsZero() || t.Before(p.ReadSince) {
		p.ReadSince = t
	}
}

func (p *Plan) soon(t time.Time) {
	if !t.IsZero() && (p.Due.IsZero() || t.Before(p.Due)) {
		p.Due = t
	}
}

func tainted(n cluster.Node) bool {
	return slices.ContainsFunc(n.Taints, func(t cluster.Taint) bool { return t.Key == cluster.TaintToBeDeleted })
}

func unreachable(n cluster.Node) bool {
	return slices.ContainsFunc(n.Taints, func(t cluster.Taint) bool { return t.Key == "node.kubernetes.io/unreachable" })
}
