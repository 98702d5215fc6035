package disruption

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/round"
)

const (
	// givenUpFor is how long a node is left alone whose drain was given up.
	givenUpFor = time.Hour
	// watchFor is how long the machines of a source are judged when no other machine is left.
	watchFor = time.Hour
)

// rollout is the state of one group's rollout, as the nodes that were started from its present source show it.
type rollout struct {
	digest  string
	under   bool                 // machines of another source are left, or were a short time ago
	facts   decision.SourceFacts // what was seen of the source
	halt    decision.Halt        // why no node is replaced; without Why: the rollout goes on
	fresh   []int                // the nodes of the source, by index of State.Nodes
	trial   finding              // the machine that has still to prove the source, and what it lacks
	wait    finding              // a pod on a machine of the source that is in trouble
	came    cluster.NodeName     // a machine of the source that is Ready
	drained cluster.NodeName     // a node of the group that is being drained
	going   bool                 // one of another source is
	tried   map[string]bool      // the programs with pods on machines of the source; see Untried
}

// proven tells that the first machine of the source has proven it, or that nothing has to be proven.
func (x *rollout) proven() bool {
	return x.halt.Why == "" && (!x.under || !x.facts.Proven.IsZero())
}

// Judge carries over what was seen of sources and which rollouts were halted, and judges the rollouts. It costs N.
func (r *Round) Judge() {
	for name, at := range r.Memory.GivenUp {
		if _, is := r.ByName[name]; is && !r.Reached(at.Add(givenUpFor)) {
			round.Set(&r.Next.GivenUp, name, at)
		}
	}
	r.look()
	for i := range r.groups {
		if r.judges(i) {
			r.judge(i)
		}
	}
	r.keepHalts()
	if r.Snapshot.Stale == "" {
		r.carryConsolidation()
	} else {
		r.Next.Consolidation, r.Next.Sizes = r.Memory.Consolidation, r.Memory.Sizes
	}
}

// keepHalts keeps the halts and the facts of groups that this round does not judge, because nothing is replaced in them, the cloud does not tell
// them, or their source is not known now.
func (r *Round) keepHalts() {
	judged := func(id cluster.GroupID) bool {
		g, is := r.ByID[id]
		return is && r.groups[g].rollout.digest != ""
	}
	for _, h := range slices.Concat(r.Memory.Halts, r.Policy.Halts) {
		if !judged(h.Group) && !slices.ContainsFunc(r.Next.Halts, func(x decision.Halt) bool { return x.Group == h.Group }) {
			r.Next.Halts = append(r.Next.Halts, h)
		}
	}
	for _, f := range r.Memory.Sources {
		if !judged(f.Group) {
			r.Next.Sources = append(r.Next.Sources, f)
		}
	}
	slices.SortFunc(r.Next.Halts, func(a, b decision.Halt) int { return strings.Compare(string(a.Group), string(b.Group)) })
	slices.SortFunc(r.Next.Sources, func(a, b decision.SourceFacts) int { return strings.Compare(string(a.Group), string(b.Group)) })
}

// judges tells whether the rollout of a group is judged in this round.
func (r *Round) judges(i int) bool { return r.Snapshot.Stale == "" && r.groups[i].replaces() }

// judge judges the rollout of one group.
func (r *Round) judge(i int) {
	g, x := &r.Groups[i], &r.groups[i].rollout
	if rule, words := r.suspended(i); rule != "" {
		r.Held("group", string(g.ID), rule, "no node is replaced because it is drifted or expired: %s", words)
	}
	if len(g.Template.Source) == 0 {
		return
	}
	x.digest = g.Template.Source.Digest()
	old := r.recall(x, i)
	if r.Policy.Rollouts[g.ID].Resumed == x.digest {
		x.facts.Proven, x.halt = cmp.Or(x.facts.Proven, r.Now), decision.Halt{}
	} else if r.Unhealthy == "" {
		r.verdict(x, g, old)
	}
	if x.under {
		r.Next.Sources = append(r.Next.Sources, x.facts)
	}
	if x.halt.Why == "" {
		return
	}
	r.Next.Halts = append(r.Next.Halts, x.halt)
	r.Held("group", string(g.ID), decision.RuleHalted, "the rollout of source %s is halted since %s: %s. The machines of other sources stay. It goes on with another source (`autoscaler-agent rollout back %s` sets the former one), or with `autoscaler-agent rollout resume %s`",
		x.digest, round.Stamp(x.halt.At), x.halt.Why, g.ID, g.ID)
}

