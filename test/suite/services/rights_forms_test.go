package services

import (
	"context"
	"crypto/x509/pkix"
	"flag"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/autoscaler-agent/autoscaler-agent/bootstrap"
	"github.com/autoscaler-agent/autoscaler-agent/internal/testing/drawn"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/world"
	"github.com/autoscaler-agent/autoscaler-agent/test/judge/admission"
)

// What kubeadm and the leader's kubelet say of the control plane here.
const (
	endpointName  = "api.example.com"
	leaderName    = "leader.example.com"
	leaderAddress = "10.0.99.1"
	serverAddress = "10.0.97.1"
	sanAddress    = "203.0.113.77"
	sanAddress6   = "2001:db8:77::77"
)

// formAttacks write what the agent may write in another form than the agent's.
func (s *stolen) formAttacks() []attack {
	return slices.Concat(s.tokenForms(), s.nodeForms(), s.nameForms(), s.controlPlaneNames(), s.ownObjects())
}

func (s *stolen) tokenForms() []attack {
	owner := []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "x", UID: "x"}}
	with := func(key, value string) func(*corev1.Secret) {
		return func(x *corev1.Secret) { metav1.SetMetaDataAnnotation(&x.ObjectMeta, key, value) }
	}
	return []attack{
		{name: "token that cannot be deleted", try: makes("asa001", func(x *corev1.Secret) { x.Finalizers = []string{"example.com/x"} }), says: "no finalizers"},
		{name: "token that goes with its owner", try: makes("asa001", func(x *corev1.Secret) { x.OwnerReferences = owner }), says: "no finalizers or owners"},
		{name: "token that cannot be changed", try: makes("asa001", func(x *corev1.Secret) { x.Immutable = new(true) }), says: "no such key"},
		{name: "token with an annotation of somebody's", try: makes("asa001", with("example.com/x", "y")), says: "annotations of its own"},
		{name: "token with 200 KB of annotations", try: makes("asa001", with("example.com/x", strings.Repeat("x", 200<<10))), says: "annotations of its own"},
		{name: "token with 200 KB of an annotation of ours", try: makes("asa001", with(bootstrap.MachineAnnotation, strings.Repeat("x", 200<<10))), says: "in their forms"},
		{name: "token of a machine of two lines", try: makes("asa001", with(bootstrap.InstanceAnnotation, "aws:///a/i-1\nx")), says: "in their forms"},
		{name: "token of no key", try: makes("asa001", with(bootstrap.KeyAnnotation, "x")), says: "in their forms"},
		{name: "token that stands for something", try: makes("asa001", with(bootstrap.StandingAnnotation, "yes")), says: "in their forms"},
		{name: "token with a label more", try: makes("asa001", func(x *corev1.Secret) { x.Labels["x"] = "y" }), says: "and no others"},
		{name: "token of a very long description", try: makes("asa001", func(x *corev1.Secret) { x.Data["description"] = make([]byte, 2000) }), says: "no such long value"},
		{name: "our token that cannot be deleted", try: changes(func(x *corev1.Secret) { x.Finalizers = []string{"example.com/x"} }), says: "no finalizers"},
		{name: "our token that goes with its owner", try: changes(func(x *corev1.Secret) { x.OwnerReferences = owner }), says: "no finalizers or owners"},
		{name: "our token that cannot be changed any more", try: changes(func(x *corev1.Secret) { x.Immutable = new(true) }), says: "no such key"},
		{name: "our token with an annotation of somebody's", try: changes(with("example.com/x", "y")), says: "annotations of its own"},
		{name: "our token with a label more", try: changes(func(x *corev1.Secret) { x.Labels["x"] = "y" }), says: "and no others"},
		{name: "join information with a label more", try: information(func(x *corev1.Secret) { x.Labels["x"] = "y" }), says: "no other label"},
	}
}

