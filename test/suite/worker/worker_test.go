package worker

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/test/await"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/cloud/aws"
	"github.com/autoscaler-agent/autoscaler-agent/userdata"
)

// TestWorkerJoins: a bare machine becomes a Node of its cluster by its user data alone, in
// each format that its system reads, and a reboot joins nothing again.
func TestWorkerJoins(t *testing.T) {
	r := newRig(t)
	for _, format := range []string{"script", "cloud-config", "mime"} {
		t.Run(format, func(t *testing.T) {
			arguments := watchArguments(t)
			script := r.render(t, "--format", format)
			began := time.Now()
			c, i := r.machine(t, script, "")
			console(t, c, "joined")
			node := r.node(t, i)
			t.Logf("%s: joined %s after the machine was switched on", format, time.Since(began).Round(time.Second))
			checkNode(t, node, i)
			r.checkServing(t, i)
			checkArguments(t, arguments(), r.secret(t)) // before this test's own commands have it there
			checkSecrets(t, c, r)
			if format == "script" {
				r.reboot(t, c, i, node.UID)
			}
		})
	}
}

func (r *rig) node(t *testing.T, i aws.Instance) *corev1.Node {
	t.Helper()
	var node *corev1.Node
	await.Nil(t, "the Node tells its state", func(ctx context.Context) (err error) {
		node, err = r.cp.Client().CoreV1().Nodes().Get(ctx, i.PrivateDNS, metav1.GetOptions{})
		if err == nil && len(node.Status.Conditions) < 4 {
			err = errors.New("it has not reported yet")
		}
		return err
	})
	return node
}

// checkNode compares a Node with what the user data promises and the scaler counts with.
func checkNode(t *testing.T, node *corev1.Node, i aws.Instance) {
	t.Helper()
	if want := "aws:///" + i.Zone + "/" + i.ID; node.Spec.ProviderID != want {
		t.Errorf("provider ID %q, want %q", node.Spec.ProviderID, want)
	}
	for key, want := range map[string]string{
		"example.net/pool": "batch", "topology.kubernetes.io/zone": i.Zone, "topology.kubernetes.io/region": i.Region,
		"node.kubernetes.io/instance-type": i.Type, "kubernetes.io/hostname": i.PrivateDNS,
	} {
		if node.Labels[key] != want {
			t.Errorf("label %s is %q, want %q", key, node.Labels[key], want)
		}
	}
	tainted := false
	for _, taint := range node.Spec.Taints {
		tainted = tainted || taint.Key == "example.net/dedicated" && taint.Value == "batch" && taint.Effect == corev1.TaintEffectNoSchedule
	}
	if !tainted {
		t.Errorf("taints %v", node.Spec.Taints)
	}
	amount := func(l corev1.ResourceList) cluster.Resources {
		return cluster.Resources{MilliCPU: l.Cpu().MilliValue(), Memory: l.Memory().Value(), EphemeralStorage: l.StorageEphemeral().Value(), Pods: l.Pods().Value()}
	}
	want, got := userdata.DefaultReservation().Allocatable(amount(node.Status.Capacity)), amount(node.Status.Allocatable)
	if got.MilliCPU != want.MilliCPU || got.Memory != want.Memory || got.EphemeralStorage != want.EphemeralStorage || got.Pods != want.Pods {
		t.Errorf("allocatable %+v, and the scaler counts with %+v of %+v", got, want, amount(node.Status.Capacity))
	}
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady && c.Status != corev1.ConditionTrue && !strings.Contains(c.Message, "cni plugin not initialized") {
			t.Errorf("not Ready for another reason than the missing network plug-in: %s", c.Message)
		}
	}
	if node.Status.NodeInfo.ContainerRuntimeVersion == "" || !strings.HasPrefix(node.Status.NodeInfo.ContainerRuntimeVersion, "containerd://") {
		t.Errorf("runtime %q", node.Status.NodeInfo.ContainerRuntimeVersion)
	}
}

// checkServing: the agent has approved the kubelet's serving certificate.
func (r *rig) checkServing(t *testing.T, i aws.Instance) {
	t.Helper()
	pem, err := os.ReadFile(r.cp.CAFile())
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	await.Nil(t, "the kubelet serves with a certificate of the cluster", func(ctx context.Context) error {
		d := tls.Dialer{Config: &tls.Config{RootCAs: roots, ServerName: i.PrivateIP}}
		conn, err := d.DialContext(ctx, "tcp", i.PrivateIP+":10250")
		if err != nil {
			return err
		}
		return conn.Close()
	})
	list, err := r.cp.Client().CertificatesV1().CertificateSigningRequests().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, csr := range list.Items {
		if csr.Spec.Username == "system:node:"+i.PrivateDNS && csr.Spec.SignerName == "kubernetes.io/kubelet-serving" {
			return
		}
	}
	t.Error("no serving certificate was asked for")
}

