package worker

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/autoscaler-agent/autoscaler-agent/test/await"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/cloud/aws"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/controlplane"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/world"
	"github.com/autoscaler-agent/autoscaler-agent/userdata"
)

// rig is a real control plane, an emulated AWS, the agent and a mirror.
type rig struct {
	cp     *controlplane.ControlPlane
	cloud  *aws.Cloud
	parts  Parts
	mirror *Mirror
	dir    string
	launch chan aws.Instance
	env    []string // of the agent
	// beforeBoot, if set, is called with an instance whose container does not run yet, furnish with
	// that container.
	beforeBoot func(aws.Instance)
	furnish    func(*Container)

	mu       sync.Mutex
	metadata *httputil.ReverseProxy
}

func newRig(t *testing.T) *rig {
	t.Helper()
	if os.Getenv(gate) != "inside" {
		t.Skip("boots containers as root and builds a kubelet and containerd once: make e2e-worker")
	}
	bin, err := controlplane.Binaries(t.Context(), t.Output())
	if err != nil {
		t.Fatal(err)
	}
	return rigOf(t, bin)
}

// rigOf has a control plane of the given programs.
func rigOf(t *testing.T, bin controlplane.Bin) *rig {
	t.Helper()
	r := &rig{dir: t.TempDir(), launch: make(chan aws.Instance, 8)}
	var err error
	if r.parts, err = Prepare(t.Context(), t.Output()); err != nil {
		t.Fatal(err)
	}
	r.mirror, err = NewMirror(r.parts, r.spec())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.mirror.Close)
	r.cp = controlplane.ForTest(t, controlplane.Options{Bin: bin, Fast: true, NodeMonitorGrace: 6 * time.Second, NodeLeaseSeconds: 8})
	r.onOldCgroups(t)
	r.startCloud(t)
	r.startAgent(t)
	return r
}

func (r *rig) spec() userdata.Spec {
	return userdata.Spec{
		Cloud: "aws", System: "debian", Arch: "amd64", KubernetesVersion: r.parts.Kubernetes, Reservation: userdata.DefaultReservation(),
		Join:      userdata.Join{Endpoint: "k8s:6443", Token: "abcdef.0123456789abcdef", CACertHashes: []string{"sha256:" + strings.Repeat("0", 64)}},
		Downloads: userdata.Downloads{Containerd: r.parts.Containerd},
	}
}

// onOldCgroups lets kubelets start on a kernel with cgroup v1, as the operator of such a
// cluster would: in the cluster's own kubelet configuration. The leader's PKI is elsewhere
// than on a real leader; kubeadm puts the CA on a worker where it always is.
func (r *rig) onOldCgroups(t *testing.T) {
	t.Helper()
	maps := r.cp.Client().CoreV1().ConfigMaps("kube-system")
	cm, err := maps.Get(t.Context(), "kubelet-config", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	cm.Data["kubelet"] = strings.ReplaceAll(cm.Data["kubelet"], r.cp.CAFile(), "/etc/kubernetes/pki/ca.crt")
	if r.parts.Kubernetes >= "v1.31" { // no kubelet before refuses cgroup v1
		cm.Data["kubelet"] += "\nfailCgroupV1: false\n"
	}
	if _, err := maps.Update(t.Context(), cm, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func (r *rig) startCloud(t *testing.T) {
	t.Helper()
	var err error
	r.cloud, err = aws.New(aws.Options{LaunchDelay: -1, BootDelay: 100 * time.Millisecond, TerminateDelay: 100 * time.Millisecond,
		OnState: func(i aws.Instance, _, now string) {
			if now == "running" {
				r.launch <- i
			}
		}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.cloud.Close)
	l, err := net.Listen("tcp", "169.254.169.254:80")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		r.mu.Lock()
		to := r.metadata
		r.mu.Unlock()
		if to == nil {
			http.NotFound(w, q)
			return
		}
		to.ServeHTTP(w, q)
	})}
	go server.Serve(l)
	t.Cleanup(func() { server.Close() })
}

func (r *rig) workerEnv() string { return filepath.Join(r.dir, "worker.env") }

func (r *rig) startAgent(t *testing.T) {
	t.Helper()
	if err := world.ApplyUnits(t.Context(), r.cp, "admission-policy.yaml", "rbac.yaml"); err != nil {
		t.Fatal(err)
	}
	kubeconfig, err := world.UserKubeconfig(r.cp, world.AgentUser, filepath.Join(r.dir, "agent.kubeconfig"))
	if err != nil {
		t.Fatal(err)
	}
	state := filepath.Join(r.dir, "state")
	if err := os.Mkdir(state, 0o700); err != nil {
		t.Fatal(err)
	}
	log, err := os.Create(filepath.Join(r.dir, "agent.log"))
	if err != nil {
		t.Fatal(err)
	}
	agent := exec.Command(os.Getenv("AUTOSCALER_TEST_AGENT"), "run")
	agent.Stdout, agent.Stderr = log, log
	r.env = append([]string{
		"PATH=" + os.Getenv("PATH"), "AUTOSCALER_KUBECONFIG=" + kubeconfig, "AUTOSCALER_NODE_NAME=leader", "AUTOSCALER_STATE_DIR=" + state,
		"AUTOSCALER_SOCKET=" + filepath.Join(r.dir, "agent.sock"), "AUTOSCALER_LISTEN=127.0.0.1:0", "AUTOSCALER_PROVIDER=asg",
		"AUTOSCALER_AWS_CLUSTER_NAME=" + world.ClusterName, "AUTOSCALER_BOOTSTRAP_FILE=" + r.workerEnv(), "AUTOSCALER_SCALING_UNNEEDED_FOR=1h",
		"AUTOSCALER_OBSERVE_SLOW=5s", "AUTOSCALER_LOG_LEVEL=debug",
	}, r.cloud.Env()...)
	agent.Env = r.env
	if err := agent.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = agent.Process.Signal(os.Interrupt)
		_ = agent.Wait() // its end is not what is tested
		log.Close()
		if text, err := os.ReadFile(log.Name()); err == nil && t.Failed() {
			t.Logf("the agent's last lines:\n%s", text[max(0, len(text)-6000):])
		}
	})
	await.True(t, "join values are published", func() bool {
		_, err := os.Stat(r.workerEnv())
		return err == nil
	})
}

