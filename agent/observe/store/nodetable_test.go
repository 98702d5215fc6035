package store

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/internal/testing/drawn"
)

func on(node, uid string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.NodeName, p.UID = node, types.UID(uid) }
}

// TestOneChangeMakesOneNewNode: what did not change is the same pointer, and what a
// Snapshot has is never written to.
func TestOneChangeMakesOneNewNode(t *testing.T) {
	w := New(nil)
	for n := range 3 {
		w.PutNode(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("n", n)}})
		for p := range 4 {
			w.PutPod(pod(fmt.Sprintf("p%d%d", n, p), on(fmt.Sprint("n", n), "u")))
		}
	}
	nodes, pods := w.nodesAndPods()
	if again, _ := w.nodesAndPods(); &again[0] != &nodes[0] || len(pods) != 0 {
		t.Error("an unchanged store was copied, or bound pods are listed as pending")
	}
	w.PutPod(pod("p10", on("n1", "u"))) // nothing new
	w.PutNode(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}})
	if again, _ := w.nodesAndPods(); &again[0] != &nodes[0] {
		t.Error("an unchanged pod made a new slice")
	}
	w.PutPod(pod("p11", on("n1", "other")))
	w.DeletePod("ns/p12", "n1")
	w.PutPod(pod("p14", on("n1", "u")))
	after, _ := w.nodesAndPods()
	for i := range nodes {
		if same := nodes[i] == after[i]; same != (nodes[i].Name != "n1") {
			t.Errorf("%s: same pointer %v", nodes[i].Name, same)
		}
		if len(nodes[i].Pods) != 4 || nodes[i].Pods[1].UID != "u" {
			t.Errorf("an old snapshot changed: %+v", nodes[i].Pods)
		}
	}
	if got := after[1].Pods; len(got) != 4 || got[1].UID != "other" || got[2].Key != "ns/p13" || got[3].Key != "ns/p14" {
		t.Errorf("now %+v", got)
	}
}

// TestPodsOutliveTheirNode: pods of a Node that is not listed are pods without one.
func TestPodsOutliveTheirNode(t *testing.T) {
	w := New(nil)
	w.PutPod(pod("early", on("n", "u")))
	if nodes, pods := w.nodesAndPods(); len(nodes) != 0 || len(pods) != 1 || pods[0].Node != "n" {
		t.Errorf("before its Node: %v, %+v", nodes, pods)
	}
	w.PutNode(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}})
	if nodes, pods := w.nodesAndPods(); len(nodes) != 1 || len(nodes[0].Pods) != 1 || len(pods) != 0 {
		t.Errorf("with its Node: %v, %+v", nodes, pods)
	}
	w.DeleteNode("n")
	if nodes, pods := w.nodesAndPods(); len(nodes) != 0 || len(pods) != 1 {
		t.Errorf("after its Node: %v, %+v", nodes, pods)
	}
	if w.DeletePod("ns/early", "n"); len(w.nodes.entries)+len(w.podsByController)+len(w.classes.index) != 0 {
		t.Errorf("left over: %v, %v, %v", w.nodes.entries, w.podsByController, w.classes.index)
	}
}

// TestStoreIsWhatTheLastEventsSaid plays random events and compares with a store that
// received only the last version of each object.
func TestStoreIsWhatTheLastEventsSaid(t *testing.T) {
	seed := drawn.Seed(t)
	r := rand.New(rand.NewPCG(seed, 0))
	w := New(nil)
	pods, nodes := map[string]*corev1.Pod{}, map[string]*corev1.Node{}
	var kept cluster.Snapshot
	var told string
	for range 3000 {
		switch name := fmt.Sprint(r.IntN(30)); r.IntN(11) {
		case 0, 1, 2, 3, 4:
			p := pod(name, on([]string{"", "a", "b", "c", "x"}[r.IntN(5)], fmt.Sprint(r.IntN(2))))
			if old := pods[name]; old != nil && old.Spec.NodeName != "" && old.Spec.NodeName != p.Spec.NodeName {
				w.DeletePod(podKey("ns", name), cluster.NodeName(old.Spec.NodeName))
			}
			w.PutPod(p)
			pods[name] = p
		case 5, 6:
			if old := pods[name]; old != nil {
				w.DeletePod(podKey("ns", name), cluster.NodeName(old.Spec.NodeName))
				delete(pods, name)
			}
		case 7:
			n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: string('a' + rune(r.IntN(3))), Labels: map[string]string{"l": name}}}
			w.PutNode(n)
			nodes[n.Name] = n
		case 8:
			gone := string('a' + rune(r.IntN(3)))
			w.DeleteNode(cluster.NodeName(gone))
			delete(nodes, gone)
		case 9: // a list after a watch that broke: pods are gone, moved and new without an event
			delete(pods, name)
			for range r.IntN(4) {
				p := pod(fmt.Sprint(r.IntN(30)), on([]string{"", "a", "b", "c", "x"}[r.IntN(5)], fmt.Sprint(r.IntN(2))))
				pods[p.Name] = p
			}
			reader := w.PodReader()
			var rows []*PodRow
			for _, p := range pods {
				rows = append(rows, reader.Read(p))
			}
			w.ReplacePods(rows)
		default:
			if told != "" && told != fmt.Sprint(flat(&kept)) {
				t.Fatalf("a Snapshot changed (seed %d)", seed)
			}
			kept.Nodes, kept.Pods = w.nodesAndPods()
			told = fmt.Sprint(flat(&kept))
			fresh := New(nil)
			for _, n := range nodes {
				fresh.PutNode(n)
			}
			for _, p := range pods {
				fresh.PutPod(p)
			}
			var want cluster.Snapshot
			want.Nodes, want.Pods = fresh.nodesAndPods()
			if !reflect.DeepEqual(flat(&kept), flat(&want)) {
				t.Fatalf("seed %d:\n%v, want\n%v", seed, flat(&kept), flat(&want))
			}
		}
	}
}

// flat writes down what is where.
func flat(s *cluster.Snapshot) map[string]string {
	out := map[string]string{}
	for _, n := range s.Nodes {
		out["node "+string(n.Name)] = fmt.Sprint(n.Labels)
		for _, p := range n.Pods {
			out[string(p.Key)] = "on " + string(n.Name) + " " + string(p.UID) + " " + string(p.Node)
		}
	}
	for _, p := range s.Pods {
		out[string(p.Key)] = "waits " + string(p.UID) + " " + string(p.Node)
	}
	return out
}
