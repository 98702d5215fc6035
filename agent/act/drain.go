package act

import (
	"context"
	"fmt"
	"time"

	"github.com/sirupsen/logrus"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
)

// evict asks the Eviction API to move one pod. A pod that is gone or another one by
// now is a success: the wanted state is there.
func (r *round) evict(ctx context.Context, a decision.Evict) {
	start := time.Now()
	namespace, name := split(a.Pod)
	grace, uid := int64(a.Grace/time.Second), kubeUID(a.UID)
	options := &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}}
	if a.Grace > 0 {
		options.GracePeriodSeconds = &grace
	}
	err := r.Client.PolicyV1().Evictions(namespace).Evict(ctx, &policyv1.Eviction{
		ObjectMeta:    metav1.ObjectMeta{Namespace: namespace, Name: name},
		DeleteOptions: options,
	})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		err = nil
	}
	log := r.Log.WithFields(logrus.Fields{"pod": string(a.Pod), "node": string(a.Node)})
	r.done(cluster.Outcome{Action: "evict", Pod: a.Pod, Node: a.Node}, err, reason(err), start, log, fmt.Sprintf("evict %s from %s", a.Pod, a.Node))
	if err == nil {
		why := "node scale down"
		if a.Why != "" {
			why = a.Why
		}
		r.Recorder.Eventf(PodRef(a.Pod, a.UID), corev1.EventTypeNormal, "ScaleDown", "deleting pod for %s (node %s)", why, a.Node)
	}
}

// terminate deletes a group's instances in one call, after each was looked at once
// more.
func (r *round) terminate(ctx context.Context, group cluster.GroupID, actions []decision.Terminate) {
	start := time.Now()
	checks := make([]error, len(actions))
	index := make([]int, len(actions))
	for i := range index {
		index[i] = i
	}
	each(index, func(i int) { checks[i] = r.stillOurs(ctx, actions[i]) })
	var ids []cluster.InstanceID
	for i, a := range actions {
		if checks[i] == nil {
			ids = append(ids, a.Instance)
		}
	}
	var failed error
	if len(ids) > 0 {
		if failed = r.stillMay(ctx); failed == nil {
			failed = r.Cloud.Delete(ctx, group, ids...)
		}
	}
	for i, a := range actions {
		err, kind := checks[i], "changed"
		if err == nil {
			err = instanceError(failed, a.Instance)
			kind = provider.KindOf(err).String()
		}
		r.terminated(a, err, kind, start)
	}
}

func (r *round) terminated(a decision.Terminate, err error, kind string, start time.Time) {
	log := r.Log.WithFields(logrus.Fields{"group": string(a.Group), "instance": string(a.Instance), "node": string(a.Node), "rule": a.Rule, "why": a.Why})
	o := cluster.Outcome{Action: "terminate", Group: a.Group, Node: a.Node, Instance: a.Instance}
	r.done(o, err, kind, start, log, fmt.Sprintf("scale-down %s: terminate %s", a.Group, a.Instance))
	switch {
	case err != nil && kind == provider.Busy.String():
	case err != nil && a.Node != "":
		r.Recorder.Eventf(NodeRef(a.Node), corev1.EventTypeWarning, "ScaleDownFailed", "failed to delete instance %s: %v", a.Instance, err)
	case a.Node != "":
		r.Recorder.Eventf(NodeRef(a.Node), corev1.EventTypeNormal, "ScaleDown", "node removed by the autoscaler: %s", a.Why)
	case err != nil:
		r.Recorder.Eventf(StatusObject, corev1.EventTypeWarning, "DeleteUnregisteredFailed", "failed to delete unregistered instance %s: %v", a.Instance, err)
	default:
		r.Recorder.Eventf(StatusObject, corev1.EventTypeNormal, "DeleteUnregistered", "removed unregistered instance %s: %s", a.Instance, a.Why)
	}
}

// instanceError finds what a joined error says of one instance. An error that names
// no instance speaks of all of them.
func instanceError(err error, id cluster.InstanceID) error {
	if err == nil {
		return nil
	}
	var mine, general error
	walk(err, func(e *provider.Error) {
		switch e.Instance {
		case id:
			mine = e
		case "":
			general = e
		}
	})
	if mine != nil {
		return mine
	}
	if general != nil {
		return general
	}
	named := false
	walk(err, func(*provider.Error) { named = true })
	if named {
		return nil // every error is about another instance
	}
	return err
}

