package store

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/internal/testing/drawn"
)

func attach(volume, node string) *storagev1.VolumeAttachment {
	return &storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: "va-" + volume},
		Spec: storagev1.VolumeAttachmentSpec{Attacher: "d", NodeName: node, Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &volume}}}
}

// TestIdleAttachmentsTakeRoom: of three volumes that are attached to a node, one is used
// by a pod there, one by a pod elsewhere and one by nobody.
func TestIdleAttachmentsTakeRoom(t *testing.T) {
	objects := Objects{
		Nodes:    []*corev1.Node{{ObjectMeta: metav1.ObjectMeta{Name: "n"}}, {ObjectMeta: metav1.ObjectMeta{Name: "m"}}},
		CSINodes: []*storagev1.CSINode{drivers("n", map[string]int32{"d": 5, "e": 7}), drivers("m", map[string]int32{"d": 0})},
	}
	for i, node := range []string{"n", "m", ""} {
		name := fmt.Sprint(i)
		objects.Volumes = append(objects.Volumes, aVolume("pv"+name, nil))
		objects.Attachments = append(objects.Attachments, attach("pv"+name, "n"))
		if node != "" {
			objects.Claims = append(objects.Claims, aClaim(name, "x", boundTo("pv"+name)))
			objects.Pods = append(objects.Pods, pod("p"+name, func(p *corev1.Pod) { p.Spec.NodeName, p.Spec.Volumes = node, []corev1.Volume{uses(name)} }))
		}
	}
	objects.Attachments = append(objects.Attachments, attach("unknown", "n"))
	want := map[cluster.NodeName]map[string]int64{"n": {"d": 3, "e": 7}, "m": {"d": 0}}
	check := func(when string, s cluster.Snapshot) {
		t.Helper()
		for _, n := range s.Nodes {
			if !maps.Equal(n.VolumeLimits, want[n.Name]) {
				t.Fatalf("%s: node %s has limits %v, want %v", when, n.Name, n.VolumeLimits, want[n.Name])
			}
		}
	}
	check("in Convert's order", FromObjects(objects))
	seed := drawn.Seed(t)
	r := rand.New(rand.NewPCG(seed, 1))
	for round := range 200 {
		w := New(nil)
		var tell []func()
		tells(&tell, objects.Nodes, w.PutNode)
		tells(&tell, objects.CSINodes, w.PutCSINode)
		tells(&tell, objects.Pods, w.PutPod)
		tells(&tell, objects.Claims, w.PutClaim)
		tells(&tell, objects.Volumes, w.PutVolume)
		tells(&tell, objects.Attachments, w.PutAttachment)
		r.Shuffle(len(tell), func(i, j int) { tell[i], tell[j] = tell[j], tell[i] })
		for _, f := range tell {
			f()
		}
		check(fmt.Sprintf("seed %d, round %d", seed, round), w.contents())
		if len(w.fullLimits) != 1 || w.fullLimits["n"]["d"] != 5 {
			t.Fatalf("full limits %v", w.fullLimits)
		}
		for _, a := range objects.Attachments {
			w.DeleteAttachment(a.Name)
		}
		if n, _ := w.nodes.get("n"); n.VolumeLimits["d"] != 5 || len(w.fullLimits)+len(w.attachments.all)+len(w.attachments.on)+len(w.attachments.with) != 0 {
			t.Fatalf("all are detached: %v, left over %v %v", n.VolumeLimits, w.fullLimits, w.attachments)
		}
	}
	w := New(nil)
	w.PutNode(objects.Nodes[0])
	w.PutCSINode(objects.CSINodes[0])
	w.PutVolume(objects.Volumes[0])
	w.PutClaim(objects.Claims[0])
	w.PutPod(objects.Pods[0])
	if got := w.PutAttachment(objects.Attachments[0]); got != Never {
		t.Errorf("a used volume is attached: urgency %d", got)
	}
	w.DeletePod("ns/p0", "n")
	if n, _ := w.nodes.get("n"); n.VolumeLimits["d"] != 4 {
		t.Errorf("the pod is gone and its volume still attached: %v", n.VolumeLimits)
	}
	if got := w.DeleteAttachment("va-pv0"); got != Later {
		t.Errorf("detached: urgency %d", got)
	}
}

func tells[T any](to *[]func(), objects []*T, put func(*T) Urgency) {
	for _, o := range objects {
		*to = append(*to, func() { put(o) })
	}
}