func (s *stolen) nodeForms() []attack {
	const forms, group = "one effect and one form", "autoscaler-agent/group"
	out := []attack{
		{name: "Ready Node shut down", try: touches("ready", taint("node.cloudprovider.kubernetes.io/shutdown", "autoscaler-agent", corev1.TaintEffectNoSchedule)), says: "calls none shut down"},
		{name: "mark of another effect beside a right one", says: forms, try: touches("ready", func(n *corev1.Node) {
			taint("ToBeDeletedByClusterAutoscaler", "1700000000", corev1.TaintEffectNoSchedule)(n)
			taint("ToBeDeletedByClusterAutoscaler", "1700000000", corev1.TaintEffectNoExecute)(n)
		})},
		{name: "effect of a mark that is there", says: forms, try: touches("marked", func(n *corev1.Node) { n.Spec.Taints[0].Effect = corev1.TaintEffectNoExecute })},
		{name: "cordon of any text", try: touches("ready", annotate("autoscaler-agent/cordoned", "now")), says: "a time and a rule"},
		{name: "cordon of much text", try: touches("ready", annotate("autoscaler-agent/cordoned", "2026-11-27T12:00:00Z D10"+strings.Repeat("0", 200<<10))), says: byPolicy},
		{name: "cordon of two lines", try: touches("ready", annotate("autoscaler-agent/cordoned", "2026-11-27T12:00:00Z D10\nx")), says: "a time and a rule"},
		{name: "group of no name", try: touches("ready", annotate(group, "")), says: "the name of a node group"},
		{name: "group of a very long name", try: touches("ready", annotate(group, strings.Repeat("x", 513))), says: "the name of a node group"},
		{name: "boot ID of any text", try: touches("ready", annotate("autoscaler-agent/boot-id", "a b")), says: "a boot ID"},
		{name: "group of two lines", try: touches("ready", annotate(group, "workers\nothers")), says: "the name of a node group"},
	}
	for _, key := range []string{"ToBeDeletedByClusterAutoscaler", "DeletionCandidateOfClusterAutoscaler", "node.cloudprovider.kubernetes.io/shutdown", "node.kubernetes.io/unschedulable"} {
		value := map[string]string{"node.cloudprovider.kubernetes.io/shutdown": "autoscaler-agent", "node.kubernetes.io/unschedulable": ""}
		v, fixed := value[key]
		if !fixed {
			v = "1700000000"
		}
		for _, node := range []string{"ready", "dead"} {
			out = append(out, attack{name: node + " Node under " + key + ":NoExecute", try: touches(node, taint(key, v, corev1.TaintEffectNoExecute)), says: forms},
				attack{name: node + " Node under " + key + " of another value", try: touches(node, taint(key, "x", corev1.TaintEffectNoSchedule)), says: forms})
		}
	}
	return append(out,
		attack{name: "Node kept from all but soft pods by a soft mark", try: touches("ready", taint("DeletionCandidateOfClusterAutoscaler", "1700000000", corev1.TaintEffectNoSchedule)), says: forms},
		attack{name: "dead Node out of service for another reason", try: touches("dead", taint("node.kubernetes.io/out-of-service", "x", corev1.TaintEffectNoExecute)), says: forms})
}

