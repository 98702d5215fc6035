package disruption

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/round"
)

const (
	// failsAfter is how long a container may fail to start before that is evidence: a registry may be away for minutes.
	failsAfter = 5 * time.Minute
	// loops is how many restarts make a container one that does not run on: a single one may have waited for another program.
	loops = 2
	// lately is how long a restart counts.
	lately = time.Hour
	// mostWorked bounds SourceFacts.Worked.
	mostWorked = 500
)

// finding is what a machine shows, in words.
type finding struct {
	node  cluster.NodeName
	words string
}

// program is what the pods of one controller and revision show: on machines of the source, and elsewhere.
type program struct {
	restarted, survived, restarts int32
	life                          time.Duration // the shortest run that ended
	others, ill                   int32
}

// key names the controller of a pod and its revision: a new revision of a DaemonSet may crash wherever it comes. Empty: a pod
// that plays no part.
func (r *Round) key(pod *cluster.Pod) string {
	if pod.Owner == nil || pod.Finished || !pod.Deleting.IsZero() {
		return ""
	}
	if revision := r.Snapshot.Classes[pod.Class].Labels[cluster.LabelRevisionHash]; revision != "" {
		return string(pod.Owner.UID) + "/" + revision
	}
	return string(pod.Owner.UID)
}

// startable is when a pod of a node can have started at the earliest: it may have been pending for hours before the node came.
func startable(pod *cluster.Pod, n *round.Node) time.Time {
	return round.Later(pod.Created.Time(), n.ReadySince)
}

// restarted tells that a container of a pod was started again a short time ago.
func (r *Round) restarted(pod *cluster.Pod, within time.Duration) bool {
	t := pod.Troubles()
	return t.Restarts > 0 && !r.Reached(t.RestartedAt.Time().Add(within))
}

// ill tells that a pod elsewhere is no better: then the source is not the cause.
func (r *Round) ill(pod *cluster.Pod) bool {
	return pod.Unready || pod.Troubles().Waiting != "" || r.restarted(pod, lately)
}

// ails says what is wrong with a pod for long enough to be evidence; empty: nothing.
func (r *Round) ails(pod *cluster.Pod, n *round.Node) string {
	t := pod.Troubles()
	since := round.Later(startable(pod, n), t.Since.Time())
	switch {
	case t.Waiting != "" && t.Restarts >= loops:
		return fmt.Sprintf("waits in %s after %d restarts", t.Waiting, t.Restarts)
	case t.Waiting != "" && r.Reached(since.Add(failsAfter)):
		return fmt.Sprintf("waits in %s since %s", t.Waiting, round.Stamp(since))
	case pod.Unready && r.Reached(since.Add(r.Startup(n))):
		return "is not Ready since " + round.Stamp(since)
	}
	return ""
}

// programs are those of which a pod on a machine of the source has trouble. It costs the pods of these machines, and those of all
// nodes where there is one.
func (r *Round) programs(x *rollout) map[string]*program {
	var out map[string]*program
	for _, i := range x.fresh {
		n := &r.Nodes[i]
		for k := range n.Pods {
			pod := &n.Pods[k]
			if key := r.key(pod); key != "" && (pod.Unready || pod.Trouble != nil) {
				round.Set(&out, key, &program{})
			}
		}
	}
	if out == nil {
		return nil
	}
	for i := range r.Nodes {
		_, fresh := slices.BinarySearch(x.fresh, i)
		for k := range r.Nodes[i].Pods {
			if p := out[r.key(&r.Nodes[i].Pods[k])]; p != nil {
				r.countPod(p, &r.Nodes[i], &r.Nodes[i].Pods[k], fresh)
			}
		}
	}
	for _, i := range x.fresh {
		for k := range r.Nodes[i].Pods {
			pod := &r.Nodes[i].Pods[k]
			if p := out[r.key(pod)]; p != nil && pod.Troubles().Restarts == 0 && r.Reached(startable(pod, &r.Nodes[i]).Add(p.life)) {
				p.survived++
			}
		}
	}
	return out
}

