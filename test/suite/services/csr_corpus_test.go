package services

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	certv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/autoscaler-agent/autoscaler-agent/test/await"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/cloud/aws"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/controlplane"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/machine"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/world"
)

// TestCSR plays certificate requests against the agent as it is run: the built
// binary with its own credentials, the real API server with admission as in life, an
// AWS on the wire. Every request has a Node and an instance of its own, so that all
// can be asked at once.
func TestCSR(t *testing.T) {
	c := newCorpus(t)
	t.Run("honest", c.testHonest)
	t.Run("hostile", c.testHostile)
	t.Run("combined", c.testCombined)
	t.Run("swap", c.testSwap)
	t.Run("second join", c.testSecondJoin)
	t.Run("rejoin", c.testRejoin)
	t.Run("thief", c.testThief)
	t.Run("logs", c.testLogs)
	t.Run("flood", c.testFlood)
	t.Run("another region", c.testRegion)
}

// subject is one Node with the instance that its provider ID should point at.
type subject struct {
	node     string
	instance aws.Instance
	vm       *vm // in place of instance, in another cloud
}

func (s subject) providerID() string {
	if s.vm != nil {
		return s.vm.providerID
	}
	return "aws:///" + s.instance.Zone + "/" + s.instance.ID
}

// key is a part of names of requests.
func (s subject) key() string {
	if s.vm != nil {
		return s.vm.id
	}
	return s.instance.ID
}

// address is the first that its kubelet asks for.
func (s subject) address() string {
	if s.vm != nil {
		return s.vm.addresses[0]
	}
	return s.instance.PrivateIP
}

// asking is a request as it is sent.
type asking struct {
	pkcs10
	user       string // "system:node:<node>"
	uid        string // of the user
	groups     []string
	signer     string
	usages     []certv1.KeyUsage
	expiration *int32
	pem        func([]byte) []byte // changes the PEM
}

// kubelet is what an honest kubelet of the subject asks for.
func (s subject) kubelet() asking {
	a := asking{user: "system:node:" + s.node, groups: []string{"system:nodes", "system:authenticated"},
		signer: certv1.KubeletServingSignerName, usages: []certv1.KeyUsage{certv1.UsageDigitalSignature, certv1.UsageServerAuth}}
	a.key = ecKey
	a.subject = [][]attribute{{{oid: oidO, value: "system:nodes"}}, {{oid: oidCN, value: a.user}}}
	a.names = [][]byte{dnsName(s.node)}
	if ip := s.address(); ip != "" {
		a.names = append(a.names, ipName(ip))
	}
	return a
}

// corpus is the world that the requests are played in.
type corpus struct {
	w       *world.World
	cloud   *aws.Cloud // the one that the agent looks at
	cp      *controlplane.ControlPlane
	binary  string
	agent   *world.Process
	http    *http.Client
	api     *x509.Certificate // of the API server
	pool    []aws.Instance    // not yet taken
	foreign []aws.Instance    // of a group that the agent does not manage
	leaving []aws.Instance    // of a group whose machines stand by, or wait on their way out
	clouds  clouds            // beside AWS
	honest  []*csrCase
	hostile []*csrCase
	seen    *watched
	token   string // ID of the agent's join token
	joined  int    // machines that join for real
	flood   int    // how many requests make flood asks for, which also measures speed; 0: it does not run
}

// csrCase is a row with the Node that it got.
type csrCase struct {
	csrRow
	subject
	peers []aws.Instance // instances that the row needs beside its own
	other *vm            // a machine of another cloud that it needs
}

// spare is how many instances rows may take beside their own.
const spare = 80

