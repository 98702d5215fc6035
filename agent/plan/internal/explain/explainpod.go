package explain

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/fit"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/round"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/scaledown"
)

const RuleResources = fit.RuleResources

// individual are the rules that speak of one pod, and not of its class.
var individual = []string{decision.RuleExpendable, decision.RuleNewPod}

func (e *explainer) pod() {
	pod, others := e.find()
	if pod == nil {
		e.missing("pod", others)
		if len(others) == 0 {
			e.out.Summary += "; pods that have finished are not looked at"
		}
		return
	}
	e.out.Found, e.out.Name = true, string(pod.Key)
	f := &decision.PodFacts{Created: pod.Created.Time(), Waits: pod.Unschedulable.Time(), Node: pod.Node}
	e.out.Pod = f
	if f.State, e.out.Summary = e.terminalState(pod); f.State != "" {
		if f.State == "running" {
			e.runs(pod, f)
		}
		if n, ok := e.end.ByName[pod.Node]; ok {
			e.leaves(pod, &e.end.Nodes[n], f)
		}
		if f.State == "daemon" {
			e.ownNode(pod)
		}
		if f.State == "nominated" {
			f.Node = pod.Nominated
			e.out.Verdicts = []decision.Verdict{{Rule: decision.RuleRoomOnNode, Why: e.out.Summary}}
		}
		return
	}
	f.State = "waiting"
	if pod.Unschedulable.IsZero() {
		f.State = "unjudged"
	}
	e.waits(pod, f)
}

// find returns the pod that is asked for, or the names that could be meant.
func (e *explainer) find() (*cluster.Pod, []string) {
	name, full := e.q.Name, strings.Contains(e.q.Name, "/")
	var same []*cluster.Pod
	var near []string
	for pod := range e.end.Given.AllPods() { // where they are: see releaseInterrupted
		_, short, _ := strings.Cut(string(pod.Key), "/")
		switch {
		case string(pod.Key) == name || !full && short == name:
			same = append(same, pod)
		case strings.Contains(string(pod.Key), name):
			near = append(near, string(pod.Key))
		}
	}
	for _, pod := range same {
		if len(same) == 1 || string(pod.Key) == "default/"+name || string(pod.Key) == name {
			return pod, nil
		}
	}
	for _, pod := range same {
		near = append(near, string(pod.Key))
	}
	return nil, near
}

// terminalState names the state of a pod for which no machine is bought, whatever the pod's size.
func (e *explainer) terminalState(pod *cluster.Pod) (state, words string) {
	switch {
	case pod.Finished:
		return "finished", "it has finished: it needs no node"
	case !pod.Deleting.IsZero():
		return "terminating", "it is being deleted (until " + round.Stamp(pod.Deleting.Time()) + " at the latest): no machine is bought for it"
	case pod.Node != "":
		return "running", fmt.Sprintf("it is bound to node %s: the scheduler has placed it", pod.Node)
	case pod.Mirror || round.Daemon(pod):
		return "daemon", "it belongs to one node (a static pod or a DaemonSet's): a machine is never bought for it; room for it is kept on every node that it would run on"
	case pod.Gated:
		return "gated", "it has scheduling gates: kube-scheduler does not look at it, and the agent buys no machine for it, before the controller that set the gates removes them"
	case pod.Nominated != "" && !slices.ContainsFunc(e.end.Snapshot.Pods, func(p cluster.Pod) bool { return p.Key == pod.Key && round.IsPending(&p) }):
		return "nominated", round.NominatedWords(pod)
	}
	return "", ""
}

// ownNode tells what keeps a pod that belongs to one node off it.
func (e *explainer) ownNode(pod *cluster.Pod) {
	for _, h := range e.held {
		if h.Rule == decision.RuleOwnNode && h.Name == string(pod.Key) {
			e.out.Summary = h.Why + "; " + e.out.Summary
			e.out.Verdicts = []decision.Verdict{{Rule: h.Rule, Why: h.Why}}
		}
	}
}