func (r *Round) countPod(p *program, n *round.Node, pod *cluster.Pod, fresh bool) {
	t := pod.Troubles()
	switch {
	case !fresh:
		if p.others++; r.ill(pod) {
			p.ill++
		}
	case r.restarted(pod, lately):
		p.restarted++
		p.restarts += t.Restarts
		if life := t.RestartedAt.Time().Sub(startable(pod, n)) / time.Duration(t.Restarts); p.life == 0 || life < p.life {
			p.life = life
		}
	}
}

// compared tells that the pods of a program are well elsewhere, or were on machines that were drained for the source.
func (x *rollout) compared(key string, p *program) bool {
	if p.others > 0 {
		return p.ill*4 <= p.others
	}
	_, worked := slices.BinarySearch(x.facts.Worked, key)
	return worked
}

// pods looks at the pods on machines of the source. bad: what halts the rollout. wait: why no further node goes now.
func (r *Round) pods(x *rollout) (bad, wait finding) {
	programs := r.programs(x)
	if programs == nil {
		return bad, wait
	}
	for _, i := range x.fresh {
		n := &r.Nodes[i]
		if n.State != round.StateReady {
			continue
		}
		pods := round.Sorted(n.Pods)
		for k := range pods {
			pod, key := &pods[k], r.key(&pods[k])
			p := programs[key]
			if p == nil || !x.compared(key, p) {
				continue
			}
			if words := r.evidence(n, pod, key, p); words != "" {
				return finding{n.Name, fmt.Sprintf("pod %s on node %s, a machine of the source, %s, and its siblings on other machines are well", pod.Key, n.Name, words)}, wait
			}
			if words := r.troubleWords(pod); words != "" {
				wait = finding{n.Name, fmt.Sprintf("pod %s on node %s, a machine of the source, %s", pod.Key, n.Name, words)}
			}
		}
	}
	return bad, wait
}

// troubleWords say why no further node goes while a pod is as it is; empty: nothing is wrong with it.
func (r *Round) troubleWords(pod *cluster.Pod) string {
	t := pod.Troubles()
	switch again := t.RestartedAt.Time(); {
	case t.Waiting != "":
		return "waits in " + t.Waiting
	case pod.Unready:
		return "is not Ready yet"
	case r.restarted(pod, r.Policy.ReplaceSettleTime):
		r.WakeAt(again.Add(r.Policy.ReplaceSettleTime))
		return "has not run on: it was started again after " + round.Stamp(again)
	}
	return ""
}

// evidence says what a pod shows that half of the pods of its program on the node show too, or of which most pods that have run for
// as long on machines of the source show the same; empty: nothing.
func (r *Round) evidence(n *round.Node, pod *cluster.Pod, key string, p *program) string {
	if words := r.ails(pod, n); words != "" {
		all, bad := 0, 0
		for k := range n.Pods {
			if o := &n.Pods[k]; r.key(o) == key {
				if all++; r.ails(o, n) != "" {
					bad++
				}
			}
		}
		if bad*2 >= all {
			return words
		}
	}
	if p.restarts >= loops && p.restarted > p.survived && r.restarted(pod, lately) {
		return "was started again, as most pods of its controller that have run for as long on machines of the source"
	}
	if again := pod.Troubles().Restarts; again >= loops && r.unwell(n) {
		return fmt.Sprintf("was started again %d times, as most pods of the machine, of several controllers", again)
	}
	return ""
}

// unwell tells a machine of which most pods, of several programs, were started again and again a short time ago: a source may be bad in
// one zone or for one kind of machine only.
func (r *Round) unwell(n *round.Node) bool {
	all, bad, programs := 0, 0, map[string]bool{}
	for k := range n.Pods {
		pod := &n.Pods[k]
		key := r.key(pod)
		if key == "" {
			continue
		}
		if all++; pod.Troubles().Restarts >= loops && r.restarted(pod, lately) {
			bad++
			programs[key] = true
		}
	}
	return len(programs) > 1 && bad*2 > all
}

// machine says what is wrong with a machine itself for long enough; empty: nothing is. strange tells a taint that only machines of
// the source have.
func (r *Round) machine(n *round.Node, strange func(cluster.Taint) bool) string {
	after := r.Startup(n)
	if n.Deleting || n.State == round.StateMarked || n.State == round.StateUpcoming || n.Instance.Phase != cluster.PhaseRunning {
		return ""
	}
	if why := r.sickness(n, after); why != "" {
		return "is " + why
	}
	for _, t := range n.Taints {
		if n.Ready == cluster.StatusTrue && !n.Unschedulable && t.Effect != "PreferNoSchedule" && !strings.HasPrefix(t.Key, "node.kubernetes.io/") && len(r.working(n)) == 0 && strange(t) && r.Reached(n.Created.Add(after)) {
			return fmt.Sprintf("still has the taint %s %s after it joined, which no machine of another source has", t.Key, after)
		}
	}
	return ""
}

