package disruption

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/round"
)

// Round is what one round knows of nodes that are replaced.
type Round struct {
	*round.State
	groups  []group  // by index of State.Groups
	reasons []reason // by index of State.Nodes
	counted bool     // see count
	listed  bool     // see list
	windows map[window]openness
	down    []bool // by index of State.Nodes: see disrupted
	nodes   int    // of all groups
	gone    int    // of them, those that are disrupted
	sick    int    // of them, those that are sick now
	ordered []int  // nodes in whose place a machine is to be ordered in this round
}

// group is a node group, as far as its nodes are replaced.
type group struct {
	drift         bool
	requested     bool // somebody asked for a node of it to be replaced
	age, repair   time.Duration
	nodes, gone   int              // its nodes, and of them those that are disrupted
	sick          int              // of them, those that are sick now
	members       []int            // its nodes, by index of State.Nodes; see list
	fresh         map[uintptr]bool // by source: see Round.fresh
	compared      bool
	differences   map[cluster.InstanceID][]cluster.Difference // see Round.Differences
	rollout       *rollout
	taken         bool // a node of it goes in this round for a source that is not proven
	earliestOrder time.Time
}

// replaces tells whether some node of the group may be replaced.
func (g *group) replaces() bool { return g.drift || g.age > 0 || g.repair > 0 || g.requested }

// Reason is why a node is replaced. The zero value: it is not.
type Reason struct {
	Rule string
	Name string // as in cluster.Reasons
	Why  string
}

type reason struct {
	Reason
	known bool
}

// New begins a round. It costs G.
func New(w *round.State) *Round {
	r := &Round{State: w, groups: make([]group, len(w.Groups))}
	for i := range w.Groups {
		o, g := &w.Groups[i].Options, &r.groups[i]
		g.drift = w.Policy.Drift
		if o.Drift != nil {
			g.drift = *o.Drift
		}
		if started := w.Policy.Rollouts[w.Groups[i].ID].Started; started != "" && started == w.Groups[i].Template.Source.Digest() {
			g.drift = true
		}
		g.age, g.repair = round.OrElse(o.MaxNodeAge, w.Policy.MaxNodeAge), round.OrElse(o.RepairAfter, w.Policy.RepairAfter)
	}
	return r
}

// list lists the nodes of the groups whose nodes are replaced, once a round. It costs N.
func (r *Round) list() {
	if r.listed {
		return
	}
	r.listed = true
	for i := range r.Nodes {
		if n := &r.Nodes[i]; n.Group >= 0 && !n.ControlPlane && r.groups[n.Group].replaces() {
			g := &r.groups[n.Group]
			g.members = append(g.members, i)
		}
	}
}

// Reason is why a node is replaced, whether it may go now or not. It is worked out once a round, and costs the
// properties of its source.
func (r *Round) Reason(i int) Reason {
	n := &r.Nodes[i]
	if n.Group < 0 || n.ControlPlane || n.Instance == nil {
		return Reason{}
	}
	if r.dear(n.Name) != nil {
		return Reason{decision.RuleConsolidate, cluster.ReasonDear, "it is dear: " + r.Next.Consolidating(n.Name).Words()}
	}
	if !r.groups[n.Group].replaces() {
		return Reason{}
	}
	if r.reasons == nil {
		r.reasons = make([]reason, len(r.Nodes))
	}
	if x := &r.reasons[i]; !x.known {
		x.known, x.Reason = true, r.reason(n)
	}
	return r.reasons[i].Reason
}

func (r *Round) reason(n *round.Node) Reason {
	g := &r.groups[n.Group]
	if x := g.rollout; x != nil && x.halted != "" && x.failed[n.Name] != "" {
		return Reason{decision.RuleSick, cluster.ReasonSick, "it is a machine of a source whose rollout is halted: " + x.failed[n.Name]}
	}
	if requested(n) {
		return Reason{decision.RuleReplaceNode, cluster.ReasonRequested, "somebody asked for its replacement"}
	}
	if why := r.sickness(n, g.repair); g.repair > 0 && why != "" {
		return Reason{decision.RuleSick, cluster.ReasonSick, why}
	}
	if n.State == round.StateUpcoming { // what it is when it has started is not known yet
		return Reason{}
	}
	if g.drift {
		if why := cluster.FirstOf(r.Differences(n)); why != "" {
			return Reason{decision.RuleDrifted, cluster.ReasonDrifted, "it is drifted: " + why}
		}
	}
	if g.age > 0 {
		if due := expiry(n, g.age); r.Reached(due) {
			return Reason{decision.RuleExpired, cluster.ReasonExpired, fmt.Sprintf("it is expired: it joined at %s, and its time was over at %s", round.Stamp(n.Created), round.Stamp(due))}
		} else {
			r.WakeAt(due)
		}
	}
	return Reason{}
}

