package observe_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// An Observer is started once and asked once per round. Its Snapshot has the objects of
// the API server and the groups of the cloud.
func ExampleObserver() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	pending := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}, Status: corev1.PodStatus{Conditions: []corev1.PodCondition{
		{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable}}}}
	o, _, err := start(ctx, node("a"), pending)
	if err != nil {
		fmt.Println(err)
		return
	}
	s := o.Snapshot()
	fmt.Println(len(s.Nodes), "node,", s.Pods[0].Key, "is pending, group", s.Groups[0].ID, "has target", s.Groups[0].Target)
	// Output: 1 node, shop/web is pending, group workers has target 2
}