// leaves tells of a pod whose machine goes or is gone.
func (e *explainer) leaves(pod *cluster.Pod, n *round.Node, f *decision.PodFacts) {
	switch {
	case n.Original != nil:
		e.interrupted(pod, n, f)
	case n.Instance != nil && n.Instance.Phase == cluster.PhaseGone && e.classOf(string(pod.Key)) >= 0:
		f.Blockers = nil
		e.waits(pod, f)
		e.out.Summary = fmt.Sprintf("it is bound to node %s, whose machine is gone, and needs room elsewhere; %s", n.Name, e.out.Summary)
	}
}

// interrupted tells of a pod whose machine the cloud ends: it is evicted, and wants room.
func (e *explainer) interrupted(pod *cluster.Pod, n *round.Node, f *decision.PodFacts) {
	words := fmt.Sprintf("it is bound to node %s: %s, ", n.Name, scaledown.InterruptionWords(n.Instance))
	if f.Blockers = nil; e.down.Ignored(pod) {
		words += "and the pod goes with it"
	} else if words += "so it is evicted"; e.down.ScaleDown.BudgetsBlock(pod) != "" {
		why := e.down.ScaleDown.BudgetsBlock(pod)
		f.Blockers = []decision.Blocker{{Pod: pod.Key, Name: "budget", Why: why}}
		words += " as soon as its budgets allow it (" + why + ")"
	}
	e.out.Summary = words
	if e.classOf(string(pod.Key)) >= 0 {
		e.waits(pod, f)
		e.out.Summary = words + "; " + e.out.Summary
	}
	e.out.Verdicts = append([]decision.Verdict{{Rule: decision.RuleInterrupted, Why: scaledown.InterruptionWords(n.Instance)}}, e.out.Verdicts...)
}

// runs tells how a pod that runs stands towards a drain of its node.
func (e *explainer) runs(pod *cluster.Pod, f *decision.PodFacts) {
	f.Blockers = e.down.ScaleDown.BlockersOf(pod)
	if n, ok := e.end.ByName[pod.Node]; ok && round.ToBeDeleted(e.end.Nodes[n].Node) {
		e.out.Summary += "; the node is being drained, and the pod will be evicted"
	}
	if len(f.Blockers) > 0 {
		e.out.Summary += "; it keeps its node from being removed"
	}
}

// waits explains a pod that wants room.
func (e *explainer) waits(pod *cluster.Pod, f *decision.PodFacts) {
	for i := range e.end.Snapshot.Pods {
		if other := &e.end.Snapshot.Pods[i]; other.Class == pod.Class && round.IsPending(other) {
			f.Alike++
		}
	}
	nodes, groups := e.nodesFor(pod.Class), sum("node groups can help", e.end.ScaleUp.Refusals(pod.Class, e.grown()))
	f.Nodes, f.Groups = &nodes, &groups
	e.out.Verdicts = append(e.out.Verdicts, e.ownVerdicts(pod, f)...)
	for _, h := range e.held {
		if h.Kind != "pod" || slices.Contains(individual, h.Rule) || slices.ContainsFunc(e.out.Verdicts, func(v decision.Verdict) bool { return v.Rule == h.Rule && v.Count == 0 }) {
			continue
		}
		if e.classOf(h.Name) == pod.Class {
			e.out.Verdicts = append(e.out.Verdicts, decision.Verdict{Rule: h.Rule, Why: h.Why, Count: h.Count})
		}
	}
	e.out.Summary = e.podSummary(pod, f)
}

