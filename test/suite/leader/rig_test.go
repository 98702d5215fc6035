package leader

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/autoscaler-agent/autoscaler-agent/test/await"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/cloud/aws"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/controlplane"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/world"
	"github.com/autoscaler-agent/autoscaler-agent/test/suite/worker"
	"github.com/autoscaler-agent/autoscaler-agent/userdata"
)

const (
	endpoint = "k8s.example.net:6443"
	group    = "workers"
)

// controlPlane are the addresses of leaders.
var controlPlane = []string{"10.90.0.10", "10.90.0.11", "10.90.0.12"}

// rig is an emulated AWS, a mirror and the images.
type rig struct {
	parts    worker.Parts
	control  controlplane.Bin
	mirror   *worker.Mirror
	files    string            // address of the mirror, with kubectl and the images
	images   string            // directory of archives
	sandbox  []string          // archives of the image that kubeadm names for it, of each version
	archives []string          // all names
	serves   map[string]string // files that the mirror serves besides, by path
	programs string
	cloud    *aws.Cloud
	launched chan aws.Instance
	// script made the first leader, with the agent's program beside it.
	script, agent []byte
	hooked        string // the file of the script's hook
	// endpoint is where machines look for the API server.
	endpoint string
	// address is the leader's, the first of three.
	address string
	// front is the address that the endpoint's name leads to: the one leader's, or the forwarder's
	// before three.
	front string
	// again switches a machine off and on, with the address that it has from then on.
	again map[*worker.Container]func(address string) error
	// ended is told of each machine that the cloud has ended.
	ended func(aws.Instance)

	mu       sync.Mutex
	metadata *httputil.ReverseProxy
}

func newRig(t *testing.T) *rig {
	t.Helper()
	if os.Getenv(gate) != "inside" {
		t.Skip("boots containers as root and builds Kubernetes once: make e2e-leader")
	}
	r := &rig{programs: os.Getenv("AUTOSCALER_TEST_PROGRAMS"), launched: make(chan aws.Instance, 8), endpoint: endpoint, address: controlPlane[0], front: controlPlane[0], again: map[*worker.Container]func(string) error{}, ended: func(aws.Instance) {}, images: t.TempDir(), serves: map[string]string{}}
	var err error
	if r.parts, err = worker.Prepare(t.Context(), t.Output()); err != nil {
		t.Fatal(err)
	}
	if r.control, err = controlplane.Binaries(t.Context(), t.Output()); err != nil {
		t.Fatal(err)
	}
	if r.control.Version != r.parts.Kubernetes {
		t.Fatalf("the control plane is %s and the kubelet %s", r.control.Version, r.parts.Kubernetes)
	}
	r.makeImages(t, r.control)
	r.pack(t, workImage, filepath.Join(r.programs, "pause"))
	// As make image does.
	r.pack(t, agentImage, filepath.Join(r.programs, "autoscaler-agent"), "-user", "65532:65532", "-cmd", "run", "-certificates", "/etc/ssl/certs/ca-certificates.crt")
	r.startMirror(t)
	r.startCloud(t)
	return r
}

// makeImages packs the programs under the names that kubeadm of their version asks for.
func (r *rig) makeImages(t *testing.T, bin controlplane.Bin) {
	t.Helper()
	list, err := exec.Command(bin.Path(controlplane.Kubeadm), "config", "images", "list", "--kubernetes-version", bin.Version).Output()
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for name := range strings.FieldsSeq(string(list)) {
		program, _, _ := strings.Cut(name[strings.LastIndexByte(name, '/')+1:], ":")
		switch program {
		case "kube-proxy", "coredns": // nobody builds them here
		case "pause":
			n++
			r.sandbox = append(r.sandbox, archive(name))
			r.pack(t, name, filepath.Join(r.programs, program))
		default:
			n++
			r.pack(t, name, bin.Path(program))
		}
	}
	if n != 5 {
		t.Fatalf("kubeadm's images are others than known: %s", list)
	}
}

// Images beside kubeadm's. The sandbox image that containerd itself names is not there: leader
// and worker take kubeadm's.
const (
	workImage  = "localhost/work:latest"
	agentImage = "localhost/autoscaler-agent:latest"
)

