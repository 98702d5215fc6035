package capacity

import (
	"encoding/json"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/observe/convert"
)

// TestCount plays the counts of the API's own text, and of Cluster Autoscaler where the text leaves them open.
func TestCount(t *testing.T) {
	requests := cluster.Resources{MilliCPU: 500, Memory: 1 << 30, Pods: 1, Extended: map[string]int64{"nvidia.com/gpu": 1}}
	ten := int32(10)
	for _, c := range []struct {
		spec     string
		replicas *int32
		want     int64 // -1: refused
	}{
		{`{"replicas": 3}`, nil, 3},
		{`{"replicas": 0}`, nil, 0},
		{`{"replicas": -4}`, nil, 0},
		{`{"percentage": 20}`, &ten, 2},
		{`{"percentage": 25}`, &ten, 3},
		{`{"percentage": 1}`, &ten, 1},
		{`{"percentage": 0}`, &ten, 0},
		{`{"percentage": 20}`, nil, -1},
		{`{"replicas": 5, "percentage": 20}`, &ten, 2},
		{`{"replicas": 5, "limits": {"cpu": "2"}}`, nil, 4},
		{`{"limits": {"cpu": "2", "memory": "3Gi"}}`, nil, 3},
		{`{"limits": {"nvidia.com/gpu": "2"}}`, nil, 2},
		{`{"limits": {"cpu": "499m"}}`, nil, 0},
		{`{"limits": {"example.com/fpga": "2"}}`, nil, -1},
		{`{"replicas": 2, "limits": {"example.com/fpga": "2"}}`, nil, -1},
		{`{"replicas": 2147483647}`, nil, 2147483647},
		{`{"percentage": 2147483647}`, &ten, 214748365},
		{`{}`, &ten, -1},
	} {
		var s spec
		if err := json.Unmarshal([]byte(c.spec), &s); err != nil {
			t.Fatal(err)
		}
		got, err := s.count(requests, c.replicas)
		if err != nil {
			got = -1
		}
		if got != c.want {
			t.Errorf("%s of %v replicas: %d (%v), want %d", c.spec, c.replicas, got, err, c.want)
		}
	}
}

// TestPod: limits count as requests, as the API server has it, and volumes of the template do not.
func TestPod(t *testing.T) {
	var tpl corev1.PodTemplateSpec
	if err := json.Unmarshal([]byte(`{"metadata": {"labels": {"app": "web"}}, "spec": {"nodeName": "x", "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}],
		"containers": [{"name": "a", "resources": {"limits": {"cpu": "250m"}}}]}}`), &tpl); err != nil {
		t.Fatal(err)
	}
	p, err := pod("shop", &tpl, convert.Admission{})
	if err != nil {
		t.Fatal(err)
	}
	class := convert.PodClass(p, nil)
	if class.Requests.MilliCPU != 250 || class.Namespace != "shop" || class.Labels["app"] != "web" || len(class.NotUnderstood) != 0 {
		t.Errorf("%+v", class)
	}
	if len(tpl.Spec.Volumes) != 1 {
		t.Error("the template was changed")
	}
}

// TestStatus: a status says what was read, and whether the last round keeps the room free.
func TestStatus(t *testing.T) {
	b := &buffer{Metadata: metav1.ObjectMeta{Namespace: "shop", Name: "spare", Generation: 4}}
	b.Status.Conditions = []metav1.Condition{{Type: "LimitedByQuotas", Status: metav1.ConditionTrue, Reason: "x"}}
	good := &state{room: cluster.Headroom{Count: 3}, template: "web", generation: 7}
	condition := func(s status, kind string) string {
		c := meta.FindStatusCondition(s.Conditions, kind)
		if c == nil {
			return ""
		}
		return string(c.Status) + " " + c.Message
	}
	unread := b.next(good, false, false, "")
	if condition(unread, readyForProvisioning) != "True ready" || condition(unread, provisioning) != "" || *unread.Replicas != 3 || unread.PodTemplateRef.Name != "web" || *unread.PodTemplateGeneration != 7 {
		t.Errorf("%+v", unread)
	}
	if got := condition(unread, "LimitedByQuotas"); got != "True " {
		t.Errorf("another's condition: %q", got)
	}
	lacking := b.next(good, true, true, "1 of 3 pieces have no room: max size")
	if got := condition(lacking, provisioning); got != "False 1 of 3 pieces have no room: max size" {
		t.Errorf("%q", got)
	}
	b.Status = lacking
	free := b.next(good, true, false, "")
	if got := condition(free, provisioning); got[:5] != "True " {
		t.Errorf("%q", got)
	}
	b.Status = free
	gone := b.next(&state{err: errors.New("there is no podtemplates web")}, true, false, "")
	if condition(gone, readyForProvisioning) != "False there is no podtemplates web" || condition(gone, provisioning) != "" || gone.Replicas != nil {
		t.Errorf("%+v", gone)
	}
}
