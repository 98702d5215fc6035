package csrsigner

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/autoscaler-agent/autoscaler-agent/csrsigner/rules"
)

// TestControlPlaneNames: with the agent's own rights a token can be minted, but not used
// for a machine of the control plane: neither the agent's own nor another one, by its
// Node's name or by a host name of it, whatever the cloud says.
func TestControlPlaneNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &cloud{}
		c.launch()
		names := []string{"leader", "leader.example.org", "cp-2", "cp-2.example.org", "cp-old"}
		c.group.Instances[0].NodeNames = append(c.group.Instances[0].NodeNames, names...)
		loop(t, c, func(cfg *Config, d *Deps) {
			closing("")(cfg, d)
			d.OwnNode, d.Self = "leader", func() rules.Self { return rules.Self{Node: "leader", Names: []string{"leader", "leader.example.org"}} }
		}, func(client *fake.Clientset, s *Service) {
			second := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "cp-2", Labels: map[string]string{controlPlaneLabels[0]: ""}}}
			second.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeHostName, Address: "CP-2.example.org"}}
			create(t, client, second, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "cp-old-node",
				Labels: map[string]string{controlPlaneLabels[1]: "", corev1.LabelHostname: "cp-old"}}})
			for n, name := range names {
				create(t, client, joining(t, fmt.Sprintf("as-%d", n), name))
			}
			wait(2 * time.Minute)
			for n, name := range names {
				x, _ := s.Explain(t.Context(), fmt.Sprintf("as-%d", n))
				if x.Settled != "denied" || x.Rule != "J8" {
					t.Errorf("as %s: %q, %s %s", name, x.Settled, x.Rule, x.Why)
				}
			}
		})
	})
}

// TestControlPlaneUnread: while the control plane's Nodes cannot be listed nobody joins.
func TestControlPlaneUnread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &cloud{}
		c.launch()
		loop(t, c, closing(""), func(client *fake.Clientset, s *Service) {
			var refuse atomic.Bool
			refuse.Store(true)
			client.PrependReactor("list", "nodes", func(a clienttesting.Action) (bool, runtime.Object, error) {
				l, ok := a.(clienttesting.ListAction)
				return refuse.Load() && ok && !l.GetListRestrictions().Labels.Empty(), nil, errors.New("etcd is away")
			})
			create(t, client, joining(t, "machine", host))
			wait(time.Minute)
			held(t, client, s, "machine", "J13", "etcd is away")
			refuse.Store(false)
			wait(2 * time.Minute)
			if got := condition(t, client, "machine"); got != "approved" {
				t.Errorf("the machine is %q when they can", got)
			}
		})
	})
}
