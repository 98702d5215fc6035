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
	// canaryTime is how long a pod must have been on the first machine of a source before its being Ready proves the
	// source: a program may crash only when it has read its settings.
	canaryTime = 2 * time.Minute
	// givenUpFor is how long a node is left alone whose drain was given up.
	givenUpFor = time.Hour
)

// rollout is the state of one group's rollout, as the nodes that were started from its present source show it.
type rollout struct {
	digest  string
	came    bool                        // a node that was started from the source is Ready
	proven  bool                        // a node was started from the source, and its pods are Ready; or no source is told
	halted  string                      // why no node is replaced; empty: the rollout goes on
	at      time.Time                   // when it was halted
	trial   cluster.NodeName            // the first machine of the source, which has not proven it yet
	first   string                      // why the first machine of the source has not proven it yet; empty: there is none, or it has
	drained cluster.NodeName            // a node of the group that is being drained
	failed  map[cluster.NodeName]string // machines of the source that show what halts it
}

// Judge carries over which machines were ordered and which rollouts were halted, and halts the rollouts whose first machine
// failed. It costs N.
func (r *Round) Judge() {
	for name, at := range r.Memory.GivenUp {
		if _, is := r.ByName[name]; is && !r.Reached(at.Add(givenUpFor)) {
			round.Set(&r.Next.GivenUp, name, at)
		}
	}
	r.look()
	defer r.keepHalts()
	if r.Snapshot.Stale != "" {
		r.Next.Replacements = r.Memory.Replacements
		return
	}
	for i := range r.groups {
		if r.groups[i].replaces() {
			r.judge(i)
		}
	}
	r.carryReplacements() // a machine that has just halted a rollout has a reason to go
}

// keepHalts keeps the halts of the groups that this round does not judge, because nothing is replaced in them, the cloud does not tell
// them, or their source is not known now.
func (r *Round) keepHalts() {
	for _, list := range [][]decision.Halt{r.Memory.Halts, r.Policy.Halts} {
		for _, h := range list {
			g, is := r.ByID[h.Group]
			judged := is && r.groups[g].rollout != nil && r.groups[g].rollout.digest != ""
			if !judged && !slices.ContainsFunc(r.Next.Halts, func(x decision.Halt) bool { return x.Group == h.Group }) {
				r.Next.Halts = append(r.Next.Halts, h)
			}
		}
	}
	slices.SortFunc(r.Next.Halts, func(a, b decision.Halt) int { return strings.Compare(string(a.Group), string(b.Group)) })
}

// judge judges the rollout of one group.
func (r *Round) judge(i int) {
	g := &r.Groups[i]
	x := &rollout{at: r.Now}
	r.groups[i].rollout = x
	if rule, words := r.suspended(i); rule != "" {
		r.Held("group", string(g.ID), rule, "no node is replaced because it is drifted or expired: %s", words)
	}
	if len(g.Template.Source) == 0 {
		x.proven = true
		return
	}
	if x.digest = g.Template.Source.Digest(); r.Policy.Rollouts[g.ID].Resumed == x.digest {
		x.proven = true
		return
	}
	for _, list := range [][]decision.Halt{r.Policy.Halts, r.Memory.Halts} {
		for _, h := range list {
			if h.Group == g.ID && h.Source == x.digest {
				x.halted, x.at = h.Why, h.At
			}
		}
	}
	r.prove(x, r.groups[i].members)
	if x.halted == "" && !x.proven {
		x.halted = r.neverCame(g, x.came)
	}
	if x.halted == "" {
		return
	}
	x.proven = false
	r.Next.Halts = append(r.Next.Halts, decision.Halt{Group: g.ID, Source: x.digest, Why: x.halted, At: x.at})
	r.Held("group", string(g.ID), decision.RuleHalted, "the rollout of source %s is halted since %s: %s. The other machines stay. It goes on with another source, or with `autoscaler-agent rollout resume %s`",
		x.digest, round.Stamp(x.at), x.halted, g.ID)
}