// requested tells that somebody asked for a node to be replaced. A node that still starts is not judged: its pods and labels may be incomplete.
func requested(n *round.Node) bool {
	return n.State != round.StateUpcoming && n.Annotations[cluster.AnnotationReplace] == "true"
}

// findRequested finds the groups with a node that somebody asked to be replaced. It costs N.
func (r *Round) findRequested() {
	for i := range r.Nodes {
		if n := &r.Nodes[i]; n.Group >= 0 && !n.ControlPlane && requested(n) {
			r.groups[n.Group].requested = true
		}
	}
}

// Replaces tells whether a rule by which a node was cordoned replaces it.
func Replaces(rule string) bool {
	return rule == decision.RuleReplaceNode || rule == decision.RuleSick || rule == decision.RuleDrifted || rule == decision.RuleExpired
}

// expiry is when a node is too old: up to a tenth of the age earlier, by the ID of its instance, so that
// machines of one burst do not end together.
func expiry(n *round.Node, age time.Duration) time.Time {
	h := sha256.Sum256([]byte(n.Instance.ID))
	early := time.Duration(float64(age/10) * float64(binary.BigEndian.Uint32(h[:])) / (1 << 32))
	return n.Created.Add(age - early).Truncate(time.Second)
}

// sickness says what has been wrong with a node for long enough; empty: nothing.
func (r *Round) sickness(n *round.Node, after time.Duration) string {
	overdue := func(what string, since time.Time) string {
		if due := since.Add(after); !r.Reached(due) {
			r.WakeAt(due)
			return ""
		}
		return fmt.Sprintf("it is sick: %s since %s", what, round.Stamp(since))
	}
	if n.Ready != cluster.StatusTrue && n.State != round.StateUpcoming {
		since := n.ReadySince
		if since.IsZero() {
			since = r.Next.Unready[n.Name]
		}
		if why := overdue("not Ready", since); why != "" {
			return why
		}
	}
	for _, c := range r.Policy.RepairConditions {
		if since, is := n.Conditions[c]; is {
			if why := overdue("condition "+c, since); why != "" {
				return why
			}
		}
	}
	return ""
}

// sickNow tells whether something is wrong with a node, for however short a time.
func (r *Round) sickNow(n *round.Node) bool {
	return n.Ready != cluster.StatusTrue && n.State != round.StateUpcoming ||
		len(n.Conditions) > 0 && slices.ContainsFunc(r.Policy.RepairConditions, func(c string) bool { _, is := n.Conditions[c]; return is })
}

// Breaker says why a node that is not Ready does not go for that where such nodes are replaced; empty: it may.
func (r *Round) Breaker(i int) string {
	n := &r.Nodes[i]
	if g := &r.groups[n.Group]; g.repair > 0 && n.Ready != cluster.StatusTrue {
		return r.breaker(&r.Groups[n.Group], g)
	}
	return ""
}

// breaker says why no sick node is replaced for that: too many are sick at once, which is rather the network, or an
// add-on that all of them run.
func (r *Round) breaker(g *round.Group, x *group) string {
	r.count()
	for _, of := range []struct {
		sick, nodes int
		what        string
	}{{x.sick, x.nodes, "group " + string(g.ID)}, {r.sick, r.nodes, "the cluster"}} {
		if of.sick > 1 && of.sick*100 > r.Policy.RepairMaxSick*of.nodes {
			return fmt.Sprintf("%d of %d nodes of %s are sick, more than %d%%: the cause is rather something that they share", of.sick, of.nodes, of.what, r.Policy.RepairMaxSick)
		}
	}
	return ""
}
