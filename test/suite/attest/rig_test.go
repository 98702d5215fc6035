package attest

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/sirupsen/logrus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/asg"
	"github.com/autoscaler-agent/autoscaler-agent/bootstrap"
	"github.com/autoscaler-agent/autoscaler-agent/bootstrap/attest"
	"github.com/autoscaler-agent/autoscaler-agent/internal/testing/kubetest"
	"github.com/autoscaler-agent/autoscaler-agent/test/await"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/cloud/aws"
)

// rig is a listener with its cloud.
type rig struct {
	t       *testing.T
	cloud   *aws.Cloud
	address string
	caPEM   []byte
	ca      *x509.CertPool
	hash    string // the cluster, as it is signed in
	// caKeyPEM is the key of caPEM.
	caKeyPEM []byte
	client   *fake.Clientset
	journal  *bytes.Buffer
	cfg      attest.Config
	deps     attest.Deps
	members  []aws.Instance // of the managed group
	served   int            // honest machines among the hostile ones
	stop     func()

	mu      sync.Mutex
	joined  map[cluster.InstanceID]attest.Joined
	change  func([]cluster.NodeGroup) // of what the inventory says
	minted  int
	asked   []time.Duration // how long STS took
	replies http.Handler    // instead of STS
	pool    *bootstrap.Pool
	mint    func(context.Context, bootstrap.Attested) (string, time.Time, error)
}

