package doctor

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/internal/testing/kubetest"
)

func TestCheckAnnotations(t *testing.T) {
	pod := func(name, value string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, Annotations: map[string]string{cluster.AnnotationSafeToEvict: value}}}
	}
	fine := fake.NewClientset(pod("a", "true"), pod("b", "false"), pod("c", "on-completion"), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "d"}})
	if f := checkAnnotations(t.Context(), kubetest.Client(fine)); len(f) > 0 {
		t.Errorf("%+v", f)
	}
	wrong := fake.NewClientset(pod("a", "true"), pod("b", "False"), pod("c", "yes"), pod("d", "no"), pod("e", "never"))
	if f := checkAnnotations(t.Context(), kubetest.Client(wrong)); len(f) != 1 || f[0].Level != LevelWarning || !strings.Contains(f[0].Text, `ns/b ("False"), ns/c ("yes"), ns/d ("no"), 1 more`) {
		t.Errorf("%+v", f)
	}
}
