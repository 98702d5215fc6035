package agent

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
// ones for five minutes, too; what is not said in an Event is in the journal.
const (
	eventAgain = 5 * time.Minute
	eventBurst = 200 // Events about pods at once
	eventRate  = 5   // and a second after that
)

// herald writes the Events of a round under Cluster Autoscaler's reasons: on pods what
// was bought for them or why nothing was, on the status ConfigMap what happened to
// groups and to the cluster. Events about nodes and evictions come from agent/act,
// which does these. It is used by the scaler's goroutine alone.
type herald struct {
	recorder record.EventRecorder
	told     map[string]time.Time
	swept    time.Time
	tokens   float64
	filled   time.Time
	drained  map[cluster.NodeName]bool // nodes that pods were evicted from
}

// held tells what a round held back. It costs nothing while nothing new is held.
func (h *herald) held(s *cluster.Snapshot, p decision.Plan, memory decision.Memory) {
	h.sweep(s.Now)
	for i := range p.Held {
		x := &p.Held[i]
		switch {
		case x.Kind == "pod" && (x.Rule == decision.RuleNoGroup || x.Rule == decision.RuleNotUnderstood || x.Rule == decision.RuleVolume):
			h.notTriggered(s, x, memory)
		case x.Kind == "group" && x.Rule == decision.RuleShort:
			h.cluster(s.Now, corev1.EventTypeWarning, "ScaleUpTimedOut", "Nodes added to group "+x.Name+" failed to register in time: "+x.Why)
		case x.Kind == "group" && x.Rule == decision.RuleTotals:
			h.cluster(s.Now, corev1.EventTypeWarning, "MaxNodesTotalReached", "Max total nodes in cluster reached: "+x.Why)
		case x.Kind == "cluster" && x.Rule == decision.RuleUnhealthy:
			h.cluster(s.Now, corev1.EventTypeWarning, "ClusterUnhealthy", "Cluster has too many unready nodes: "+x.Why)
		}
	}
}

// notTriggered tells the pods that nothing can be bought for, with every group's
// reason and name; also where other pods triggered a scale-up in the same round.
func (h *herald) notTriggered(s *cluster.Snapshot, x *decision.Held, memory decision.Memory) {
	text := x.Why
	if len(x.Groups) > 0 {
		text = plan.Sum(x.Groups)
	}
	for _, g := range x.Groups {
		if g.Rule == decision.RuleTotals {
			h.cluster(s.Now, corev1.EventTypeWarning, "MaxNodesTotalReached", "Max total nodes in cluster reached: "+g.Why)
			break
		}
	}
	if !h.fresh(s.Now, fmt.Sprint("held ", x.Rule, x.Name, x.Count, plain(text))) {
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
		h.pod(s.Now, pod.Key, pod.UID, "NotTriggerScaleUp", "pod didn't trigger scale-up: "+text)
	}
}

// did tells what became of a round's actions.
func (h *herald) did(s *cluster.Snapshot, p decision.Plan, outcomes []cluster.Outcome) {
	for i := range outcomes {
		o := &outcomes[i]
		switch {
		case o.Kind == provider.Busy.String(): // nothing failed and nothing was done
		case o.Action == "grow":
			h.grew(s, p, o)
		case o.Error != "":
		case o.Action == "evict":
			if h.drained == nil {
				h.drained = map[cluster.NodeName]bool{}
			}
			h.drained[o.Node] = true
		case o.Action == "terminate" && o.Node != "" && h.drained[o.Node]:
			h.cluster(s.Now, corev1.EventTypeNormal, "ScaleDown", fmt.Sprintf("Scale-down: node %s of group %s removed with drain", o.Node, o.Group))
			delete(h.drained, o.Node)
		case o.Action == "terminate" && o.Node != "":
			h.cluster(s.Now, corev1.EventTypeNormal, "ScaleDownEmpty", fmt.Sprintf("Scale-down: empty node %s of group %s removed", o.Node, o.Group))
		}
	}
	for _, a := range p.Actions {
		if t, ok := a.(decision.Terminate); ok && t.Rule == decision.RuleNoJoin {
			h.cluster(s.Now, corev1.EventTypeWarning, "ScaleUpTimedOut", fmt.Sprintf("Nodes added to group %s failed to register in time: %s", t.Group, t.Why))
		}
	}
}

// grew tells of one change of a target, on the status object and on the pods.
func (h *herald) grew(s *cluster.Snapshot, p decision.Plan, o *cluster.Outcome) {
	most := 0
	for i := range s.Groups {
		if s.Groups[i].ID == o.Group {
			most = s.Groups[i].Max
		}
	}
	if o.Error != "" {
		h.cluster(s.Now, corev1.EventTypeWarning, "FailedToScaleUpGroup", fmt.Sprintf("Scale-up failed for group %s: %s", o.Group, o.Error))
		return
	}
	h.recorder.Eventf(act.StatusObject, corev1.EventTypeNormal, "ScaledUpGroup", "Scale-up: setting group %s size to %d instead of %d (max: %d)", o.Group, o.To, o.From, most)
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
			h.pod(s.Now, pod.Key, pod.UID, "TriggeredScaleUp", fmt.Sprintf("pod triggered scale-up: [{%s %d->%d (max: %d)}]", o.Group, o.From, o.To, most))
		}
	}
}

// cluster writes an Event on the status object, equal ones once in a while.
func (h *herald) cluster(now time.Time, kind, reason, text string) {
	if h.fresh(now, reason+" "+plain(text)) {
		h.recorder.Event(act.StatusObject, kind, reason, text)
	}
}

// pod writes an Event on a pod, equal ones once in a while, and none when too many
// were written at once.
func (h *herald) pod(now time.Time, key cluster.PodKey, uid cluster.UID, reason, text string) {
	h.tokens = min(eventBurst, h.tokens+now.Sub(h.filled).Seconds()*eventRate)
	h.filled = now
	if h.tokens < 1 || !h.fresh(now, reason+" "+string(uid)+" "+plain(text)) {
		return
	}
	h.tokens--
	h.recorder.Event(act.PodRef(key, uid), corev1.EventTypeNormal, reason, text)
}

// fresh tells that something has not been told lately, and remembers that it is.
func (h *herald) fresh(now time.Time, what string) bool {
	if at, ok := h.told[what]; ok && now.Sub(at) < eventAgain {
		return false
	}
	if h.told == nil {
		h.told = map[string]time.Time{}
	}
	h.told[what] = now
	return true
}

// due tells that what is still held may be told again.
func (h *herald) due(now time.Time) bool { return now.Sub(h.swept) >= eventAgain }

// sweep forgets what may be told again.
func (h *herald) sweep(now time.Time) {
	if !h.due(now) {
		return
	}
	h.swept = now
	for what, at := range h.told {
		if now.Sub(at) >= eventAgain {
			delete(h.told, what)
		}
	}
}
