package act

import (
	"context"
	"fmt"
	"time"

	"github.com/sirupsen/logrus"
	corev1 "k8s.io/api/core/v1"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
)

// StatusObject is what group-level events are about: the object that Cluster
// Autoscaler reports its own on.
var StatusObject = &corev1.ObjectReference{Kind: "ConfigMap", APIVersion: "v1", Namespace: "kube-system", Name: "cluster-autoscaler-status"}

// grow raises a group's target by one compare-and-set call. The Events about it need
// the whole round (which pods, which maximum) and are written by whoever has it.
func (r *round) grow(ctx context.Context, a decision.Grow) {
	start := time.Now()
	err := r.Cloud.Resize(ctx, a.Group, a.From, a.To)
	log := r.Log.WithFields(logrus.Fields{"group": string(a.Group), "rule": a.Rule, "why": a.Why, "from": a.From, "to": a.To, "pods": len(a.Pods) + a.Expected})
	o := cluster.Outcome{Action: "grow", Group: a.Group, From: a.From, To: a.To}
	r.done(o, err, provider.KindOf(err).String(), start, log, fmt.Sprintf("scale-up %s %d->%d", a.Group, a.From, a.To))
}

// PodRef names a pod for an event. kubectl describe pod asks for the events of the
// pod's UID: those without one it does not show.
func PodRef(key cluster.PodKey, uid cluster.UID) *corev1.ObjectReference {
	namespace, name := split(key)
	return &corev1.ObjectReference{Kind: "Pod", APIVersion: "v1", Namespace: namespace, Name: name, UID: kubeUID(uid)}
}

// NodeRef names a node for an event, with the node's name as UID, as kubelets do.
func NodeRef(name cluster.NodeName) *corev1.ObjectReference {
	return &corev1.ObjectReference{Kind: "Node", APIVersion: "v1", Name: string(name), UID: kubeUID(cluster.UID(name))}
}