// recall sorts the nodes of a group by whether they are of its present source, and brings the facts of the source up to date. It
// returns the nodes of other sources.
func (r *Round) recall(x *rollout, g int) (old []int) {
	id := r.Groups[g].ID
	x.facts = decision.SourceFacts{Group: id, Source: x.digest}
	known := false
	for _, f := range r.Memory.Sources {
		if f.Group == id && f.Source == x.digest {
			x.facts, known = f, true
		}
	}
	for _, h := range slices.Concat(r.Policy.Halts, r.Memory.Halts) {
		if h.Group == id && h.Source == x.digest {
			x.halt = h
		}
	}
	for _, i := range r.groups[g].members {
		n := &r.Nodes[i]
		if n.State == round.StateMarked {
			x.drained = cmp.Or(x.drained, n.Name)
		}
		switch {
		case r.fresh(n):
			if x.fresh = append(x.fresh, i); n.State == round.StateReady {
				x.came = cmp.Or(x.came, n.Name)
			}
		case len(n.Instance.Source) > 0:
			if old = append(old, i); n.State == round.StateMarked {
				x.going = true
				r.noteWorked(&x.facts, n)
			}
		}
	}
	switch f := &x.facts; {
	case len(old) > 0:
		x.under, f.Ended, f.Former = true, time.Time{}, r.originOf(old)
	case known || x.halt.Why != "":
		f.Ended = cmp.Or(f.Ended, r.Now)
		x.under = x.halt.Why != "" || !r.Reached(f.Ended.Add(watchFor))
	}
	return old
}

// originOf is what most of some nodes were started from.
func (r *Round) originOf(nodes []int) (most cluster.Origin) {
	count := map[cluster.Origin]int{}
	for _, i := range nodes {
		o := r.Nodes[i].Instance.Origin
		if count[o]++; count[o] > count[most] {
			most = o
		}
	}
	return most
}

// verdict halts the rollout where a machine of the source shows that it should be, ends a halt of which the evidence is gone, and
// finds the machine that proves the source.
func (r *Round) verdict(x *rollout, g *round.Group, old []int) {
	if !x.under {
		return
	}
	bad, wait := r.pods(x)
	x.wait = cmp.Or(wait, r.unchecked(x))
	if x.halt.Why == "" && bad.words == "" && x.facts.Proven.IsZero() { // a machine that proves it counts more than another one that is late
		r.prove(x)
	}
	if late := r.machines(x, g, old); bad.words == "" {
		bad = late
	}
	switch {
	case x.halt.Why == "" && bad.words != "":
		x.halt = decision.Halt{Group: g.ID, Source: x.digest, Why: bad.words, At: r.Now, Node: bad.node}
	case x.halt.Why != "" && bad.words == "" && r.recovered(x):
		x.halt = decision.Halt{}
		r.prove(x)
	}
	if x.halt.Why != "" {
		x.facts.Proven = time.Time{}
	}
}

// recovered tells that what halted a rollout is gone: the machine that showed it is there and has been well for a while, or, where
// none had joined, another one has.
func (r *Round) recovered(x *rollout) bool {
	for _, i := range x.fresh {
		n := &r.Nodes[i]
		if x.halt.Node != "" && n.Name != x.halt.Node || n.State != round.StateReady {
			continue
		}
		well := r.Reached(n.ReadySince.Add(r.Policy.ReplaceSettleTime)) && (x.halt.Node != "" || n.ReadySince.After(x.halt.At))
		for _, pod := range r.working(n) {
			well = well && !pod.Unready && pod.Troubles().Waiting == "" && !r.restarted(pod, r.Policy.ReplaceSettleTime)
		}
		if well && r.Reached(x.halt.At.Add(r.Policy.ReplaceSettleTime)) {
			return true
		}
	}
	return false
}

