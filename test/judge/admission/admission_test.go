package admission

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/autoscaler-agent/autoscaler-agent/internal/testing/drawn"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/controlplane"
)

var forms = flag.Int("forms", 10000, "how many hostile requests are drawn")

const kubeadmConfig = `apiServer:
  certSANs:
  - API.example.com
  - "10.0.0.9"
  - fd00:9::9
  - 'FD00:9:0:0::A'
  extraArgs:
  - name: authorization-mode
    value: Node,RBAC
apiVersion: kubeadm.k8s.io/v1beta4
clusterName: kubernetes
controlPlaneEndpoint: "cp.example.com:6443" # or an address: TestControlPlaneAddresses
etcd:
  local:
    peerCertSANs: [etcd-1.example.com, etcd-2]
kind: ClusterConfiguration
networking:
  dnsDomain: k8s.example.org
  podSubnet: 10.244.0.0/16
  serviceSubnet: 10.96.0.0/12,fd00:10:96::/108
`

// cluster has a control plane of two machines.
func cluster() Cluster {
	leader := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "leader", Labels: map[string]string{"node-role.kubernetes.io/control-plane": ""}},
		Status: corev1.NodeStatus{Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "10.0.99.1"}, {Type: corev1.NodeInternalIP, Address: "FD99:3456:0::99"},
			{Type: corev1.NodeHostName, Address: "Leader.example.com"}, {Type: corev1.NodeExternalDNS, Address: "leader-ext.example.net"}}}}
	second := &corev1.Node{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Node"}, ObjectMeta: metav1.ObjectMeta{Name: "old-leader", Labels: map[string]string{"node-role.kubernetes.io/master": ""}}}
	return append(Kubeadm(kubeadmConfig, leader, "10.96.0.1", "fd00:10:96::1"), second, Servers("FD98:0::1"))
}

func scene(seed uint64) *Scene {
	s := &Scene{Rand: rand.New(rand.NewPCG(seed, 41)), Domain: "k8s.example.org",
		Own: []string{"leader", "leader.example.com", "leader-ext.example.net", "old-leader", "api.example.com", "cp.example.com", "etcd-1.example.com", "etcd-2"}}
	s.Services = []netip.Addr{netip.MustParseAddr("10.111.255.255"), netip.MustParseAddr("fd00:10:96::f:ffff")}
	for _, a := range []string{"10.96.0.1", "fd00:10:96::1", "10.0.99.1", "fd99:3456::99", "10.0.0.9", "fd00:9::9", "fd00:9::a", "10.0.98.1", "fd98::1"} {
		s.Addresses = append(s.Addresses, netip.MustParseAddr(a))
	}
	return s
}

// program is the API server's evaluation, of the cached control plane.
var program = sync.OnceValues(func() (string, error) {
	bin, err := controlplane.BinariesOf(context.Background(), "", os.Stderr)
	return bin.Path(controlplane.Admission), err
})

// start starts a judge with the manifest as it ships, changed by change.
func start(t *testing.T, change func(string) string) *Judge {
	t.Helper()
	p, err := program()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(Manifest())
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "policies.yaml")
	if err := os.WriteFile(file, []byte(change(string(text))), 0o600); err != nil {
		t.Fatal(err)
	}
	j, err := Start(t.Context(), p, file)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { j.Close() })
	return j
}

func same(s string) string { return s }

// play asks two judges about n requests each that draw makes.
func play(t *testing.T, n int, draw func(*Scene) Form, see func(Form, Answer)) {
	t.Helper()
	first := drawn.Seed(t)
	var all sync.WaitGroup
	var mu sync.Mutex
	for w := range 2 {
		j := start(t, same)
		j.First = true
		s, c := scene(first+uint64(w)), cluster()
		all.Go(func() {
			for range n {
				f := draw(s)
				a, err := j.ApproveServing(c, f.Node, f.PEM)
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				see(f, a)
				mu.Unlock()
			}
		})
	}
	all.Wait()
}