// hook lets containers start on a host of the test that lacks CAP_SYS_RESOURCE.
const hook = "#!/bin/sh\nset -eu\n" +
	"{ grep '^version = ' /etc/containerd/config.toml; echo 'plugins.\"io.containerd.cri.v1.runtime\".restrict_oom_score_adj = true'; } >/etc/containerd/conf.d/test.toml\n" +
	"systemctl restart containerd\n"

// render is renderPlain with the hook.
func (r *rig) render(t *testing.T, flags ...string) []byte {
	t.Helper()
	file := filepath.Join(t.TempDir(), "before.sh")
	if err := os.WriteFile(file, []byte(hook), 0o600); err != nil {
		t.Fatal(err)
	}
	return r.renderPlain(t, append([]string{"--before-join", file}, flags...)...)
}

// renderPlain runs the command that the pages name.
func (r *rig) renderPlain(t *testing.T, flags ...string) []byte {
	t.Helper()
	args := []string{"userdata", "render", "--join-file", r.workerEnv(), "--os", "debian", "--arch", "amd64", "--containerd", r.parts.Containerd,
		"--mirror", r.mirror.URL, "--ignore-preflight-errors", "SystemVerification", "--label", "example.net/pool=batch", "--taint", "example.net/dedicated=batch:NoSchedule"}
	for name, sum := range r.mirror.SHA256 {
		args = append(args, "--checksum", name+"="+sum)
	}
	cmd := exec.CommandContext(t.Context(), os.Getenv("AUTOSCALER_TEST_AGENT"), append(args, flags...)...)
	out, err := cmd.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		t.Fatalf("%v\n%s", err, exit.Stderr)
	}
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// machine launches an instance with the user data and boots it.
func (r *rig) machine(t *testing.T, script []byte, size string, env ...string) (*Container, aws.Instance) {
	t.Helper()
	name := fmt.Sprintf("w%d", time.Now().UnixNano()%1e9)
	r.cloud.PutLaunchTemplate(aws.LaunchTemplate{Name: name, InstanceType: "m5.large", UserData: string(script), HTTPTokens: "required", HopLimit: 1})
	err := r.cloud.PutGroup(aws.Group{Name: name, Max: 1, Desired: 1, LaunchTemplate: name, ProtectNew: true, KeepTags: true,
		Tags: map[string]string{"k8s.io/cluster-autoscaler/enabled": "", "k8s.io/cluster-autoscaler/" + world.ClusterName: ""}})
	if err != nil {
		t.Fatal(err)
	}
	var i aws.Instance
	select {
	case i = <-r.launch:
	case <-time.After(await.Limit):
		t.Fatal("no instance runs")
	}
	endpoint, err := i.IMDS()
	if err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(endpoint)
	if err != nil {
		t.Fatal(err)
	}
	r.mu.Lock()
	r.metadata = &httputil.ReverseProxy{Rewrite: func(q *httputil.ProxyRequest) { q.SetURL(u) }} // a forwarded request is refused
	r.mu.Unlock()
	if out, err := exec.Command("ip", "addr", "replace", i.PrivateIP+"/32", "dev", "lo").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if r.beforeBoot != nil {
		r.beforeBoot(i)
	}
	return r.boot(t, name, i, script, size, env), i
}

// boot makes a container with the user data where cloud-init looks for it, and boots it.
func (r *rig) boot(t *testing.T, name string, i aws.Instance, script []byte, size string, env []string) *Container {
	t.Helper()
	c, err := NewContainer(r.parts, t.TempDir(), name, size)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("console:\n%s\njournal:\n%s", c.ConsoleText(), c.Journal(context.Background()))
		}
		if err := c.Remove(); err != nil {
			t.Error(err)
		}
	})
	seed := "/var/lib/cloud/seed/nocloud/"
	err = errors.Join(
		c.Write(seed+"user-data", script, 0o600), c.Write(seed+"meta-data", []byte("instance-id: "+i.ID+"\nlocal-hostname: "+i.PrivateDNS+"\n"), 0o644),
		c.Write("/etc/hosts", []byte("127.0.0.1 localhost\n"+i.PrivateIP+" "+i.PrivateDNS+"\n"), 0o644), // the VPC's DNS
		c.Write("/etc/systemd/system.conf.d/test.conf", []byte("[Manager]\nDefaultEnvironment="+strings.Join(env, " ")+"\n"), 0o644),
	)
	if err != nil {
		t.Fatal(err)
	}
	if r.furnish != nil {
		r.furnish(c)
	}
	if err := c.Boot(t.Context()); err != nil {
		t.Fatal(err)
	}
	return c
}

// console waits for a boot-phase marker.
func console(t *testing.T, c *Container, marker string) {
	t.Helper()
	await.Empty(t, func() string {
		text := c.ConsoleText()
		if strings.Contains(text, "autoscaler-agent: phase="+marker) {
			return ""
		}
		if !strings.HasPrefix(marker, "failed") && strings.Contains(text, "phase=failed") {
			t.Fatalf("the machine stopped before phase=%s", marker)
		}
		return "phase=" + marker
	})
}
