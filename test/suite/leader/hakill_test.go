package leader

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/autoscaler-agent/autoscaler-agent/test/await"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/cloud/aws"
	"github.com/autoscaler-agent/autoscaler-agent/test/suite/worker"
)

// inCall holds the next call of the acting agent until the agent is killed: the cloud gets the order and
// carries it out, and its answer reaches no agent.
func (h *ha) inCall(t *testing.T, action string, begin func()) {
	t.Helper()
	held := make(chan struct{})
	stop := h.cloud.Inject(aws.Fault{Action: action, Kind: aws.Slow, Delay: time.Hour, Times: 1, OnStrike: func() { close(held) }})
	defer stop()
	begin()
	select {
	case <-held:
	case <-time.After(await.Limit):
		t.Fatalf("the agent does not call %s", action)
	}
	done := aws.Action("*", action)
	before := len(h.cloud.Calls(done))
	h.kill(t, "in the middle of "+action, func() {
		await.True(t, "the cloud carries the order of the dead agent out", func() bool { return len(h.cloud.Calls(done)) > before })
	})
}

// kill ends the acting agent without a word, and waits until another one acts. Then is what happens at once.
func (h *ha) kill(t *testing.T, when string, then func()) {
	t.Helper()
	dead := h.acting(t.Context())
	if dead < 0 {
		t.Fatal("no agent acts")
	}
	must(t, h.leaders[dead], "systemctl kill --signal=SIGKILL autoscaler-agent")
	killed := time.Now()
	then()
	var next int
	await.True(t, "another agent acts", func() bool {
		next = h.acting(t.Context())
		return next >= 0 && next != dead
	})
	took := time.Since(killed)
	h.rig.acts(t, h.leaders[next])
	t.Logf("%s: %s was killed, %s holds the Lease %s later, and says that it acts after %s", when, h.name(dead), h.name(next),
		took.Round(100*time.Millisecond), time.Since(killed).Round(100*time.Millisecond))
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
// one and before it has published it: a directory is in the way. The new leader publishes a token
// that lives, on every leader, and no other one stands.
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
	must(t, acting, "cd /var/lib/autoscaler-agent; rm worker.env; mkdir worker.env") // it looks at once
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
	h.kill(t, "in the middle of a token", func() { must(t, acting, "rmdir /var/lib/autoscaler-agent/worker.env") })
	h.sameJoinValues(t)
	h.oneToken(t)
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

// oneToken: no token of the agent's stands beside the published one. kubeadm keeps one of its own for the uploaded certificates.
func (h *ha) oneToken(t *testing.T) {
	t.Helper()
	stand := "" // what stood at the last look that was answered
	await.Nil(t, "one token stands", func(ctx context.Context) error {
		list, err := h.api.CoreV1().Secrets("kube-system").List(ctx, metav1.ListOptions{FieldSelector: "type=bootstrap.kubernetes.io/token"})
		if err != nil {
			return fmt.Errorf("%w; before that there were %s", err, stand)
		}
		stand = ""
		own := slices.DeleteFunc(list.Items, func(s corev1.Secret) bool { return !strings.HasPrefix(s.Name, "bootstrap-token-asa") })
		for _, s := range own {
			stand += fmt.Sprintf("%s made %s ends %s (%s); ", s.Name, s.CreationTimestamp.UTC().Format(time.TimeOnly), s.Data["expiration"], s.Data["description"])
		}
		if len(own) != 1 {
			return fmt.Errorf("there are %s", stand)
		}
		return nil
	})
}

// killInPurchase: the agent is killed when the cloud has its order, before it has the answer.
// One machine comes.
func (h *ha) killInPurchase(t *testing.T) aws.Instance {
	t.Helper()
	h.inCall(t, "SetDesiredCapacity", func() { h.order(t, h.leaders[h.acting(t.Context())], h.api) })
	i := h.instance(t)
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

// killInApproval: the agent is killed when the worker's kubelet has asked for its certificate, while
// it asks the cloud for the machine. The worker joins, with one approval of one request.
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
	stop := h.cloud.Inject(aws.Fault{Action: "DescribeInstances", Kind: aws.Slow, Delay: 5 * time.Second})
	c := h.worker(t, i)
	var name string
	select {
	case name = <-asked:
	case <-time.After(await.Limit):
		t.Fatal("the worker does not ask for a certificate")
	}
	h.kill(t, "in the middle of a certificate approval", func() {
		stop()
		csr, err := h.api.CertificatesV1().CertificateSigningRequests().Get(t.Context(), name, metav1.GetOptions{})
		if err != nil || len(csr.Status.Conditions) > 0 {
			t.Errorf("the agent had decided on %s before it was killed: %+v, %v", name, csr.Status.Conditions, err)
		}
	})
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

// killInDrain: the agent is killed when it has marked the node of a machine that nothing needs, before it
// asks the cloud to end the machine; the next one is killed while it does. The machine is ended once, and the
// Node goes after the machine.
func (h *ha) killInDrain(t *testing.T, i aws.Instance, c *worker.Container) {
	t.Helper()
	h.ended = func(aws.Instance) { go func() { _ = c.Halt() }() } // the machine is gone, and its kubelet with it
	const end = "TerminateInstanceInAutoScalingGroup"
	h.inCall(t, end, func() {
		stop := h.cloud.Inject(aws.Fault{Action: "DescribeInstances", Kind: aws.Slow, Delay: 5 * time.Second})
		marked := h.marked(t, i.PrivateDNS)
		if err := h.api.CoreV1().Pods("default").Delete(t.Context(), "work", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		select {
		case <-marked:
		case <-time.After(await.Limit):
			t.Fatal("the node is not marked for its removal")
		}
		h.kill(t, "in the middle of a drain", func() {
			stop()
			if calls := h.cloud.Calls(aws.Action("*", end)); len(calls) > 0 {
				t.Errorf("the agent had ended the machine before it was killed: %v", calls)
			}
		})
	})
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
	for _, call := range h.cloud.Calls(aws.Action("*", end)) {
		if call.Done {
			ends++
		}
	}
	if ends != 1 {
		t.Errorf("the machine was ended %d times", ends)
	}
}

// marked is closed when a node has the mark of its removal.
func (h *ha) marked(t *testing.T, node string) <-chan struct{} {
	t.Helper()
	w, err := h.api.CoreV1().Nodes().Watch(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=" + node})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Stop)
	out := make(chan struct{})
	go func() {
		for e := range w.ResultChan() {
			n, ok := e.Object.(*corev1.Node)
			if ok && slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == "ToBeDeletedByClusterAutoscaler" }) {
				close(out)
				return
			}
		}
	}()
	return out
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
				if !slices.ContainsFunc(h.cloud.Instances(), func(i aws.Instance) bool { // the name goes with the machine
					return strings.HasSuffix(n.Spec.ProviderID, "/"+i.ID) && i.State == "terminated"
				}) {
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