// TestHostileNames: nothing that names the API server, a Service, the loopback or a
// wildcard passes, in whatever form of DER.
func TestHostileNames(t *testing.T) {
	passed, parsed, total := 0, 0, 0
	by := map[string]int{}
	play(t, *forms/2, (*Scene).Hostile, func(f Form, a Answer) {
		total++
		if csr, ok := f.Signed(); ok && len(csr.DNSNames)+len(csr.IPAddresses) > 0 {
			parsed++
		}
		if len(a.Denials) == 0 {
			passed++
			t.Errorf("node %s, %s: passes\n%s", f.Node, f.Story, f.PEM)
			return
		}
		message := a.Denials[0].Message
		switch {
		case strings.Contains(message, "resulted in error"):
			message = "an error, which is a refusal"
		case strings.Contains(message, f.Node):
			message = strings.Replace(message, f.Node, "NODE", 1)
		}
		by[message]++
	})
	t.Logf("%d of %d passed; Go's own parser reads %d of them", passed, total, parsed)
	for message, n := range by {
		t.Logf("%6d %s", n, message)
	}
	if parsed < total/2 {
		t.Errorf("the controller manager would sign %d of %d only: the forms are not worth much", parsed, total)
	}
}

// TestHonestNames: what kubelets ask for passes, in any order and of any key.
func TestHonestNames(t *testing.T) {
	n := 0
	play(t, 200, func(s *Scene) Form { return s.Honest(false) }, func(f Form, a Answer) {
		n++
		if len(a.Denials) > 0 {
			t.Errorf("node %s is refused: %s\n%s", f.Node, a, f.PEM)
		}
	})
	t.Logf("%d honest requests", n)
}

// TestIssue41Forms are the forms of the issue, each by its own name.
func TestIssue41Forms(t *testing.T) {
	j, s, c := start(t, same), scene(drawn.Seed(t)), cluster()
	mapped := func(a, b, c, d byte) []byte {
		return address([]byte{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, a, b, c, d})
	}
	web := dnsName("web.shop.svc")
	opening := slices.Concat(idExtension, []byte{0x31, 0x10, 0x30, 0x0e, 0x30, 0x0c}, idSAN, []byte{4, 5, 0x30, 3}) // what stands before the names
	for name, list := range map[string][][]byte{
		"the leader's address before what begins a list": {address([]byte{10, 0, 99, 1}), address(opening[:16]), address(opening[len(opening)-16:])},
		"10.96.0.1 in 16 bytes":                          {mapped(10, 96, 0, 1)}, "web.shop.svc before 88": {web, tlv(0x88, []byte{42})}, "before a3": {web, tlv(0xa3)}, "before a4": {web, tlv(0xa4, tlv(0x30))},
		"before a5": {web, tlv(0xa5, tlv(0xa1, tlv(0x0c, []byte("x"))))}, "before a universal tag": {web, tlv(0x0c, []byte("x"))}, "before an application tag": {web, tlv(0x42, []byte("x"))},
		"before a private tag": {web, tlv(0xc2, []byte("x"))}, "*.default": {dnsName("*.default")}, "*.shop.svc": {dnsName("*.shop.svc")}, "localhost": {dnsName("localhost")},
		"*.cluster.local": {dnsName("*.cluster.local")}, "kubernetes.": {dnsName("kubernetes.")}, "KUBERNETES.Default.": {dnsName("KUBERNETES.Default.")}, "web.shop.svc.": {dnsName("web.shop.svc.")},
		"127.0.0.1": {address([]byte{127, 0, 0, 1})}, "127.0.0.1 in 16 bytes": {mapped(127, 0, 0, 1)}, "::1": {address(append(make([]byte, 15), 1))}, "127.0.0.1 as a name": {dnsName("127.0.0.1")},
		"an address of 5 bytes": {address([]byte{10, 0, 0, 5, 1})}, "an address of none": {address(nil)}, "the Service's IPv6": {address([]byte{0xfd, 0, 0, 0x10, 0, 0x96, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1})},
		"65 names": slices65(), "no name": nil, "web.shop.svc of another case": {dnsName("web.shop.sVc")}, "kubernetes.default.svc.cluster.local": {dnsName("kubernetes.default.svc.cluster.local")},
	} {
		for _, with := range [][][]byte{nil, {dnsName("worker-1")}} {
			f := s.around(s.key(), "worker-1", append(with, list...)...)
			if name == "no name" && with != nil {
				continue
			}
			if a, err := j.ApproveServing(c, "worker-1", encode(f)); err != nil || len(a.Denials) == 0 {
				t.Errorf("%s passes (%v)", name, err)
			}
		}
	}
	for _, list := range [][][]byte{{dnsName("worker-1"), mapped(10, 0, 0, 5)}, {address([]byte{10, 0, 0, 5}), dnsName("worker-1")}, {dnsName("web.svcs.example.com")}} {
		if a, err := j.ApproveServing(c, "worker-1", encode(s.around(s.key(), "worker-1", list...))); err != nil || len(a.Denials) > 0 {
			t.Errorf("%v: %s", err, a)
		}
	}
}

