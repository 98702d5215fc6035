package plan

import (
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/observe/store"
)

// oddWords are values of annotations, labels and taints that the agent may read as a number or a time.
var oddWords = []string{"", "-1", "0", "1", "4294967296", "9223372036854775807", "-9223372036854775808", "99999999999999999999", "1e309", "NaN", "1ns", "-1h", "2562047h47m16.854775807s", "9999-12-31T23:59:59Z", "0001-01-01T00:00:00Z"}

// eachNumber calls visit for every number and time that v points to, with what sets it to one of some extreme values. It goes through
// fields, elements and maps, so that a field that is added tomorrow is met, too.
func eachNumber(v reflect.Value, path string, visit func(path string, values int, set func(n int))) {
	switch x := v.Addr().Interface().(type) {
	case *metav1.Time:
		times := []time.Time{{}, time.Unix(0, 0), t0.AddDate(-292, 0, 0), t0.Add(time.Hour), t0.AddDate(68, 0, 0), time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)}
		visit(path, len(times), func(n int) { x.Time = times[n] })
		return
	case *resource.Quantity:
		words := []string{"0", "-1", "1n", "1m", "9223372036854775807", "9223372036854775807k", "-9223372036854775807"}
		visit(path, len(words), func(n int) { *x = resource.MustParse(words[n]) })
		return
	case *corev1.Taint:
		visit(path+".Value", len(oddWords), func(n int) { x.Value = oddWords[n] })
	}
	switch v.Kind() {
	case reflect.Int32:
		values := []int64{math.MinInt32, -1, 0, 1, math.MaxInt32}
		visit(path, len(values), func(n int) { v.SetInt(values[n]) })
	case reflect.Int64:
		values := []int64{math.MinInt64, -1, 0, 1, math.MaxInt64}
		visit(path, len(values), func(n int) { v.SetInt(values[n]) })
	case reflect.Pointer:
		if !v.IsNil() {
			eachNumber(v.Elem(), path, visit)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				eachNumber(v.Field(i), path+"."+v.Type().Field(i).Name, visit)
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			eachNumber(v.Index(i), fmt.Sprintf("%s[%d]", path, i), visit)
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			one := reflect.New(v.Type().Elem()).Elem()
			one.Set(v.MapIndex(key))
			at := fmt.Sprintf("%s[%s]", path, key)
			if one.Kind() == reflect.String {
				visit(at, len(oddWords), func(n int) { v.SetMapIndex(key, reflect.ValueOf(oddWords[n])) })
				continue
			}
			eachNumber(one, at, func(path string, values int, set func(int)) {
				visit(path, values, func(n int) { set(n); v.SetMapIndex(key, one) })
			})
		}
	}
}

// grow makes what pointers, lists and maps of a status are empty, so that each of its numbers is there.
func grow(v reflect.Value, depth int) {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() && depth > 0 {
			v.Set(reflect.New(v.Type().Elem()))
			grow(v.Elem(), depth-1)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Field(i).CanSet() {
				grow(v.Field(i), depth)
			}
		}
	case reflect.Slice:
		if v.Len() == 0 && depth > 0 && v.Type().Elem().Kind() != reflect.Uint8 {
			v.Set(reflect.MakeSlice(v.Type(), 1, 1))
			grow(v.Index(0), depth-1)
		}
	}
}