// walk visits every *provider.Error in the tree of err.
func walk(err error, visit func(*provider.Error)) {
	if e, ok := err.(*provider.Error); ok {
		visit(e)
		return
	}
	switch w := err.(type) {
	case interface{ Unwrap() []error }:
		for _, e := range w.Unwrap() {
			walk(e, visit)
		}
	case interface{ Unwrap() error }:
		walk(w.Unwrap(), visit)
	}
}

// stillOurs looks at the live API once more before an instance goes. For one with a
// node: the node is the same object, carries our taint, and holds no pod that would
// have to move. For one without: no node has come with its provider ID meanwhile.
func (r *round) stillOurs(ctx context.Context, a decision.Terminate) error {
	if a.Node == "" {
		return r.stillNodeless(ctx, a)
	}
	n, err := r.Client.CoreV1().Nodes().Get(ctx, string(a.Node), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil // the Node object is gone; the instance is what is left
	}
	if err != nil {
		return fmt.Errorf("look at node %s: %w", a.Node, err)
	}
	if a.NodeUID != "" && n.UID != kubeUID(a.NodeUID) {
		return fmt.Errorf("node %s is another one now: UID %s, not %s", a.Node, n.UID, a.NodeUID)
	}
	ready := false
	for _, c := range n.Status.Conditions {
		ready = ready || c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	}
	marked := false
	for _, t := range n.Spec.Taints {
		marked = marked || isOurs(t)
	}
	if !marked {
		return fmt.Errorf("node %s no longer carries %s", a.Node, cluster.TaintToBeDeleted)
	}
	if !ready {
		return nil // a dead node's pods cannot be moved; the plan decided on its unreadiness
	}
	return r.noWork(ctx, a.Node, a.Forced)
}

// noWork refuses a Ready node with pods that must move. Where the plan ends the machine although its drain did not end
// (rule D35), the pods that a controller makes again end with it. A pod that would be lost, or that somebody told never to evict, may
// have come since the plan was made, and still keeps the node.
func (r *round) noWork(ctx context.Context, node cluster.NodeName, forced bool) error {
	pods, err := r.Client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("spec.nodeName", string(node)).String(),
	})
	if err != nil {
		return fmt.Errorf("look at pods of node %s: %w", node, err)
	}
	for i := range pods.Items {
		p := &pods.Items[i]
		if forced && metav1.GetControllerOf(p) != nil && p.Annotations[cluster.AnnotationSafeToEvict] != "false" {
			continue
		}
		if mustMove(p, time.Now()) && p.Spec.NodeName == string(node) {
			return fmt.Errorf("pod %s/%s is on node %s", p.Namespace, p.Name, node)
		}
	}
	return nil
}

// mustMove tells whether a pod is work that must leave a node before it goes:
// everything but finished pods, static pods, DaemonSets' pods and pods whose grace
// period is over (metadata.deletionTimestamp is the end of the grace period).
func mustMove(p *corev1.Pod, now time.Time) bool {
	if p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed {
		return false
	}
	if p.DeletionTimestamp != nil && !p.DeletionTimestamp.After(now) {
		return false
	}
	if _, static := p.Annotations[corev1.MirrorPodAnnotationKey]; static {
		return false
	}
	if p.Annotations[cluster.AnnotationDaemonPod] == "true" {
		return false
	}
	ref := metav1.GetControllerOf(p)
	return ref == nil || ref.Kind != "DaemonSet" && ref.Kind != "Node"
}

// stillNodeless lists the live nodes: an instance that became a Node since the plan
// was made has joined after all.
func (r *round) stillNodeless(ctx context.Context, a decision.Terminate) error {
	nodes, err := r.Client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("look for a node of %s: %w", a.Instance, err)
	}
	for i := range nodes.Items {
		if nodes.Items[i].Spec.ProviderID == string(a.Instance) {
			return fmt.Errorf("instance %s has become node %s", a.Instance, nodes.Items[i].Name)
		}
	}
	return nil
}