func slices65() (out [][]byte) {
	for i := range 65 {
		out = append(out, dnsName(fmt.Sprintf("n%d.example.com", i)))
	}
	return out
}

// TestControlPlaneNames: its own names a control-plane Node may serve under; nobody joins
// under them, with or without a Node.
func TestControlPlaneNames(t *testing.T) {
	j, s, c := start(t, same), scene(drawn.Seed(t)), cluster()
	leader := [][]byte{dnsName("leader"), dnsName("leader.example.com"), dnsName("leader-ext.example.net"), address([]byte{10, 0, 99, 1})}
	if a, err := j.ApproveServing(c, "leader", encode(s.around(s.key(), "leader", leader...))); err != nil || len(a.Denials) > 0 {
		t.Errorf("the leader's own: %v, %s", err, a)
	}
	for _, node := range []string{"cp", "cp.example.com", "etcd-1.example.com"} { // single names, by which kubeadm was told of a machine
		if a, err := j.ApproveServing(c, node, encode(s.around(s.key(), node, dnsName(node)))); err != nil || len(a.Denials) > 0 {
			t.Errorf("%s of its own name: %v, %s", node, err, a)
		}
	}
	for node, allowed := range map[string]bool{publicLeader: true, "worker-1": false} {
		a, err := j.ApproveServing(c, node, encode(s.around(s.key(), node, dnsName(node), dnsName("api.example.com"))))
		if err != nil || (len(a.Denials) == 0) != allowed || !allowed && !strings.Contains(a.String(), "controlplanenodes") {
			t.Errorf("%s of the endpoint's name: %v, %s", node, err, a)
		}
	}
	join := func(node string) Answer {
		a, err := j.ApproveJoin(c, node, encode(s.key().request(subject(node, false, false), attributes())))
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	for node, says := range map[string]string{"leader": "of the control plane", "leader.example.com": "of the control plane", "leader-ext.example.net": "of the control plane", "old-leader": "of the control plane",
		"api.example.com": "kubeadm-config", "api": "kubeadm-config", "cp.example.com": "kubeadm-config", "cp": "kubeadm-config", "etcd-1.example.com": "kubeadm-config", "etcd-2": "kubeadm-config", "etcd-2.example.net": "kubeadm-config",
		"kubernetes": "of the API server", "kubernetes.default": "of the API server", "web.shop.svc": "of the API server", "web.default": "of the API server", "localhost": "of the API server", "kubernetes.k8s.example.org": "DNS answers",
		"k8s.example.org": "DNS answers", "autoscaler-agent-attest.invalid": "no host has", "10.0.0.9": "no host has", "0x7f000001": "no host has"} {
		if a := join(node); len(a.Denials) == 0 || !strings.Contains(a.Denials[0].Message, says) {
			t.Errorf("join as %s: %q, want %q", node, a, says)
		}
	}
	for _, node := range []string{"worker-1", "kubernetes-1", "svc-1.example.com", "invalid-1", "w.k8s.example.org", "apis.example.com", "ap", "cp2.example.com", "example.com", "node", "rbac", "k8s.example.org.net", "leaders"} {
		if a := join(node); len(a.Denials) > 0 {
			t.Errorf("join as %s is refused: %s", node, a)
		}
	}
	more := encode(s.key().request(subject("worker-1", false, false), attributes(asking(extension(idSAN, names(dnsName("worker-1")), false)))))
	if a, err := j.ApproveJoin(c, "worker-1", more); err != nil || !strings.Contains(a.String(), "more than a subject") {
		t.Errorf("a client certificate with names: %v, %s", err, a)
	}
}

// TestControlPlaneAddresses: however kubeadm was told an address of the control plane, no worker gets a certificate for it.
func TestControlPlaneAddresses(t *testing.T) {
	j, s := start(t, same), scene(drawn.Seed(t))
	ask := func(config, node, ip string) Answer {
		a, err := j.ApproveServing(Kubeadm(config, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "leader"}}, "10.96.0.1"), node,
			encode(s.around(s.key(), node, dnsName(node), address(netip.MustParseAddr(ip).AsSlice()))))
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	for _, c := range []struct{ config, address string }{
		{"controlPlaneEndpoint: 10.0.0.100:6443", "10.0.0.100"}, {"controlPlaneEndpoint: '10.0.0.100'", "::ffff:10.0.0.100"}, {"controlPlaneEndpoint: \"[2001:db8::64]:6443\"", "2001:db8::64"},
		{"controlPlaneEndpoint: '[2001:DB8:0:0::64]'", "2001:db8::64"}, {"controlPlaneEndpoint: 10.0.0.100:6443", "fd00:64::10.0.0.100"}, {"controlPlaneEndpoint: 10.0.0.100:6443", "2001:db8:0:1:0:5efe:10.0.0.100"},
		{"apiServer:\n  certSANs:\n  - a\n  - 203.0.113.7\n", "203.0.113.7"}, {"apiServer:\n  certSANs: [a, 203.0.113.7, 'fd00::7']", "203.0.113.7"}, {"apiServer:\n  certSANs: [a, 203.0.113.7, 'fd00::7']", "fd00::7"},
		{"apiServer:\n    certSANs:\n    -   \"fd00:1:2:3:4:5:6:7\" \n", "fd00:1:2:3:4:5:6:7"}, {"etcd:\n  local:\n    serverCertSANs:\n    - fd00::\n", "fd00::"}, {"{\"apiServer\":{\"certSANs\":[\"203.0.113.7\"]}}", "203.0.113.7"},
		{"apiServer:\n  certSANs: ['::ffff:203.0.113.7']", "203.0.113.7"}, {"etcd:\n  external:\n    endpoints:\n    - https://203.0.113.9:2379", "203.0.113.9"},
		{"controlPlaneEndpoint: a:6443", "10.0.98.1"}, // of the EndpointSlice
	} {
		if a := ask(c.config, "worker-1", c.address); !strings.Contains(a.String(), "(rbac.yaml)") {
			t.Errorf("%q, %s: %q", c.config, c.address, a)
		}
		if a := ask(c.config, publicLeader, c.address); strings.Contains(a.String(), "(rbac.yaml)") {
			t.Errorf("%q, %s: the Node that rbac.yaml names is refused: %s", c.config, c.address, a)
		}
	}
	// What looks like an address is none, and no reason to refuse every request.
	for _, config := range []string{"kubernetesVersion: v1.36.3\nx: 1.2.3.4.5", "x: 999.1.1.1", "x: a:b:c:d:e:f:a:b:c:d:e:f::a:b", "x: '::::'", "x: 1::2::3", "x: 00:1a:2b:3c:4d:5e", "podSubnet: 10.0.10.0/24,fd00:5::/48", "x: a:6443", "imageRepository: 10.0.0.1000:5000/x", ":", "::", ".:.:"} {
		if a := ask(config, "worker-1", "10.0.10.5"); len(a.Denials) > 0 {
			t.Errorf("%q: an honest request is refused: %s", config, a)
		}
		if a := ask(config, "worker-1", "fd00:5::5"); len(a.Denials) > 0 {
			t.Errorf("%q: an honest request is refused: %s", config, a)
		}
	}
}