// thiefs are a Node and two pods on it, one of which is being deleted, as who has a kubelet's credential, or the agent's, may write them: beside their own numbers, every
// annotation and taint of package cluster's table.
func thiefs(o *objects) []any {
	n, p := o.node("mole"), o.pod("work", "mole", "100m", replicaSet)
	for _, grown := range []any{&n.Status, &p.Status} {
		grow(reflect.ValueOf(grown).Elem(), 4)
	}
	for name, much := range map[corev1.ResourceName]string{"ephemeral-storage": "10Gi", "hugepages-2Mi": "4Mi", "nvidia.com/gpu": "1"} {
		n.Status.Capacity[name], n.Status.Allocatable[name] = resource.MustParse(much), resource.MustParse(much)
		p.Spec.Containers[0].Resources.Requests[name] = resource.MustParse(much)
	}
	n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{Type: "KernelDeadlock", Status: corev1.ConditionTrue})
	p.Spec.TerminationGracePeriodSeconds, p.Spec.ActiveDeadlineSeconds, p.Spec.Priority = new(int64(30)), new(int64(1)), new(int32(0))
	p.Spec.Containers[0].Ports = []corev1.ContainerPort{{HostPort: 80, ContainerPort: 80}}
	p.Spec.Tolerations = []corev1.Toleration{{Key: "a", TolerationSeconds: new(int64(1))}}
	n.Annotations, p.Annotations, p.Labels = map[string]string{}, map[string]string{}, map[string]string{"a": "1"}
	for _, m := range cluster.Marks {
		switch m.Kind {
		case "annotation of a Node":
			n.Annotations[m.Name] = "false"
		case "annotation of a Pod":
			p.Annotations[m.Name] = ""
		case "taint of a Node":
			if m.Name == cluster.TaintToBeDeleted { // a drain that fails holds scale-down back; TestMarkTime has its values
				continue
			}
			n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: m.Name, Effect: corev1.TaintEffectPreferNoSchedule, TimeAdded: new(metav1.NewTime(t0))})
		}
	}
	leaving := p.DeepCopy()
	leaving.Name, leaving.UID = "leaving", "leaving"
	leaving.DeletionTimestamp, leaving.DeletionGracePeriodSeconds = new(metav1.NewTime(t0.Add(time.Minute))), new(int64(30))
	o.Pods = append(o.Pods, leaving)
	return []any{n, p, leaving}
}

// ofServer tells a time that the API server alone writes: a creation is never ahead, and a deletion never in the past.
func ofServer(path string, n int) bool {
	return strings.HasSuffix(path, ".CreationTimestamp") && n > 2 || strings.HasSuffix(path, ".DeletionTimestamp") && n <= 2
}

// TestNumbersOfAThief writes extreme values into every number and time of a Node and of pods on it, one after the other. No round
// ends in a panic, an honest pod gets its one machine at once, and an honest idle node goes after its time.
func TestNumbersOfAThief(t *testing.T) {
	cases := 0
	play := func(object int, path string, n int) {
		cases++
		defer func() {
			if r := recover(); r != nil {
				t.Errorf("object %d, %s, value %d: %v", object, path, n, r)
			}
		}()
		o := newObjects()
		o.node("idle")
		o.node("busy")
		o.pod("web", "busy", "2500m", replicaSet)
		eachNumber(reflect.ValueOf(thiefs(o)[object]).Elem(), "", func(at string, _ int, set func(int)) {
			if at == path {
				set(n)
			}
		})
		if !idleGoes(o) {
			t.Errorf("object %d, %s, value %d: the idle node stays", object, path, n)
		}
		o.group.Template.Labels = map[string]string{"tier": "honest"}
		o.pod("new", "", "3", replicaSet).Spec.NodeSelector = map[string]string{"tier": "honest"}
		if _, plan := o.decide(policy()); func() int { bought, _ := boughtOf(plan); return bought }() != 1 {
			t.Errorf("object %d, %s, value %d: %s", object, path, n, plan)
		}
	}
	for i, object := range thiefs(newObjects()) {
		eachNumber(reflect.ValueOf(object).Elem(), "", func(path string, values int, _ func(int)) {
			for n := range values {
				if !ofServer(path, n) {
					play(i, path, n)
				}
			}
		})
	}
	if t.Logf("%d values", cases); cases < 1000 {
		t.Errorf("only %d values are played", cases)
	}
}

// idleGoes plays rounds of a minute for an hour, and tells whether the node idle is told to go.
func idleGoes(o *objects) bool {
	var e Engine
	var m decision.Memory
	s := store.FromObjects(o.Objects)
	for at := t0; at.Before(t0.Add(time.Hour)); at = at.Add(time.Minute) {
		o.group.ReadAt = at
		s.Now, s.Groups = at, []cluster.NodeGroup{o.group}
		var plan decision.Plan
		plan, m = e.Decide(s, m, policy())
		for _, a := range plan.Actions {
			if c, ok := a.(decision.Cordon); ok && c.Node == "idle" {
				return true
			}
		}
	}
	return false
}