// prove looks at the machines that were started from the group's present source. One that proves it counts more than another one
// that fails, unless an earlier round has halted the rollout.
func (r *Round) prove(x *rollout, nodes []int) {
	halted := x.halted != ""
	for _, i := range nodes {
		n := &r.Nodes[i]
		if n.State == round.StateMarked {
			x.drained = cmp.Or(x.drained, n.Name)
		}
		if !r.fresh(n) {
			continue
		}
		x.came = x.came || n.State == round.StateReady
		halt, wait := r.shows(n)
		switch {
		case halt != "":
			round.Set(&x.failed, n.Name, halt)
			x.halted = cmp.Or(x.halted, halt)
		case wait != "":
			x.first, x.trial = cmp.Or(x.first, wait), cmp.Or(x.trial, n.Name)
		case n.State == round.StateReady && len(r.working(n)) > 0 && !halted:
			*x = rollout{digest: x.digest, proven: true}
			return
		}
	}
}

// failed says what a machine of a group's present source shows that halts the rollout; empty: nothing does.
func (r *Round) failed(n *round.Node) string {
	x := r.groups[n.Group].rollout
	switch {
	case x == nil:
		return ""
	case n.State == round.StateMarked && r.fresh(n):
		return x.halted // it is drained for that, so that its pods no longer show it
	}
	return x.failed[n.Name]
}

// shows says what a machine of the present source shows that ends the rollout, or what it has not shown yet.
func (r *Round) shows(n *round.Node) (halt, wait string) {
	switch {
	case n.State == round.StateUpcoming:
		return "", fmt.Sprintf("node %s, the first machine of the source, is still starting", n.Name)
	case n.State == round.StateMarked || n.Deleting || n.Instance.Phase != cluster.PhaseRunning:
		return "", ""
	case n.State != round.StateReady && !r.Reached(n.Created.Add(r.Startup(n))):
		return "", fmt.Sprintf("node %s, the first machine of the source, is not Ready", n.Name)
	case n.State != round.StateReady:
		return fmt.Sprintf("node %s, a machine of the source, is not Ready %s after it joined", n.Name, r.Startup(n)), ""
	}
	crashes, unready := []string{}, ""
	alone := map[cluster.UID]bool{}
	pods := round.Sorted(n.Pods)
	for k := range pods {
		pod := &pods[k]
		switch {
		case pod.Finished || !pod.Deleting.IsZero():
		case pod.Crashing:
			well, sick := r.siblings(pod, n)
			if well && !sick {
				crashes = append(crashes, string(pod.Key))
			} else if !sick && pod.Owner != nil {
				alone[pod.Owner.UID] = true
			}
			unready = string(pod.Key)
		case pod.Unready:
			if due := startable(pod, n).Add(r.Startup(n)); r.Reached(due) {
				if well, sick := r.siblings(pod, n); well && !sick {
					return fmt.Sprintf("pod %s on node %s, a machine of the source, is not Ready %s after it could start, and its siblings on other nodes are", pod.Key, n.Name, r.Startup(n)), ""
				}
			}
			unready = string(pod.Key)
		}
	}
	switch {
	case len(crashes) > 0:
		return fmt.Sprintf("pod %s crashes on node %s, a machine of the source, and its siblings on other nodes do not", crashes[0], n.Name), ""
	case len(alone) > 1: // one of them may be a program that crashes everywhere
		return fmt.Sprintf("the pods of %d controllers crash on node %s, a machine of the source, and on no other node", len(alone), n.Name), ""
	case unready != "":
		return "", fmt.Sprintf("pod %s on node %s, the first machine of the source, is not Ready yet", unready, n.Name)
	}
	if working := r.working(n); len(working) > 0 {
		since := startable(working[0], n)
		for _, pod := range working[1:] {
			if at := startable(pod, n); at.Before(since) {
				since = at
			}
		}
		if due := since.Add(canaryTime); !r.Reached(due) {
			r.WakeAt(due)
			return "", fmt.Sprintf("the pods on node %s, the first machine of the source, have to be Ready until %s", n.Name, round.Stamp(due))
		}
	}
	return "", ""
}