// pack makes an image of one program with tools/image, and the mirror serves it.
func (r *rig) pack(t *testing.T, name, program string, flags ...string) {
	t.Helper()
	file := filepath.Join(r.images, archive(name))
	args := append(flags, "-name", name, "-out", file, "amd64="+program)
	if out, err := exec.Command(filepath.Join(r.programs, "image"), args...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	r.archives = append(r.archives, archive(name))
	r.serves["/"+archive(name)] = file
}

func archive(name string) string {
	return strings.NewReplacer("/", "_", ":", "_").Replace(name) + ".tar"
}

// startMirror serves the files of a worker, kubectl and the images.
func (r *rig) startMirror(t *testing.T) {
	t.Helper()
	var err error
	if r.mirror, err = worker.NewMirror(r.parts, r.specOf(r.parts.Kubernetes)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.mirror.Close)
	whole := r.mirror.Config.Handler
	r.mirror.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if file := r.serves[q.URL.Path]; file != "" {
			http.ServeFile(w, q, file)
			return
		}
		whole.ServeHTTP(w, q)
	})
	r.serves["/"+userdata.PublishedPath("kubectl", r.parts.Kubernetes, "amd64")] = r.control.Path("kubectl")
	r.mirror.SHA256["kubectl/amd64"] = sumOf(t, r.control.Path("kubectl"))
	r.files = r.reachable(t, r.mirror.URL)
}

// specOf is what a worker of a version downloads.
func (r *rig) specOf(version string) userdata.Spec {
	return userdata.Spec{
		Cloud: "aws", System: "debian", Arch: "amd64", KubernetesVersion: version, Reservation: userdata.DefaultReservation(),
		Join:      userdata.Join{Endpoint: r.endpoint, Token: "abcdef.0123456789abcdef", CACertHashes: []string{"sha256:" + strings.Repeat("0", 64)}},
		Downloads: userdata.Downloads{Containerd: r.parts.Containerd},
	}
}

func sumOf(t *testing.T, file string) string {
	t.Helper()
	sum, err := exec.Command("sha256sum", file).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.Fields(string(sum))[0]
}

// reachable gives a server of this process an address that the containers reach.
func (r *rig) reachable(t *testing.T, url string) string {
	t.Helper()
	l, err := forward(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return strings.Replace(url, "127.0.0.1", router, 1)
}

func (r *rig) startCloud(t *testing.T) {
	t.Helper()
	var err error
	r.cloud, err = aws.New(aws.Options{LaunchDelay: -1, BootDelay: 100 * time.Millisecond, TerminateDelay: 100 * time.Millisecond,
		OnState: func(i aws.Instance, _, now string) {
			switch now {
			case "running":
				r.launched <- i
			case "terminated":
				r.ended(i)
			}
		}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.cloud.Close)
	r.reachable(t, r.cloud.Endpoint())
	r.cloud.PutLaunchTemplate(aws.LaunchTemplate{Name: group, InstanceType: "m5.large", UserData: "#!/bin/sh\n", HTTPTokens: "required", HopLimit: 1})
	err = r.cloud.PutGroup(aws.Group{Name: group, Max: 2, LaunchTemplate: group, Version: "$Latest", ProtectNew: true, KeepTags: true,
		Tags: map[string]string{"k8s.io/cluster-autoscaler/enabled": "", "k8s.io/cluster-autoscaler/" + world.ClusterName: ""}})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "169.254.169.254:80")
	if err != nil {
		t.Fatal(err)
	}
	// Only the worker is an instance; the leader finds no metadata.
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		r.mu.Lock()
		to := r.metadata
		r.mu.Unlock()
		if host, _, _ := net.SplitHostPort(q.RemoteAddr); to == nil || slices.Contains(controlPlane, host) {
			http.NotFound(w, q)
			return
		}
		to.ServeHTTP(w, q)
	})}
	go server.Serve(l)
	t.Cleanup(func() { server.Close() })
}

// cloudEnv is the environment by which the leader's agent reaches the cloud.
func (r *rig) cloudEnv() []string {
	var out []string
	for _, v := range r.cloud.Env() {
		out = append(out, strings.Replace(v, "127.0.0.1", router, 1))
	}
	return out
}

