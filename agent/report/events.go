package report

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/record"

	"github.com/autoscaler-agent/autoscaler-agent/agent/act"
	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
)

// How many Events the scaler writes. Cluster Autoscaler's own recorder drops equal
// ones for five minutes, too. The journal has every decision.
const (
	eventAgain = 5 * time.Minute
	eventBurst = 200 // Events about pods at once
	eventRate  = 5   // and a second after that
)

// Events writes the Kubernetes Events of a round under Cluster Autoscaler's reasons. Events
// on pods say which scale-up is for them, or why there is none; Events on the status
// ConfigMap are about groups and the cluster. Events about nodes and evictions come from
// package act. It is used by the scaler's goroutine alone.
type Events struct {
	Recorder record.EventRecorder
	told     map[string]time.Time
	swept    time.Time
	tokens   float64
	filled   time.Time
	drained  map[cluster.NodeName]bool // nodes that pods were evicted from
}

// Held tells what a round held back. It costs nothing while nothing new is held.
func (e *Events) Held(s *cluster.Snapshot, p decision.Plan, memory decision.Memory) {
	e.sweep(s.Now)
	for i := range p.Held {
		x := &p.Held[i]
		switch {
		case x.Kind == "pod" && (x.Rule == decision.RuleNoGroup || x.Rule == decision.RuleNotUnderstood || x.Rule == decision.RuleTooLarge || x.Rule == decision.RuleVolume || x.Rule == decision.RuleOwnNode):
			e.notTriggered(s, x, memory)
		case x.Kind == "node" && x.Rule == decision.RuleBlocked:
			e.unknownValues(s, x.Name)
		case x.Rule == decision.RuleNeverStarted:
			if e.fresh(s.Now, x.Rule+" "+x.Name) {
				e.Recorder.Event(act.NodeRef(cluster.NodeName(x.Name)), corev1.EventTypeWarning, "NodeNotStarted", "the node is not what its group's template says: "+x.Why)
			}
		case x.Kind == "group" && x.Rule == decision.RuleShort:
			e.cluster(s.Now, corev1.EventTypeWarning, "ScaleUpTimedOut", "Nodes added to group "+x.Name+" failed to register in time: "+x.Why)
		case x.Kind == "group" && x.Rule == decision.RuleTotals:
			e.cluster(s.Now, corev1.EventTypeWarning, "MaxNodesTotalReached", "Max total nodes in cluster reached: "+x.Why)
		case x.Kind == "group" && x.Rule == decision.RuleHalted:
			e.cluster(s.Now, corev1.EventTypeWarning, "RolloutHalted", "group "+x.Name+": "+x.Why)
		case x.Kind == "cluster" && x.Rule == decision.RuleUnhealthy:
			e.cluster(s.Now, corev1.EventTypeWarning, "ClusterUnhealthy", "Cluster has too many unready nodes: "+x.Why)
		}
	}
}

// unknownValues warns of the pods of a blocked node whose annotation safe-to-evict says nothing.
func (e *Events) unknownValues(s *cluster.Snapshot, node string) {
	for _, n := range s.Nodes {
		if string(n.Name) != node {
			continue
		}
		for i := range n.Pods {
			if pod := &n.Pods[i]; !cluster.KnownSafeToEvict(pod.SafeToEvict) {
				e.pod(s.Now, pod.Key, pod.UID, corev1.EventTypeWarning, "UnknownSafeToEvict", fmt.Sprintf("the annotation %s has the value %q, which is none of true, false and %s: the pod is not evicted, and keeps node %s", cluster.AnnotationSafeToEvict, pod.SafeToEvict, cluster.SafeOnCompletion, node))
			}
		}
	}
}

// notTriggered tells the pods that nothing can be bought for, with every group's
// reason and name; also where other pods triggered a scale-up in the same round.
func (e *Events) notTriggered(s *cluster.Snapshot, x *decision.Held, memory decision.Memory) {
	text := x.Why
	if len(x.Groups) > 0 {
		text = plan.Sum(x.Groups)
	}
	for _, g := range x.Groups {
		if g.Rule == decision.RuleTotals {
			e.cluster(s.Now, corev1.EventTypeWarning, "MaxNodesTotalReached", "Max total nodes in cluster reached: "+g.Why)
			break
		}
	}
	if !e.fresh(s.Now, fmt.Sprint("held ", x.Rule, x.Name, x.Count, ownReason(*x))) { // the state of a group is no news of a pod
		return
	}
	class, left := -1, max(x.Count, 1)
	for i := range s.Pods {
		if string(s.Pods[i].Key) == x.Name {
			class = s.Pods[i].Class
		}
	}
	promised := memory.Reservations.ByPod()
	for i := range s.Pods {
		pod := &s.Pods[i]
		if _, helped := promised[pod.Key]; helped || pod.Class != class || pod.Unschedulable.IsZero() || left == 0 {
			continue
		}
		left--
		e.pod(s.Now, pod.Key, pod.UID, corev1.EventTypeNormal, "NotTriggerScaleUp", "pod didn't trigger scale-up: "+text)
	}
}