func newCorpus(t *testing.T) *corpus {
	t.Helper()
	start := time.Now()
	c := &corpus{}
	if text := os.Getenv("AUTOSCALER_TEST_FLOOD"); text != "" {
		var err error
		if c.flood, err = strconv.Atoi(text); err != nil {
			t.Fatalf("AUTOSCALER_TEST_FLOOD: %v", err)
		}
	}
	built := make(chan error, 1)
	c.binary = filepath.Join(t.TempDir(), "autoscaler-agent")
	go func() { built <- world.BuildAgent(context.Background(), c.binary) }()
	go rsaKey(4096)
	dir := t.TempDir()
	w, err := world.Start(t.Context(), world.Options{
		Dir: dir, Fast: true, NodeMonitorGrace: 10 * time.Minute,
		ExtraArgs: map[string][]string{controlplane.APIServer: {"--kubelet-certificate-authority=" + filepath.Join(dir, "controlplane", "pki", "ca.crt")}},
		Cloud:     aws.Options{Seed: 5, LaunchDelay: time.Millisecond, BootDelay: 300 * time.Millisecond, TerminateDelay: 10 * time.Millisecond},
		Tune:      c.tune,
	})
	if err != nil {
		t.Fatal(err)
	}
	c.w, c.cp, c.cloud = w, w.ControlPlane, w.Cloud
	t.Cleanup(func() {
		if t.Failed() && c.agent != nil {
			t.Logf("the agent's last lines:\n%s", c.agent.Tail(20))
		}
		if err := w.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	t.Logf("AWS seed %d; the control plane took %s", w.Cloud.Seed(), time.Since(start).Round(time.Millisecond))
	if c.http, err = rest.HTTPClientFor(c.cp.RESTConfig()); err != nil {
		t.Fatal(err)
	}
	c.readAPIServer(t)
	c.launch(t)
	c.launchClouds(t, slices.Concat(hostileRows(c.api), honestRows()))
	t.Logf("five clouds run after %s", time.Since(start).Round(time.Millisecond))
	c.hostile, c.honest = c.enrol(hostileRows(c.api)), c.enrol(honestRows())
	c.makeNodes(t, slices.Concat(c.hostile, c.honest))
	t.Logf("%d Nodes after %s", len(c.hostile)+len(c.honest), time.Since(start).Round(time.Millisecond))
	if err := <-built; err != nil {
		t.Fatal(err)
	}
	t.Logf("the agent is built after %s", time.Since(start).Round(time.Millisecond))
	c.seen = watchRequests(t, c.cp)
	c.startAgent(t, "corpus")
	c.readToken(t)
	t.Logf("the agent knows its machines after %s", time.Since(start).Round(time.Millisecond))
	return c
}

// tune leaves instances without user data alone: their kubelets are played by rows.
func (c *corpus) tune(m *machine.Config) {
	if len(m.UserData) == 0 {
		m.NeverJoins = true
		return
	}
	c.tuneLogs(m)
}

func (c *corpus) readAPIServer(t *testing.T) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(c.cp.Dir(), "pki", "apiserver.crt"))
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(text)
	if c.api, err = x509.ParseCertificate(block.Bytes); err != nil {
		t.Fatal(err)
	}
}

// launch gets the instances of both groups, of which the agent manages one.
func (c *corpus) launch(t *testing.T) {
	t.Helper()
	onAWS := slices.DeleteFunc(slices.Concat(hostileRows(c.api), honestRows()), func(r csrRow) bool { return r.on != "" })
	c.pool = c.group(t, "corpus", len(onAWS)+spare, "10.0", map[string]string{
		"k8s.io/cluster-autoscaler/enabled": "", "k8s.io/cluster-autoscaler/" + world.ClusterName: ""})
	c.foreign = c.group(t, "foreign", 4, "10.1", nil)
	c.leaving = c.group(t, "leaving", 3, "10.3", map[string]string{
		"k8s.io/cluster-autoscaler/enabled": "", "k8s.io/cluster-autoscaler/" + world.ClusterName: ""})
}

// launchedFor is how long ago the corpus' machines were launched: long before every request, and within the time for which
// the API server would still have the request that another agent approved (J13 holds the joins of older ones).
const launchedFor = 50 * time.Minute

// group launches n instances, each with addresses of its own below prefix, which random
// ones are not, and older than every request. The group cannot grow or shrink, so that
// the scaler has nothing to do.
func (c *corpus) group(t *testing.T, name string, n int, prefix string, tags map[string]string) []aws.Instance {
	t.Helper()
	c.cloud.PutLaunchTemplate(aws.LaunchTemplate{Name: name, InstanceType: "m5.large"})
	err := c.cloud.PutGroup(aws.Group{Name: name, Min: n, Max: n, Desired: n, LaunchTemplate: name, KeepTags: true, Tags: tags,
		SuspendedProcesses: []string{"AZRebalance", "HealthCheck", "ReplaceUnhealthy"}})
	if err != nil {
		t.Fatal(err)
	}
	var list []aws.Instance
	await.True(t, "all instances of "+name+" run", func() bool {
		list = slices.DeleteFunc(c.cloud.Instances(), func(i aws.Instance) bool { return i.State != "running" || i.GroupName != name })
		return len(list) == n
	})
	for k := range list {
		list[k] = c.rewire(t, list[k].ID, func(net *aws.Network) {
			net.LaunchTime = time.Now().Add(-launchedFor)
			net.PrivateIP = fmt.Sprintf("%s.%d.%d", prefix, 1+k/250, 1+k%250)
			net.PublicIP = strings.Replace(net.PrivateIP, "10.", "198.", 1)
			net.IPv6 = "2001:db8::" + strings.ReplaceAll(net.PrivateIP, ".", ":")
		})
	}
	return list
}

func (c *corpus) rewire(t *testing.T, id string, change func(*aws.Network)) aws.Instance {
	t.Helper()
	if err := c.cloud.Rewire(id, change); err != nil {
		t.Fatal(err)
	}
	i, _ := c.cloud.Instance(id)
	return i
}

func (c *corpus) take() aws.Instance {
	i := c.pool[0]
	c.pool = c.pool[1:]
	return i
}

// enrol gives every row an instance and changes the cloud as the row asks.
func (c *corpus) enrol(rows []csrRow) []*csrCase {
	var out []*csrCase
	for _, r := range rows {
		if r.on != "" {
			v := c.takeOn(r.on)
			out = append(out, &csrCase{csrRow: r, subject: subject{node: v.name, vm: v}})
			continue
		}
		i := c.take()
		out = append(out, &csrCase{csrRow: r, subject: subject{node: i.PrivateDNS, instance: i}})
	}
	return out
}

