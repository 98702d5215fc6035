package leader

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/autoscaler-agent/autoscaler-agent/test/await"
	"github.com/autoscaler-agent/autoscaler-agent/test/suite/worker"
)

// controlPlane6 are the leaders' addresses of IPv6.
var controlPlane6 = []string{"fd00:90::10", "fd00:90::11", "fd00:90::12"}

// TestDualStack: a cluster of both IP versions, in both orders. The API server and its Service have an address of the first version;
// leader, further leader and worker register both in that order, and their kubelets serve at both with certificates of the cluster.
func TestDualStack(t *testing.T) {
	// No name has a comma: it separates the options of an overlay, which lies below the test's directory.
	for name, networks := range map[string][]string{
		"IPv4 first": {"--pod-subnet", "10.244.0.0/16,fd00:10:244::/56", "--service-subnet", "10.96.0.0/16,fd00:10:96::/112"},
		"IPv6 first": {"--pod-subnet", "fd00:10:244::/56,10.244.0.0/16", "--service-subnet", "fd00:10:96::/112,10.96.0.0/16"},
	} {
		t.Run(name, func(t *testing.T) {
			r, families := newRig(t), "ipv4,ipv6"
			if strings.Contains(name, "6") {
				families = "ipv6,ipv4"
			}
			r.networks, r.families, r.six = networks, families, map[string]string{}
			for n, address := range controlPlane {
				r.six[address] = controlPlane6[n]
			}
			r.front = r.both(controlPlane[0])[0]
			c := r.leader(t)
			api := r.client(t, c)
			r.install(t, c)
			r.registersBoth(t, c, api, "leader", controlPlane[0])
			r.advertises(t, c, controlPlane[0])
			r.servesFirst(t, api)
			r.ready(t, api, "leader")
			r.check(t, c)

			i := r.grow(t, c, api)
			if i.IPv6 == "" {
				t.Fatal("the instance has no address of IPv6")
			}
			r.six[i.PrivateIP] = i.IPv6
			w := r.worker(t, i)
			r.ready(t, api, i.PrivateDNS)
			r.registersBoth(t, w, api, i.PrivateDNS, i.PrivateIP)
			runs(t, api)

			second, _, _ := r.joins(t, c, 1, "second", "--node-ip", families)
			r.advertises(t, second, controlPlane[1])
			r.nodeHas(t, api, "second", r.both(controlPlane[1]))
		})
	}
}

// both are a machine's addresses, in the order of the cluster.
func (r *rig) both(four string) []string {
	out := []string{four, r.six[four]}
	if strings.HasPrefix(r.families, "ipv6") {
		slices.Reverse(out)
	}
	return out
}

// registersBoth: the Node has both addresses in their order, and its kubelet serves at each with a certificate of the cluster.
func (r *rig) registersBoth(t *testing.T, c *worker.Container, api kubernetes.Interface, name, four string) {
	t.Helper()
	want := r.both(four)
	r.nodeHas(t, api, name, want)
	pem, err := c.Read("/etc/kubernetes/pki/ca.crt")
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	for _, address := range want {
		await.Nil(t, "the kubelet of "+name+" serves at "+address, func(ctx context.Context) error {
			d := tls.Dialer{Config: &tls.Config{RootCAs: roots, ServerName: address}}
			conn, err := d.DialContext(ctx, "tcp", net.JoinHostPort(address, "10250"))
			if err != nil {
				return err
			}
			return conn.Close()
		})
	}
}

// nodeHas waits for a Node with just these addresses of its own.
func (r *rig) nodeHas(t *testing.T, api kubernetes.Interface, name string, want []string) {
	t.Helper()
	await.Nil(t, name+" registers both addresses", func(ctx context.Context) error {
		node, err := api.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		var got []string
		for _, a := range node.Status.Addresses {
			if a.Type == corev1.NodeInternalIP {
				got = append(got, a.Address)
			}
		}
		if !slices.Equal(got, want) {
			return fmt.Errorf("it has %q, want %q", got, want)
		}
		return nil
	})
}

// advertises: the API server of a leader tells others the first of its addresses.
func (r *rig) advertises(t *testing.T, c *worker.Container, four string) {
	t.Helper()
	manifest, err := c.Read("/etc/kubernetes/manifests/kube-apiserver.yaml")
	if want := "--advertise-address=" + r.both(four)[0] + "\n"; err != nil || !strings.Contains(string(manifest), want) {
		t.Errorf("the API server is not started with %q: %v", want, err)
	}
}

// servesFirst: the Service of the API server has an address of each version, and leads to the leader's first one.
func (r *rig) servesFirst(t *testing.T, api kubernetes.Interface) {
	t.Helper()
	first := r.both(controlPlane[0])[0]
	service, err := api.CoreV1().Services("default").Get(t.Context(), "kubernetes", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(service.Spec.ClusterIP, ":") != strings.Contains(first, ":") {
		t.Errorf("the Service of the API server has %s, and the API server %s", service.Spec.ClusterIP, first)
	}
	leads, err := api.DiscoveryV1().EndpointSlices("default").Get(t.Context(), "kubernetes", metav1.GetOptions{})
	if err != nil || len(leads.Endpoints) != 1 || !slices.Equal(leads.Endpoints[0].Addresses, []string{first}) {
		t.Errorf("the Service of the API server leads to %v, want %s: %v", leads.Endpoints, first, err)
	}
}
