package doctor

import (
	"os"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/autoscaler-agent/autoscaler-agent/agent/config"
	"github.com/autoscaler-agent/autoscaler-agent/agent/election"
	"github.com/autoscaler-agent/autoscaler-agent/agent/statefile"
	"github.com/autoscaler-agent/autoscaler-agent/internal/testing/kubetest"
)

// TestCheckInAPod: without a kubeconfig, in a pod, check goes by the pod's own account.
func TestCheckInAPod(t *testing.T) {
	if _, err := os.Stat("/etc/autoscaler-agent/kubeconfig"); err == nil {
		t.Skip("this machine has a kubeconfig of the agent's")
	}
	if _, err := os.Stat("/etc/kubernetes/admin.conf"); err == nil {
		t.Skip("this machine is a leader")
	}
	t.Setenv("KUBECONFIG", "")
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	if got := checkKubernetes(t.Context(), config.Config{}); len(got) != 1 || !strings.Contains(got[0].Text, "AUTOSCALER_KUBECONFIG") {
		t.Errorf("outside: %+v", got)
	}
	t.Setenv("KUBERNETES_SERVICE_HOST", "192.0.2.1")
	t.Setenv("KUBERNETES_SERVICE_PORT", "443")
	if got := checkKubernetes(t.Context(), config.Config{}); len(got) != 1 || !strings.Contains(got[0].Text, "/var/run/secrets/kubernetes.io/serviceaccount/token") {
		t.Errorf("in a pod without a token: %+v", got)
	}
}

// TestCheckHolder: check finds another agent that holds the Lease by this one's name, and not this one itself.
func TestCheckHolder(t *testing.T) {
	cfg := config.Config{NodeName: "cp", StateDir: t.TempDir(), Lease: election.Config{Namespace: "kube-system", Name: "autoscaler-agent", Duration: 15 * time.Second}}
	unlock, err := statefile.Lock(cfg.StateDir)
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	for holder, want := range map[string]bool{
		election.Holder("cp", cfg.Instance()): false,
		"cp_1a2b3c4d":                         true, "cp-2_1a2b3c4d": false, "cp": false, "": false,
	} {
		at := metav1.NewMicroTime(time.Now())
		client := fake.NewClientset(&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "autoscaler-agent"},
			Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder, RenewTime: &at}})
		f := checkHolder(t.Context(), cfg, kubetest.Client(client))
		if found := len(f) == 1 && f[0].Level == LevelError && strings.Contains(f[0].Text, "AUTOSCALER_NODE_NAME"); found != want || !want && f != nil {
			t.Errorf("%q: %+v, want a finding: %v", holder, f, want)
		}
	}
	if f := checkHolder(t.Context(), cfg, kubetest.Client(fake.NewClientset())); f != nil {
		t.Errorf("no Lease: %+v", f)
	}
}

// TestCheckOtherAutoscaler: only a Lease that is renewed is another autoscaler at work. One
// that a removed Cluster Autoscaler left behind stops nothing, and check says so.
func TestCheckOtherAutoscaler(t *testing.T) {
	cfg := config.Config{Lease: election.Config{Namespace: "kube-system", Name: "autoscaler-agent", RenewDeadline: 10 * time.Second}}
	holder := "cluster-autoscaler-7f"
	for name, c := range map[string]struct {
		renewed time.Duration // ago; 0: there is no Lease
		level   Level
		text    string
	}{
		"no Lease":    {0, LevelOK, "none has a Lease"},
		"left behind": {24 * time.Hour, LevelOK, "no longer renewed"},
		"at work":     {time.Second, LevelError, holder},
	} {
		client := fake.NewClientset()
		if c.renewed > 0 {
			at := metav1.NewMicroTime(time.Now().Add(-c.renewed))
			client = fake.NewClientset(&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: election.OtherLease},
				Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder, RenewTime: &at}})
		}
		if f := checkOther(t.Context(), cfg, kubetest.Client(client)); f.Level != c.level || !strings.Contains(f.Text, c.text) {
			t.Errorf("%s: %+v, want %s with %q", name, f, c.level, c.text)
		}
	}
}
