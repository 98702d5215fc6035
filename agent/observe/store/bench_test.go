package store

import (
	"fmt"
	"runtime"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/autoscaler-agent/autoscaler-agent/agent/observe/convert"
)

const benchPodsPer = 30

// crowd is a cluster of nodes with 30 running pods each, of 30 ReplicaSets, as warm
// informers hold it.
func crowd(nodes int) ([]*corev1.Node, []*corev1.Pod) {
	yes, grace := true, int64(30)
	quantity := func(s string) resource.Quantity { return resource.MustParse(s) }
	var ns []*corev1.Node
	var ps []*corev1.Pod
	for i := range nodes {
		name := fmt.Sprintf("ip-10-%d-%d.example.internal", i/256, i%256)
		have := corev1.ResourceList{"cpu": quantity("16"), "memory": quantity("64Gi"), "pods": quantity("110")}
		ns = append(ns, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(fmt.Sprintf("node-%036d", i)), Labels: map[string]string{"kubernetes.io/hostname": name}},
			Spec:   corev1.NodeSpec{ProviderID: fmt.Sprintf("aws:///zone-a/i-%017d", i)},
			Status: corev1.NodeStatus{Capacity: have, Allocatable: have, Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}}})
		for k := range benchPodsPer {
			rs := fmt.Sprintf("rs-%02d", k)
			p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("%s-%05d", rs, i), UID: types.UID(fmt.Sprintf("%s-%030d", rs, i)), Labels: map[string]string{"app": rs, "pod-template-hash": rs},
				OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: rs, UID: types.UID(rs), Controller: &yes}},
				Annotations:     map[string]string{"cluster-autoscaler.kubernetes.io/safe-to-evict": "true"}, CreationTimestamp: metav1.Unix(1700000000, 0)},
				Spec: corev1.PodSpec{NodeName: name, SchedulerName: "default-scheduler", TerminationGracePeriodSeconds: &grace,
					Containers:  []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": quantity("480m"), "memory": quantity("1966Mi")}}}},
					Tolerations: []corev1.Toleration{{Key: "node.kubernetes.io/not-ready", Operator: "Exists", Effect: "NoExecute"}, {Key: "node.kubernetes.io/unreachable", Operator: "Exists", Effect: "NoExecute"}},
					Volumes:     []corev1.Volume{{Name: "kube-api-access", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{}}}}},
				Status: corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue}}}}
			if _, err := convert.Strip(p); err != nil {
				panic(err)
			}
			ps = append(ps, p)
		}
	}
	return ns, ps
}

// BenchmarkFirstSnapshot is what it costs to make the first Snapshot from warm
// informers, in processor time, and what it holds beside their objects.
func BenchmarkFirstSnapshot(b *testing.B) {
	for _, n := range []int{1000, 5000, 10000} {
		b.Run(fmt.Sprintf("N=%d", n), func(b *testing.B) {
			nodes, pods := crowd(n)
			var w *Store
			before := heap()
			b.ReportAllocs()
			b.ResetTimer()
			start := processor(b)
			for b.Loop() {
				w = New([]string{"default-scheduler"})
				for _, node := range nodes {
					w.PutNode(node)
				}
				for _, pod := range pods {
					w.PutPod(pod)
				}
				w.contents()
			}
			b.ReportMetric(float64(processor(b)-start)/1e6/float64(b.N), "cpu-ms/op")
			b.ReportMetric(float64(heap()-before)/float64(len(pods)), "heap-B/pod")
			runtime.KeepAlive(w)
			runtime.KeepAlive(pods)
			runtime.KeepAlive(nodes)
		})
	}
}

// BenchmarkPodEvent is one running pod's change among 150,000, and the Snapshot after it.
func BenchmarkPodEvent(b *testing.B) {
	nodes, pods := crowd(5000)
	w := New([]string{"default-scheduler"})
	for _, node := range nodes {
		w.PutNode(node)
	}
	for _, pod := range pods {
		w.PutPod(pod)
	}
	w.contents()
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		p := *pods[i%len(pods)]
		p.UID = types.UID(fmt.Sprint(i))
		w.PutPod(&p)
		w.contents()
		i += 7
	}
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func processor(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
