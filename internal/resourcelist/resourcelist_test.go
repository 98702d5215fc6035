package resourcelist_test

import (
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/internal/resourcelist"
)

func TestResources(t *testing.T) {
	list := corev1.ResourceList{}
	for name, q := range map[corev1.ResourceName]string{"cpu": "1500u", "memory": "1.5", "ephemeral-storage": "1Gi", "pods": "110", "nvidia.com/gpu": "2",
		"hugepages-2Mi": "4Mi", "attachable-volumes-csi": "25", "example.org/none": "0", "dust": "7"} {
		list[name] = resource.MustParse(q)
	}
	want := cluster.Resources{MilliCPU: 2, Memory: 2, EphemeralStorage: 1 << 30, Pods: 110,
		Extended: map[string]int64{"nvidia.com/gpu": 2, "hugepages-2Mi": 4 << 20, "attachable-volumes-csi": 25}}
	if got := resourcelist.Resources(list); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got := resourcelist.Resources(nil); !reflect.DeepEqual(got, cluster.Resources{}) {
		t.Errorf("of nothing: %+v", got)
	}
}

// TestHugeAmounts: sums over many nodes or pods do not overflow, whatever one of them says.
func TestHugeAmounts(t *testing.T) {
	list := corev1.ResourceList{}
	for _, name := range []corev1.ResourceName{"cpu", "memory", "ephemeral-storage", "pods", "example.org/x"} {
		list[name] = resource.MustParse("8E")
	}
	r := resourcelist.Resources(list)
	for what, v := range map[string]int64{"CPU": r.MilliCPU, "memory": r.Memory, "disk": r.EphemeralStorage, "pods": r.Pods, "extended": r.Extended["example.org/x"]} {
		if sum := v * 8000; v < 0 || sum/8000 != v { // 8E CPUs are 0 thousandths to kube-scheduler, too
			t.Errorf("%s: %d", what, v)
		}
	}
}