// prove looks for a machine that proves the source: its pods have been Ready for a while. Else one of them says what it lacks.
func (r *Round) prove(x *rollout) {
	for _, i := range x.fresh {
		n := &r.Nodes[i]
		switch lacks, proves := r.lacks(x, n); {
		case proves:
			x.facts.Proven, x.trial = r.Now, finding{}
			return
		case lacks != "" && x.trial.words == "":
			x.trial = finding{n.Name, lacks}
		}
	}
}

// lacks is what a machine has still to show to prove its source; empty: it proves it, or shows nothing because it is empty, goes, or
// has no pod but such as run nowhere.
func (r *Round) lacks(x *rollout, n *round.Node) (words string, proves bool) {
	first := fmt.Sprintf("node %s, the first machine of the source, ", n.Name)
	switch {
	case n.State == round.StateUpcoming:
		return first + "is still starting", false
	case n.State == round.StateMarked || n.Deleting || n.Instance.Phase != cluster.PhaseRunning:
		return "", false
	case n.State != round.StateReady:
		return first + "is not Ready", false
	}
	var since time.Time
	pods := round.Sorted(n.Pods)
	for k := range pods {
		pod := &pods[k]
		at := startable(pod, n)
		switch {
		case pod.Finished || !pod.Deleting.IsZero():
		case (pod.Unready || pod.Troubles().Waiting != "") && !r.Reached(at.Add(r.Startup(n))): // later it is evidence, or has another cause
			return fmt.Sprintf("pod %s on %sis not Ready yet", pod.Key, first), false
		case !pod.Unready && !r.Ignored(pod) && (since.IsZero() || at.Before(since)):
			since = at
		}
	}
	switch due := since.Add(r.Policy.ReplaceSettleTime); {
	case x.wait.words != "":
		return x.wait.words, false
	case since.IsZero():
		return "", false
	case !r.Reached(due):
		r.WakeAt(due)
		return fmt.Sprintf("the pods on %shave to be Ready until %s", first, round.Stamp(due)), false
	}
	return "", true
}

// working are the pods of a node by which a source is proven: those that had to find a place on it.
func (r *Round) working(n *round.Node) []*cluster.Pod {
	var out []*cluster.Pod
	for k := range n.Pods {
		if pod := &n.Pods[k]; !r.Ignored(pod) && pod.Deleting.IsZero() {
			out = append(out, pod)
		}
	}
	return out
}

// Halted says why the rollout of a group's present source is halted; empty: it is not.
func (r *Round) Halted(g int) string { return r.groups[g].rollout.halt.Why }

// StaysForHalt says why a machine of another source stays although nothing needs it: the rollout of its group is halted; empty: it need not.
func (r *Round) StaysForHalt(n *round.Node) string {
	if halted := r.Halted(n.Group); halted != "" && !r.fresh(n) {
		return "it stays while the rollout of its group is halted: " + halted
	}
	return ""
}

// Unproven says why the machine of a node is not ended yet, whatever it goes for; empty: nothing. Until the first machine of its
// group's present source has proven itself, it is the place to which the pods can go back: also while that machine has no Node, or is
// on its way out with pods.
func (r *Round) Unproven(n *round.Node) string {
	x := &r.groups[n.Group].rollout
	if x.halt.Why != "" || r.fresh(n) {
		return ""
	}
	g := &r.Groups[n.Group]
	leaves := func(i int) bool { return r.Nodes[i].State != round.StateReady && len(r.working(&r.Nodes[i])) > 0 }
	if !x.proven() && (g.Upcoming+g.Lost+g.Grow > 0 || slices.ContainsFunc(x.fresh, leaves)) {
		return cmp.Or(x.trial.words, x.wait.words, r.unprovenWords(x))
	}
	return cmp.Or(x.trial.words, x.wait.words)
}