// hook is what the containers of this host need besides: there is no CAP_SYS_RESOURCE, the
// network of the pods is a bridge, and images come from the mirror.
func (r *rig) hook(t *testing.T, podNet string, images []string, more ...string) string {
	t.Helper()
	text := `#!/bin/sh
set -eu
{ grep '^version = ' /etc/containerd/config.toml; echo 'plugins."io.containerd.cri.v1.runtime".restrict_oom_score_adj = true'; } >/etc/containerd/conf.d/test.toml
mkdir -p /etc/cni/net.d
cat >/etc/cni/net.d/10-bridge.conflist <<'CNI'
{"cniVersion": "1.0.0", "name": "bridge", "plugins": [
 {"type": "bridge", "bridge": "cni0", "isGateway": true, "ipam": {"type": "host-local", "ranges": [[{"subnet": "` + podNet + `"}]], "routes": [{"dst": "0.0.0.0/0"}]}}]}
CNI
systemctl restart containerd
for i in ` + strings.Join(images, " ") + `; do
  curl -fsS ` + r.files + `/$i -o /root/image.tar
  ctr -n k8s.io images import /root/image.tar >/dev/null
done
rm /root/image.tar
` + strings.Join(more, "\n") + "\n"
	file := filepath.Join(t.TempDir(), "hook.sh")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// downloads are the flags that point to the mirror.
func (r *rig) downloads() []string {
	out := []string{"--mirror", r.files, "--arch", "amd64", "--containerd", r.parts.Containerd}
	for name, sum := range r.mirror.SHA256 {
		out = append(out, "--checksum", name+"="+sum)
	}
	return out
}

// bootLimit is when a boot is taken for a hang: it takes 3 to 15 seconds.
const bootLimit = 75 * time.Second

// booted counts containers. No two of a run have one name, across its tests: the kernel takes the
// network of one that is gone away some time later, and its wire has the name until then.
var booted atomic.Int32

// machine boots a container. On a kernel with cgroup v1 a container's systemd sometimes loses a
// notification and never comes up; such a boot is told and thrown away.
func (r *rig) machine(t *testing.T, name, host, address string, prepare func(*worker.Container) error, up func(*worker.Container) bool) *worker.Container {
	t.Helper()
	for try := 1; ; try++ {
		c, err := worker.NewContainer(r.parts, t.TempDir(), fmt.Sprintf("%s%d-%d", name, os.Getpid(), booted.Add(1)), "")
		if err != nil {
			t.Fatal(err)
		}
		err = errors.Join(
			c.Write("/etc/hosts", []byte("127.0.0.1 localhost\n"+address+" "+host+"\n"+r.front+" k8s.example.net\n"), 0o644),
			c.Write("/etc/hostname", []byte(host+"\n"), 0o644),
			// The kubelet takes it for the system UUID as well, where there is no DMI: two machines with one are one.
			c.Write("/etc/machine-id", fmt.Appendf(nil, "%x\n", sha256.Sum256([]byte(c.Name)))[32:], 0o444), c.Write("/etc/resolv.conf", nil, 0o644), prepare(c))
		if err != nil {
			t.Fatal(err)
		}
		remove, again, err := wired(t.Context(), c, address)
		r.again[c] = again
		t.Cleanup(func() {
			if t.Failed() {
				t.Logf("%s: console:\n%s\njournal:\n%s", name, tail(c.ConsoleText()), c.Journal(context.Background()))
			}
			if err := remove(); err != nil {
				t.Log(err) // a control plane takes longer to stop than Halt waits
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		for began := time.Now(); time.Since(began) < bootLimit; time.Sleep(100 * time.Millisecond) {
			if up(c) {
				return c
			}
		}
		if try == 4 {
			t.Fatalf("%s does not boot", name)
		}
		t.Logf("boot %d of %s stopped early; booting another", try, name)
		if err := c.Halt(); err != nil {
			t.Log(err)
		}
	}
}

func tail(s string) string { return s[max(0, len(s)-4000):] }

// must runs a command line in the container.
func must(t *testing.T, c *worker.Container, line string) string {
	t.Helper()
	out, err := c.Run(t.Context(), "sh", "-c", "export HOME=/root; "+line)
	if err != nil {
		t.Fatalf("%s: %v\n%s", line, err, tail(out))
	}
	return out
}

// client is the administrator's, from here.
func (r *rig) client(t *testing.T, c *worker.Container) kubernetes.Interface {
	t.Helper()
	return clientAt(t, c, r.address+":6443")
}

func clientAt(t *testing.T, c *worker.Container, at string) kubernetes.Interface {
	t.Helper()
	text, err := c.Read("/etc/kubernetes/admin.conf")
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(text)
	if err != nil {
		t.Fatal(err)
	}
	config.Host, config.ServerName = "https://"+at, "kubernetes" // a name that kubeadm gives to every API server
	out, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// instance waits for the cloud to launch one, and answers its questions about itself.
func (r *rig) instance(t *testing.T) aws.Instance {
	t.Helper()
	var i aws.Instance
	select {
	case i = <-r.launched:
	case <-time.After(await.Limit):
		t.Fatal("no instance runs")
	}
	at, err := i.IMDS()
	if err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(at)
	if err != nil {
		t.Fatal(err)
	}
	r.mu.Lock()
	r.metadata = &httputil.ReverseProxy{Rewrite: func(q *httputil.ProxyRequest) { q.SetURL(u) }}
	r.mu.Unlock()
	return i
}
