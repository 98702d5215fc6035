package csrsigner

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
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
			second := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "cp-2", Labels: map[string]string{cluster.ControlPlaneLabels[0]: ""}}}
			second.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeHostName, Address: "CP-2.example.org"}}
			create(t, client, second, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "cp-old-node",
				Labels: map[string]string{cluster.ControlPlaneLabels[1]: "", corev1.LabelHostname: "cp-old"}}})
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

// TestListedControlPlane: the kubelet of another control-plane machine gets what the operator's
// list says of it, once the list says so; the names of the list are no worker's.
func TestListedControlPlane(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &cloud{}
		c.launch()
		c.group.Instances[0].NodeNames = append(c.group.Instances[0].NodeNames, "cp-9", "cp-9.example.org")
		var list atomic.Pointer[[]rules.Machine]
		list.Store(&[]rules.Machine{})
		loop(t, c, func(cfg *Config, d *Deps) {
			closing("")(cfg, d)
			d.OwnNode, d.Self = "leader", func() rules.Self { return rules.Self{Node: "leader", Names: []string{"leader"}} }
			d.ControlPlane = func() []rules.Machine { return *list.Load() }
		}, func(client *fake.Clientset, s *Service) {
			ask := func(name, node string, dns []string, ips ...string) {
				csr := pending(t, name, rules.UserPrefix+node)
				csr.Spec.Request = request(t, func(r *x509.CertificateRequest) {
					r.Subject.CommonName, r.DNSNames, r.IPAddresses = rules.UserPrefix+node, dns, nil
					for _, ip := range ips {
						r.IPAddresses = append(r.IPAddresses, net.ParseIP(ip))
					}
				})
				create(t, client, csr)
			}
			create(t, client, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "cp-2", Labels: map[string]string{cluster.ControlPlaneLabels[0]: ""}}},
				&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "cp-3", Labels: map[string]string{cluster.ControlPlaneLabels[0]: ""}}})
			ask("early", "cp-2", []string{"cp-2"}, "10.0.0.12")
			wait(time.Minute)
			held(t, client, s, "early", "R16", "section controlPlane of groups.yaml")
			list.Store(&[]rules.Machine{{Node: "cp-2", Addresses: []netip.Addr{addr("10.0.0.12")}}, {Node: "cp-3", Addresses: []netip.Addr{addr("10.0.0.13")}},
				{Node: "cp-9", Names: []string{"cp-9.example.org"}, Addresses: []netip.Addr{addr("10.0.0.19")}}})
			wait(3 * time.Minute)
			if got := condition(t, client, "early"); got != "approved" {
				x, _ := s.Explain(t.Context(), "early")
				t.Errorf("cp-2 is %q when it is listed: %s %s", got, x.Rule, x.Why)
			}
			ask("stranger", "cp-3", []string{"cp-3"}, "10.0.0.12")
			wait(time.Minute)
			held(t, client, s, "stranger", "R21", "10.0.0.12 is not in the line of Node cp-3")
			for n, name := range []string{"cp-9", "cp-9.example.org"} { // listed, and not there yet
				create(t, client, joining(t, fmt.Sprintf("as-%d", n), name))
			}
			wait(2 * time.Minute)
			for n := range 2 {
				if x, _ := s.Explain(t.Context(), fmt.Sprintf("as-%d", n)); x.Settled != "denied" || x.Rule != "J8" {
					t.Errorf("as-%d: %q, %s %s", n, x.Settled, x.Rule, x.Why)
				}
			}
		})
	})
}
