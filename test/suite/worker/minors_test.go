package worker

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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

// TestOlderKubelet: what userdata.Skew says of an older kubelet below the pinned API server is
// so. One that it lets through joins; the kubeadm of 1.30 cannot read the cluster's
// configuration, and the machine says where it stopped.
func TestOlderKubelet(t *testing.T) {
	if os.Getenv(controlplane.KubernetesEnv) == "" {
		t.Skip("needs kubelets of an older minor: make e2e-versions")
	}
	if os.Getenv(gate) != "inside" {
		t.Skip("boots containers as root: make e2e-versions")
	}
	bin, err := controlplane.PinnedBinaries(t.Context(), t.Output())
	if err != nil {
		t.Fatal(err)
	}
	r := rigOf(t, bin)
	kubelet, _ := userdata.MinorOf(r.parts.Kubernetes)
	server, _ := userdata.MinorOf(bin.Version)
	flags := []string{"--kubernetes-version", r.parts.Kubernetes}
	why := userdata.Skew(kubelet, server)
	if why != "" {
		flags = append(flags, "--api-server-version", r.parts.Kubernetes) // render would refuse
	}
	c, i := r.machine(t, r.render(t, flags...), "")
	if !readsCluster(kubelet) {
		console(t, c, "retry")
		await.True(t, "kubeadm says what it cannot read", func() bool {
			said, _ := c.Run(t.Context(), "journalctl", "--no-pager", "-u", "autoscaler-agent-join")
			return strings.Contains(said, "kubeadm.k8s.io/v1beta4")
		})
		return
	}
	console(t, c, "joined")
	if got := r.node(t, i).Status.NodeInfo.KubeletVersion; got != r.parts.Kubernetes {
		t.Errorf("the kubelet is %s, and %s was to be installed", got, r.parts.Kubernetes)
	}
	t.Logf("kubelet %s joined an API server of %s (by userdata.Skew: %q)", r.parts.Kubernetes, bin.Version, why)
}

// readsCluster tells whether a kubeadm reads v1beta4, in which the pinned one writes.
func readsCluster(minor int) bool { return userdata.APIServes("v1beta4", minor) }
