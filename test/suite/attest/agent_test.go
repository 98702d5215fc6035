package attest

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/autoscaler-agent/autoscaler-agent/bootstrap"
	"github.com/autoscaler-agent/autoscaler-agent/bootstrap/attest"
	"github.com/autoscaler-agent/autoscaler-agent/test/await"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/cloud/aws"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/world"
)

// agentRig is the whole agent with a listener: the built binary, a real control plane, and
// machines that run the generated user data.
type agentRig struct {
	rig    // its clients and its signer; it has no listener of its own
	w      *world.World
	binary string
	agent  *world.Process
	seen   *secrets
	called recorder // what the machines' scripts called
}

// newAgentRig starts the agent at log level debug. It publishes no token.
func newAgentRig(t *testing.T) *agentRig {
	t.Helper()
	called := newRecorder(t)
	w, binary := world.ForTest(t, world.Options{Fast: true, Tune: called.tune})
	r := &agentRig{rig: rig{t: t, cloud: w.Cloud}, w: w, called: called, binary: binary}
	cert := r.certificate(t)
	r.seen = watchSecrets(t, r)
	var err error
	r.agent, err = w.StartAgent(t.Context(), r.binary, "AUTOSCALER_LOG_LEVEL=debug", "AUTOSCALER_BOOTSTRAP_TOKENS=none", "AUTOSCALER_BOOTSTRAP_TOKEN_TTL=1m",
		"AUTOSCALER_AWS_REGION="+w.Cloud.Region(), "AUTOSCALER_BOOTSTRAP_ATTEST_LISTEN="+r.address, "AUTOSCALER_BOOTSTRAP_ATTEST_ACCOUNT=123456789012", "AUTOSCALER_BOOTSTRAP_ATTEST_ROLES=worker",
		"AUTOSCALER_BOOTSTRAP_ATTEST_CERT_FILE="+cert, "AUTOSCALER_BOOTSTRAP_ATTEST_KEY_FILE="+cert)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// certificate makes the listener's certificate as install does, and finds an address for it.
func (r *agentRig) certificate(t *testing.T) (file string) {
	t.Helper()
	cp := r.w.ControlPlane
	text, err := os.ReadFile(cp.CAFile())
	if err != nil {
		t.Fatal(err)
	}
	key, err := os.ReadFile(cp.CAKeyFile())
	if err != nil {
		t.Fatal(err)
	}
	data, err := attest.Issue(text, key, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	file = filepath.Join(t.TempDir(), "attest.pem")
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	r.ca = x509.NewCertPool()
	r.ca.AppendCertsFromPEM(text)
	block, _ := pem.Decode(text)
	parsed, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	r.hash = hashOf(parsed)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r.address = l.Addr().String()
	if err := l.Close(); err != nil { // the agent takes it
		t.Fatal(err)
	}
	return file
}

// signature is one that was made, and not the format of the script that makes it.
var signature = regexp.MustCompile(`Signature=[0-9a-f]{64}`)

// secrets is what nobody may read: gathered while the machines join, as the tokens go with
// the joins.
type secrets struct {
	mu        sync.Mutex
	tokens    map[string]string // secret part by name of the Secret and time
	bound     map[string]string // instance by ID of the token
	arguments map[string]bool   // of every process of this host
}

func watchSecrets(t *testing.T, r *agentRig) *secrets {
	t.Helper()
	s := &secrets{tokens: map[string]string{}, bound: map[string]string{}, arguments: map[string]bool{}}
	w, err := r.w.ControlPlane.Client().CoreV1().Secrets("kube-system").Watch(t.Context(), metav1.ListOptions{FieldSelector: "type=bootstrap.kubernetes.io/token"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var group sync.WaitGroup
	group.Go(func() {
		for e := range w.ResultChan() {
			if x, ok := e.Object.(*corev1.Secret); ok && e.Type != watch.Deleted {
				s.mu.Lock()
				s.tokens[string(x.UID)] = string(x.Data["token-secret"])
				s.bound[string(x.Data["token-id"])+"."+string(x.UID)] = x.Annotations[bootstrap.InstanceAnnotation]
				s.mu.Unlock()
			}
		}
	})
	group.Go(func() {
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for ctx.Err() == nil {
			files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
			for _, f := range files {
				if text, err := os.ReadFile(f); err == nil {
					s.mu.Lock()
					s.arguments[string(text)] = true
					s.mu.Unlock()
				}
			}
			<-tick.C
		}
	})
	t.Cleanup(func() {
		w.Stop()
		cancel()
		group.Wait()
	})
	return s
}

func (s *secrets) all() (tokens []string, instances map[string]bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	instances = map[string]bool{}
	for _, t := range s.tokens {
		tokens = append(tokens, t)
	}
	for _, i := range s.bound {
		instances[i] = true
	}
	return tokens, instances
}

// scan looks for what nobody may read in everything that is written, sent or shown.
func (r *agentRig) scan(t *testing.T, userData []byte) {
	t.Helper()
	tokens, _ := r.seen.all()
	if len(tokens) == 0 {
		t.Fatal("no token was seen")
	}
	found := func(text []byte) string {
		for _, x := range tokens {
			if bytes.Contains(text, []byte(x)) {
				return "a join token"
			}
		}
		if signature.Match(text) {
			return "a signature"
		}
		return ""
	}
	places := map[string][]byte{"the user data": userData}
	r.seen.mu.Lock()
	var arguments bytes.Buffer
	for a := range r.seen.arguments {
		arguments.WriteString(a + "\n")
	}
	r.seen.mu.Unlock()
	called := r.called.arguments(t)
	if n := strings.Count(called, "/v1/challenge"); n < 3 {
		t.Errorf("%d calls of a machine that attests were recorded, want one for each of 3 machines", n)
	}
	arguments.WriteString(called)
	places["arguments of processes"] = arguments.Bytes()
	for _, dir := range []string{r.w.StateDir(), r.w.Dir} {
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			switch {
			case errors.Is(err, fs.ErrNotExist) && path != dir: // the agent replaces its files as the walk goes
				return nil
			case err != nil:
				return err
			case d.IsDir() && d.Name() == "controlplane":
				return fs.SkipDir
			case !d.Type().IsRegular() || path == r.binary:
				return nil
			}
			text, err := os.ReadFile(path)
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			places[path] = text
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, command := range []string{"status", "explain", "flight"} {
		out, _ := exec.CommandContext(t.Context(), r.binary, command, "--socket", r.w.Socket()).CombinedOutput() // one that is not there says so
		places["autoscaler-agent "+command] = out
	}
	recorded := 0
	for place, text := range places {
		if what := found(text); what != "" && !strings.HasSuffix(place, "cloud.log") {
			t.Errorf("%s is in %s", what, place)
		}
		if strings.Contains(place, "flight") && len(text) > 0 {
			recorded++
		}
	}
	if log := places[filepath.Join(r.w.Dir, "agent.log")]; !bytes.Contains(log, []byte("level=debug")) && !bytes.Contains(log, []byte(`"debug"`)) {
		t.Error("the agent's log has no line of the level debug")
	}
	if recorded == 0 {
		t.Error("nothing was recorded")
	}
	t.Logf("%d tokens are in none of %d places", len(tokens), len(places))
}

// TestAttestedGrowth: the whole agent lets a group grow whose user data holds no secret. Each
// machine runs the generated script, attests, gets a token for its instance and its kubelet's
// key, and joins; each token is gone when its machine has joined. Thieves get nothing.
func TestAttestedGrowth(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a real control plane")
	}
	r := newAgentRig(t)
	userData, err := r.w.RenderUserData(t.Context(), r.binary, "--attest", r.address, "--ca-file", r.w.ControlPlane.CAFile())
	if err != nil {
		t.Fatal(err)
	}
	r.group(t, "workers", 3, userData, map[string]string{"k8s.io/cluster-autoscaler/enabled": "", "k8s.io/cluster-autoscaler/" + world.ClusterName: ""})
	if err := r.w.WaitForGroup(t.Context(), r.binary, "workers"); err != nil {
		t.Fatal(err)
	}
	r.group(t, "strangers", 1, []byte("#!/bin/sh\n"), nil)
	r.deploy(t, 3)
	var nodes []corev1.Node
	await.Empty(t, func() string {
		list, err := r.w.ControlPlane.Client().CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
		if err != nil {
			return err.Error()
		}
		ready := 0
		for _, n := range list.Items {
			for _, c := range n.Status.Conditions {
				if c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue {
					ready++
				}
			}
		}
		nodes = list.Items
		return map[bool]string{false: fmt.Sprintf("%d of 3 nodes are Ready", ready)}[ready == 3]
	})
	tokens, instances := r.seen.all()
	if len(tokens) != 3 {
		t.Errorf("%d tokens were made for 3 machines", len(tokens))
	}
	for _, n := range nodes {
		if !instances[n.Spec.ProviderID] {
			t.Errorf("node %s has joined, and no token was made for %s", n.Name, n.Spec.ProviderID)
		}
	}
	await.True(t, "the tokens are gone", func() bool {
		list, err := r.w.ControlPlane.Client().CoreV1().Secrets("kube-system").List(t.Context(), metav1.ListOptions{FieldSelector: "type=bootstrap.kubernetes.io/token"})
		return err == nil && len(list.Items) == 0
	})
	t.Run("hostile", r.hostile)
	if tokens, _ := r.seen.all(); len(tokens) != 3 {
		t.Errorf("%d tokens were made after the thieves", len(tokens))
	}
	r.scan(t, userData)
}

// hostile are thieves of each kind at the agent's own listener.
func (r *agentRig) hostile(t *testing.T) {
	member := r.instances("workers")[0].ID
	stranger := r.instances("strangers")[0].ID
	for n, c := range []struct {
		name, rule string
		ask        func(signing) signing
		keys       aws.Credentials
	}{
		{name: "a pod on a machine that has joined", rule: "A12", keys: r.credentials(member)},
		{name: "an instance of no managed group", rule: "A10", keys: r.credentials(stranger)},
		{name: "an instance that is not there", rule: "A10", keys: r.credentials("i-00000000000000001")},
		{name: "another role", rule: "A7", keys: r.cloud.IssueCredentials("leader/"+member, time.Hour)},
		{name: "another account", rule: "A6", keys: r.cloud.IssueForeignCredentials("999999999999", "worker/"+member, time.Hour)},
		{name: "a session of a person", rule: "A8", keys: r.cloud.IssueCredentials("worker/alice", time.Hour)},
		{name: "signed for another cluster", rule: "A3", keys: r.credentials(member), ask: func(s signing) signing { s.cluster = "sha256:" + strings.Repeat("0", 64); return s }},
		{name: "a clock that is wrong", rule: "A4", keys: r.credentials(member), ask: func(s signing) signing { s.at = s.at.Add(-6 * time.Minute); return s }},
		{name: "signed with a guessed key", rule: "A5", keys: r.credentials(member), ask: func(s signing) signing { s.keys.SecretAccessKey += "x"; return s }},
		{name: "another service", rule: "A1", keys: r.credentials(member), ask: func(s signing) signing { s.service = "iam"; return s }},
		{name: "a challenge that was used", rule: "A2", keys: r.credentials(member), ask: func(s signing) signing {
			c := r.machine(900)
			if status, answer := r.post(c, s.sign(r.t)); status == 200 {
				r.t.Errorf("served: %s", answer)
			}
			return s
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			client := r.machine(n + 1)
			s := r.signing(c.keys, r.nonce(client))
			if c.ask != nil {
				s = c.ask(s)
			}
			status, answer := r.post(client, s.sign(t))
			if got, _, _ := strings.Cut(answer, " "); status == 200 || got != c.rule {
				t.Errorf("%s, want %s", describe(status, answer), c.rule)
			}
		})
	}
}

func (r *agentRig) group(t *testing.T, name string, most int, userData []byte, tags map[string]string) {
	t.Helper()
	r.cloud.PutLaunchTemplate(aws.LaunchTemplate{Name: name, InstanceType: "m5.xlarge", UserData: string(userData), InstanceProfile: "worker", HTTPTokens: "required", HopLimit: 1})
	desired := 0
	if tags == nil {
		desired = most
	}
	err := r.cloud.PutGroup(aws.Group{Name: name, Max: most, Desired: desired, LaunchTemplate: name, ProtectNew: true, KeepTags: true, Tags: tags, SuspendedProcesses: []string{"AZRebalance"}})
	if err != nil {
		t.Fatal(err)
	}
}

// deploy makes pods that want a machine each.
func (r *agentRig) deploy(t *testing.T, n int32) {
	t.Helper()
	labels := map[string]string{"app": "web"}
	grace := int64(1)
	_, err := r.w.ControlPlane.Client().AppsV1().Deployments("default").Create(t.Context(), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: appsv1.DeploymentSpec{Replicas: &n, Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels},
			Spec: corev1.PodSpec{TerminationGracePeriodSeconds: &grace, Containers: []corev1.Container{{Name: "c", Image: "nginx",
				Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("3")}}}}},
		}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}
