package services

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	certv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/csrsigner"
	"github.com/autoscaler-agent/autoscaler-agent/internal/kube"
	"github.com/autoscaler-agent/autoscaler-agent/test/await"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/controlplane"
)

const honest = "ip-10-0-0-5.eu-west-1.compute.internal"

func worker(id string, node string, addresses ...string) cluster.Instance {
	i := cluster.Instance{ID: cluster.InstanceID("aws:///eu-west-1a/" + id), Phase: cluster.PhaseRunning, Member: true,
		Created: time.Now().Add(-time.Minute), NodeNames: []string{node}, Names: []string{node, id + ".eu-west-1.compute.internal"}}
	for _, a := range addresses {
		i.Addresses = append(i.Addresses, netip.MustParseAddr(a))
	}
	return i
}

// ask is one request as a kubelet, honest or not, sends it.
type ask struct {
	node       string // the requester; honest when empty
	template   x509.CertificateRequest
	key        crypto.Signer
	usages     []certv1.KeyUsage
	expiration *int32
	pem        func([]byte) []byte
}

var ecKey = func() crypto.Signer {
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	return k
}()

func (a ask) send(t *testing.T, cp *controlplane.ControlPlane, name string) (*certv1.CertificateSigningRequest, error) {
	t.Helper()
	if a.node == "" {
		a.node = honest
	}
	if a.template.Subject.CommonName == "" {
		a.template.Subject = pkix.Name{CommonName: "system:node:" + a.node, Organization: []string{"system:nodes"}}
	}
	if a.key == nil {
		a.key = ecKey
	}
	if a.usages == nil {
		a.usages = []certv1.KeyUsage{certv1.UsageDigitalSignature, certv1.UsageServerAuth}
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &a.template, a.key)
	if err != nil {
		t.Fatal(err)
	}
	data := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
	if a.pem != nil {
		data = a.pem(data)
	}
	return as(t, cp, a.node).CertificatesV1().CertificateSigningRequests().Create(t.Context(), &certv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: certv1.CertificateSigningRequestSpec{Request: data, SignerName: certv1.KubeletServingSignerName, Usages: a.usages,
			ExpirationSeconds: a.expiration},
	}, metav1.CreateOptions{})
}

func names(dns ...string) x509.CertificateRequest { return x509.CertificateRequest{DNSNames: dns} }

func addresses(ips ...string) x509.CertificateRequest {
	out := names(honest)
	for _, ip := range ips {
		out.IPAddresses = append(out.IPAddresses, net.ParseIP(ip))
	}
	return out
}

func testSigner(t *testing.T, cp *controlplane.ControlPlane) {
	cloud := &inventory{}
	cloud.set(worker("i-0a", honest, "10.0.0.5", "2001:db8::5"), worker("i-0b", "other", "10.0.0.6"))
	node(t, cp, honest, "aws:///eu-west-1a/i-0a", corev1.ConditionTrue)
	node(t, cp, "other", "aws:///eu-west-1a/i-0b", corev1.ConditionTrue)
	node(t, cp, "stranger", "aws:///eu-west-1a/i-0a", corev1.ConditionTrue) // somebody else's instance
	node(t, cp, "unknown", "aws:///eu-west-1a/i-0f", corev1.ConditionTrue)
	client := agentClient(t, cp)
	shared := kube.NewInformers(client, nil)
	cfg := csrsigner.Config{InventoryMaxAge: 30 * time.Second, MaxExpiration: time.Hour, PerNodeHour: 1000, WarnAfter: 15 * time.Minute}
	said := &verdicts{rules: map[string]string{}}
	log := quiet("csrsigner")
	log.Logger.AddHook(said)
	signer := csrsigner.New(cfg, csrsigner.Deps{Client: client, Rest: cp.RESTConfig(), Informers: shared, Inventory: cloud, Log: log})
	serve(t, shared, signer.Run)
	t.Run("honest", func(t *testing.T) { signsTheHonest(t, cp) })
	t.Run("hostile", func(t *testing.T) { refusesTheHostile(t, cp, said) })
	t.Run("node after request", func(t *testing.T) { waitsForTheNode(t, cp, cloud) })
}

func signed(t *testing.T, cp *controlplane.ControlPlane, name string) []byte {
	t.Helper()
	var out []byte
	await.True(t, name+" is signed", func() bool {
		csr, err := cp.Client().CertificatesV1().CertificateSigningRequests().Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		out = csr.Status.Certificate
		return len(out) > 0
	})
	return out
}

