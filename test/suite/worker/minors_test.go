package worker

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/test/await"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/controlplane"
	"github.com/autoscaler-agent/autoscaler-agent/userdata"
)

// TestMinorJoins: the generated user data joins a machine to a cluster of the minor that
// AUTOSCALER_TEST_KUBERNETES names, with that minor's kubeadm and kubelet: the token is
// published, the requests for both certificates are approved, and the admission policy means
// there what it says.
func TestMinorJoins(t *testing.T) {
	r := newRig(t)
	checkPolicy(t, r.cp)
	c, i := r.machine(t, r.render(t, "--kubernetes-version", r.parts.Kubernetes), "")
	console(t, c, "joined")
	node := r.node(t, i)
	checkNode(t, node, i)
	if got := node.Status.NodeInfo.KubeletVersion; got != r.parts.Kubernetes {
		t.Errorf("the kubelet is %s, and %s was to be installed", got, r.parts.Kubernetes)
	}
	if v, err := r.cp.Client().Discovery().ServerVersion(); err != nil || v.GitVersion != r.parts.Kubernetes {
		t.Errorf("the API server is %v, %v", v, err)
	}
	r.checkServing(t, i)
	t.Logf("kubelet %s joined an API server of %s", node.Status.NodeInfo.KubeletVersion, r.cp.Binaries().Version)
}

// checkPolicy: the controller manager of this minor has type-checked every expression, and has
// nothing to say.
func checkPolicy(t *testing.T, cp *controlplane.ControlPlane) {
	t.Helper()
	policies := cp.Client().AdmissionregistrationV1().ValidatingAdmissionPolicies()
	var list *admissionv1.ValidatingAdmissionPolicyList
	await.Nil(t, "the admission policies are type-checked", func(ctx context.Context) (err error) {
		if list, err = policies.List(ctx, metav1.ListOptions{}); err != nil {
			return err
		}
		if len(list.Items) == 0 {
			return errors.New("there is none")
		}
		for _, p := range list.Items {
			if p.Status.ObservedGeneration != p.Generation || p.Status.TypeChecking == nil {
				return errors.New(p.Name + " is not")
			}
		}
		return nil
	})
	for _, p := range list.Items {
		for _, w := range p.Status.TypeChecking.ExpressionWarnings {
			t.Errorf("%s: %s: %s", p.Name, w.FieldRef, w.Warning)
		}
	}
}

// TestOlderKubelet: a machine of the minor that AUTOSCALER_TEST_KUBERNETES names joins a control
// plane that is three minors newer, or the newest there is: as far as userdata.Skew allows.
func TestOlderKubelet(t *testing.T) {
	if os.Getenv(controlplane.KubernetesEnv) == "" || os.Getenv(gate) != "inside" {
		t.Skip("boots containers as root with kubelets of an older minor: make e2e-versions")
	}
	newer := newerMinor()
	if newer == "" {
		t.Skip("no control plane is newer than this minor")
	}
	bin, err := controlplane.BinariesOf(t.Context(), newer, os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	r := rigOf(t, bin)
	c, i := r.machine(t, r.render(t, "--kubernetes-version", r.parts.Kubernetes), "")
	console(t, c, "joined")
	if got := r.node(t, i).Status.NodeInfo.KubeletVersion; got != r.parts.Kubernetes {
		t.Errorf("the kubelet is %s, and %s was to be installed", got, r.parts.Kubernetes)
	}
	t.Logf("kubelet %s joined an API server of %s", r.parts.Kubernetes, bin.Version)
}

// newerMinor is that of the newest API server that the asked kubelet may join, "" for its own.
func newerMinor() string {
	kubelet, ok := cluster.MinorOf(os.Getenv(controlplane.KubernetesEnv))
	server := min(kubelet+3, userdata.NewestMinor)
	if !ok || server == kubelet {
		return ""
	}
	return fmt.Sprintf("1.%d", server)
}
