package observe

import (
	"context"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/observe/store"
	"github.com/autoscaler-agent/autoscaler-agent/internal/kube"
)

// values are n strings that no other pod has.
func values(pod, n int) []string {
	out := make([]string, n)
	for k := range out {
		out[k] = fmt.Sprintf("v-%d-%d", pod, k)
	}
	return out
}

func selects(pod, n int) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: metav1.LabelSelectorOpIn, Values: values(pod, n)}}}
}

// inflations are the ways in which a tenant makes a pod large: with n of something. The two hundredth
// part of each is a pod that is nearly as large as what is kept.
var inflations = map[string]func(p *corev1.Pod, pod, n int){
	"node affinity": func(p *corev1.Pod, pod, n int) {
		terms := []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "host", Operator: corev1.NodeSelectorOpNotIn, Values: values(pod, n)}}}}
		p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: terms}}}
	},
	"preferred node affinity": func(p *corev1.Pod, pod, n int) {
		var terms []corev1.PreferredSchedulingTerm
		for _, v := range values(pod, n) {
			terms = append(terms, corev1.PreferredSchedulingTerm{Weight: 1, Preference: corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: v, Operator: corev1.NodeSelectorOpExists}}}})
		}
		p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: terms}}
	},
	"pod affinity": func(p *corev1.Pod, pod, n int) {
		p.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{TopologyKey: "zone", LabelSelector: selects(pod, n)}}}}
	},
	"match expressions": func(p *corev1.Pod, pod, n int) {
		var terms []corev1.PodAffinityTerm
		for _, v := range values(pod, n) {
			terms = append(terms, corev1.PodAffinityTerm{TopologyKey: v, Namespaces: []string{v}, LabelSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: v, Operator: metav1.LabelSelectorOpExists}}}})
		}
		p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: terms}}
	},
	"spread": func(p *corev1.Pod, pod, n int) {
		p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: "zone", WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: selects(pod, n)}}
	},
	"tolerations": func(p *corev1.Pod, pod, n int) {
		for _, v := range values(pod, n) {
			p.Spec.Tolerations = append(p.Spec.Tolerations, corev1.Toleration{Key: v, Operator: corev1.TolerationOpExists})
		}
	},
	"labels": func(p *corev1.Pod, pod, n int) {
		for _, v := range values(pod, n) {
			p.Labels[v] = v
		}
	},
	"node selector": func(p *corev1.Pod, pod, n int) {
		p.Spec.NodeSelector = map[string]string{}
		for _, v := range values(pod, n) {
			p.Spec.NodeSelector[v] = v
		}
	},
	"claims": func(p *corev1.Pod, pod, n int) {
		for _, v := range values(pod, n) {
			p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: v, VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: v}}})
		}
	},
	"owners": func(p *corev1.Pod, pod, n int) {
		yes := true
		p.OwnerReferences = []metav1.OwnerReference{{Kind: "Widget", Name: strings.Join(values(pod, n), "-"), UID: types.UID(fmt.Sprint(pod)), Controller: &yes}}
	},
	"an annotation that is read": func(p *corev1.Pod, pod, n int) {
		p.Annotations[cluster.AnnotationSafeToEvict] = strings.Join(values(pod, n), ",")
	},
	"finalizers": func(p *corev1.Pod, pod, n int) { p.Finalizers = values(pod, n) },
}

// hostilePod is one of a tenant's pods of issue 41: 54 KB of annotations, and 2,400 of something.
func hostilePod(kind string, i, n int) *corev1.Pod {
	p := fullPod(i)
	p.Spec.NodeName, p.Status = "", corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable}}}
	p.Namespace, p.Name = "tenant", fmt.Sprintf("hostile-%d", i)
	p.Annotations["note"] = strings.Repeat("x", 54<<10)
	inflations[kind](p, i, n)
	return p
}

// heapOf lists the pods and returns the store and how many bytes of heap it takes.
func heapOf(tb testing.TB, n int, pod func(int) *corev1.Pod) (*store.Store, int64) {
	client, err := kube.New(streamPods(tb, n, pod))
	if err != nil {
		tb.Fatal(err)
	}
	ctx, stop := context.WithCancel(tb.Context())
	defer stop()
	before := liveHeap()
	s := store.New([]string{corev1.DefaultSchedulerName})
	w := newPodWatch(livePods(client), s, func(store.Urgency) {}, func(err error) { tb.Error(err) })
	go w.run(ctx)
	if !cache.WaitForCacheSync(ctx.Done(), w.hasSynced) {
		tb.Fatal("not synced")
	}
	return s, int64(liveHeap()) - int64(before)
}

// mixed is the i-th pod of a tenant that tries every inflation in turn; each hundredth pod is another one's.
func mixed(n int) func(int) *corev1.Pod {
	kinds := slices.Sorted(maps.Keys(inflations))
	return func(i int) *corev1.Pod {
		if i%100 == 0 {
			return fullPod(i)
		}
		return hostilePod(kinds[i%len(kinds)], i, n)
	}
}

// TestHostilePods: thousands of pods that a tenant has made large in any way take a bounded memory,
// whether they are beyond what is kept of one pod or just below it, and the pods beside them are
// taken up whole. 1,500 pods took 600 MB (issue 41).
func TestHostilePods(t *testing.T) {
	for _, x := range []struct{ pods, each, most, held int }{{600, 2400, 2 << 20, 400}, {5000, 110, 60 << 20, 1000}} {
		s, took := heapOf(t, x.pods, mixed(x.each))
		t.Logf("%d pods with %d values take %.1f MB of heap", x.pods, x.each, float64(took)/1e6)
		if took > int64(x.most) {
			t.Errorf("%d pods with %d values take %d bytes of heap, want at most %d", x.pods, x.each, took, x.most)
		}
		whole, held := 0, 0
		snapshot, _, _ := s.Snapshot(-1)
		for i := range snapshot.Pods {
			switch c := &snapshot.Classes[snapshot.Pods[i].Class]; {
			case c.Labels["tier"] == "web" && snapshot.Pods[i].Node != "":
				whole++
			case c.TooLarge:
				held++
			}
		}
		if whole != x.pods/100 || held < x.held {
			t.Errorf("%d of the other pods are whole, want %d; %d of the tenant's are held, want at least %d", whole, x.pods/100, held, x.held)
		}
		runtime.KeepAlive(s)
	}
}

// BenchmarkHostilePods is what 5,000 pods of a tenant take, of one kind: the heap, and with the processor
// time of the benchmark the time of reading them. The server that makes them is in the same process.
func BenchmarkHostilePods(b *testing.B) {
	for _, kind := range slices.Sorted(maps.Keys(inflations)) {
		for _, each := range []int{2400, 110} {
			b.Run(fmt.Sprintf("%s/%d", strings.ReplaceAll(kind, " ", "-"), each), func(b *testing.B) {
				for b.Loop() {
					s, took := heapOf(b, 5000, func(i int) *corev1.Pod { return hostilePod(kind, i, each) })
					b.ReportMetric(float64(took)/1e6, "heap-MB")
					runtime.KeepAlive(s)
				}
				b.ReportMetric(peakMB(b), "peak-RSS-MB")
			})
		}
	}
}
