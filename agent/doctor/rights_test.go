package doctor

import (
	"slices"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/autoscaler-agent/autoscaler-agent/agent/config"
	"github.com/autoscaler-agent/autoscaler-agent/internal/testing/kubetest"
)

// TestCheckRights: a right that the agent cannot do without is an error, one that it can do
// without a warning that names what is missed; the remedy is the same.
func TestCheckRights(t *testing.T) {
	for name, c := range map[string]struct {
		denied []string
		levels []string
	}{
		"all are granted":             {nil, []string{string(LevelOK)}},
		"an older ClusterRole":        {[]string{"limitranges", "resourcequotas", "runtimeclasses"}, []string{string(LevelWarning)}},
		"no nodes":                    {[]string{"nodes"}, []string{string(LevelError)}},
		"no nodes and no LimitRanges": {[]string{"nodes", "limitranges"}, []string{string(LevelError), string(LevelWarning)}},
	} {
		objects := fake.NewClientset()
		objects.PrependReactor("create", "selfsubjectaccessreviews", func(a clienttesting.Action) (bool, runtime.Object, error) {
			review := a.(clienttesting.CreateAction).GetObject().(*authorizationv1.SelfSubjectAccessReview).DeepCopy()
			review.Status.Allowed = !slices.Contains(c.denied, review.Spec.ResourceAttributes.Resource)
			return true, review, nil
		})
		var levels []string
		for _, f := range checkRights(t.Context(), config.Config{}, kubetest.Client(objects)) {
			levels = append(levels, string(f.Level))
			if len(c.denied) > 0 && (f.Remedy == "" || !strings.Contains(f.Text, "not allowed: list ")) {
				t.Errorf("%s: %+v", name, f)
			}
		}
		if !slices.Equal(levels, c.levels) {
			t.Errorf("%s: %v, want %v", name, levels, c.levels)
		}
	}
}

// TestLeadersRight: each Node of the control plane whose name the policies do not know is named with the remedy.
func TestLeadersRight(t *testing.T) {
	for _, granted := range []bool{true, false} {
		objects := fake.NewClientset(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "cp-1", Labels: map[string]string{"node-role.kubernetes.io/control-plane": ""}}}, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "worker-1"}})
		objects.PrependReactor("create", "selfsubjectaccessreviews", func(a clienttesting.Action) (bool, runtime.Object, error) {
			review := a.(clienttesting.CreateAction).GetObject().(*authorizationv1.SelfSubjectAccessReview).DeepCopy()
			review.Status.Allowed = granted || review.Spec.ResourceAttributes.Resource != "controlplanenodes"
			return true, review, nil
		})
		var cfg config.Config
		cfg.CSR.Enabled = true
		found := checkRights(t.Context(), cfg, kubetest.Client(objects))
		if len(found) != 1 || (found[0].Level == LevelOK) != granted || !granted && (!strings.Contains(found[0].Text, "controlplanenodes.autoscaler-agent cp-1:") || !strings.Contains(found[0].Remedy, "install")) {
			t.Errorf("granted %t: %+v", granted, found)
		}
	}
}