// TestServiceAddresses: the API server's Service is known without kubeadm's ConfigMap, in both
// families and however its IPv6 address is written.
func TestServiceAddresses(t *testing.T) {
	j, s := start(t, same), scene(drawn.Seed(t))
	six := func(last byte) []byte {
		return address([]byte{0xfd, 0, 0, 0x10, 0, 0x96, 0, 0, 0, 0, 0, 0, 0, 0, 0, last})
	}
	for _, written := range []string{"fd00:10:96::1", "fd00:10:96:0::1", "FD00:0010:0096:0:0:0:0:1"} {
		c := Kubeadm("", &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "x"}}, "172.20.0.1", written)
		for _, e := range []struct {
			name    []byte
			refused bool
		}{{address([]byte{172, 20, 0, 1}), true}, {address([]byte{172, 20, 0, 2}), false}, {six(1), true}, {six(2), false}} {
			a, err := j.ApproveServing(c, "worker-1", encode(s.around(s.key(), "worker-1", e.name)))
			if refused := strings.Contains(a.String(), "the API server's service address"); err != nil || refused != e.refused {
				t.Errorf("%s, %x: %v, %s", written, e.name, err, a)
			}
		}
	}
}

// TestKubeadmForms: however the ConfigMap is written, and where there is none.
func TestKubeadmForms(t *testing.T) {
	j, s := start(t, same), scene(drawn.Seed(t))
	join := func(config, node string) string {
		a, err := j.ApproveJoin(Kubeadm(config, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "x"}}, "10.96.0.1"), node, encode(s.key().request(subject(node, false, false), attributes())))
		if err != nil {
			t.Fatal(err)
		}
		return a.String()
	}
	for _, config := range []string{"controlPlaneEndpoint: api.example.com", "controlPlaneEndpoint: 'api.example.com:6443'", "apiServer:\n  certSANs: [a, \"api.example.com\"]", "apiServer:\n    certSANs:\n    -   'api.example.com' \n",
		"kind: x\ncontrolPlaneEndpoint: https://API.example.com:6443\n", "apiServer:\n  certSANs:\n  - b\n  - api.example.com",
		"{\"apiServer\":{\"certSANs\":[\"api.example.com\"]}}", "{\"controlPlaneEndpoint\": \"api.example.com:6443\"}", "\"controlPlaneEndpoint\": \"api.example.com\"", "apiServer:\n  certSANs:\n  - api.example.com # the load balancer: eu",
		"controlPlaneEndpoint: api.example.com:6443 # since 2024: DNS", "apiServer: {certSANs: [a, api.example.com]}"} {
		if said := join(config, "api.example.com"); !strings.Contains(said, "kubeadm-config") {
			t.Errorf("%q: %q", config, said)
		}
		if said := join(config, "worker-1"); said != "" {
			t.Errorf("%q: worker-1 is refused: %s", config, said)
		}
	}
	for _, config := range []string{"", "x", "controlPlaneEndpoint:", "controlPlaneEndpoint: \"\"", "networking: {}"} {
		if said := join(config, "worker-1"); said != "" {
			t.Errorf("%q: worker-1 is refused: %s", config, said)
		}
	}
}

