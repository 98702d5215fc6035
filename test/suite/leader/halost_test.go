package leader

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/autoscaler-agent/autoscaler-agent/test/await"
)

// section is the first block of commands of docs/ha.md below a heading that has a word.
func section(t *testing.T, heading, word string) string {
	t.Helper()
	page, err := os.ReadFile("../../../docs/ha.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(page), "\n## "+heading+"\n")
	rest, _, _ = strings.Cut(rest, "\n## ")
	for ok {
		_, after, more := strings.Cut(rest, "```\n")
		block, next, _ := strings.Cut(after, "```\n")
		if more && strings.Contains(block, word) {
			return block
		}
		rest, ok = next, more
	}
	t.Fatalf("docs/ha.md has no commands with %q below %q", word, heading)
	return ""
}

// replaceOne takes the third leader away as the page says, and makes the machine a leader again.
func (h *ha) replaceOne(t *testing.T) {
	t.Helper()
	const n = 2
	must(t, h.leaders[n], "set -e\n"+section(t, "Replacing one", "kubeadm reset"))
	must(t, h.leaders[0], "export KUBECONFIG=/etc/kubernetes/admin.conf; "+section(t, "Replacing one", "delete node"))
	if err := h.leaders[n].Halt(); err != nil {
		t.Log(err)
	}
	h.leaders = h.leaders[:n]
	h.join(t, n)
	h.installOn(t, n)
	h.servesWithCertificate(t, n)
	h.ready(t, h.api, h.name(n))
	h.standBy(t)
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
	out := must(t, h.leaders[0], "set -e\n"+section(t, "Losing two", "force-new-cluster"))
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