// makeNodes prepares the cloud and registers the Nodes, as their kubelets do: a
// provider ID is a Node's own word.
func (c *corpus) makeNodes(t *testing.T, entries []*csrCase) {
	t.Helper()
	_, err := c.cp.Client().RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "corpus"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "system:node-bootstrapper"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "Group", Name: "corpus:anybody"}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	// Two Nodes that are in no row: the leader's, and one that the cloud knows nothing of.
	for name, labels := range map[string]map[string]string{"leader": {"node-role.kubernetes.io/control-plane": ""}, "bystander": nil} {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
		if _, err := c.cp.Client().CoreV1().Nodes().Create(t.Context(), n, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	c.register(t, entries)
}

// register prepares the cloud for entries and makes their Nodes.
func (c *corpus) register(t *testing.T, entries []*csrCase) {
	t.Helper()
	for _, e := range entries {
		if e.prepare != nil {
			e.prepare(t, c, e)
		}
	}
	parallel(8, entries, func(e *csrCase) {
		if e.join && e.register == nil {
			return
		}
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: e.node}, Spec: corev1.NodeSpec{ProviderID: e.providerID()}}
		if e.register != nil {
			n = e.register(e, n)
		}
		if n == nil {
			return
		}
		client := c.as(t, asking{user: "system:node:" + n.Name, groups: []string{"system:nodes", "system:authenticated"}})
		if _, control := n.Labels["node-role.kubernetes.io/control-plane"]; control || len(n.Finalizers) > 0 {
			client = c.cp.Client() // no kubelet may do that
		}
		if _, err := client.CoreV1().Nodes().Create(t.Context(), n, metav1.CreateOptions{}); err != nil {
			t.Errorf("%s: %v", e.name, err)
		}
		if len(n.Finalizers) > 0 {
			if err := client.CoreV1().Nodes().Delete(t.Context(), n.Name, metav1.DeleteOptions{}); err != nil {
				t.Errorf("%s: %v", e.name, err)
			}
		}
	})
}

// startAgent starts the agent and waits until its inventory is warm.
func (c *corpus) startAgent(t *testing.T, group string, env ...string) {
	t.Helper()
	err := errors.Join(allowLoopback(t, c.cp.Client()), grant(t, c.cp.Client(), "leaders", "controlplanenodes", "leader"))
	if err != nil {
		t.Fatal(err)
	}
	c.agent, err = c.w.StartAgent(t.Context(), c.binary, append(append(c.clouds.env(c.cp.Kubeconfig()),
		"AUTOSCALER_NODECLEANER_ENABLED=false", "AUTOSCALER_CSR_PER_NODE_HOUR=100", "AUTOSCALER_CSR_MAX_EXPIRATION=24h",
		// The machines that play kubelets for real live on loopback.
		"AUTOSCALER_CSR_ALLOWED_RANGES=127.0.1.0/24",
		"AUTOSCALER_CSR_EXTRA_NAMES={{instance}}.workers.example.com,{{node}}.dc1.example.com",
	), env...)...)
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range append(c.clouds.groups(), group) {
		if err := c.w.WaitForGroup(t.Context(), c.binary, g); err != nil {
			t.Fatal(err)
		}
	}
}

// as is a client for whoever sends a request.
func (c *corpus) as(t *testing.T, a asking) kubernetes.Interface {
	t.Helper()
	cfg := c.cp.RESTConfig()
	cfg.Impersonate = rest.ImpersonationConfig{UserName: a.user, UID: a.uid, Groups: a.groups}
	cfg.ContentType = "application/vnd.kubernetes.protobuf"
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// asking is what the row sends.
func (c *corpus) asking(e *csrCase) asking {
	a := e.kubelet()
	if e.join {
		a = c.joining(e)
	}
	if e.ask != nil {
		e.ask(e, &a)
	}
	return a
}

// send creates the request.
func (c *corpus) send(t *testing.T, name string, a asking) error {
	t.Helper()
	data := armour(a.der(t))
	if a.pem != nil {
		data = a.pem(data)
	}
	_, err := c.as(t, a).CertificatesV1().CertificateSigningRequests().Create(t.Context(), &certv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       certv1.CertificateSigningRequestSpec{Request: data, SignerName: a.signer, Usages: a.usages, ExpirationSeconds: a.expiration},
	}, metav1.CreateOptions{})
	return err
}

// refusedByAPI tells that the API server itself wants nothing of a request.
func refusedByAPI(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err) || apierrors.IsRequestEntityTooLargeError(err)
}

func parallel[T any](n int, list []T, do func(T)) {
	slots := make(chan struct{}, n)
	var wg sync.WaitGroup
	for _, x := range list {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			do(x)
		})
	}
	wg.Wait()
}

func mustAddr(s string) netip.Addr { return netip.MustParseAddr(s) }
