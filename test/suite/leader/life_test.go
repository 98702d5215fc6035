package leader

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/autoscaler-agent/autoscaler-agent/test/await"
	"github.com/autoscaler-agent/autoscaler-agent/test/suite/worker"
)

// section is the first block of commands of a page of docs below a heading that has a word.
func section(t *testing.T, file, heading, word string) string {
	t.Helper()
	page, err := os.ReadFile("../../../docs/" + file)
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
	t.Fatalf("docs/%s has no commands with %q below %q", file, word, heading)
	return ""
}

// served is the serial number of the certificate that the API server has in use.
func served(t *testing.T) string {
	t.Helper()
	conn, err := tls.Dial("tcp", address+":6443", &tls.Config{InsecureSkipVerify: true}) // the number alone is asked for
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	return conn.ConnectionState().PeerCertificates[0].SerialNumber.String()
}

// renewsCertificates follows docs/leader.md: kubeadm's certificates and the agent's are renewed, and
// the agent goes on.
func (r *rig) renewsCertificates(t *testing.T, c *worker.Container) {
	t.Helper()
	before := must(t, c, "sha256sum /etc/kubernetes/pki/apiserver.crt /etc/kubernetes/pki/etcd/server.crt /etc/kubernetes/admin.conf")
	number, began := served(t), time.Now()
	out := must(t, c, "set -e\n"+section(t, "leader.md", "Certificates", "kubeadm certs renew"))
	t.Logf("certificates renewed in %s:\n%s", time.Since(began).Round(time.Second), out)
	after := must(t, c, "sha256sum /etc/kubernetes/pki/apiserver.crt /etc/kubernetes/pki/etcd/server.crt /etc/kubernetes/admin.conf")
	for line := range strings.Lines(before) {
		if strings.Contains(after, line) {
			t.Errorf("it is as it was: %s", line)
		}
	}
	if served(t) == number {
		t.Error("the API server serves with its old certificate")
	}
	r.acts(t, c)
	r.check(t, c)
}

// acts waits until the agent says so.
func (r *rig) acts(t *testing.T, c *worker.Container) {
	t.Helper()
	await.Nil(t, "the agent acts", func(ctx context.Context) error {
		line, err := c.Run(ctx, "systemctl", "show", "--property=StatusText", "--value", "autoscaler-agent")
		if err == nil && strings.TrimSpace(line) != "acting" {
			err = errors.New(line)
		}
		return err
	})
}

// diskLost follows docs/leader.md: what was saved makes an empty machine of the same name and address
// the leader of the same cluster. Its worker stays.
func (r *rig) diskLost(t *testing.T, c *worker.Container, api kubernetes.Interface, work string) *worker.Container {
	t.Helper()
	node, err := api.CoreV1().Nodes().Get(t.Context(), work, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	must(t, c, "set -e\n"+section(t, "leader.md", "The disk is lost", "var/lib/etcd"))
	saved, err := c.Read("/root/leader.tgz")
	if err == nil && len(saved) == 0 {
		err = errors.New("nothing is saved")
	}
	if err != nil {
		t.Fatal(err)
	}
	_ = c.Halt() // a control plane takes longer to stop than Halt waits
	began := time.Now()
	script := bytes.ReplaceAll(r.script, []byte("- SystemVerification\n"), []byte("- SystemVerification\n  - DirAvailable--var-lib-etcd\n"))
	if bytes.Equal(script, r.script) {
		t.Fatal("the script ignores no preflight check")
	}
	unit, err := c.Read("/etc/systemd/system/autoscaler-agent.service.d/cloud.conf")
	if err != nil {
		t.Fatal(err)
	}
	next := r.machine(t, "again", "leader", address, func(c *worker.Container) error {
		return errors.Join(c.Write("/root/leader.sh", script, 0o600), c.Write("/root/leader.tgz", saved, 0o600), c.Write("/root/autoscaler-agent-linux-amd64", r.agent, 0o755),
			c.Write("/etc/systemd/system/autoscaler-agent.service.d/cloud.conf", unit, 0o600), c.Write("/etc/cloud/cloud-init.disabled", nil, 0o644))
	}, started(t))
	must(t, next, "install -m 0755 /root/autoscaler-agent-linux-amd64 /usr/local/bin/autoscaler-agent")
	out := must(t, next, "set -e; export "+strings.Join(r.cloudEnv(), " ")+"\n"+section(t, "leader.md", "The disk is lost", "sh leader.sh"))
	t.Logf("from an empty disk to the same cluster in %s:\n%s", time.Since(began).Round(time.Second), phases(out))
	r.acts(t, next)
	r.checkOwnCertificate(t, next)
	r.ready(t, api, "leader")
	r.ready(t, api, work)
	if again, err := api.CoreV1().Nodes().Get(t.Context(), work, metav1.GetOptions{}); err != nil || again.UID != node.UID {
		t.Errorf("the worker's Node is another one: %v", err)
	}
	runs(t, api)
	r.check(t, next)
	return next
}
