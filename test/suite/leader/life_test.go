package leader

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
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
func (r *rig) served(t *testing.T) string {
	t.Helper()
	conn, err := tls.Dial("tcp", r.address+":6443", &tls.Config{InsecureSkipVerify: true}) // the number alone is asked for
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
	number, began := r.served(t), time.Now()
	out := must(t, c, "set -e\n"+section(t, "leader.md", "Certificates", "kubeadm certs renew"))
	t.Logf("certificates renewed in %s:\n%s", time.Since(began).Round(time.Second), out)
	after := must(t, c, "sha256sum /etc/kubernetes/pki/apiserver.crt /etc/kubernetes/pki/etcd/server.crt /etc/kubernetes/admin.conf")
	for line := range strings.Lines(before) {
		if strings.Contains(after, line) {
			t.Errorf("it is as it was: %s", line)
		}
	}
	if r.served(t) == number {
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

// loss is a way of docs/leader.md from a lost disk to the same cluster: what is saved, and from what an empty machine goes on.
type loss struct {
	name                   string // of the machine that goes on: no two have one
	heading, save, restore string // a section, and words of its two blocks of commands
	files                  []string
	address                string // of the machine that goes on, if it is another one
}

var (
	copied   = loss{"copy", "The disk is lost", "var/lib/etcd", "sh leader.sh", []string{"/root/leader.tgz"}, ""}
	snapshot = loss{"snap", "Restored from a snapshot of etcd", "snapshot save", "snapshot restore", []string{"/root/snapshot.db", "/root/pki.tgz"}, "10.90.0.12"}
)

// etcdPrograms puts etcdctl and etcdutl on a machine.
func etcdPrograms(c *worker.Container) error {
	var errs []error
	for _, name := range []string{"etcdctl", "etcdutl"} {
		text, err := os.ReadFile(filepath.Join(os.Getenv("AUTOSCALER_TEST_ETCD"), name))
		if err == nil {
			err = c.Write("/usr/local/bin/"+name, text, 0o755)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// diskLost follows docs/leader.md: an empty machine of the same name becomes the leader of the same cluster, from a snapshot of etcd
// and the saved certificates. The worker stays; objects that were made after the snapshot are gone.
func (r *rig) diskLost(t *testing.T, c, w *worker.Container, work string, way loss) *worker.Container {
	t.Helper()
	api := r.client(t, c)
	node, err := api.CoreV1().Nodes().Get(t.Context(), work, metav1.GetOptions{})
	if err := errors.Join(err, etcdPrograms(c)); err != nil {
		t.Fatal(err)
	}
	r.note(t, api, "before")
	must(t, c, "set -e\n"+section(t, "leader.md", way.heading, way.save))
	saved := map[string][]byte{}
	for _, file := range way.files {
		if saved[file], err = c.Read(file); err != nil || len(saved[file]) == 0 {
			t.Fatalf("%s is not saved: %v", file, err)
		}
	}
	r.note(t, api, "after")
	_ = c.Halt() // a control plane takes longer to stop than Halt waits
	began := time.Now()
	if way.address != "" {
		r.address = way.address
		r.leads(t, r.address, w)
		r.renderScript(t, r.hooked)
	}
	script := bytes.ReplaceAll(r.script, []byte("- SystemVerification\n"), []byte("- SystemVerification\n  - DirAvailable--var-lib-etcd\n"))
	if bytes.Equal(script, r.script) {
		t.Fatal("the script ignores no preflight check")
	}
	unit, err := c.Read("/etc/systemd/system/autoscaler-agent.service.d/cloud.conf")
	if err != nil {
		t.Fatal(err)
	}
	next := r.machine(t, way.name, "leader", r.address, func(c *worker.Container) error {
		errs := []error{etcdPrograms(c)}
		for file, text := range saved {
			errs = append(errs, c.Write(file, text, 0o600))
		}
		return errors.Join(append(errs, c.Write("/root/leader.sh", script, 0o600), c.Write("/root/autoscaler-agent-linux-amd64", r.agent, 0o755),
			c.Write("/etc/systemd/system/autoscaler-agent.service.d/cloud.conf", unit, 0o600), c.Write("/etc/cloud/cloud-init.disabled", nil, 0o644))...)
	}, started(t))
	must(t, next, "install -m 0755 /root/autoscaler-agent-linux-amd64 /usr/local/bin/autoscaler-agent")
	commands := strings.ReplaceAll(section(t, "leader.md", way.heading, way.restore), "10.0.0.11", r.address)
	out := must(t, next, "set -e; export "+strings.Join(r.cloudEnv(), " ")+"\n"+commands)
	t.Logf("from an empty disk to the same cluster in %s:\n%s", time.Since(began).Round(time.Second), phases(out))
	api = r.client(t, next)
	r.acts(t, next)
	r.checkOwnCertificate(t, next)
	r.ready(t, api, "leader")
	r.ready(t, api, work)
	if again, err := api.CoreV1().Nodes().Get(t.Context(), work, metav1.GetOptions{}); err != nil || again.UID != node.UID {
		t.Errorf("the worker's Node is another one: %v", err)
	}
	for name, kept := range map[string]bool{"before": true, "after": false} {
		if _, err := api.CoreV1().ConfigMaps("default").Get(t.Context(), name, metav1.GetOptions{}); (err == nil) != kept || !kept && !apierrors.IsNotFound(err) {
			t.Errorf("what was made %s the save: %v", name, err)
		}
	}
	if err := api.CoreV1().ConfigMaps("default").Delete(t.Context(), "before", metav1.DeleteOptions{}); err != nil {
		t.Error(err)
	}
	runs(t, api)
	r.check(t, next)
	return next
}

// note makes an object. An API server that has just come back may time out once.
func (r *rig) note(t *testing.T, api kubernetes.Interface, name string) {
	t.Helper()
	await.Nil(t, "the note "+name+" is made", func(ctx context.Context) error {
		_, err := api.CoreV1().ConfigMaps("default").Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			err = nil
		}
		return err
	})
}

// reboots switches the leader off and on: nothing is to be done.
func (r *rig) reboots(t *testing.T, c *worker.Container, api kubernetes.Interface) {
	t.Helper()
	began := time.Now()
	if err := r.again[c](r.address); err != nil {
		t.Fatal(err)
	}
	await.True(t, "the leader has booted", func() bool { return started(t)(c) })
	must(t, c, section(t, "leader.md", "Reboot", "readyz"))
	r.acts(t, c)
	r.ready(t, api, "leader")
	runs(t, api)
	t.Logf("the leader was switched off and on: it acts again after %s", time.Since(began).Round(time.Second))
}

// renamed follows docs/leader.md: the leader keeps its new host name, and its Node's name.
func (r *rig) renamed(t *testing.T, c *worker.Container, api kubernetes.Interface) {
	t.Helper()
	must(t, c, "hostname elsewhere")
	must(t, c, "set -e\n"+strings.ReplaceAll(section(t, "leader.md", "Another host name", "hostname-override"), "cp-1", "leader"))
	r.acts(t, c)
	await.Nil(t, "the kubelet reports under its old name", func(ctx context.Context) error {
		lease, err := api.CoordinationV1().Leases("kube-node-lease").Get(ctx, "leader", metav1.GetOptions{})
		if err == nil && time.Since(lease.Spec.RenewTime.Time) > 15*time.Second {
			err = errors.New("its Lease is old")
		}
		return err
	})
	r.ready(t, api, "leader")
	if list, err := api.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{}); err != nil || len(list.Items) != 2 {
		t.Errorf("there are %d Nodes, %v", len(list.Items), err)
	}
	r.check(t, c)
}
