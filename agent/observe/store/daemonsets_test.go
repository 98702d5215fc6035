package store

import (
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestDaemonSetFollowsWhatCompletesIt: a LimitRange of its namespace and its RuntimeClass come,
// change and go; others change nothing. No class is left behind.
func TestDaemonSetFollowsWhatCompletesIt(t *testing.T) {
	kata := "kata"
	d := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: "logs", Generation: 3, Annotations: map[string]string{appsv1.DeprecatedTemplateGeneration: "2"}},
		Spec: appsv1.DaemonSetSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{RuntimeClassName: &kata, Containers: []corev1.Container{{Name: "a"}}}}}}
	ranges := func(namespace, cpu string) *corev1.LimitRange {
		return &corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "l"}, Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{
			{Type: corev1.LimitTypeContainer, DefaultRequest: list("cpu", cpu)}}}}
	}
	class := func(name, cpu string) *nodev1.RuntimeClass {
		return &nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Overhead: &nodev1.Overhead{PodFixed: list("cpu", cpu)}}
	}
	s := New([]string{"default-scheduler"})
	for _, step := range []struct {
		name    string
		do      func() Urgency
		cpu     int64
		urgency Urgency
	}{
		{"the DaemonSet", func() Urgency { return s.PutDaemonSet(d) }, 0, Later},
		{"a LimitRange elsewhere", func() Urgency { return s.PutLimitRange(ranges("shop", "1")) }, 0, Never},
		{"a LimitRange", func() Urgency { return s.PutLimitRange(ranges("ops", "1")) }, 1000, Later},
		{"the same again", func() Urgency { return s.PutLimitRange(ranges("ops", "1")) }, 1000, Never},
		{"it changes", func() Urgency { return s.PutLimitRange(ranges("ops", "2")) }, 2000, Later},
		{"a RuntimeClass", func() Urgency { return s.PutRuntimeClass(class("kata", "100m")) }, 2100, Later},
		{"another RuntimeClass", func() Urgency { return s.PutRuntimeClass(class("gvisor", "1")) }, 2100, Never},
		{"the LimitRange goes", func() Urgency { return s.DeleteLimitRange("ops", "l") }, 100, Later},
		{"the RuntimeClass goes", func() Urgency { return s.DeleteRuntimeClass("kata") }, 0, Later},
	} {
		if got := step.do(); got != step.urgency {
			t.Errorf("%s: urgency %d, want %d", step.name, got, step.urgency)
		}
		c := s.contents()
		row := c.DaemonSets[0]
		if got := c.Classes[row.Class].Requests.MilliCPU; got != step.cpu || row.Revision != "2" || row.Settled {
			t.Errorf("%s: cpu %dm of %+v, want %dm", step.name, got, row, step.cpu)
		}
	}
	d = d.DeepCopy()
	d.Status.ObservedGeneration = 3
	if s.PutDaemonSet(d); !s.contents().DaemonSets[0].Settled {
		t.Error("the controller counts all pods to the current revision")
	}
	s.DeleteDaemonSet("ops/logs")
	if len(s.classes.index) != 0 || len(s.templates.daemonSets) != 0 {
		t.Errorf("left behind: %v, %v", s.classes.index, s.templates.daemonSets)
	}
}

// TestRoomForTemplates: the templates of DaemonSets that are not small have a bound together, a namespace leaves room for
// others, small ones are always kept, and a template is kept at its next change after there is room again.
func TestRoomForTemplates(t *testing.T) {
	const size = 6 << 10
	s := New([]string{"default-scheduler"})
	put := func(namespace, name string, size int) (kept bool) {
		d := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
			Spec: appsv1.DaemonSetSpec{Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"x": strings.Repeat("x", size)}}}}}
		if _, err := s.StripDaemonSet(d); err != nil {
			t.Fatal(err)
		}
		s.PutDaemonSet(d)
		row, _ := s.daemonSets.get(podKey(namespace, name))
		if class := s.classes.rows[row.Class]; class.TooLarge == (len(d.Spec.Template.Labels) > 0) {
			t.Errorf("%s/%s: labels %d, %v", namespace, name, len(d.Spec.Template.Labels), class.NotUnderstood)
		}
		return len(d.Spec.Template.Labels) > 0
	}
	kept := 0
	for i := range 2 * mostTemplates / size {
		if put("tenant", fmt.Sprint(i), size) {
			kept++
		}
	}
	if kept > mostTemplates/4/size || kept < mostTemplates/4/size-10 {
		t.Errorf("%d templates of the tenant are kept", kept)
	}
	if !put("shop", "large", size) || !put("tenant", "small", smallClass/2) {
		t.Error("a template of another namespace, or a small one, is not kept")
	}
	if put("tenant", "last", size) {
		t.Error("there is room for one more")
	}
	for i := range kept { // changed in size: counted once
		put("tenant", fmt.Sprint(i), smallClass/2)
	}
	if !put("tenant", "last", size) {
		t.Error("there is no room again")
	}
	for key := range s.templates.daemonSets {
		s.DeleteDaemonSet(key)
		s.DeleteDaemonSet(key)
	}
	if r := s.templates.room; r.total != 0 || len(r.of) != 0 || len(s.templates.sizes) != 0 {
		t.Errorf("left over: %+v, %v", r, s.templates.sizes)
	}
}