// newRig starts a cloud with a managed group "workers" of n instances and a foreign group
// "others" of three, and a listener beside it.
func newRig(t *testing.T, n int, change func(*attest.Config)) *rig {
	t.Helper()
	c, err := aws.New(aws.Options{LaunchDelay: 2 * time.Millisecond, BootDelay: 5 * time.Millisecond, TerminateDelay: 5 * time.Millisecond,
		HealthCheckDelay: 5 * time.Millisecond, RetryDelay: 10 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	t.Logf("seed of the cloud: %d", c.Seed())
	c.PutLaunchTemplate(aws.LaunchTemplate{Name: "worker", InstanceType: "t3.large", UserData: "#!/bin/sh\n", InstanceProfile: "worker", HTTPTokens: "required", HopLimit: 1})
	for _, g := range []aws.Group{{Name: "workers", LaunchTemplate: "worker", Max: n, Desired: n}, {Name: "others", LaunchTemplate: "worker", Max: 3, Desired: 3}} {
		if err := c.PutGroup(g); err != nil {
			t.Fatal(err)
		}
	}
	await.True(t, "all instances run", func() bool {
		a, _ := c.Group("workers")
		b, _ := c.Group("others")
		return a.Lifecycles()["InService"] == n && b.Lifecycles()["InService"] == 3
	})
	for _, line := range c.Env() {
		name, value, _ := strings.Cut(line, "=")
		t.Setenv(name, value)
	}
	r := &rig{t: t, cloud: c, client: fake.NewClientset(), journal: &bytes.Buffer{}, joined: map[cluster.InstanceID]attest.Joined{}}
	r.client.PrependReactor("create", "secrets", func(a k8stesting.Action) (bool, runtime.Object, error) {
		a.(k8stesting.CreateAction).GetObject().(*corev1.Secret).CreationTimestamp = metav1.Now()
		return false, nil, nil
	})
	cfg := attest.Config{Listen: ":0", Account: "123456789012", Roles: []string{"worker"}, Region: c.Region(), Window: time.Hour}
	r.certificates(&cfg)
	if change != nil {
		change(&cfg)
	}
	if err := cfg.Validate(); err != nil {
		t.Fatal(err)
	}
	r.members = r.instances("workers")
	r.wire(cfg)
	r.again(t)
	t.Cleanup(func() {
		r.stop()
		if t.Failed() {
			t.Logf("journal:\n%s", r.journal)
		}
	})
	return r
}

// wire makes what a listener works with.
func (r *rig) wire(cfg attest.Config) {
	t := r.t
	cloud, err := asg.New(t.Context(), asg.Config{Groups: []string{"workers"}, Region: r.cloud.Region(), Timeout: 10 * time.Second}, cluster.Reservation{MaxPods: 110})
	if err != nil {
		t.Fatal(err)
	}
	var last []cluster.NodeGroup
	var at time.Time
	groups := func(ctx context.Context, age time.Duration) ([]cluster.NodeGroup, error) {
		r.mu.Lock()
		defer r.mu.Unlock()
		if time.Since(at) > age {
			list, err := cloud.Groups(ctx)
			if err != nil {
				return nil, err
			}
			last, at = list, time.Now()
		}
		out := slices.Clone(last)
		for i := range out {
			out[i].Instances = slices.Clone(out[i].Instances)
		}
		if r.change != nil {
			r.change(out)
		}
		return out, nil
	}
	// STS, with a clock, so that its own time can be taken off.
	front, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = http.Serve(front, http.HandlerFunc(r.sts)) }() // ends with the listener
	t.Cleanup(func() { _ = front.Close() })
	log := logrus.New()
	log.SetOutput(&locked{r: r})
	r.freshPool()
	r.cfg, r.deps = cfg, attest.Deps{
		Groups: groups, STS: "http://" + front.Addr().String(), Log: log.WithField("service", "attest"),
		Clusters: func(context.Context) ([]string, error) { return []string{r.hash}, nil },
		MayAct:   func() (bool, string) { return true, "" },
		Joined: func(in cluster.Instance) (attest.Joined, error) {
			r.mu.Lock()
			defer r.mu.Unlock()
			return r.joined[in.ID], nil
		},
		Attested: func(ctx context.Context, id cluster.InstanceID) (string, error) {
			r.mu.Lock()
			pool := r.pool
			r.mu.Unlock()
			return pool.KeyOf(ctx, string(id))
		},
		Mint: func(ctx context.Context, m attest.Machine) (attest.Token, error) {
			r.mu.Lock()
			r.minted++
			mint := r.mint
			r.mu.Unlock()
			token, expires, err := mint(ctx, bootstrap.Attested{Instance: string(m.Instance), Machine: m.Names[0], Key: m.Key})
			return attest.Token{Value: token, Expires: expires}, err
		},
	}
}

// again starts a listener of which nothing is remembered, in the place of the last one.
func (r *rig) again(t *testing.T) {
	t.Helper()
	if r.stop != nil {
		r.stop()
	}
	r.deps.StateDir = t.TempDir()
	server, err := attest.New(r.cfg, r.deps)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r.address = listener.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- server.Serve(ctx, listener, func() {}) }()
	r.stop = func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

type locked struct{ r *rig }

func (l *locked) Write(b []byte) (int, error) {
	l.r.mu.Lock()
	defer l.r.mu.Unlock()
	return l.r.journal.Write(b)
}

func (r *rig) sts(w http.ResponseWriter, q *http.Request) {
	began := time.Now()
	r.mu.Lock()
	replies := r.replies
	r.mu.Unlock()
	if replies != nil {
		replies.ServeHTTP(w, q)
		return
	}
	target, err := http.NewRequestWithContext(q.Context(), q.Method, r.cloud.Endpoint()+q.URL.RequestURI(), q.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	target.Host, target.Header, target.ContentLength = q.Host, q.Header, q.ContentLength
	res, err := http.DefaultTransport.RoundTrip(target)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	defer func() { _ = res.Body.Close() }()
	w.WriteHeader(res.StatusCode)
	_, _ = io.Copy(w, res.Body) // a client that is gone is its own loss
	r.mu.Lock()
	r.asked = append(r.asked, time.Since(began))
	r.mu.Unlock()
}

// certificates makes the cluster's CA and the listener's certificate.
func (r *rig) certificates(cfg *attest.Config) {
	t := r.t
	caKey := newKey(t)
	ca := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "kubernetes"}, NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	caDER, err := x509.CreateCertificate(rand.Reader, ca, ca, &caKey.PublicKey, caKey)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := x509.ParseCertificate(caDER)
	if err != nil {
		t.Fatal(err)
	}
	r.hash, r.caPEM = hashOf(parsed), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: caDER})
	r.ca = x509.NewCertPool()
	r.ca.AddCert(parsed)
	raw, err := x509.MarshalECPrivateKey(caKey)
	if err != nil {
		t.Fatal(err)
	}
	r.caKeyPEM = pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: raw})
	pair, err := attest.Issue(r.caPEM, r.caKeyPEM, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	cfg.CertFile = filepath.Join(t.TempDir(), "attest.pem")
	cfg.KeyFile = cfg.CertFile
	if err := os.WriteFile(cfg.CertFile, pair, 0o600); err != nil {
		t.Fatal(err)
	}
}

