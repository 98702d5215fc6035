package leader

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/autoscaler-agent/autoscaler-agent/test/await"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/world"
	"github.com/autoscaler-agent/autoscaler-agent/test/suite/worker"
)

// takeover is how long a cluster may be without an acting agent when one is killed.
const takeover = 20 * time.Second

// smallEtcd keeps three members in step on two processors that also run everything else: they
// vote after 10 s and not after one, and do not wait for a disk, which is memory here.
const smallEtcd = `sed -i 's/^kind: ClusterConfiguration$/&\netcd: {local: {extraArgs: [{name: heartbeat-interval, value: "1000"}, {name: election-timeout, value: "10000"}, {name: unsafe-no-fsync, value: "true"}]}}/' /etc/kubernetes/kubeadm-init.yaml`

// ha is a cluster with three leaders behind one endpoint.
type ha struct {
	*rig
	leaders []*worker.Container // by number
	api     kubernetes.Interface
	set     string // flags of install for what the test sets besides
}

func (h *ha) name(n int) string { return fmt.Sprintf("cp-%d", n+1) }

// TestHA: three machines become leaders by docs/ha.md's commands; the agent that acts is killed in
// the middle of a purchase, of a certificate approval, of a token and of a drain. Another one acts
// within 20 s, nothing happens twice, no live Node is deleted, and the worker that was joining joins.
func TestHA(t *testing.T) {
	h := &ha{rig: newRig(t)}
	h.front = router
	h.forward(t)
	began := time.Now()
	first := h.leaderWith(t, "cp-1", h.hook(t, "10.244.0.0/24", h.archives, onCgroupV1, smallEtcd))
	h.leaders = []*worker.Container{first}
	h.api = clientAt(t, first, router+":6443")
	t.Logf("cp-1 is a leader after %s", time.Since(began).Round(time.Second))
	h.installOn(t, 0)
	for n := 1; n < 3; n++ {
		began = time.Now()
		h.join(t, n)
		h.installOn(t, n)
		t.Logf("%s is a leader after %s", h.name(n), time.Since(began).Round(time.Second))
	}
	for n := range h.leaders {
		h.servesWithCertificate(t, n)
		h.ready(t, h.api, h.name(n))
	}
	h.standBy(t)
	h.sameJoinValues(t)

	seen := h.watchNodes(t)
	h.killInToken(t)
	i := h.killInPurchase(t)
	w := h.killInApproval(t, i)
	h.killInDrain(t, i, w)
	seen(t)
	h.rebootOne(t)
	h.replaceOne(t)
	h.replaceGone(t)
	h.loseTwo(t)
}

// forward is what stands before the API servers: a connection goes to one that answers.
func (h *ha) forward(t *testing.T) {
	t.Helper()
	l, err := net.Listen("tcp", router+":6443")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	var turn atomic.Int32
	go func() {
		for {
			from, err := l.Accept()
			if err != nil {
				return // closed
			}
			go func() {
				start := int(turn.Add(1))
				for n := range controlPlane {
					to, err := net.DialTimeout("tcp", controlPlane[(start+n)%len(controlPlane)]+":6443", 2*time.Second)
					if err == nil {
						splice(from, to)
						return
					}
				}
				from.Close()
			}()
		}
	}()
}