// waitsForSource says why a node is not replaced before the machines of its group's present source have proven themselves;
// empty: they have, or the node is the one that makes room for the first.
func (r *Round) waitsForSource(i int, why Reason) string {
	n := &r.Nodes[i]
	g := &r.groups[n.Group]
	x := &g.rollout
	switch {
	case x.halt.Why != "" && r.fresh(n): // it goes for that
		return ""
	case x.halt.Why != "":
		return fmt.Sprintf("the rollout of source %s of its group is halted [%s]", x.digest, decision.RuleHalted)
	case x.proven() && (why.Rule != decision.RuleDrifted || !x.under):
		return ""
	case x.proven():
		return cmp.Or(x.wait.words, r.checkpoint(i, x), r.ramp(i, x))
	case g.taken:
		return fmt.Sprintf("another node of the group goes first, for the first machine of source %s", x.digest)
	case x.drained != "":
		return fmt.Sprintf("node %s is being drained, and no machine of source %s has proven itself yet", x.drained, x.digest)
	}
	return cmp.Or(x.trial.words, x.wait.words)
}

// unchecked says which machine of the source lacks the condition by which somebody else tells that it is well.
func (r *Round) unchecked(x *rollout) finding {
	for _, i := range x.fresh {
		n := &r.Nodes[i]
		if _, well := n.Conditions[r.Policy.ReplaceHealthCondition]; !well && r.Policy.ReplaceHealthCondition != "" && n.State == round.StateReady {
			return finding{n.Name, fmt.Sprintf("node %s, a machine of the source, has not the condition %s (AUTOSCALER_SCALING_REPLACE_HEALTH_CONDITION)", n.Name, r.Policy.ReplaceHealthCondition)}
		}
	}
	return finding{}
}

// checkpoint says at which share of its group the rollout waits; empty: at none. The time of a checkpoint begins when the machine of the
// source joined that made its share.
func (r *Round) checkpoint(i int, x *rollout) string {
	if len(r.Policy.ReplaceCheckpoints) == 0 {
		return ""
	}
	r.count()
	g := &r.groups[r.Nodes[i].Group]
	old, stay := 0, 0
	for _, k := range g.members {
		if _, fresh := slices.BinarySearch(x.fresh, k); !fresh {
			if old++; r.down[k] != going || k == i {
				stay++
			}
		}
	}
	joined := make([]time.Time, len(x.fresh))
	for k, f := range x.fresh {
		joined[k] = r.Nodes[f].Created
	}
	slices.SortFunc(joined, time.Time.Compare)
	for _, c := range r.Policy.ReplaceCheckpoints {
		share := max(g.size*c.Percent/100, 1)
		if stay > g.size-share {
			return "" // the node is one of the share
		}
		if old > g.size-share || len(joined) == 0 {
			return fmt.Sprintf("the rollout waits at %d%% of the group, and nodes of that share are on their way out", c.Percent)
		}
		if due := joined[min(share, len(joined))-1].Add(c.Wait); !r.Reached(due) {
			r.WakeAt(due)
			return fmt.Sprintf("the rollout waits at %d%% of the group until %s", c.Percent, round.Stamp(due))
		}
	}
	return ""
}

// ramp says why a node waits although its source is proven: half as many nodes go at once as machines of the source have pods, and at
// least one, so that a fault that shows on few of them meets few. Empty: it need not wait.
func (r *Round) ramp(i int, x *rollout) string {
	r.count()
	most, now := 0, 0
	for _, k := range r.groups[r.Nodes[i].Group].members {
		switch _, fresh := slices.BinarySearch(x.fresh, k); {
		case fresh && r.Nodes[k].State == round.StateReady && len(r.working(&r.Nodes[k])) > 0:
			most++
		case !fresh && k != i && r.down[k] == going:
			now++
		}
	}
	if now < max((most+1)/2, 1) {
		return ""
	}
	return fmt.Sprintf("half as many nodes go at once as machines of source %s have pods: %d of %d", x.digest, now, most)
}
