package leader

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/autoscaler-agent/autoscaler-agent/test/await"
)

// rebootOne switches the machine of the acting agent off and on: another agent acts, and the machine
// comes back as a leader whose agent stands by.
func (h *ha) rebootOne(t *testing.T) {
	t.Helper()
	n := h.acting(t.Context())
	began := time.Now()
	if err := h.again[h.leaders[n]](controlPlane[n]); err != nil {
		t.Fatal(err)
	}
	await.True(t, h.name(n)+" has booted", func() bool { return started(t)(h.leaders[n]) })
	h.standBy(t)
	if h.acting(t.Context()) == n {
		t.Errorf("%s acts again before another one did", h.name(n))
	}
	h.ready(t, h.api, h.name(n))
	await.Nil(t, "the API server of "+h.name(n)+" answers", func(context.Context) error {
		return clientAt(t, h.leaders[n], controlPlane[n]+":6443").CoreV1().RESTClient().Get().AbsPath("/readyz").Do(t.Context()).Error()
	})
	t.Logf("%s was switched off and on: a leader again after %s", h.name(n), time.Since(began).Round(time.Second))
}

// replaceOne takes the third leader away as the page says, and makes the machine a leader again.
func (h *ha) replaceOne(t *testing.T) {
	t.Helper()
	const n = 2
	must(t, h.leaders[n], "set -e\n"+section(t, "ha.md", "Replacing one", "kubeadm reset"))
	must(t, h.leaders[0], "export KUBECONFIG=/etc/kubernetes/admin.conf; "+section(t, "ha.md", "Replacing one", "delete node"))
	if err := h.leaders[n].Halt(); err != nil {
		t.Log(err)
	}
	h.joinAnew(t, n)
}

// joinAnew makes an empty machine the last of n+1 leaders, with the agent on it.
func (h *ha) joinAnew(t *testing.T, n int) {
	t.Helper()
	h.leaders = h.leaders[:n]
	h.join(t, n)
	h.installOn(t, n)
	h.servesWithCertificate(t, n)
	h.ready(t, h.api, h.name(n))
	h.standBy(t)
}

// replaceGone switches the third leader off for good, takes it out of etcd and the cluster as the page says, and makes
// an empty machine the third leader.
func (h *ha) replaceGone(t *testing.T) {
	t.Helper()
	const n = 2
	if err := h.leaders[n].Halt(); err != nil {
		t.Log(err)
	}
	if err := etcdPrograms(h.leaders[0]); err != nil {
		t.Fatal(err)
	}
	out := must(t, h.leaders[0], "set -e\n"+section(t, "ha.md", "Replacing one", "member remove"))
	if !strings.Contains(out, "removed from cluster") {
		t.Errorf("etcd has not removed it:\n%s", out)
	}
	must(t, h.leaders[0], "export KUBECONFIG=/etc/kubernetes/admin.conf; "+section(t, "ha.md", "Replacing one", "delete node"))
	h.joinAnew(t, n)
}

// loseTwo switches two leaders off, and makes the survivor a cluster of one as the page says.
func (h *ha) loseTwo(t *testing.T) {
	t.Helper()
	for _, c := range h.leaders[1:] {
		if err := c.Halt(); err != nil {
			t.Log(err)
		}
	}
	await.True(t, "the API server has no majority", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		_, err := h.api.CoreV1().Nodes().Get(ctx, "cp-1", metav1.GetOptions{})
		return err != nil && !apierrors.IsNotFound(err)
	})
	began := time.Now()
	out := must(t, h.leaders[0], "set -e\n"+section(t, "ha.md", "Losing two", "force-new-cluster"))
	t.Logf("a cluster of one after %s:\n%s", time.Since(began).Round(time.Second), out)
	await.Nil(t, "the survivor acts", func(ctx context.Context) error {
		line, err := h.leaders[0].Run(ctx, "systemctl", "show", "--property=StatusText", "--value", "autoscaler-agent")
		if strings.TrimSpace(line) != "acting" || err != nil {
			return fmt.Errorf("it says %q, %w", line, err)
		}
		list, err := h.api.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		if err == nil && len(list.Items) != 1 {
			err = fmt.Errorf("there are %d Nodes", len(list.Items))
		}
		return err
	})
}