// nameForms are serving certificates; test/judge/admission has thousands more.
func (s *stolen) nameForms() []attack {
	asks := func(dns ...string) func(*testing.T, *stolen) error {
		return serves("worker-9").with(func(w *wish) { w.dns = append(w.dns, dns...) }).approve
	}
	at := func(address string) func(*testing.T, *stolen) error {
		return serves("worker-9").with(func(w *wish) { w.ips = append(w.ips, net.ParseIP(address)) }).approve
	}
	list := func(of ...[]byte) func(*testing.T, *stolen) error {
		return serves("worker-9").with(func(w *wish) {
			w.pem = func([]byte) []byte { return admission.Request("worker-9", of...) }
		}).approve
	}
	name := func(n string) []byte { return append([]byte{0x82, byte(len(n))}, n...) }
	out := []attack{
		{name: "serving certificate for the service address in 16 bytes", says: "address", try: func(t *testing.T, s *stolen) error {
			return list(append([]byte{0x87, 16}, s.serviceIP(t).To16()...))(t, s)
		}},
		{name: "serving certificate for the loopback", try: at("127.0.0.2"), says: "an address that no machine has"}, // 127.0.0.1 is the endpoint of this control plane
		{name: "serving certificate for the loopback of IPv6", try: at("::1"), says: "an address that no machine has"},
		{name: "serving certificate for the leader's address", try: at(leaderAddress), says: "of the control plane"},
		{name: "serving certificate for the leader's host name", try: asks("Leader.example.com"), says: "of the control plane"},
		{name: "serving certificate for the leader's name", try: asks("leader"), says: "of the control plane"},
		{name: "serving certificate for the control plane's endpoint", try: asks(endpointName), says: "kubeadm-config"},
		{name: "serving certificate for another Service's address", says: "address of the Services", try: func(t *testing.T, s *stolen) error {
			return at(netip.MustParseAddr(s.serviceIP(t).String()).Next().String())(t, s)
		}},
		{name: "serving certificate for a pod's name", try: asks("10-0-0-1.shop.pod.cluster.local"), says: "asks for a name"},
		{name: "serving certificate for nothing", says: "something else than", try: serves("worker-9").with(func(w *wish) { w.dns, w.ips = nil, nil }).approve},
	}
	for _, a := range []string{"64:ff9b::10.0.99.1", "2001:db8:64::10.0.99.1", "fd00::200:5efe:10.0.99.1", "2002:a00:6301::1", "2001::1", "fd00:ec2::254"} {
		out = append(out, attack{name: "serving certificate for " + a, try: at(a), says: "address"})
	}
	out = append(out, attack{name: "serving certificate for the address of an API server", says: "an address of an API server", probe: true, try: at(serverAddress)},
		attack{name: "serving certificate for an address of certSANs", try: at(sanAddress), says: "kubeadm-config"},
		attack{name: "serving certificate for an address of IPv6 in certSANs", try: at(sanAddress6), says: "kubeadm-config"},
		attack{name: "serving certificate for the listener of the attested join", try: asks("autoscaler-agent-attest.invalid"), says: "no host has"})
	for _, n := range []string{"*.default", "*.shop.svc", "*.cluster.local", "*", "kubernetes.", "web.shop.svc.", "127.0.0.1", "10.96.0.1", "2130706433"} {
		out = append(out, attack{name: "serving certificate for " + n, try: asks(n), says: byPolicy})
	}
	for _, n := range []string{"localhost", "LOCALHOST", "a.localhost", "web.default", "web.shop.svc", "svc", "kubernetes.default.svc.cluster.local"} {
		out = append(out, attack{name: "serving certificate for " + n, try: asks(n), says: "asks for a name"})
	}
	for _, tag := range []byte{0x88, 0xa3, 0xa4, 0xa5, 0x02, 0x0c, 0x30, 0x42, 0x62, 0xc2} {
		out = append(out, attack{name: fmt.Sprintf("serving certificate for web.shop.svc before a name of tag %x", tag), says: "something else than", try: list(name("worker-9"), name("web.shop.svc"), []byte{tag, 1, 42})})
	}
	return out
}