// join makes a machine a further leader by the two scripts of docs/ha.md, with the file of values
// copied as scp does.
func (h *ha) join(t *testing.T, n int) {
	t.Helper()
	first := h.leaders[0]
	values := h.render(t, "leader-config", "--join", "--format", "values", "--kubernetes-version", h.parts.Kubernetes)
	hook := h.hook(t, fmt.Sprintf("10.244.%d.0/24", n), h.archives)
	script := h.render(t, append([]string{"leader-config", "--join", "--endpoint", h.endpoint, "--kubernetes-version", h.parts.Kubernetes, "--os", "debian",
		"--advertise-address", controlPlane[n], "--image-pull-policy", "Never", "--ignore-preflight-errors", "SystemVerification,Mem,NumCPU", "--before-init", hook}, h.downloads()...)...)
	agent, err := os.ReadFile(filepath.Join(h.programs, "autoscaler-agent"))
	if err = errors.Join(err, first.Write("/root/values.sh", values, 0o600)); err != nil {
		t.Fatal(err)
	}
	must(t, first, "sh /root/values.sh 2>&1")
	secrets, err := first.Read("/root/control-plane-join.env")
	if err != nil {
		t.Fatal(err)
	}
	must(t, first, "rm /root/control-plane-join.env")
	c := h.machine(t, "cp", h.name(n), controlPlane[n], func(c *worker.Container) error {
		return errors.Join(c.Write("/root/join.sh", script, 0o600), c.Write("/root/control-plane-join.env", secrets, 0o600),
			c.Write("/root/autoscaler-agent-linux-amd64", agent, 0o755), c.Write("/etc/cloud/cloud-init.disabled", nil, 0o644))
	}, started(t))
	h.leaders = append(h.leaders, c)
	out := must(t, c, "sh /root/join.sh /root/control-plane-join.env 2>&1")
	t.Logf("join.sh:\n%s", phases(out))
	if !strings.Contains(out, "phase=leader-ready") {
		t.Fatalf("join.sh did not end:\n%s", tail(out))
	}
	for line := range bytes.Lines(secrets) {
		name, value, _ := strings.Cut(strings.TrimSpace(string(line)), "=")
		if left, err := c.Run(t.Context(), "grep", "-rlsF", "--exclude-dir=pki", value, "/root", "/run", "/etc", "/var/lib/autoscaler-agent-leader"); name != "JOIN_CERT_HASH" && err == nil {
			t.Errorf("%s stays on %s: %s", name, h.name(n), left)
		}
		if name != "JOIN_CERT_HASH" && strings.Contains(out, value) {
			t.Errorf("%s is printed", name)
		}
		if id, _, ok := strings.Cut(value, "."); ok && name == "JOIN_TOKEN" {
			if _, err := h.api.CoreV1().Secrets("kube-system").Get(t.Context(), "bootstrap-token-"+id, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
				t.Errorf("the token of %s stands: %v", h.name(n), err)
			}
		}
	}
}

// render runs the agent's program on this host.
func (h *ha) render(t *testing.T, args ...string) []byte {
	t.Helper()
	out, err := exec.Command(filepath.Join(h.programs, "autoscaler-agent"), args...).Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		t.Fatalf("%v: %v\n%s", args, err, exit.Stderr)
	} else if err != nil {
		t.Fatal(err)
	}
	return out
}

// installOn installs the agent: the first leader with its settings and the list of the control
// plane, the others with what the first has published.
func (h *ha) installOn(t *testing.T, n int) {
	t.Helper()
	c := h.leaders[n]
	// An agent that is killed stays dead until the test starts it: the machine is lost for so long.
	unit := "[Service]\nRestart=no\n"
	for _, v := range h.cloudEnv() {
		unit += "Environment=\"" + v + "\"\n"
	}
	if err := c.Write("/etc/systemd/system/autoscaler-agent.service.d/cloud.conf", []byte(unit), 0o600); err != nil {
		t.Fatal(err)
	}
	line := "install -m 0755 /root/autoscaler-agent-linux-amd64 /usr/local/bin/autoscaler-agent; " + strings.Join(h.cloudEnv(), " ") + " autoscaler-agent install"
	if n == 0 {
		list := "controlPlane:\n"
		for n, at := range controlPlane {
			list += "- node: " + h.name(n) + "\n  addresses: [" + at + "]\n"
		}
		if err := c.Write("/etc/autoscaler-agent/groups.yaml", []byte(list), 0o600); err != nil {
			t.Fatal(err)
		}
		line += " --set AUTOSCALER_PROVIDER=asg --set AUTOSCALER_AWS_CLUSTER_NAME=" + world.ClusterName + " --set AUTOSCALER_AWS_REGION=" + h.cloud.Region() +
			" --set AUTOSCALER_OBSERVE_SLOW=5s --set AUTOSCALER_SCALING_UNNEEDED_FOR=5s --set AUTOSCALER_SCALING_DELAY_AFTER_ADD=5s --set AUTOSCALER_NODECLEANER_OBSERVE_FIRST=0s --set AUTOSCALER_NODECLEANER_SIGHT_INTERVAL=1s" + h.set
	}
	out, err := c.Run(t.Context(), "sh", "-c", "export HOME=/root; "+line+" 2>&1")
	t.Logf("install on %s: %v\n%s", h.name(n), err, out)
	if n > 0 && (!strings.Contains(out, "groups.yaml") || !strings.Contains(out, "are those of the other leaders")) {
		t.Errorf("%s has not taken what the first has published", h.name(n))
	}
	must(t, c, "systemctl daemon-reload; systemctl enable autoscaler-agent; systemctl start autoscaler-agent")
	await.Nil(t, "join values are published on "+h.name(n), func(context.Context) error {
		_, err := c.Run(t.Context(), "test", "-s", "/etc/worker.env")
		return err
	})
}

