package store_test

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/observe/store"
)

// Watch events go in, a Snapshot comes out: equal pods share one class, and a Node that
// did not change is the same pointer in the next Snapshot.
func Example() {
	s := store.New([]string{"default-scheduler"})
	for _, name := range []string{"a", "b"} {
		s.PutNode(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}})
		s.PutPod(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-" + name}, Spec: corev1.PodSpec{NodeName: name}})
	}
	first, version, _ := s.Snapshot(-1)
	s.DeletePod("shop/web-b", "b")
	second, _, evidence := s.Snapshot(version)

	node := func(s cluster.Snapshot, name cluster.NodeName) *cluster.Node {
		for _, n := range s.Nodes {
			if n.Name == name {
				return n
			}
		}
		return nil
	}
	fmt.Println(len(first.Classes), "class,", len(node(first, "b").Pods), "pod on b, then", len(node(second, "b").Pods))
	fmt.Println("a is the same:", node(first, "a") == node(second, "a"), "b is the same:", node(first, "b") == node(second, "b"))
	fmt.Println("new evidence about nodes:", evidence != nil)
	// Output:
	// 1 class, 1 pod on b, then 0
	// a is the same: true b is the same: false
	// new evidence about nodes: false
}
