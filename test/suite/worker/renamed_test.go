package worker

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/autoscaler-agent/autoscaler-agent/test/await"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/cloud/aws"
)

// TestWorkerRenamed: a worker that is halted, renamed, given another address and booted is the same
// Node. One whose kubelet lacks --hostname-override, as kubeadm alone makes them, is not: explain node
// names that as a cause, and, where the
// machine joins anew, the Node as which it answers.
func TestWorkerRenamed(t *testing.T) {
	r := newRig(t)
	c, i := r.machine(t, r.render(t), "")
	console(t, c, "joined")
	node := r.node(t, i)
	const name, address = "renamed.example.net", "10.0.9.9"

	r.halt(t, c, i)
	if out, err := exec.CommandContext(t.Context(), "sh", "-ec", "ip addr del "+i.PrivateIP+"/32 dev lo; ip addr add "+address+"/32 dev lo").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	err := errors.Join(
		c.Write("/etc/hostname", []byte(name+"\n"), 0o644),
		c.Write("/var/lib/cloud/seed/nocloud/meta-data", []byte("instance-id: "+i.ID+"\nlocal-hostname: "+name+"\n"), 0o644),
		c.Write("/etc/hosts", []byte(fmt.Sprintf("127.0.0.1 localhost\n%s %s %s\n", address, i.PrivateDNS, name)), 0o644))
	if err != nil {
		t.Fatal(err)
	}
	r.bootAs(t, c, name)
	await.Nil(t, "the same Node reports again, from the other address", func(ctx context.Context) error {
		n, err := r.cp.Client().CoreV1().Nodes().Get(ctx, i.PrivateDNS, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if n.UID != node.UID || !heard(n) || !strings.Contains(fmt.Sprint(n.Status.Addresses), address) {
			return fmt.Errorf("it is not: %v %v", n.UID, n.Status.Addresses)
		}
		return nil
	})
	if list, err := r.cp.Client().CoreV1().Nodes().List(t.Context(), metav1.ListOptions{}); err != nil || len(list.Items) != 1 {
		t.Errorf("the Nodes: %v, %v", list, err)
	}

	const flags = "/var/lib/kubelet/kubeadm-flags.env"
	if out, err := c.Run(t.Context(), "sh", "-ec", "grep -e --hostname-override="+i.PrivateDNS+" "+flags+"; sed -i 's/--hostname-override=[^ \"]*//' "+flags); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	r.halt(t, c, i)
	r.bootAs(t, c, name)
	await.Nil(t, "explain node tells what the silence can be", func(ctx context.Context) error {
		if said := words(r.explain(ctx, "node", i.PrivateDNS)); !strings.Contains(said, "or runs under another name because the host name was changed") {
			return errors.New(said)
		}
		return nil
	})
	if said := words(r.explain(t.Context(), "instance", i.ID)); !strings.Contains(said, "it has joined as Node "+i.PrivateDNS+", which is not Ready since") || !strings.Contains(said, "or runs under another name") {
		t.Errorf("explain instance: %s", said)
	}
	r.rejoined(t, i, name)
}

// rejoined is what a person may do then: the machine joins anew under the name that it has.
func (r *rig) rejoined(t *testing.T, i aws.Instance, name string) {
	t.Helper()
	nodes := r.cp.Client().CoreV1().Nodes()
	n, err := nodes.Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.NodeSpec{ProviderID: "aws:///" + i.Zone + "/" + i.ID}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	want := "the machine answers under another name, as Node " + name
	await.Nil(t, "explain node, explain instance and check name the other Node", func(ctx context.Context) error {
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastHeartbeatTime: metav1.Now()}}
		n.ResourceVersion = ""
		if _, err := nodes.UpdateStatus(ctx, n, metav1.UpdateOptions{}); err != nil {
			return err
		}
		for _, said := range []string{r.explain(ctx, "node", i.PrivateDNS), r.explain(ctx, "instance", i.ID), r.command(ctx, "check")} {
			if !strings.Contains(words(said), want) {
				return errors.New(said)
			}
		}
		return nil
	})
}

func words(text string) string { return strings.Join(strings.Fields(text), " ") }

func (r *rig) explain(ctx context.Context, kind, name string) string {
	return r.command(ctx, "explain", kind, name)
}

func (r *rig) command(ctx context.Context, args ...string) string {
	cmd := exec.CommandContext(ctx, os.Getenv("AUTOSCALER_TEST_AGENT"), args...)
	cmd.Env = r.env
	out, err := cmd.CombinedOutput()
	if err != nil {
		return err.Error() + "\n" + string(out)
	}
	return string(out)
}

func heard(n *corev1.Node) bool {
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady && c.Status != corev1.ConditionUnknown {
			return true
		}
	}
	return false
}

// halt switches the machine off and waits until its Node is silent.
func (r *rig) halt(t *testing.T, c *Container, i aws.Instance) {
	t.Helper()
	if err := c.Halt(); err != nil {
		t.Fatal(err)
	}
	await.Nil(t, "the Node is silent", func(ctx context.Context) error {
		n, err := r.cp.Client().CoreV1().Nodes().Get(ctx, i.PrivateDNS, metav1.GetOptions{})
		if err == nil && heard(n) {
			err = errors.New("it is not")
		}
		return err
	})
}

// bootAs boots the machine and checks its host name.
func (r *rig) bootAs(t *testing.T, c *Container, name string) {
	t.Helper()
	if err := c.Boot(t.Context()); err != nil {
		t.Fatal(err)
	}
	await.Nil(t, "the machine has its name", func(ctx context.Context) error {
		out, err := c.Run(ctx, "uname", "-n")
		if err == nil && strings.TrimSpace(out) != name {
			err = fmt.Errorf("it is called %s", out)
		}
		return err
	})
}
