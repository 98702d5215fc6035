package services

import (
	"crypto/elliptic"
	"fmt"
	"testing"
	"time"

	certv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/autoscaler-agent/autoscaler-agent/bootstrap"
	"github.com/autoscaler-agent/autoscaler-agent/test/await"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/cloud/aws"
)

// joining is what an honest kubelet asks for with the agent's own token, before it has
// a Node.
func (c *corpus) joining(e *csrCase) asking {
	a := e.kubelet()
	a.user, a.groups = "system:bootstrap:"+c.token, []string{"system:bootstrappers", bootstrap.WorkersGroup, "system:authenticated"}
	a.signer, a.usages = certv1.KubeAPIServerClientKubeletSignerName, []certv1.KeyUsage{certv1.UsageDigitalSignature, certv1.UsageClientAuth}
	a.noSAN = true
	return a
}

// readToken waits for the agent's token, which stands in a Secret.
func (c *corpus) readToken(t *testing.T) {
	t.Helper()
	await.True(t, "the agent has made a join token", func() bool {
		list, err := c.cp.Client().CoreV1().Secrets("kube-system").List(t.Context(), metav1.ListOptions{LabelSelector: bootstrap.TokenLabel})
		if err == nil && len(list.Items) > 0 {
			c.token = string(list.Items[0].Data["token-id"])
		}
		return c.token != ""
	})
	// Two tokens that look like the agent's: one has expired, one was made by a person.
	for id, expired := range map[string]bool{"asa127": true, "asa126": false} {
		s := &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Name: "bootstrap-token-" + id, Namespace: "kube-system"}, Type: "bootstrap.kubernetes.io/token",
			StringData: map[string]string{"token-id": id, "token-secret": "0123456789abcdef", "usage-bootstrap-authentication": "true",
				"auth-extra-groups": bootstrap.WorkersGroup, "expiration": time.Now().Add(time.Hour).UTC().Format(time.RFC3339)},
		}
		if expired {
			s.Labels = map[string]string{bootstrap.TokenLabel: "true"}
			s.StringData["expiration"] = time.Now().Add(-time.Second).UTC().Format(time.RFC3339)
		}
		if _, err := c.cp.Client().CoreV1().Secrets("kube-system").Create(t.Context(), s, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	// One that was minted for a server, as provider nova has them minted.
	s := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "bootstrap-token-asa125", Namespace: "kube-system",
			Labels: map[string]string{bootstrap.TokenLabel: "machine"}, Annotations: map[string]string{bootstrap.MachineAnnotation: "another-server"}},
		Type: "bootstrap.kubernetes.io/token",
		StringData: map[string]string{"token-id": "asa125", "token-secret": "0123456789abcdef", "usage-bootstrap-authentication": "true", "usage-bootstrap-signing": "true",
			"auth-extra-groups": bootstrap.WorkersGroup, "expiration": time.Now().Add(time.Hour).UTC().Format(time.RFC3339)},
	}
	if _, err := c.cp.Client().CoreV1().Secrets("kube-system").Create(t.Context(), s, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// joinRows ask for client certificates with join tokens (T3): whoever has one is a
// machine of nobody yet.
func joinRows() []csrRow {
	called := func(name string) prepareFunc { return func(_ *testing.T, _ *corpus, e *csrCase) { e.node = name } }
	change := func(f func(*aws.Network)) prepareFunc {
		return func(t *testing.T, c *corpus, e *csrCase) { e.instance = c.rewire(t, e.instance.ID, f) }
	}
	subjectOf := func(o, cn string) func(*csrCase, *asking) {
		return func(_ *csrCase, a *asking) {
			a.subject = [][]attribute{{{oid: oidO, value: o}}, {{oid: oidCN, value: cn}}}
		}
	}
	token := func(id string) func(*csrCase, *asking) {
		return func(_ *csrCase, a *asking) { a.user = "system:bootstrap:" + id }
	}
	usages := func(list ...certv1.KeyUsage) func(*csrCase, *asking) {
		return func(_ *csrCase, a *asking) { a.usages = list }
	}
	const ds, ca, sa, ke = certv1.UsageDigitalSignature, certv1.UsageClientAuth, certv1.UsageServerAuth, certv1.UsageKeyEncipherment
	other := func(e *csrCase, n *corev1.Node) *corev1.Node {
		n.Spec.ProviderID = subject{instance: e.peers[0]}.providerID()
		return n
	}
	rows := []csrRow{
		{name: "join: token not there", rule: "J9", ask: token("zzzzzz")},
		{name: "join: token expired", rule: "J9", ask: token("asa127")},
		{name: "join: token of a person's making", rule: "J9", ask: token("asa126")},
		{name: "join: token of kubeadm's making", rule: "J9", ask: token("abcdef")},
		{name: "join: token with no sound ID", rule: "J9", ask: token("../../x")},
		{name: "join: token of another group", rule: "J0", ask: func(_ *csrCase, a *asking) {
			a.groups = []string{"system:bootstrappers", "system:bootstrappers:others", "system:authenticated", "corpus:anybody"}
		}},
		{name: "join: token of a foreign group too", rule: "J2", ask: func(_ *csrCase, a *asking) { a.groups = append(a.groups, "corpus:anybody") }},
		{name: "join: not of the bootstrappers", rule: "J2", ask: func(_ *csrCase, a *asking) { a.groups = []string{bootstrap.WorkersGroup} }},
		{name: "join: as a service", rule: "J11", or: "J8", prepare: called("kubernetes.default")},
		{name: "join: as localhost", rule: "J11", or: "J8", prepare: called("localhost")},
		{name: "join: machine called like the leader", rule: "J8", prepare: func(t *testing.T, c *corpus, e *csrCase) {
			e.instance = c.rewire(t, e.instance.ID, func(n *aws.Network) { n.PrivateDNS = "leader" })
			e.node = "leader"
		}},
		{name: "join: machine called like the API server", rule: "J8", prepare: func(t *testing.T, c *corpus, e *csrCase) {
			e.instance = c.rewire(t, e.instance.ID, func(n *aws.Network) { n.PrivateDNS = "kubernetes.default.svc" })
			e.node = "kubernetes.default.svc"
		}},
		{name: "join: as a second control plane", rule: "J11", prepare: called("control-plane-2")},
		{name: "join: as a Node that nobody vouches for", rule: "J11", prepare: called("bystander")},
		{name: "join: as a public name", rule: "J11", prepare: called("auth.example.com")},
		{name: "join: as a user", rule: "J3", ask: subjectOf("system:nodes", "kubernetes-admin")},
		{name: "join: as a node in upper case", rule: "J3", ask: subjectOf("system:nodes", "system:node:Worker")},
		{name: "join: as a node of no name", rule: "J3", ask: subjectOf("system:nodes", "system:node:")},
		{name: "join: as an administrator", rule: "J3", ask: subjectOf("system:masters", "kubernetes-admin")},
		{name: "join: of the administrators", rule: "J3", ask: func(e *csrCase, a *asking) { subjectOf("system:masters", "system:node:"+e.node)(e, a) }},
		{name: "join: of two organizations", rule: "J3", ask: func(_ *csrCase, a *asking) {
			a.subject = append([][]attribute{{{oid: oidO, value: "system:masters"}}}, a.subject...)
		}},
		{name: "join: with server auth", rule: "J4", ask: usages(ds, ca, sa)},
		{name: "join: with server auth instead", rule: "J4", ask: usages(ds, sa)},
		{name: "join: without client auth", rule: "J4", ask: usages(ds, ke)},
		{name: "join: for any use", rule: "J4", ask: usages(ds, ca, certv1.UsageAny)},
		{name: "join: with P-224", rule: "J5", ask: func(_ *csrCase, a *asking) { a.key = newKey(elliptic.P224()) }},
		{name: "join: with RSA of 1024 bits", rule: "J5", ask: func(_ *csrCase, a *asking) { a.key = rsaKey(1024) }},
		{name: "join: with a name", rule: "J6", ask: func(e *csrCase, a *asking) { a.noSAN, a.names = false, [][]byte{dnsName(e.node)} }},
		{name: "join: with the API server's name", rule: "J6", ask: func(_ *csrCase, a *asking) { a.noSAN, a.names = false, [][]byte{dnsName("kubernetes")} }},
		{name: "join: as a CA", rule: "J6", ask: func(_ *csrCase, a *asking) {
			a.extensions = [][]byte{extension(oidBasic, true, tlv(tagSequence, []byte{1, 1, 0xff}))}
		}},
		{name: "join: for a week", rule: "J7", ask: func(_ *csrCase, a *asking) { s := int32(7 * 86400); a.expiration = &s }},
		{name: "join: two blocks", rule: "J1", ask: func(_ *csrCase, a *asking) { a.pem = func(b []byte) []byte { return append(b, b...) } }},
		{name: "join: machine terminated", rule: "J11", prepare: func(t *testing.T, c *corpus, e *csrCase) {
			if err := c.cloud.TerminateInstance(e.instance.ID); err != nil {
				t.Fatal(err)
			}
		}},
		{name: "join: machine stopped", rule: "J11", prepare: func(t *testing.T, c *corpus, e *csrCase) {
			if err := c.cloud.StopInstance(e.instance.ID); err != nil {
				t.Fatal(err)
			}
		}},
		{name: "join: machine of an unmanaged group", rule: "J11", prepare: func(_ *testing.T, c *corpus, e *csrCase) { e.node = c.foreign[2].PrivateDNS }},
		{name: "join: two machines of one name", rule: "J11", prepare: func(t *testing.T, c *corpus, e *csrCase) {
			c.rewire(t, c.take().ID, func(n *aws.Network) { n.PrivateDNS = e.instance.PrivateDNS })
		}},
		{name: "join: machine launched later", rule: "J12", prepare: change(func(n *aws.Network) { n.LaunchTime = time.Now().Add(time.Hour) })},
		{name: "join: machine launched long ago", rule: "J12", prepare: change(func(n *aws.Network) { n.LaunchTime = time.Now().Add(-3 * time.Hour) })},
		{name: "join: Node of another machine in the way", rule: "J14", register: other,
			prepare: func(_ *testing.T, c *corpus, e *csrCase) { e.peers = append(e.peers, c.take()) }},
		{name: "join: Node that is Ready in the way", rule: "J13", register: func(e *csrCase, n *corev1.Node) *corev1.Node {
			n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastHeartbeatTime: metav1.Now()}}
			return n
		}},
	}
	for i := range rows {
		rows[i].threat, rows[i].join = "T3", true
	}
	return rows
}

