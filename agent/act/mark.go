package act

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sirupsen/logrus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
)

func kubeUID(uid cluster.UID) types.UID { return types.UID(uid) }

func split(key cluster.PodKey) (namespace, name string) {
	namespace, name, _ = strings.Cut(string(key), "/")
	return namespace, name
}

// reason is the API's word for an error, for cluster.Outcome.Kind.
func reason(err error) string {
	if r := apierrors.ReasonForError(err); r != metav1.StatusReasonUnknown {
		return string(r)
	}
	if err != nil {
		return "other"
	}
	return ""
}

// mark carries out a Cordon, an Uncordon or a Soften.
func (r *round) mark(ctx context.Context, a decision.Action) {
	start := time.Now()
	switch a := a.(type) {
	case decision.Cordon:
		err := r.changeNode(ctx, a.Node, a.UID, func(n *corev1.Node, now time.Time) (bool, error) { return cordon(n, a.Rule, now) })
		log := r.Log.WithFields(logrus.Fields{"node": string(a.Node), "rule": a.Rule, "why": a.Why})
		r.done(cluster.Outcome{Action: "cordon", Node: a.Node}, err, reason(err), start, log, fmt.Sprintf("cordon %s", a.Node))
		if err != nil {
			r.Recorder.Eventf(NodeRef(a.Node), corev1.EventTypeWarning, "ScaleDownFailed", "failed to mark the node as toBeDeleted/unschedulable: %v", err)
			return
		}
		r.Recorder.Eventf(NodeRef(a.Node), corev1.EventTypeNormal, "ScaleDown", "marked the node as toBeDeleted/unschedulable: %s", a.Why)
	case decision.SoftTaint:
		change := soften
		if a.Off {
			change = unsoften
		}
		err := r.changeNode(ctx, a.Node, a.UID, change)
		log := r.Log.WithFields(logrus.Fields{"node": string(a.Node), "rule": a.Rule, "why": a.Why})
		r.done(cluster.Outcome{Action: "soften", Node: a.Node}, err, reason(err), start, log, a.String())
	case decision.Uncordon:
		err := r.changeNode(ctx, a.Node, a.UID, uncordon)
		log := r.Log.WithFields(logrus.Fields{"node": string(a.Node), "rule": a.Rule, "why": a.Why})
		r.done(cluster.Outcome{Action: "uncordon", Node: a.Node}, err, reason(err), start, log, fmt.Sprintf("uncordon %s", a.Node))
		if err == nil {
			r.Recorder.Eventf(NodeRef(a.Node), corev1.EventTypeNormal, "ScaleDownCancelled", "the node stays: %s", a.Why)
		}
	}
}

// changeNode applies change to the live node, provided that it is still the one
// that the plan spoke of. A conflicting writer is retried; nothing is overwritten.
func (r *round) changeNode(ctx context.Context, name cluster.NodeName, uid cluster.UID, change func(*corev1.Node, time.Time) (bool, error)) error {
	nodes := r.Client.CoreV1().Nodes()
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		n, err := nodes.Get(ctx, string(name), metav1.GetOptions{})
		if err != nil {
			return err
		}
		if uid != "" && n.UID != kubeUID(uid) {
			return fmt.Errorf("node %s is another one now: UID %s, not %s", name, n.UID, uid)
		}
		if changed, err := change(n, time.Now()); err != nil || !changed {
			return err
		}
		if err := r.stillMay(ctx); err != nil {
			return err
		}
		_, err = nodes.Update(ctx, n, metav1.UpdateOptions{})
		return err
	})
}

// cordon marks n for deletion. A node that somebody cordoned or marked since the plan
// was made is theirs: our mark on top of it could be told from theirs by nobody, and
// would never be taken back.
func cordon(n *corev1.Node, rule string, now time.Time) (bool, error) {
	marked := slices.ContainsFunc(n.Spec.Taints, isOurs)
	_, ours := n.Annotations[cluster.AnnotationCordoned]
	switch {
	case marked && ours && n.Spec.Unschedulable:
		return false, nil
	case marked && !ours:
		return false, fmt.Errorf("node %s was marked for deletion by somebody else meanwhile", n.Name)
	case n.Spec.Unschedulable && !ours:
		return false, fmt.Errorf("node %s was cordoned by somebody else meanwhile", n.Name)
	}
	if !marked {
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: cluster.TaintToBeDeleted, Value: strconv.FormatInt(now.Unix(), 10), Effect: corev1.TaintEffectNoSchedule})
	}
	if n.Annotations == nil {
		n.Annotations = map[string]string{}
	}
	n.Spec.Unschedulable, n.Annotations[cluster.AnnotationCordoned] = true, strings.TrimSpace(now.UTC().Format(time.RFC3339)+" "+rule)
	if _, has := n.Labels[cluster.LabelNoLoadBalancer]; !has {
		if n.Labels == nil {
			n.Labels = map[string]string{}
		}
		n.Labels[cluster.LabelNoLoadBalancer] = cluster.LabelOurs
	}
	return true, nil
}

// uncordon takes the taint away, and the cordon and the label where they are marked as ours.
func uncordon(n *corev1.Node, _ time.Time) (bool, error) {
	before := len(n.Spec.Taints)
	n.Spec.Taints = slices.DeleteFunc(n.Spec.Taints, isOurs)
	changed := len(n.Spec.Taints) != before
	if n.Labels[cluster.LabelNoLoadBalancer] == cluster.LabelOurs {
		delete(n.Labels, cluster.LabelNoLoadBalancer)
		changed = true
	}
	if _, ours := n.Annotations[cluster.AnnotationCordoned]; ours {
		n.Spec.Unschedulable = false
		delete(n.Annotations, cluster.AnnotationCordoned)
		// The API server's defaulting adds this taint with spec.unschedulable and the
		// node controller takes it away; nothing here touches it.
		changed = true
	}
	return changed, nil
}

// soften puts the soft taint on n, once.
func soften(n *corev1.Node, now time.Time) (bool, error) {
	if slices.ContainsFunc(n.Spec.Taints, isSoft) {
		return false, nil
	}
	n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: cluster.TaintDeletionCandidate, Value: strconv.FormatInt(now.Unix(), 10), Effect: corev1.TaintEffectPreferNoSchedule})
	return true, nil
}

// unsoften takes the soft taint away.
func unsoften(n *corev1.Node, _ time.Time) (bool, error) {
	before := len(n.Spec.Taints)
	n.Spec.Taints = slices.DeleteFunc(n.Spec.Taints, isSoft)
	return len(n.Spec.Taints) != before, nil
}

func isSoft(t corev1.Taint) bool { return t.Key == cluster.TaintDeletionCandidate }

func isOurs(t corev1.Taint) bool { return t.Key == cluster.TaintToBeDeleted }
