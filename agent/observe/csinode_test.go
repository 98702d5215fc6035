package observe

import (
	"maps"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

func drivers(name string, limits map[string]int32) *storagev1.CSINode {
	n := &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: name}}
	for d, limit := range limits {
		driver := storagev1.CSINodeDriver{Name: d, NodeID: "i-1", TopologyKeys: []string{"zone"}}
		if limit >= 0 {
			driver.Allocatable = &storagev1.VolumeNodeResources{Count: &limit}
		}
		n.Spec.Drivers = append(n.Spec.Drivers, driver)
	}
	return n
}

func TestNodesHaveTheLimitsOfTheirCSINodes(t *testing.T) {
	w := NewStore(nil)
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}
	limits := func() map[string]int64 {
		n, _ := w.nodes.get("n")
		return n.VolumeLimits
	}
	if got := w.putCSINode(drivers("n", map[string]int32{"ebs": 25, "nfs": -1})); got != Never {
		t.Errorf("a CSINode before its node: urgency %d", got)
	}
	w.putNode(node)
	if want := map[string]int64{"ebs": 25}; !maps.Equal(limits(), want) {
		t.Errorf("limits %v, want %v", limits(), want)
	}
	if got := w.putNode(node.DeepCopy()); got != Never {
		t.Errorf("the same node again: urgency %d", got)
	}
	if got := w.putCSINode(drivers("n", map[string]int32{"ebs": 25})); got != Never {
		t.Errorf("the same limits again: urgency %d", got)
	}
	if got := w.putCSINode(drivers("n", map[string]int32{"ebs": 0})); got != Later || limits()["ebs"] != 0 || len(limits()) != 1 {
		t.Errorf("a limit of none: urgency %d, limits %v", got, limits())
	}
	if w.dropCSINode("n"); limits() != nil {
		t.Errorf("limits of a CSINode that is gone: %v", limits())
	}
}

func TestTemplatesLearnLimits(t *testing.T) {
	now := time.Unix(100000, 0)
	node := func(age time.Duration, limits map[string]int64) *cluster.Node {
		return &cluster.Node{VolumeLimits: limits, ReadySince: now.Add(-age)}
	}
	for name, c := range map[string]struct {
		known map[string]int64
		nodes []*cluster.Node
		want  map[string]int64
	}{
		"none":                              {nil, []*cluster.Node{node(time.Hour, nil)}, nil},
		"the smallest of several":           {nil, []*cluster.Node{node(time.Hour, map[string]int64{"a": 5, "b": 1}), node(time.Hour, map[string]int64{"a": 4})}, map[string]int64{"a": 4, "b": 1}},
		"a young node does not unteach":     {map[string]int64{"a": 5}, []*cluster.Node{node(time.Second, nil)}, map[string]int64{"a": 5}},
		"but what it shows holds":           {map[string]int64{"a": 5, "b": 2}, []*cluster.Node{node(time.Second, map[string]int64{"a": 6})}, map[string]int64{"a": 6, "b": 2}},
		"a driver that is gone is unlearnt": {map[string]int64{"a": 5}, []*cluster.Node{node(time.Hour, nil)}, nil},
	} {
		if got := leastLimits(c.known, c.nodes, nil, now); !maps.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
	l := Correction{VolumeLimits: map[string]int64{"a": 5}, Allocatable: cluster.Resources{MilliCPU: 1, Memory: 1}}
	var template cluster.Template
	if l.apply(&template); template.VolumeLimits["a"] != 5 {
		t.Errorf("the template has %v", template.VolumeLimits)
	}
}
