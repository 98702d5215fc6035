package services

import (
	"fmt"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// testRejoin lets machines join anew under another name while the Node of their old name is there (issue 41,
// E and J): R20 holds the request beside a Node whose kubelet lives, until that Node is deleted, and
// none beside a dead one.
func (c *corpus) testRejoin(t *testing.T) {
	client := c.cp.Client()
	for i, x := range []struct {
		name  string
		ready corev1.ConditionStatus
		lease time.Duration // since its renewal; 0: there is none
		held  bool
	}{
		{"the old kubelet lives", corev1.ConditionTrue, time.Second, true},
		{"the old kubelet lives, and its condition is late", corev1.ConditionUnknown, -30 * time.Second, true}, // a clock ahead: fresh for 70 seconds, on a slow host too
		{"the old kubelet is dead", corev1.ConditionUnknown, time.Hour, false},
		{"the old kubelet lives, and its clock is an hour behind", corev1.ConditionTrue, time.Hour, true},
		{"the old kubelet never reported", "", 0, false},
	} {
		e := &csrCase{csrRow: csrRow{name: x.name}}
		e.instance = c.take()
		e.node = e.instance.PrivateDNS
		old := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: strings.Split(e.node, ".")[0]}, Spec: corev1.NodeSpec{ProviderID: e.providerID()}}
		old, err := client.CoreV1().Nodes().Create(t.Context(), old, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if x.lease != 0 {
			at := metav1.NewMicroTime(time.Now().Add(-x.lease))
			lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: old.Name}, Spec: coordinationv1.LeaseSpec{RenewTime: &at}}
			if _, err := client.CoordinationV1().Leases(corev1.NamespaceNodeLease).Create(t.Context(), lease, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		if x.ready != "" {
			status := fmt.Appendf(nil, `{"status":{"conditions":[{"type":"Ready","status":%q,"reason":"Test"}]}}`, x.ready) // others write the Node, too
			if _, err := client.CoreV1().Nodes().Patch(t.Context(), old.Name, types.StrategicMergePatchType, status, metav1.PatchOptions{}, "status"); err != nil {
				t.Fatal(err)
			}
		}
		c.register(t, []*csrCase{e})
		name := fmt.Sprintf("rejoin-%d", i)
		if err := c.send(t, name, e.kubelet()); err != nil {
			t.Fatal(err)
		}
		if x.held {
			c.holds(t, name, "R20")
			if said := c.said(t, name); !strings.Contains(said, "kubectl delete node "+old.Name) {
				t.Errorf("%s: the command is not told: %s", x.name, said)
			}
			if err := client.CoreV1().Nodes().Delete(t.Context(), old.Name, metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		c.approves(t, name)
	}
}
