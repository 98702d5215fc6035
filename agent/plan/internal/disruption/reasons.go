package disruption

import (
	"cmp"
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
	windows map[*cluster.DisruptionBudget]openness
	down    []disruption              // by index of State.Nodes; see count
	cordons map[cluster.NodeName]bool // of this round; see lookAtPlan
}

// group is a node group, as far as its nodes are replaced.
type group struct {
	drift       bool
	requested   bool // somebody asked for a node of it to be replaced
	age, repair time.Duration
	repairs     bool             // sick nodes of it are replaced: after that time, or by a condition with its own
	members     []int            // its nodes, by index of State.Nodes; see look
	nodeCounts                   // of members; see count
	fresh       map[uintptr]bool // by source: see Round.fresh
	compared    bool
	differences map[cluster.InstanceID][]cluster.Difference // see Round.Differences
	rollout     rollout                                     // zero: none was judged
	stuck       string                                      // what holds the first of its nodes whose turn it is; see lookAtPlan
	taken       bool                                        // a node of it goes in this round for a source that is not proven
	wait        int                                         // how many nodes without room for their pods want a spare machine
	waiting     []int                                       // those for which one is coming, has come, or is ordered
	ordered     []string                                    // nodes in whose place this round has ordered machines
}

// replaces tells whether some node of the group may be replaced.
func (g *group) replaces() bool { return g.drift || g.age > 0 || g.repairs || g.requested }

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
		g.drift = round.OrElse(o.Drift, w.Policy.Drift)
		if started := w.Policy.Rollouts[w.Groups[i].ID].Started; started != "" && started == w.Groups[i].Template.Source.Digest() {
			g.drift = true
		}
		g.age, g.repair = round.OrElse(o.MaxNodeAge, w.Policy.MaxNodeAge), round.OrElse(o.RepairAfter, w.Policy.RepairAfter)
		g.repairs = g.repair > 0 || o.RepairAfter == nil && slices.ContainsFunc(w.Policy.RepairConditions, func(c cluster.RepairCondition) bool { return c.After > 0 })
	}
	return r
}

// look lists the nodes of each group, and finds the groups with a node that somebody asked to be replaced. It costs N.
func (r *Round) look() {
	for i := range r.Nodes {
		if n := &r.Nodes[i]; n.Group >= 0 && !n.ControlPlane {
			g := &r.groups[n.Group]
			g.members, g.requested = append(g.members, i), g.requested || requested(n)
		}
	}
}

// Reason is why a node is replaced, whether it may go now or not. It is worked out once a round, and costs the
// properties of its source.
func (r *Round) Reason(i int) Reason {
	n := &r.Nodes[i]
	if n.Group < 0 || n.ControlPlane {
		return Reason{}
	}
	if r.dear(n.Name) {
		return Reason{decision.RuleConsolidate, cluster.ReasonDear, "it is dear: " + r.Next.Consolidation.Words()}
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
	if why := r.Halted(n.Group); why != "" && r.fresh(n) {
		return Reason{decision.RuleSick, cluster.ReasonSick, "it is a machine of a source whose rollout is halted: " + why}
	}
	if requested(n) {
		return Reason{decision.RuleReplaceNode, cluster.ReasonRequested, "somebody asked for its replacement"}
	}
	if g.repairs {
		if why := r.sickness(n, g.repair); why != "" {
			return Reason{decision.RuleSick, cluster.ReasonSick, "it is " + why}
		}
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

// sickness says what has been wrong with a node for long enough; empty: nothing. all is the time of what has none of its own; 0: never.
func (r *Round) sickness(n *round.Node, all time.Duration) string {
	overdue := func(what string, since time.Time, after time.Duration) string {
		if after == 0 {
			return ""
		}
		if due := since.Add(after); !r.Reached(due) {
			r.WakeAt(due)
			return ""
		}
		return fmt.Sprintf("sick: %s since %s", what, round.Stamp(since))
	}
	words, unwell := "", all
	for _, c := range r.Policy.RepairConditions {
		if since := c.Since(n.Node); c.Type == "Ready" && c.Status == n.Ready {
			unwell = c.After
		} else if c.Type != "Ready" && !since.IsZero() {
			words = cmp.Or(words, overdue("condition "+c.Type, since, cmp.Or(c.After, all)))
		}
	}
	if unready(n) {
		words = cmp.Or(overdue("not Ready", cmp.Or(n.ReadySince, r.Next.Unready[n.Name]), unwell), words)
	}
	return words
}

// unready tells a node that is not Ready, and not because it is starting.
func unready(n *round.Node) bool {
	return n.Ready != cluster.StatusTrue && n.State != round.StateUpcoming
}

// sickNow tells whether something is wrong with a node, for however short a time.
func (r *Round) sickNow(n *round.Node) bool {
	return unready(n) || slices.ContainsFunc(r.Policy.RepairConditions, func(c cluster.RepairCondition) bool { return !c.Since(n.Node).IsZero() })
}

// Breaker says why a node that is not Ready does not go for that where such nodes are replaced; empty: it may.
func (r *Round) Breaker(i int) string {
	if n := &r.Nodes[i]; r.groups[n.Group].repairs && n.Ready != cluster.StatusTrue {
		return r.breaker(n.Group)
	}
	return ""
}

// breaker says why no sick node is replaced for that: too many are sick at once, which is rather the network, or an
// add-on that all of them run.
func (r *Round) breaker(g int) string {
	r.count()
	for _, of := range []struct {
		nodeCounts
		what string
	}{{r.groups[g].nodeCounts, "group " + string(r.Groups[g].ID)}, {r.all(), "the cluster"}} {
		if of.sick > 1 && of.sick*100 > r.Policy.RepairMaxSick*of.nodes {
			return fmt.Sprintf("%d of %d nodes of %s are sick, more than %d%%: the cause is rather something that they share", of.sick, of.nodes, of.what, r.Policy.RepairMaxSick)
		}
	}
	return ""
}
