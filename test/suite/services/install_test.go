package services

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/autoscaler-agent/autoscaler-agent/agent/install"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/controlplane"
)

// TestInstallTwice: a second installation says of the cluster's objects that nothing has to be
// done; one that somebody changed is named and mended alone, and what others added beside the
// agent's own fields stays and is no difference.
func TestInstallTwice(t *testing.T) {
	cp := controlplane.ForTest(t, controlplane.Options{})
	clients, err := kubernetes.NewForConfig(cp.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	if err := os.MkdirAll(filepath.Join(root, "run/systemd/system"), 0o755); err != nil {
		t.Fatal(err)
	}
	h := install.Host{
		Root: root, Binary: "/usr/bin/autoscaler-agent", GroupID: func(string) (int, bool) { return os.Getgid(), true },
		Run: func(_ context.Context, _ string, words ...string) (string, error) {
			return map[string]string{"is-enabled": "enabled"}[words[1]], nil
		},
	}
	cluster := func() install.Step {
		t.Helper()
		steps, err := install.Install(t.Context(), h, install.Options{AdminConf: cp.Kubeconfig(), Set: []install.Setting{{Name: "AUTOSCALER_PROVIDER", Value: "externalgrpc"}}}, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(steps, func(s install.Step) bool { return s.About == "cluster" })
		if i < 0 {
			t.Fatalf("no step is about the cluster: %+v", steps)
		}
		return steps[i]
	}
	apply := func(s install.Step) {
		t.Helper()
		if err := install.Apply(t.Context(), []install.Step{s}, func(install.Step) {}); err != nil {
			t.Fatal(err)
		}
	}
	first := cluster()
	if first.State != install.Would || !strings.HasPrefix(first.Text, "apply ") || strings.Contains(first.Text, " of the ") {
		t.Errorf("the first: %+v", first)
	}
	apply(first)
	if second := cluster(); second.State != install.Present {
		t.Errorf("the second: %+v", second)
	}

	roles := clients.RbacV1().ClusterRoles()
	role, err := roles.Get(t.Context(), "autoscaler-agent", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	role.Annotations = map[string]string{"example.net/owner": "somebody"}
	if role, err = roles.Update(t.Context(), role, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if s := cluster(); s.State != install.Present {
		t.Errorf("an annotation of another's is a difference: %+v", s)
	}
	role.Rules = append(role.Rules, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"*"}})
	if _, err = roles.Update(t.Context(), role, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	changed := cluster()
	if changed.State != install.Would || !strings.HasPrefix(changed.Text, "apply 1 of the ") || !strings.HasSuffix(changed.Text, ": ClusterRole autoscaler-agent") {
		t.Errorf("after a change: %+v", changed)
	}
	apply(changed)
	if s := cluster(); s.State != install.Present {
		t.Errorf("mended: %+v", s)
	}
	if role, err = roles.Get(t.Context(), "autoscaler-agent", metav1.GetOptions{}); err != nil || role.Annotations["example.net/owner"] != "somebody" {
		t.Errorf("%v, %v", role.Annotations, err)
	}
}