// checkSecrets: nothing that others on the machine can read holds the join token, and
// nothing of the join's own files is left.
func checkSecrets(t *testing.T, c *Container, r *rig) {
	t.Helper()
	secret := r.secret(t)
	await.Empty(t, func() string {
		out, _ := c.Run(t.Context(), "sh", "-c", "ls -d /var/lib/autoscaler-agent-join /run/autoscaler-agent/join.yaml 2>/dev/null || :")
		return strings.TrimSpace(out)
	})
	r.checkLeader(t, secret)
	// Files that all may read, and the journal.
	out, err := c.Run(t.Context(), "sh", "-c", "grep -rlsF --exclude-dir=proc --exclude-dir=sys "+secret+" /etc /opt /var /run /tmp /root | while read -r f; do stat -c '%A %n' \"$f\"; done; journalctl --no-pager | grep -cF "+secret+" || :")
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for line := range strings.Lines(out) {
		mode, file, ok := strings.Cut(strings.TrimSpace(line), " ")
		if ok && mode[7] != '-' {
			t.Errorf("%s is readable by others (%s) and holds the join token", file, mode)
		}
		if !ok && mode != "0" {
			t.Errorf("the journal holds the join token %s times", mode)
		}
	}
	if strings.Contains(c.ConsoleText(), secret) {
		t.Error("the console holds the join token")
	}
}

// secret is that of the published token.
func (r *rig) secret(t *testing.T) string {
	t.Helper()
	env, err := os.ReadFile(r.workerEnv())
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(env), "JOIN_TOKEN=")
	token, _, _ := strings.Cut(rest, "\n")
	_, secret, ok := strings.Cut(strings.Trim(token, `"'`), ".")
	if !ok {
		t.Fatal("no token is published")
	}
	return secret
}

// checkLeader: of the agent's files the published one alone holds the token, for root only.
func (r *rig) checkLeader(t *testing.T, secret string) {
	t.Helper()
	debug := false
	err := filepath.WalkDir(r.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if strings.Contains(string(text), secret) && (path != r.workerEnv() || info.Mode().Perm() != 0o600) {
			t.Errorf("%s (%v) holds the join token", path, info.Mode())
		}
		debug = debug || strings.Contains(string(text), "level=debug")
		return nil
	})
	if err != nil || !debug {
		t.Errorf("%v; a log at level debug was read: %t", err, debug)
	}
}

// watchArguments remembers the arguments of every process of this host, containers included,
// until they are asked for.
func watchArguments(t *testing.T) (stop func() map[string]bool) {
	ctx, cancel := context.WithCancel(context.Background())
	seen := make(chan map[string]bool, 1)
	go func() {
		arguments := map[string]bool{}
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for ctx.Err() == nil {
			files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
			for _, f := range files {
				if text, err := os.ReadFile(f); err == nil {
					arguments[string(text)] = true
				}
			}
			<-tick.C
		}
		seen <- arguments
	}()
	t.Cleanup(cancel)
	return func() map[string]bool {
		cancel()
		return <-seen
	}
}

// checkArguments: no process of agent or machine had the token among its arguments.
func checkArguments(t *testing.T, arguments map[string]bool, secret string) {
	t.Helper()
	joins := false
	for a := range arguments {
		if strings.Contains(a, secret) {
			t.Errorf("a process had the join token among its arguments: %q", strings.ReplaceAll(a, secret, "SECRET"))
		}
		joins = joins || strings.Contains(a, "kubeadm\x00join")
	}
	if !joins {
		t.Error("kubeadm join was not seen")
	}
}

// reboot: the machine comes back as the same Node and downloads nothing.
func (r *rig) reboot(t *testing.T, c *Container, i aws.Instance, uid any) {
	t.Helper()
	before := fmt.Sprint(r.mirror.Served())
	r.halt(t, c, i)
	joined := strings.Count(c.ConsoleText(), "phase=")
	if err := c.Boot(t.Context()); err != nil {
		t.Fatal(err)
	}
	await.Nil(t, "the Node reports again", func(ctx context.Context) error {
		node, err := r.cp.Client().CoreV1().Nodes().Get(ctx, i.PrivateDNS, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if any(node.UID) != uid {
			t.Fatalf("the Node is another one: %v, was %v", node.UID, uid)
		}
		if !heard(node) {
			return errors.New("it does not")
		}
		return nil
	})
	if after := fmt.Sprint(r.mirror.Served()); after != before {
		t.Errorf("the reboot downloaded: %s, before %s", after, before)
	}
	if n := strings.Count(c.ConsoleText(), "phase="); n != joined {
		t.Errorf("the reboot ran the join again:\n%s", c.ConsoleText())
	}
}