// Outcomes tells what became of a round's actions.
func (e *Events) Outcomes(s *cluster.Snapshot, p decision.Plan, outcomes []cluster.Outcome) {
	for i := range outcomes {
		o := &outcomes[i]
		switch {
		case o.Kind == provider.Busy.String(): // nothing failed and nothing was done
		case o.Action == "grow":
			e.scaledUp(s, p, o)
		case o.Error != "":
		case o.Action == "evict":
			if e.drained == nil {
				e.drained = map[cluster.NodeName]bool{}
			}
			e.drained[o.Node] = true
		case o.Action == "terminate" && o.Node != "" && e.drained[o.Node]:
			e.cluster(s.Now, corev1.EventTypeNormal, "ScaleDown", fmt.Sprintf("Scale-down: node %s of group %s removed with drain", o.Node, o.Group))
			delete(e.drained, o.Node)
		case o.Action == "terminate" && o.Node != "":
			e.cluster(s.Now, corev1.EventTypeNormal, "ScaleDownEmpty", fmt.Sprintf("Scale-down: empty node %s of group %s removed", o.Node, o.Group))
		}
	}
	for _, a := range p.Actions {
		if t, ok := a.(decision.Terminate); ok && t.Rule == decision.RuleNoJoin {
			e.cluster(s.Now, corev1.EventTypeWarning, "ScaleUpTimedOut", fmt.Sprintf("Nodes added to group %s failed to register in time: %s", t.Group, t.Why))
		}
	}
}

// scaledUp tells of one change of a target, on the status object and on the pods.
func (e *Events) scaledUp(s *cluster.Snapshot, p decision.Plan, o *cluster.Outcome) {
	most := 0
	for i := range s.Groups {
		if s.Groups[i].ID == o.Group {
			most = s.Groups[i].Max
		}
	}
	if o.Error != "" {
		e.cluster(s.Now, corev1.EventTypeWarning, "FailedToScaleUpGroup", fmt.Sprintf("Scale-up failed for group %s: %s", o.Group, o.Error))
		return
	}
	e.Recorder.Eventf(act.StatusObject, corev1.EventTypeNormal, "ScaledUpGroup", "Scale-up: setting group %s size to %d instead of %d (max: %d)", o.Group, o.To, o.From, most)
	helped := map[cluster.PodKey]bool{}
	for _, a := range p.Actions {
		if g, ok := a.(decision.Grow); ok && g.Group == o.Group {
			for _, key := range g.Pods {
				helped[key] = true
			}
		}
	}
	for i := range s.Pods {
		if pod := &s.Pods[i]; helped[pod.Key] {
			e.pod(s.Now, pod.Key, pod.UID, corev1.EventTypeNormal, "TriggeredScaleUp", fmt.Sprintf("pod triggered scale-up: [{%s %d->%d (max: %d)}]", o.Group, o.From, o.To, most))
		}
	}
}

// cluster writes an Event on the status object, equal ones once in a while.
func (e *Events) cluster(now time.Time, kind, reason, text string) {
	if e.fresh(now, reason+" "+plain(text)) {
		e.Recorder.Event(act.StatusObject, kind, reason, text)
	}
}

// pod writes an Event on a pod, equal ones once in a while, and none when too many
// were written at once.
func (e *Events) pod(now time.Time, key cluster.PodKey, uid cluster.UID, kind, reason, text string) {
	e.tokens = min(eventBurst, e.tokens+now.Sub(e.filled).Seconds()*eventRate)
	e.filled = now
	if e.tokens < 1 || !e.fresh(now, reason+" "+string(uid)+" "+plain(text)) {
		return
	}
	e.tokens--
	e.Recorder.Event(act.PodRef(key, uid), kind, reason, text)
}

// fresh tells that something has not been told lately, and remembers that it is.
func (e *Events) fresh(now time.Time, what string) bool {
	if at, ok := e.told[what]; ok && now.Sub(at) < eventAgain {
		return false
	}
	if e.told == nil {
		e.told = map[string]time.Time{}
	}
	e.told[what] = now
	return true
}

// Due tells that what is still held may be told again.
func (e *Events) Due(now time.Time) bool { return now.Sub(e.swept) >= eventAgain }

// sweep forgets what may be told again.
func (e *Events) sweep(now time.Time) {
	if !e.Due(now) {
		return
	}
	e.swept = now
	for what, at := range e.told {
		if now.Sub(at) >= eventAgain {
			delete(e.told, what)
		}
	}
}