// testSecondJoin asks for a second client certificate for a machine that has one: the
// same key may ask again, another one is somebody else.
func (c *corpus) testSecondJoin(t *testing.T) {
	e := &csrCase{csrRow: csrRow{name: "join twice", join: true}}
	e.instance = c.take()
	e.node = e.instance.PrivateDNS
	for n, key := range []string{"first", "same key", "another key"} {
		a := c.joining(e)
		if key == "another key" {
			a.key = newKey(elliptic.P256())
		}
		name := fmt.Sprintf("join-%d", n)
		start := time.Now()
		if err := c.send(t, name, a); err != nil {
			t.Fatal(err)
		}
		if key == "another key" {
			await.True(t, "the third request is held by J13", func() bool { return c.verdicts(t)[name] == "J13" })
			if _, outcome := c.seen.of(name); outcome != "" {
				t.Errorf("another machine's request: %s", outcome)
			}
			continue
		}
		if _, err := c.seen.within(name, start, await.Limit); err != nil {
			t.Errorf("%s: %v (%q)", key, err, c.verdicts(t)[name])
		}
	}
}

// honestJoins are machines that come with the agent's token.
func honestJoins() []csrRow {
	ke := func(_ *csrCase, a *asking) { a.usages = append(a.usages, certv1.UsageKeyEncipherment) }
	rows := []csrRow{
		{name: "join"},
		{name: "join of an old kubelet", ask: ke},
		{name: "join with RSA", ask: func(e *csrCase, a *asking) { a.key = rsaKey(2048); ke(e, a) }},
		{name: "join by resource name", prepare: func(t *testing.T, c *corpus, e *csrCase) {
			e.instance = c.rewire(t, e.instance.ID, func(n *aws.Network) { n.HostnameType = "resource-name" })
			e.node = e.instance.PrivateDNS
		}},
		{name: "join of a machine launched this moment", prepare: func(t *testing.T, c *corpus, e *csrCase) {
			e.instance = c.rewire(t, e.instance.ID, func(n *aws.Network) { n.LaunchTime = time.Now() })
		}},
		{name: "join, asked again with the same key", again: true},
	}
	for i := range rows {
		rows[i].join = true
	}
	return rows
}