// servesWithCertificate: the kubelet of a leader serves with a certificate of the cluster, which
// the acting agent has approved, of its own machine (R16) or another (R21).
func (h *ha) servesWithCertificate(t *testing.T, n int) {
	t.Helper()
	pem, err := h.leaders[0].Read("/etc/kubernetes/pki/ca.crt")
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	await.Nil(t, "the kubelet of "+h.name(n)+" serves with a certificate of the cluster", func(ctx context.Context) error {
		d := tls.Dialer{Config: &tls.Config{RootCAs: roots, ServerName: controlPlane[n]}}
		conn, err := d.DialContext(ctx, "tcp", controlPlane[n]+":10250")
		if err != nil {
			return err
		}
		return conn.Close()
	})
}

// acting is the number of the leader that holds the Lease now; -1: none does.
func (h *ha) acting(ctx context.Context) int {
	lease, err := h.api.CoordinationV1().Leases("kube-system").Get(ctx, "autoscaler-agent", metav1.GetOptions{})
	if err != nil || lease.Spec.HolderIdentity == nil {
		return -1
	}
	return slices.IndexFunc([]int{0, 1, 2}, func(n int) bool { return strings.HasPrefix(*lease.Spec.HolderIdentity, h.name(n)+"_") })
}

// standBy: one agent acts, and the others say that they stand by, to systemd and in status.
func (h *ha) standBy(t *testing.T) {
	t.Helper()
	await.Nil(t, "one acts and two stand by", func(ctx context.Context) error {
		acting := h.acting(ctx)
		for n, c := range h.leaders {
			line, err := c.Run(ctx, "systemctl", "show", "--property=StatusText", "--value", "autoscaler-agent")
			want := "acting"
			if n != acting && acting >= 0 {
				want = "not acting: standing by: " + h.name(acting) + " holds Lease kube-system/autoscaler-agent"
			}
			if strings.TrimSpace(line) != want || err != nil {
				return fmt.Errorf("%s says %q, want %q, %w", h.name(n), line, want, err)
			}
			status, err := c.Run(ctx, "autoscaler-agent", "status")
			if err != nil || strings.Contains(status, "standing by: ") == (n == acting) {
				return fmt.Errorf("%s: %w\n%s", h.name(n), err, status)
			}
		}
		return nil
	})
}

// sameJoinValues: worker.env is the same on every leader.
func (h *ha) sameJoinValues(t *testing.T) {
	t.Helper()
	await.Nil(t, "worker.env is the same on every leader", func(context.Context) error {
		var all []string
		for _, c := range h.leaders {
			text, err := c.Read("/var/lib/autoscaler-agent/worker.env")
			if err != nil {
				return err
			}
			// When the token ends is renewed by the leader, and read by the others a moment later.
			all = append(all, regexp.MustCompile(`(?m)^.*EXPIRES=.*$`).ReplaceAllString(string(text), ""))
		}
		if all[0] != all[1] || all[0] != all[2] || !strings.Contains(all[0], "JOIN_TOKEN=") {
			return errors.New("they differ")
		}
		return nil
	})
}