func signsTheHonest(t *testing.T, cp *controlplane.ControlPlane) {
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	requests := map[string]ask{
		"name-and-address": {template: addresses("10.0.0.5")},
		"dual-stack":       {template: addresses("10.0.0.5", "2001:db8::5")},
		"address-only":     {template: x509.CertificateRequest{IPAddresses: []net.IP{net.ParseIP("10.0.0.5")}}},
		"both-names":       {template: names(honest, "i-0a.eu-west-1.compute.internal")},
		"rsa":              {template: addresses("10.0.0.5"), key: rsaKey, usages: []certv1.KeyUsage{certv1.UsageDigitalSignature, certv1.UsageKeyEncipherment, certv1.UsageServerAuth}},
	}
	var took []time.Duration
	for round := range 4 {
		for name, a := range requests {
			name = fmt.Sprintf("honest-%s-%d", name, round)
			start := time.Now()
			if _, err := a.send(t, cp, name); err != nil {
				t.Fatal(err)
			}
			signed(t, cp, name)
			took = append(took, time.Since(start))
		}
	}
	report(t, "honest requests, signed too", took)
}

// hostile are requests of which none may ever be approved, by the rule that holds
// or denies each.
func hostile(t *testing.T, cp *controlplane.ControlPlane) map[string]ask {
	t.Helper()
	_, edKey, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	p224, err := ecdsa.GenerateKey(elliptic.P224(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	long := int32(7 * 24 * 3600)
	evil, _ := url.Parse("spiffe://cluster.local/ns/kube-system")
	with := func(change func(*x509.CertificateRequest)) x509.CertificateRequest {
		out := addresses("10.0.0.5")
		change(&out)
		return out
	}
	return map[string]ask{
		"R1-two-blocks":     {template: names(honest), pem: func(b []byte) []byte { return append(slices.Clone(b), b...) }},
		"R1-trailing-bytes": {template: names(honest), pem: func(b []byte) []byte { return append(slices.Clone(b), "evil"...) }},
		"R1-two-organizations": {template: with(func(r *x509.CertificateRequest) {
			r.Subject = pkix.Name{CommonName: "system:node:" + honest, Organization: []string{"system:nodes", "system:masters"}}
		})},
		"R3-organization": {template: with(func(r *x509.CertificateRequest) {
			r.Subject = pkix.Name{CommonName: "system:node:" + honest, Organization: []string{"system:masters"}}
		})},
		"R3-country": {template: with(func(r *x509.CertificateRequest) {
			r.Subject = pkix.Name{CommonName: "system:node:" + honest, Organization: []string{"system:nodes"}, Country: []string{"XX"}}
		})},
		"R4-client-auth":      {template: names(honest), usages: []certv1.KeyUsage{certv1.UsageDigitalSignature, certv1.UsageServerAuth, certv1.UsageClientAuth}},
		"R4-no-server-auth":   {template: names(honest), usages: []certv1.KeyUsage{certv1.UsageDigitalSignature}},
		"R4-ed25519-encipher": {template: names(honest), key: edKey, usages: []certv1.KeyUsage{certv1.UsageDigitalSignature, certv1.UsageKeyEncipherment, certv1.UsageServerAuth}},
		"R5-p224":             {template: names(honest), key: p224},
		"R6-email":            {template: with(func(r *x509.CertificateRequest) { r.EmailAddresses = []string{"root@example.com"} })},
		"R6-uri":              {template: with(func(r *x509.CertificateRequest) { r.URIs = []*url.URL{evil} })},
		"R6-extension": {template: with(func(r *x509.CertificateRequest) {
			r.ExtraExtensions = []pkix.Extension{{Id: asn1.ObjectIdentifier{2, 5, 29, 19}, Value: []byte{0x30, 0x03, 0x01, 0x01, 0xff}}}
		})},
		"R7-no-name":            {template: x509.CertificateRequest{}},
		"R7-many-names":         {template: names(slices.Repeat([]string{honest}, 33)...)},
		"R8-long-life":          {template: names(honest), expiration: &long},
		"R9-kubernetes":         {template: names(honest, "kubernetes")},
		"R9-kubernetes-svc":     {template: names(honest, "kubernetes.default.svc")},
		"R9-cluster-domain":     {template: names(honest, "metrics.kube-system.svc.cluster.local")},
		"R9-trailing-dot":       {template: names(honest, "Kubernetes.Default.")},
		"R9-wildcard":           {template: names("*.eu-west-1.compute.internal")},
		"R9-localhost":          {template: names(honest, "localhost")},
		"R9-loopback":           {template: addresses("10.0.0.5", "127.0.0.1")},
		"R9-loopback6":          {template: addresses("10.0.0.5", "::1")},
		"R9-mapped-loopback":    {template: addresses("::ffff:127.0.0.1")},
		"R9-service-address":    {template: addresses("10.0.0.5", "10.96.0.1")},
		"R9-service-range":      {template: addresses("10.96.7.7")},
		"R9-link-local":         {template: addresses("169.254.169.254")},
		"R9-unspecified":        {template: addresses("0.0.0.0")},
		"R9-other-node":         {template: names(honest, "other")},
		"R9-other-address":      {template: addresses("10.0.0.5", "10.0.0.6")},
		"R9-address-as-name":    {template: names(honest, "10.0.0.5")},
		"R10-no-node":           {node: "nobody", template: names("nobody")},
		"R11-others-instance":   {node: "stranger", template: names("stranger")},
		"R11-others-names":      {node: "stranger", template: addresses("10.0.0.5")},
		"R11-unknown-instance":  {node: "unknown", template: names("unknown")},
		"R13-public-name":       {template: names(honest, "auth.example.com")},
		"R13-prefix":            {template: names(honest + ".example.com")},
		"R14-foreign-address":   {template: addresses("10.0.0.7")},
		"R14-foreign-address-6": {template: addresses("2001:db8::6")},
	}
}

func refusesTheHostile(t *testing.T, cp *controlplane.ControlPlane, said *verdicts) {
	requests := cp.Client().CertificatesV1().CertificateSigningRequests()
	counts := map[string]int{}
	for name, a := range hostile(t, cp) {
		object := "hostile-" + strings.ToLower(name)
		if _, err := a.send(t, cp, object); apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err) {
			t.Logf("%s: the API server itself refuses it", name)
			counts["refused by the API server"]++
			continue
		} else if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		rule, _, _ := strings.Cut(name, "-")
		// A request of an unknown instance is judged again while the cloud is asked.
		await.True(t, object+" is judged", func() bool { return said.of(object) != "" })
		if got := said.of(object); got != rule {
			t.Errorf("%s is held or denied by %s, want %s", name, got, rule)
		}
		csr, err := requests.Get(t.Context(), object, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		outcome := "held"
		for _, c := range csr.Status.Conditions {
			outcome = strings.ToLower(string(c.Type))
			if c.Type == certv1.CertificateApproved {
				t.Errorf("%s is approved: %s", object, c.Message)
			}
		}
		counts[outcome]++
		if err := requests.Delete(t.Context(), object, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	}
	t.Logf("hostile requests: %v", counts)
}

// verdicts listens to the journal: the rule of the last verdict on each request.
type verdicts struct {
	mu    sync.Mutex
	rules map[string]string
}

func (v *verdicts) Levels() []logrus.Level { return logrus.AllLevels }

func (v *verdicts) Fire(e *logrus.Entry) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	csr, _ := e.Data["csr"].(string)
	if rule, ok := e.Data["rule"].(string); ok && csr != "" {
		v.rules[csr] = rule
	}
	return nil
}

func (v *verdicts) of(csr string) string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.rules[csr]
}

// waitsForTheNode covers the usual order of a join: the request comes before the
// Node, and both before the inventory knows the instance.
func waitsForTheNode(t *testing.T, cp *controlplane.ControlPlane, cloud *inventory) {
	a := ask{node: "late", template: names("late")}
	if _, err := a.send(t, cp, "late"); err != nil {
		t.Fatal(err)
	}
	cloud.mu.Lock()
	cloud.groups[0].Instances = append(cloud.groups[0].Instances, worker("i-0c", "late", "10.0.0.8"))
	cloud.mu.Unlock()
	start := time.Now()
	node(t, cp, "late", "aws:///eu-west-1a/i-0c", corev1.ConditionTrue)
	signed(t, cp, "late")
	t.Logf("signed %s after its Node was made", time.Since(start).Round(time.Millisecond))
}