// TestAcceptedByOldest: Kubernetes 1.30, the oldest with these policies, takes only what 1.29
// knows.
func TestAcceptedByOldest(t *testing.T) {
	p, err := program()
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), p, "-manifests", Manifest(), "-compatible", "1.29").CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// budget is what one policy may cost, in units, for one parameter (k8s.io/apiserver,
// RuntimeCELCostBudget); half of it is left for larger clusters and older versions.
const budget = 10_000_000 / 2

// TestCosts says what the largest requests cost.
func TestCosts(t *testing.T) {
	j, s, c := start(t, same), scene(drawn.Seed(t)), cluster()
	j.Costs = true
	var list [][]byte
	for range 32 {
		list = append(list, dnsName(s.long(60)))
	}
	big := key{public: tlv(0x30, tlv(0x30, oid(1, 2, 840, 113549, 1, 1, 1), []byte{5, 0}), tlv(3, []byte{0}, tlv(0x30, tlv(2, append([]byte{0, 0x80}, make([]byte, 1023)...)), tlv(2, []byte{1, 0, 1}))))}
	for name, ask := range map[string]func() (Answer, error){
		"a serving certificate of two names": func() (Answer, error) {
			return j.ApproveServing(c, "worker-1", encode(s.around(s.key(), "worker-1", dnsName("worker-1"), address([]byte{10, 0, 0, 5}))))
		},
		"a serving certificate of 32 names and RSA of 8192": func() (Answer, error) {
			return j.ApproveServing(c, "worker-1", encode(s.around(big, "worker-1", list...)))
		},
		"a client certificate of RSA of 8192": func() (Answer, error) {
			return j.ApproveJoin(c, "worker-1", encode(big.request(subject("worker-1", false, false), attributes())))
		},
	} {
		a, err := ask()
		if err != nil || len(a.Denials) > 0 {
			t.Errorf("%s: %v, %s", name, err, a)
		}
		t.Logf("%s: %v", name, a.Cost)
		for policy, cost := range a.Cost {
			if cost > budget {
				t.Errorf("%s: %s costs %d of %d units", name, policy, cost, budget)
			}
		}
	}
}