// hashOf is how a cluster is named in what machines sign.
func hashOf(ca *x509.Certificate) string {
	sum := sha256.Sum256(ca.RawSubjectPublicKeyInfo)
	return "sha256:" + hex.EncodeToString(sum[:])
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// instances are those of a group.
func (r *rig) instances(group string) []aws.Instance {
	g, ok := r.cloud.Group(group)
	if !ok {
		r.t.Fatalf("no group %s", group)
	}
	return g.Instances
}

func providerID(i aws.Instance) cluster.InstanceID {
	return cluster.InstanceID("aws:///" + i.Zone + "/" + i.ID)
}

// credentials are those of an instance's role.
func (r *rig) credentials(id string) aws.Credentials {
	return r.cloud.IssueCredentials("worker/"+id, time.Hour)
}

// signing is what a machine signs, and with what.
type signing struct {
	keys                aws.Credentials
	cluster, key, nonce string
	region, service     string
	at                  time.Time
	host, body, method  string
	query               string
	drop                []string          // headers that are not signed
	add                 map[string]string // more signed headers
}

func (r *rig) signing(keys aws.Credentials, nonce string) signing {
	sum := sha256.Sum256([]byte(keys.ARN))
	return signing{keys: keys, cluster: r.hash, key: hex.EncodeToString(sum[:]), nonce: nonce, region: r.cloud.Region(), service: "sts", at: time.Now(),
		host: "sts." + r.cloud.Region() + ".amazonaws.com", body: "Action=GetCallerIdentity&Version=2011-06-15", method: http.MethodPost}
}

// sign makes the request of the protocol with the SDK's own signer.
func (s signing) sign(t *testing.T) attest.Request {
	t.Helper()
	req, err := http.NewRequest(s.method, "https://"+s.host+"/"+s.query, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{"Content-Type": "application/x-www-form-urlencoded", "X-Autoscaler-Agent-Cluster": s.cluster,
		"X-Autoscaler-Agent-Key": s.key, "X-Autoscaler-Agent-Nonce": s.nonce} {
		if !slices.Contains(s.drop, name) {
			req.Header.Set(name, value)
		}
	}
	for name, value := range s.add {
		req.Header.Set(name, value)
	}
	sum := sha256.Sum256([]byte(s.body))
	err = v4.NewSigner().SignHTTP(t.Context(), sdk.Credentials{AccessKeyID: s.keys.AccessKeyID, SecretAccessKey: s.keys.SecretAccessKey, SessionToken: s.keys.SessionToken},
		req, hex.EncodeToString(sum[:]), s.service, s.region, s.at)
	if err != nil {
		t.Fatal(err)
	}
	return attest.Request{Date: req.Header.Get("X-Amz-Date"), SecurityToken: s.keys.SessionToken, Authorization: req.Header.Get("Authorization"),
		Cluster: s.cluster, Key: s.key, Nonce: s.nonce}
}

// machine is a client at an address of its own.
func (r *rig) machine(n int) *http.Client {
	from := &net.TCPAddr{IP: net.IPv4(127, 1, byte(n>>8), byte(n))}
	return &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{DialContext: (&net.Dialer{LocalAddr: from}).DialContext,
		TLSClientConfig: &tls.Config{RootCAs: r.ca, ServerName: attest.ServerName, MinVersion: tls.VersionTLS13}, DisableKeepAlives: true}}
}

// nonce asks for a challenge.
func (r *rig) nonce(c *http.Client) string {
	r.t.Helper()
	nonce, err := r.tryNonce(c)
	if err != nil {
		r.t.Fatal(err)
	}
	return nonce
}

func (r *rig) tryNonce(c *http.Client) (string, error) {
	res, err := c.Get("https://" + r.address + "/v1/challenge")
	if err != nil {
		return "", err
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		return "", fmt.Errorf("no challenge: %d %s %w", res.StatusCode, text, err)
	}
	return strings.TrimSpace(string(text)), nil
}

// post sends a request, raw where it is bytes.
func (r *rig) post(c *http.Client, request any) (status int, answer string) {
	raw, ok := request.([]byte)
	if !ok {
		var err error
		if raw, err = json.Marshal(request); err != nil {
			r.t.Fatal(err)
		}
	}
	res, err := c.Post("https://"+r.address+"/v1/join", "application/json", bytes.NewReader(raw))
	if err != nil {
		return 0, err.Error()
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		return 0, err.Error()
	}
	return res.StatusCode, strings.TrimSpace(string(text))
}

// join plays an honest machine.
func (r *rig) join(n int, id string) (status int, answer string) {
	c := r.machine(n)
	return r.post(c, r.signing(r.credentials(id), r.nonce(c)).sign(r.t))
}

// freshPool ends all tokens, as the joins of their machines do.
func (r *rig) freshPool() {
	for _, s := range r.tokens() {
		if err := r.client.CoreV1().Secrets(s.Namespace).Delete(r.t.Context(), s.Name, metav1.DeleteOptions{}); err != nil {
			r.t.Fatal(err)
		}
	}
	r.newPool()
}

// newPool is that of a leader which has made no token.
func (r *rig) newPool() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pool = bootstrap.NewPool(kubetest.Client(r.client))
	r.mint = bootstrap.TokenForAttested(r.pool, bootstrap.Config{TokenTTL: 24 * time.Hour, TokenGroups: []string{bootstrap.WorkersGroup}})
}

func (r *rig) tokens() []corev1.Secret {
	list, err := r.client.CoreV1().Secrets("kube-system").List(r.t.Context(), metav1.ListOptions{})
	if err != nil {
		r.t.Fatal(err)
	}
	return list.Items
}

func describe(status int, answer string) string { return fmt.Sprintf("%d %q", status, answer) }
