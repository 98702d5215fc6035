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

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"

	"github.com/autoscaler-agent/autoscaler-agent/test/await"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/cloud/aws"
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
}

func (h *ha) name(n int) string { return fmt.Sprintf("cp-%d", n+1) }

// TestHA: three machines become leaders by docs/ha.md's commands; the agent that acts is killed in
// the middle of a purchase, of a certificate approval, of a token and of a drain. Another one acts
// within 20 s, nothing happens twice, no live Node is deleted, and the worker that was joining joins.
func TestHA(t *testing.T) {
	h := &ha{rig: newRig(t)}
	h.front = router
	h.endpoint(t)
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
	h.replaceOne(t)
	h.loseTwo(t)
}

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

// endpoint is what stands before the API servers: a connection goes to one that answers.
func (h *ha) endpoint(t *testing.T) {
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
	script := h.render(t, append([]string{"leader-config", "--join", "--endpoint", endpoint, "--kubernetes-version", h.parts.Kubernetes, "--os", "debian",
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
	c := h.machine(t, h.name(n), h.name(n), controlPlane[n], func(c *worker.Container) error {
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
		if err := c.Write("/etc/autoscaler-agent/groups.yaml", []byte(list), 0o644); err != nil {
			t.Fatal(err)
		}
		line += " --set AUTOSCALER_PROVIDER=asg --set AUTOSCALER_AWS_CLUSTER_NAME=" + world.ClusterName + " --set AUTOSCALER_AWS_REGION=" + h.cloud.Region() +
			" --set AUTOSCALER_OBSERVE_SLOW=5s --set AUTOSCALER_SCALING_UNNEEDED_FOR=5s --set AUTOSCALER_SCALING_DELAY_AFTER_ADD=5s --set AUTOSCALER_NODECLEANER_OBSERVE_FIRST=0s --set AUTOSCALER_NODECLEANER_SIGHT_INTERVAL=1s"
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
	return slices.IndexFunc([]int{0, 1, 2}, func(n int) bool { return *lease.Spec.HolderIdentity == h.name(n) })
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

// kill ends the acting agent without a word, and waits until another one acts.
func (h *ha) kill(t *testing.T, when string) {
	t.Helper()
	dead := h.acting(t.Context())
	if dead < 0 {
		t.Fatal("no agent acts")
	}
	must(t, h.leaders[dead], "systemctl kill --signal=SIGKILL autoscaler-agent")
	killed := time.Now()
	var next int
	await.True(t, "another agent acts", func() bool {
		next = h.acting(t.Context())
		return next >= 0 && next != dead
	})
	took := time.Since(killed)
	t.Logf("%s: %s was killed, and %s acts %s later", when, h.name(dead), h.name(next), took.Round(100*time.Millisecond))
	if took > takeover {
		t.Errorf("%s: it took %s", when, took)
	}
	if state, _ := h.leaders[dead].Run(t.Context(), "systemctl", "is-active", "autoscaler-agent"); strings.TrimSpace(state) != "failed" {
		t.Errorf("%s: the killed agent is %s", when, state)
	}
	h.revive(t, dead)
}

// revive starts the killed agent: the machine is back.
func (h *ha) revive(t *testing.T, n int) {
	t.Helper()
	must(t, h.leaders[n], "systemctl reset-failed autoscaler-agent; systemctl start autoscaler-agent")
}

// killInToken: the published token is revoked, and the agent is killed when it has made the next
// one. The new leader publishes a token that lives, on every leader.
func (h *ha) killInToken(t *testing.T) {
	t.Helper()
	acting := h.leaders[h.acting(t.Context())]
	before, err := acting.Read("/var/lib/autoscaler-agent/worker.env")
	if err != nil {
		t.Fatal(err)
	}
	w, err := h.api.CoreV1().Secrets("kube-system").Watch(t.Context(), metav1.ListOptions{FieldSelector: "type=bootstrap.kubernetes.io/token"})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	id := regexp.MustCompile(`JOIN_TOKEN=['"]?([a-z0-9]{6})`).FindSubmatch(before)
	if id == nil {
		t.Fatal("no token is published")
	}
	if err := h.api.CoreV1().Secrets("kube-system").Delete(t.Context(), "bootstrap-token-"+string(id[1]), metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	must(t, acting, "rm /var/lib/autoscaler-agent/worker.env") // it looks at once
	limit := time.After(await.Limit)
	for made := false; !made; {
		select {
		case e := <-w.ResultChan():
			s, ok := e.Object.(*corev1.Secret)
			made = ok && e.Type != "DELETED" && strings.HasPrefix(s.Name, "bootstrap-token-asa") && !bytes.Contains(before, s.Data["token-secret"])
		case <-limit:
			t.Fatal("no token is made")
		}
	}
	h.kill(t, "in the middle of a token")
	h.sameJoinValues(t)
	await.Nil(t, "the published token lives", func(ctx context.Context) error {
		text, err := h.leaders[0].Read("/var/lib/autoscaler-agent/worker.env")
		if err != nil {
			return err
		}
		m := regexp.MustCompile(`(?m)^JOIN_TOKEN=['"]?([a-z0-9]{6})\.([a-z0-9]{16})`).FindSubmatch(text)
		if m == nil || bytes.Equal(text, before) {
			return errors.New("it is as before")
		}
		s, err := h.api.CoreV1().Secrets("kube-system").Get(ctx, "bootstrap-token-"+string(m[1]), metav1.GetOptions{})
		if err == nil && !bytes.Equal(s.Data["token-secret"], m[2]) {
			err = errors.New("it is another one's")
		}
		return err
	})
}

// killInPurchase: the agent is killed when the cloud has taken its order, before it has the answer.
// One machine comes.
func (h *ha) killInPurchase(t *testing.T) aws.Instance {
	t.Helper()
	lost := h.cloud.Inject(aws.Fault{Action: "SetDesiredCapacity", Kind: aws.AnswerLost, Times: 1})
	i := h.grow(t, h.leaders[h.acting(t.Context())], h.api)
	h.kill(t, "in the middle of a purchase")
	if struck := lost(); struck != 1 {
		t.Errorf("%d answers were lost", struck)
	}
	h.machines(t, 1)
	return i
}

// machines: the group has so many, and has never launched more.
func (h *ha) machines(t *testing.T, want int) {
	t.Helper()
	g, ok := h.cloud.Group(group)
	if all := len(h.cloud.Instances()); !ok || g.Desired != want || all != 1 {
		t.Errorf("the group wants %d machines, want %d; %d were launched, want 1", g.Desired, want, all)
	}
}

// killInApproval: the agent is killed when the worker's kubelet has asked for its certificate. The
// worker joins, with one approval of one request.
func (h *ha) killInApproval(t *testing.T, i aws.Instance) *worker.Container {
	t.Helper()
	w, err := h.api.CertificatesV1().CertificateSigningRequests().Watch(t.Context(), metav1.ListOptions{FieldSelector: "spec.signerName=" + certificatesv1.KubeAPIServerClientKubeletSignerName})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	asked := make(chan string, 1)
	go func() {
		for e := range w.ResultChan() {
			if csr, ok := e.Object.(*certificatesv1.CertificateSigningRequest); ok && e.Type == "ADDED" && strings.HasPrefix(csr.Spec.Username, "system:bootstrap:asa") {
				asked <- csr.Name
				return
			}
		}
	}()
	c := h.worker(t, i)
	select {
	case name := <-asked:
		t.Logf("%s asks by %s", i.PrivateDNS, name)
	case <-time.After(await.Limit):
		t.Fatal("the worker does not ask for a certificate")
	}
	h.kill(t, "in the middle of a certificate approval")
	h.ready(t, h.api, i.PrivateDNS)
	pod := runs(t, h.api)
	if pod.Spec.NodeName != i.PrivateDNS || !strings.Contains(c.ConsoleText(), "phase=joined") {
		t.Errorf("the pod is on %s; the worker's console: %s", pod.Spec.NodeName, tail(c.ConsoleText()))
	}
	list, err := h.api.CertificatesV1().CertificateSigningRequests().List(t.Context(), metav1.ListOptions{FieldSelector: "spec.signerName=" + certificatesv1.KubeAPIServerClientKubeletSignerName})
	if err != nil {
		t.Fatal(err)
	}
	approved := 0
	for _, csr := range list.Items {
		if strings.HasPrefix(csr.Spec.Username, "system:bootstrap:asa") && slices.ContainsFunc(csr.Status.Conditions, func(c certificatesv1.CertificateSigningRequestCondition) bool {
			return c.Type == certificatesv1.CertificateApproved
		}) {
			approved++
		}
	}
	if approved != 1 {
		t.Errorf("%d requests of the worker are approved", approved)
	}
	h.machines(t, 1)
	return c
}

// killInDrain: the agent is killed when it has marked the node of a machine that nothing needs. The
// next one ends the machine, once, and the Node goes after the machine.
func (h *ha) killInDrain(t *testing.T, i aws.Instance, c *worker.Container) {
	t.Helper()
	h.ended = func(aws.Instance) { go func() { _ = c.Halt() }() } // the machine is gone, and its kubelet with it
	w, err := h.api.CoreV1().Nodes().Watch(t.Context(), metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", i.PrivateDNS).String()})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	if err := h.api.CoreV1().Pods("default").Delete(t.Context(), "work", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	limit := time.After(await.Limit)
	for marked := false; !marked; {
		select {
		case e := <-w.ResultChan():
			n, ok := e.Object.(*corev1.Node)
			marked = ok && slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == "ToBeDeletedByClusterAutoscaler" })
		case <-limit:
			t.Fatal("the node is not marked for its removal")
		}
	}
	h.kill(t, "in the middle of a drain")
	await.True(t, "the machine is ended", func() bool {
		g, ok := h.cloud.Group(group)
		return ok && g.Desired == 0
	})
	await.Nil(t, "its Node is gone", func(ctx context.Context) error {
		_, err := h.api.CoreV1().Nodes().Get(ctx, i.PrivateDNS, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("it is there: %w", err)
	})
	h.machines(t, 0)
	ends := 0
	for _, call := range h.cloud.Calls(nil) {
		if call.Action == "TerminateInstanceInAutoScalingGroup" && call.Done {
			ends++
		}
	}
	if ends != 1 {
		t.Errorf("the machine was ended %d times", ends)
	}
}

// watchNodes notes each Node that is deleted while its machine lives; the returned function judges.
func (h *ha) watchNodes(t *testing.T) func(t *testing.T) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	gone := make(chan string, 16)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			w, err := h.api.CoreV1().Nodes().Watch(ctx, metav1.ListOptions{})
			if err != nil {
				time.Sleep(100 * time.Millisecond)
				continue
			}
			for e := range w.ResultChan() {
				n, ok := e.Object.(*corev1.Node)
				if !ok || e.Type != "DELETED" {
					continue
				}
				at := slices.IndexFunc(h.cloud.Instances(), func(i aws.Instance) bool { return i.PrivateDNS == n.Name && i.State == "terminated" })
				if at < 0 {
					gone <- n.Name
				}
			}
		}
	}()
	return func(t *testing.T) {
		t.Helper()
		stop()
		<-done
		close(gone)
		for name := range gone {
			t.Errorf("Node %s was deleted while its machine lives", name)
		}
		list, err := h.api.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
		if err != nil || len(list.Items) != 3 {
			t.Errorf("%d Nodes are left, want the three leaders; %v", len(list.Items), err)
		}
	}
}