// controlPlaneNames are joins under names of the control plane, with a Node or without; and
// the chain of issue 41: a token, a join and a serving certificate of the thief's own making.
func (s *stolen) controlPlaneNames() []attack {
	return []attack{
		{name: "join under the control plane's endpoint", try: joins(endpointName).approve, says: "kubeadm-config", probe: true},
		{name: "join as kubernetes", try: joins("kubernetes").approve, says: "asks for a name"},
		{name: "join as kubernetes.default", try: joins("kubernetes.default").approve, says: "asks for a name"},
		{name: "join as a Service", try: joins("web.shop.svc").approve, says: "asks for a name"},
		{name: "join as the cluster's domain", try: joins("cluster.local").approve, says: "asks for a name"},
		{name: "join as an address", try: joins("10.0.99.1").approve, says: "no host has"},
		{name: "join as the listener of the attested join", try: joins("autoscaler-agent-attest.invalid").approve, says: "no host has"},
		{name: "join under the first label of the control plane's endpoint", try: joins("api").approve, says: "kubeadm-config"},
		{name: "join under the leader's host name", try: joins(leaderName).approve, says: "of the control plane"},
		{name: "join under the name of a control-plane Node of an old kubeadm", try: joins("old-leader").approve, says: "of the control plane"},
		{name: "join with names to serve under", says: "more than a subject", try: joins("worker-9").with(func(w *wish) {
			w.pem = func([]byte) []byte { return admission.Request("worker-9", append([]byte{0x82, 8}, "worker-9"...)) }
		}).approve},
		{name: "join with a subject of another node and names", says: byPolicy, try: joins("worker-9").with(func(w *wish) {
			w.subject, w.dns = &pkix.Name{CommonName: "system:node:" + endpointName, Organization: []string{"system:nodes"}}, []string{endpointName}
		}).approve},
		{name: "token, join and serving certificate for the API server", says: "asks for", try: func(t *testing.T, s *stolen) error {
			x := token("asa011", nil)
			_ = s.admin.CoreV1().Secrets("kube-system").Delete(t.Context(), x.Name, metav1.DeleteOptions{}) // there may be none
			if _, err := s.thief.CoreV1().Secrets("kube-system").Create(t.Context(), x, metav1.CreateOptions{}); err != nil {
				t.Fatalf("a token: %v", err)
			}
			if err := joins("mole").approve(t, s); err != nil {
				t.Fatalf("a join: %v", err) // docs/security-rules.md: "A new worker"
			}
			return serves("mole").with(func(w *wish) { w.dns = append(w.dns, "kubernetes.default", "web.shop.svc") }).approve(t, s)
		}},
	}
}

// ownObjects are the Lease and the status page.
func (s *stolen) ownObjects() []attack {
	lease := func(change func(*coordinationv1.Lease)) func(*testing.T, *stolen) error {
		return can(func(ctx context.Context, c kubernetes.Interface) error {
			l := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "autoscaler-agent"}}
			change(l)
			_, err := c.CoordinationV1().Leases("kube-system").Create(ctx, l, dry)
			return err
		})
	}
	page := func(change func(*corev1.ConfigMap)) func(*testing.T, *stolen) error {
		return can(func(ctx context.Context, c kubernetes.Interface) error {
			m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "cluster-autoscaler-status"}}
			change(m)
			_, err := c.CoreV1().ConfigMaps("kube-system").Create(ctx, m, dry)
			return err
		})
	}
	return []attack{
		{name: "Lease that cannot be deleted", try: lease(func(l *coordinationv1.Lease) { l.Finalizers = []string{"example.com/x"} }), says: "no finalizers"},
		{name: "Lease with the label of an API server's", says: "no labels", try: lease(func(l *coordinationv1.Lease) {
			l.Labels = map[string]string{"apiserver.kubernetes.io/identity": "kube-apiserver"}
		})},
		{name: "Lease with an annotation of somebody's", try: lease(func(l *coordinationv1.Lease) { l.Annotations = map[string]string{"x": "y"} }), says: "own annotations"},
		{name: "status page that cannot be deleted", try: page(func(m *corev1.ConfigMap) { m.Finalizers = []string{"example.com/x"} }), says: "no finalizers"},
		{name: "status page that cannot be changed", try: page(func(m *corev1.ConfigMap) { m.Immutable = new(true) }), says: "immutable"},
		{name: "status page with bytes", try: page(func(m *corev1.ConfigMap) { m.BinaryData = map[string][]byte{"x": []byte("x")} }), says: byPolicy},
		{name: "status page with a label", try: page(func(m *corev1.ConfigMap) { m.Labels = map[string]string{"x": "y"} }), says: "no labels"},
	}
}