// TestEveryValidationIsNeeded: without any one of the validations that read names, some
// hostile request passes, so that the requests reach each.
func TestEveryValidationIsNeeded(t *testing.T) {
	first := drawn.Seed(t)
	for _, message := range []string{
		"message: the request asks for something else than host names and addresses",
		"message: the request asks for a name that no host has",
		"message: the request asks for a name of the API server or of a Service",
		"message: the request asks for an address that no machine has",
		"messageExpression: \"'the request asks for ' +",
		"messageExpression: \"'the request asks for a name or an address of node '",
		"message: the request asks for an address of an API server",
		"message: the request asks for a name or an address that stands in the ConfigMap kubeadm-config",
		"message: the request asks for a name that the cluster's DNS answers for",
		"message: the request asks for an address of the Services",
	} {
		j := start(t, func(manifest string) string {
			before, after, found := strings.Cut(manifest, message)
			at := strings.LastIndex(before, "  - expression: ")
			if !found || at < 0 {
				t.Fatalf("the manifest has no %q", message)
			}
			return before[:at] + "  - expression: \"true\"\n    " + message + after
		})
		j.First = true
		s, c := scene(first), cluster()
		tried := 0
		for passed := false; !passed; tried++ {
			f := s.Hostile()
			a, err := j.ApproveServing(c, f.Node, f.PEM)
			if err != nil {
				t.Fatal(err)
			}
			if passed = len(a.Denials) == 0; !passed && tried == 3000 {
				t.Errorf("without %q nothing passes", message)
				break
			}
		}
		t.Logf("without %q request %d passes", message, tried)
		j.Close()
	}
}

// TestSharedReading: four policies read the request, each for a parameter of another kind;
// they read it alike but for
// names: that of autoscaler-agent-approvals holds the form to which the others keep.
func TestSharedReading(t *testing.T) {
	text, err := os.ReadFile(Manifest())
	if err != nil {
		t.Fatal(err)
	}
	read, seen := map[string]string{}, 0
	for _, doc := range strings.Split(string(text), "\n---\n") {
		var p admissionv1.ValidatingAdmissionPolicy
		if err := yaml.Unmarshal([]byte(doc), &p); err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(p.Name, "autoscaler-agent-approvals") || p.Kind != "ValidatingAdmissionPolicy" {
			continue
		}
		for _, v := range p.Spec.Variables {
			was, known := read[v.Name]
			if known && was != v.Expression && !slices.Contains([]string{"hosts", "places", "names"}, v.Name) {
				t.Errorf("%s: variable %s is another one than in a policy before", p.Name, v.Name)
			}
			if read[v.Name] = v.Expression; known {
				seen++
			}
		}
	}
	if seen < 40 {
		t.Errorf("%d variables are shared: the policies are not read", seen)
	}
}