// machines counts the machines of the source that did not come, in a row, and returns what is wrong with the last one.
func (r *Round) machines(x *rollout, g *round.Group, old []int) finding {
	strange := func(t cluster.Taint) bool {
		return !slices.ContainsFunc(g.Template.Taints, func(o cluster.Taint) bool { return o.Key == t.Key }) &&
			!slices.ContainsFunc(old, func(i int) bool {
				return slices.ContainsFunc(r.Nodes[i].Taints, func(o cluster.Taint) bool { return o.Key == t.Key })
			})
	}
	var last finding
	missed, silent := map[cluster.InstanceID]finding{}, 0
	for _, i := range old {
		if unready(&r.Nodes[i]) {
			silent++
		}
	}
	for _, i := range x.fresh {
		n := &r.Nodes[i]
		if words := r.machine(n, strange); words != "" {
			missed[n.Instance.ID] = finding{n.Name, "node " + string(n.Name) + ", a machine of the source, " + words}
		}
	}
	if len(missed) > 0 && silent*4*len(x.fresh) >= len(missed)*len(old) { // those of other sources fare no better
		clear(missed)
	}
	for _, late := range g.Reapable {
		if late.Rule == decision.RuleNoJoin && len(late.Instance.Source) > 0 && len(late.Instance.Source.Differences(g.Template.Source)) == 0 {
			missed[late.Instance.ID] = finding{words: "a machine of the source did not join: " + late.Why}
		}
	}
	f := &x.facts
	for _, i := range x.fresh {
		if n := &r.Nodes[i]; n.State == round.StateReady && n.Created.After(f.MissedAt) && len(f.Missed) > 0 && missed[n.Instance.ID].words == "" {
			f.Missed, f.MissedAt = nil, time.Time{}
		}
	}
	for _, id := range slices.Sorted(maps.Keys(missed)) {
		last = missed[id]
		if !slices.Contains(f.Missed, id) {
			f.Missed, f.MissedAt = append(slices.Clip(f.Missed), id), r.Now
		}
	}
	f.Missed = f.Missed[max(len(f.Missed)-20, 0):]
	if last.words == "" || !f.Proven.IsZero() && len(f.Missed) < 2 {
		return finding{}
	}
	if len(f.Missed) > 1 {
		last.words += fmt.Sprintf("; %d in a row did not come", len(f.Missed))
	}
	return last
}

// Untried counts the programs with pods on a node of which no pod is on a machine of its group's present source: nodes with many of them go
// first, so that a program that does not run there shows it early. It costs the pods of the node and, once a round, of these machines.
func (r *Round) Untried(i int) int {
	x := &r.groups[r.Nodes[i].Group].rollout
	if !x.under || r.fresh(&r.Nodes[i]) {
		return 0
	}
	if x.tried == nil {
		x.tried = map[string]bool{"": true}
		for _, k := range x.fresh {
			for p := range r.Nodes[k].Pods {
				x.tried[r.key(&r.Nodes[k].Pods[p])] = true
			}
		}
	}
	untried := map[string]bool{}
	for p := range r.Nodes[i].Pods {
		if key := r.key(&r.Nodes[i].Pods[p]); !x.tried[key] {
			untried[key] = true
		}
	}
	return len(untried)
}

// noteWorked notes the programs that are well on a node that is drained for the source: a pod that has no sibling is compared with
// what it was there.
func (r *Round) noteWorked(f *decision.SourceFacts, n *round.Node) {
	for k := range n.Pods {
		pod := &n.Pods[k]
		key := r.key(pod)
		if key == "" || r.ill(pod) || len(f.Worked) >= mostWorked {
			continue
		}
		if at, known := slices.BinarySearch(f.Worked, key); !known {
			f.Worked = slices.Insert(slices.Clip(f.Worked), at, key)
		}
	}
}