// controlPlane makes what the names above are names of, and grants what autoscaler-agent install grants them.
func (s *stolen) controlPlane(t *testing.T) {
	t.Helper()
	for name, label := range map[string]string{"leader": "node-role.kubernetes.io/control-plane", "old-leader": "node-role.kubernetes.io/master"} {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{label: ""}}}
		if name == "leader" {
			n.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: leaderAddress}, {Type: corev1.NodeHostName, Address: leaderName}}
		}
		_, err := s.admin.CoreV1().Nodes().Create(t.Context(), n, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
	}
	// The API server here is on the loopback, and has no EndpointSlice of its own.
	slice := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Name: "servers", Labels: map[string]string{discoveryv1.LabelServiceName: "kubernetes", discoveryv1.LabelManagedBy: "test"}},
		AddressType: discoveryv1.AddressTypeIPv4, Endpoints: []discoveryv1.Endpoint{{Addresses: []string{serverAddress}}}}
	if _, err := s.admin.DiscoveryV1().EndpointSlices("default").Create(t.Context(), slice, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := grant(t, s.admin, "leaders", "controlplanenodes", "leader", "old-leader"); err != nil {
		t.Fatal(err)
	}
}

var drawnForms = flag.Int("forms", 200, "how many drawn certificate requests the real API server judges, half of them honest")

// drawn sends certificate requests that test/judge/admission draws to the real API server.
func (s *stolen) drawn(t *testing.T) {
	seed := drawn.Seed(t)
	service := netip.MustParseAddr(s.serviceIP(t).String())
	scene := &admission.Scene{Rand: rand.New(rand.NewPCG(seed, 41)), Domain: "cluster.local", Own: []string{"leader", leaderName, "old-leader", endpointName},
		Addresses: []netip.Addr{service, netip.MustParseAddr(leaderAddress)}, Services: []netip.Addr{service.Next()}}
	unparsed, refused := 0, 0
	for range *drawnForms / 2 {
		f := scene.Hostile()
		w := serves(f.Node).with(func(w *wish) { w.pem = func([]byte) []byte { return f.PEM } })
		csr, err := w.create(t, s)
		if apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsForbidden(err) && strings.Contains(err.Error(), "unable to parse csr") {
			unparsed++
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := w.approval(t, s, csr); err == nil || !strings.Contains(err.Error(), byPolicy) {
			t.Errorf("node %s, %s: %v\n%s", f.Node, f.Story, err, f.PEM)
			continue
		}
		refused++
	}
	for range *drawnForms / 2 {
		f := scene.Honest(true)
		if err := serves(f.Node).with(func(w *wish) { w.pem = func([]byte) []byte { return f.PEM } }).approve(t, s); err != nil {
			t.Errorf("node %s is refused: %v\n%s", f.Node, err, f.PEM)
		}
	}
	t.Logf("of %d hostile requests the API server takes %d, and refuses the approval of %d; %d honest ones", unparsed+refused, refused, refused, *drawnForms/2)
	if refused < unparsed {
		t.Error("the API server itself refuses most of the hostile requests: they are not worth much")
	}
}

// allowLoopback grants what rbac.yaml describes for a cluster on one host.
func allowLoopback(t *testing.T, admin kubernetes.Interface) error {
	return grant(t, admin, "special-addresses", "specialaddresses", "allowed")
}

// grant lets the agent's user use what no API serves.
func grant(t *testing.T, admin kubernetes.Interface, role, resource string, names ...string) error {
	name := metav1.ObjectMeta{Name: role}
	_, err := admin.RbacV1().ClusterRoles().Create(t.Context(), &rbacv1.ClusterRole{ObjectMeta: name,
		Rules: []rbacv1.PolicyRule{{APIGroups: []string{"autoscaler-agent"}, Resources: []string{resource}, ResourceNames: names, Verbs: []string{"use"}}}}, metav1.CreateOptions{})
	if err == nil {
		_, err = admin.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{ObjectMeta: name,
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name.Name},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: world.AgentUser}}}, metav1.CreateOptions{})
	}
	if apierrors.IsAlreadyExists(err) { // the agent starts again
		return nil
	}
	return err
}
