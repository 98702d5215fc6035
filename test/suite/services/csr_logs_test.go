package services

import (
	"context"
	"fmt"
	"net/netip"
	"runtime"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/autoscaler-agent/autoscaler-agent/test/await"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/cloud/aws"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/machine"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/world"
)

// tuneLogs gives machines that join for real an address on loopback, which the API
// server can reach. The second one's kubelet signs its own certificate.
func (c *corpus) tuneLogs(m *machine.Config) {
	c.joined++
	address := fmt.Sprintf("127.0.1.%d", c.joined)
	m.Addresses = []netip.Addr{netip.MustParseAddr(address)}
	m.SelfSigned = c.joined == 2
	_ = c.w.Cloud.Rewire(m.InstanceID, func(n *aws.Network) {
		n.PrivateIP, n.PrivateDNS, n.PublicIP, n.IPv6 = address, m.Name, "", ""
	})
}

// testLogs reads a pod's log as kubectl does, through an API server that verifies
// kubelets (--kubelet-certificate-authority): a machine whose certificate the agent
// approved is reached, one that vouches for itself is not.
func (c *corpus) testLogs(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux has all of 127.0.0.0/8")
	}
	data, err := c.w.RenderUserData(t.Context(), c.binary)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.w.PutWorkers(world.Workers{Name: "logs", Min: 2, Max: 2, InstanceType: "m5.large", UserData: data}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), await.Limit)
	defer cancel()
	var machines []*machine.Machine
	await.True(t, "two machines boot", func() bool {
		machines = nil
		for _, m := range c.w.Fleet.Machines() {
			if len(m.Config().UserData) > 0 {
				machines = append(machines, m)
			}
		}
		return len(machines) == 2
	})
	for _, m := range machines {
		err := m.Wait(ctx, func(_ machine.State, at machine.Times, _ error) bool { return !at.ServingCert.IsZero() })
		if err != nil {
			t.Fatalf("%v\n%s", err, m.Console())
		}
		log, err := c.readLog(ctx, t, m.Config().Name)
		switch {
		case m.Config().SelfSigned && err == nil:
			t.Errorf("a machine that vouches for itself is believed: %q", log)
		case m.Config().SelfSigned && !strings.Contains(log, "certificate signed by unknown authority"):
			t.Errorf("the log of a machine that vouches for itself: %v", err)
		case !m.Config().SelfSigned && (err != nil || !strings.Contains(log, m.Config().Name)):
			t.Errorf("the log of a machine whose certificate was approved: %q, %v", log, err)
		}
		t.Logf("kubectl logs on %s (self-signed: %t): %q, %v", m.Config().Name, m.Config().SelfSigned, log, err)
	}
}

// readLog runs a pod on a Node and asks the API server for its log.
func (c *corpus) readLog(ctx context.Context, t *testing.T, node string) (string, error) {
	t.Helper()
	pods := c.cp.Client().CoreV1().Pods("default")
	pod, err := pods.Create(ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "logs-"},
		Spec:       corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "c", Image: "nginx"}}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	b, err := pods.GetLogs(pod.Name, &corev1.PodLogOptions{}).DoRaw(ctx)
	return string(b), err
}