// ownVerdicts are those that are known to be about this very pod.
func (e *explainer) ownVerdicts(pod *cluster.Pod, f *decision.PodFacts) []decision.Verdict {
	var out []decision.Verdict
	for _, h := range e.held {
		if h.Kind == "pod" && h.Name == string(pod.Key) && slices.Contains(individual, h.Rule) {
			out = append(out, decision.Verdict{Rule: h.Rule, Why: h.Why})
		}
	}
	for _, a := range e.plan.Actions {
		if g, ok := a.(decision.Grow); ok && slices.Contains(g.Pods, pod.Key) {
			out = append(out, decision.Verdict{Rule: g.Rule, Why: fmt.Sprintf("this round buys a machine for it: group %s %d->%d", g.Group, g.From, g.To)})
			return out
		}
	}
	if g := e.end.Next.Reservations.Of(pod.Key); g != "" {
		f.Reservation = e.reservedMachine(g)
		out = append(out, decision.Verdict{Rule: decision.RuleRoomUpcoming, Why: fmt.Sprintf("counts on a machine that is coming in group %s", g)})
	}
	return out
}

// reservedMachine says since when a group's machine is awaited, and until when.
func (e *explainer) reservedMachine(id cluster.GroupID) *decision.ReservedMachine {
	p := &decision.ReservedMachine{Group: id}
	note := func(t time.Time) {
		if !t.IsZero() && (p.Since.IsZero() || t.Before(p.Since)) {
			p.Since = t
		}
	}
	note(e.end.Next.Short[id])
	i, ok := e.end.ByID[id]
	if !ok {
		return p
	}
	g := &e.end.Groups[i]
	for k := range g.Instances {
		note(e.end.Next.Unregistered[g.Instances[k].ID])
	}
	if p.Since.IsZero() {
		note(e.end.Next.Resized[id].At)
	}
	if !p.Since.IsZero() {
		p.Until = p.Since.Add(round.OrElse(g.Options.MaxNodeProvisionTime, e.end.Policy.MaxNodeProvisionTime))
	}
	return p
}

func (e *explainer) podSummary(pod *cluster.Pod, f *decision.PodFacts) string {
	if len(e.out.Verdicts) > 0 && (e.out.Verdicts[0].Count == 0 || len(e.out.Verdicts) == 1) {
		switch v := e.out.Verdicts[0]; v.Rule {
		case decision.RuleNoGroup:
			return "no node has room for it and no node group can help"
		case decision.RuleRoomUpcoming:
			if p := f.Reservation; p != nil && !p.Since.IsZero() {
				return fmt.Sprintf("it waits for a machine that is coming in group %s since %s, at the latest until %s", p.Group, e.at(p.Since), e.at(p.Until))
			}
			return v.Why
		default:
			return v.Why
		}
	}
	switch {
	case len(e.out.Verdicts) > 1:
		return fmt.Sprintf("%d pods like it wait, and they fare differently", f.Alike)
	case pod.Unschedulable.IsZero():
		return "kube-scheduler has not judged it yet: the agent buys no machine before the pod is marked Unschedulable, and keeps the room that the pod may need"
	}
	return "nothing is known about it: look again in a moment"
}

// classOf is the class of a pending pod by its key, -1 when there is none.
func (e *explainer) classOf(key string) int {
	for i := range e.end.Snapshot.Pods {
		if pod := &e.end.Snapshot.Pods[i]; string(pod.Key) == key {
			return pod.Class
		}
	}
	return -1
}

// grown is how much each group grows in this round.
func (e *explainer) grown() []int {
	out := make([]int, len(e.end.Groups))
	for i := range e.end.Groups {
		out[i] = e.end.Groups[i].Grow
	}
	return out
}

// nodesFor says of every node why it does not take a pod of a class.
func (e *explainer) nodesFor(class int) decision.Judgement {
	out := make([]decision.Refusal, len(e.up.Nodes))
	seats := e.up.NewState()
	for i := range e.up.Nodes {
		rule, why := e.up.NodeRefuses(i, class)
		if rule == "" {
			if r, words := seats.Refused(class, i); r != "" {
				rule, why = r, words
			} else if short, _ := e.down.Dimensions.Insufficient(e.down.Nodes[i].Room, e.down.Dimensions.Class(class)); short != "" {
				rule, why = decision.RuleInUse, "node(s) whose room pending pods count on"
			}
		}
		out[i] = decision.Refusal{Name: string(e.up.Nodes[i].Name), Rule: rule, Why: why}
	}
	return sum("nodes are available", out)
}