// startable is when a pod of a node can have started at the earliest: it may have been pending for hours before the node came.
func startable(pod *cluster.Pod, n *round.Node) time.Time {
	return round.Later(pod.Created.Time(), n.ReadySince)
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

// siblings tells whether pods of the same controller are Ready on nodes of other sources, and whether any crashes there. It
// costs the pods of the nodes, for each pod that is not Ready on a first machine.
func (r *Round) siblings(pod *cluster.Pod, on *round.Node) (well, sick bool) {
	if pod.Owner == nil {
		return false, false
	}
	for i := range r.Nodes {
		n := &r.Nodes[i]
		if n.Group == on.Group && r.fresh(n) {
			continue
		}
		for k := range n.Pods {
			if o := &n.Pods[k]; o.Owner != nil && o.Owner.UID == pod.Owner.UID {
				well, sick = well || !o.Unready && o.Deleting.IsZero(), sick || o.Crashing
			}
		}
	}
	return well, sick
}

// neverCame says why no machine of the source came; empty: one did, or has still time, or the cloud has none to give. It does not matter
// who ordered the machine: a node that is emptied first has no order, and a pending pod may have caused it.
func (r *Round) neverCame(g *round.Group, came bool) string {
	for _, late := range g.Reapable {
		if late.Rule == decision.RuleNoJoin && !came && len(late.Instance.Source) > 0 && len(late.Instance.Source.Differences(g.Template.Source)) == 0 {
			return "of the source no machine has joined: " + late.Why
		}
	}
	for _, x := range r.Memory.Replacements {
		if x.Rule == decision.RuleConsolidate || x.Group != g.ID || r.arrived(&x) > 0 {
			continue
		}
		for _, b := range r.Next.Backoff {
			if b.Group == g.ID && b.Cause == cluster.CauseNoJoin && b.Last.After(x.Ordered) {
				return fmt.Sprintf("the machine that was ordered at %s in place of node %s did not join: %s", round.Stamp(x.Ordered), x.Node, b.Text)
			}
		}
		elsewhere := slices.ContainsFunc(r.Next.Backoff, func(b decision.Backoff) bool {
			return b.Group == g.ID && b.Last.After(x.Ordered)
		})
		if due := r.due(&x); !elsewhere && r.Reached(due) {
			return fmt.Sprintf("the machine that was ordered at %s in place of node %s was not Ready by %s", round.Stamp(x.Ordered), x.Node, round.Stamp(due))
		}
	}
	return ""
}

// Halted says why the rollout of a group's present source is halted; empty: it is not.
func (r *Round) Halted(g int) string {
	if x := r.groups[g].rollout; x != nil {
		return x.halted
	}
	return ""
}

// Unproven says why the machine of a node that is drained is not ended yet; empty: nothing. Until the first machine of its
// group's present source has proven itself, it is the place to which the pods can go back.
func (r *Round) Unproven(n *round.Node) string {
	if x := r.groups[n.Group].rollout; x != nil && !r.fresh(n) {
		return x.first
	}
	return ""
}

// waitsForCanary says why a node is not replaced before the first machine of its group's present source has proven itself;
// empty: one has, or the node is the one that makes room for it.
func (r *Round) waitsForCanary(i int) string {
	n := &r.Nodes[i]
	g := &r.groups[n.Group]
	x := g.rollout
	switch {
	case x == nil || x.proven || r.failed(n) != "":
		return ""
	case x.halted != "":
		return fmt.Sprintf("the rollout of source %s of its group is halted [%s]", x.digest, decision.RuleHalted)
	case r.order(n.Name) != nil:
		return ""
	case g.taken:
		return fmt.Sprintf("another node of the group goes first, for the first machine of source %s", x.digest)
	}
	for _, o := range r.Next.Replacements {
		if o.Rule != decision.RuleConsolidate && o.Group == r.Groups[n.Group].ID {
			return fmt.Sprintf("a machine of source %s was ordered in place of node %s, and is the first", x.digest, o.Node)
		}
	}
	if x.drained != "" {
		return fmt.Sprintf("node %s is being drained, and no machine of source %s has proven itself yet", x.drained, x.digest)
	}
	return x.first
}
