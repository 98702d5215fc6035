package script

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/userdata"
)

// play is one machine with its mirror and its metadata service.
type play struct {
	t      *testing.T
	dir    string // what the machine may write to, and its stand-ins
	spec   userdata.Spec
	shell  string
	env    []string
	small  map[string]string // directories of a size
	system string            // ID of /etc/os-release
	mirror *httptest.Server
	serve  map[string][]byte // below the mirror

	mu   sync.Mutex
	asks []string                                               // of the mirror
	odd  func(w http.ResponseWriter, r *http.Request) bool      // answers in place of the mirror
	imds func(path string) (status int, text string, mine bool) // answers in place of the metadata service
}

const nodeName = "ip-10-0-0-7.ec2.internal"

// The stand-ins note their call and do what the case says.
const (
	note   = "#!/bin/sh\necho \"${0##*/} $*\" >>/srv/calls\n[ -z \"${KILL_AT:-}\" ] || [ \"$(wc -l </srv/calls)\" -lt \"$KILL_AT\" ] || kill -9 0\n"
	onward = note + "exec /usr/bin/${0##*/} \"$@\"\n"
	// curl is real but for its patience.
	curl    = note + "for a do shift; case $a in --retry | --retry-max-time) skip=1 ;; --retry-connrefused) ;; *) if [ -n \"${skip:-}\" ]; then skip=; else set -- \"$@\" \"$a\"; fi ;; esac; done\nexec /usr/bin/curl \"$@\"\n"
	kubeadm = note + `case "$1 $2" in
"config images") printf '%s\n' "${7:-registry.k8s.io}/kube-proxy:v1" "${7:-registry.k8s.io}/pause:3.10.1" ;;
"join --config")
  cp "$3" /srv/join.yaml
  if [ -e /srv/hangs ]; then exec sleep 60; fi
  if [ -e /srv/says ]; then cat /srv/says; exit 1; fi
  mkdir -p /etc/kubernetes && echo kubelet >/etc/kubernetes/kubelet.conf ;;
esac
`
	containerd = note + "[ ! -e /srv/no-config ] || exit 3\ncase $1 in -c) cat \"$2\" ;; *) echo 'version = 3' ;; esac\n"
)

func archive(t *testing.T, files map[string]string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	for name, text := range files {
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o755, Size: int64(len(text))}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// newPlay makes a machine of Debian on AWS.
func newPlay(t *testing.T) *play {
	t.Helper()
	if os.Geteuid() != 0 || exec.Command("unshare", "-m", "true").Run() != nil {
		t.Skip("only root makes mount namespaces")
	}
	p := &play{t: t, dir: t.TempDir(), shell: "dash", system: "debian", small: map[string]string{}}
	for _, d := range []string{"etc/kubernetes", "opt", "var/lib", "run", "tmp", "local/bin", "bin"} {
		if err := os.MkdirAll(filepath.Join(p.dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range map[string]string{"curl": curl, "curl.real": curl, "tar": onward, "mv": onward, "install": onward, "rm": onward, "mkdir": onward, "chmod": onward,
		"systemctl": note + "case $1 in cat) [ -e /etc/systemd/system/$2 ] ;; esac\n", "modprobe": note, "sysctl": note, "swapoff": note,
		"apt-get": note, "dnf": note, "conntrack": note, "iptables": note} {
		p.put("bin/"+name, text)
	}
	p.mirror = httptest.NewServer(http.HandlerFunc(p.answer))
	t.Cleanup(p.mirror.Close)
	p.spec = userdata.Spec{Cloud: "aws", System: "debian", Arch: "amd64", KubernetesVersion: "v1.36.3", Reservation: userdata.DefaultReservation(),
		Join: userdata.Join{Endpoint: "k8s.example.net:6443", Token: "abcdef.0123456789abcdef", CACertHashes: []string{"sha256:" + strings.Repeat("0a", 32)}}}
	p.publish()
	return p
}

// publish fills the mirror with stand-ins, and pins their checksums.
func (p *play) publish() {
	p.serve = map[string][]byte{}
	p.spec.Downloads.Mirrors, p.spec.Downloads.SHA256 = []string{p.mirror.URL}, map[string]string{}
	list, err := userdata.DownloadsOf(p.spec)
	if err != nil {
		p.t.Fatal(err)
	}
	for _, d := range list {
		name, _, _ := strings.Cut(d.Name, "/")
		data := []byte(map[string]string{"kubeadm": kubeadm, "kubelet": note, "runc": note, "ecr-credential-provider": note}[name])
		switch name {
		case "containerd":
			data = archive(p.t, map[string]string{"bin/containerd": containerd, "bin/ctr": note})
		case "cni":
			data = archive(p.t, map[string]string{"./loopback": note, "./bridge": note})
		case "crictl":
			data = archive(p.t, map[string]string{"crictl": note})
		}
		sum := sha256.Sum256(data)
		p.serve["/"+d.Path], p.spec.Downloads.SHA256[name+"/amd64"] = data, hex.EncodeToString(sum[:])
	}
}

func (p *play) put(name, text string) {
	p.t.Helper()
	file := filepath.Join(p.dir, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o755); err != nil {
		p.t.Fatal(err)
	}
}

// answer is mirror and metadata service in one.
func (p *play) answer(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if rest, ok := strings.CutPrefix(r.URL.Path, "/latest/"); ok {
		p.metadata(w, rest)
		return
	}
	if r.URL.Path == "/openstack/latest/meta_data.json" {
		p.metadata(w, "openstack")
		return
	}
	p.asks = append(p.asks, r.URL.Path)
	if p.odd != nil && p.odd(w, r) {
		return
	}
	data, ok := p.serve[r.URL.Path]
	if !ok {
		http.NotFound(w, r)
		return
	}
	_, _ = w.Write(data)
}

func (p *play) metadata(w http.ResponseWriter, path string) {
	if p.imds != nil {
		if status, text, mine := p.imds(path); mine {
			w.WriteHeader(status)
			_, _ = w.Write([]byte(text))
			return
		}
	}
	text, ok := map[string]string{"api/token": "session", "meta-data/local-hostname": nodeName, "meta-data/instance-id": "i-0123456789abcdef0",
		"meta-data/instance-type": "m6i.large", "meta-data/placement/availability-zone": "eu-west-1a", "meta-data/placement/region": "eu-west-1",
		"openstack": `{"uuid": "8a1c9e2e-52bd-4a29-9e3c-0d0f7b8a1c9e", "name": "worker-1", "availability_zone": "nova", "meta": {"autoscaler-agent.region": "RegionOne"}}`}[path]
	if !ok {
		w.WriteHeader(http.StatusNotFound)
	}
	_, _ = w.Write([]byte(text))
}

// host makes the machine's directories in a namespace of its own and becomes the script.
const host = `set -eu
dir=$1 system=$2 shell=$3
shift 3
mount --make-rprivate /
mount --bind "$dir" /srv
for d in etc opt var run tmp; do mount --bind "/srv/$d" "/$d"; done
[ "$system" = flatcar ] || mount --bind /srv/local /usr/local
while [ $# -gt 0 ]; do mkdir -p "$1"; mount -t tmpfs -o "size=$2" tmpfs "$1"; shift 2; done
# What the user data installs is not there, whatever the machine of the tests has.
for f in containerd runc crictl kubeadm kubelet; do
  for d in /usr/bin /usr/sbin; do [ ! -e "$d/$f" ] || mount --bind /dev/null "$d/$f"; done
done
mount -o remount,bind,ro /
PATH=/srv/bin:/usr/bin:/bin
export PATH
exec setsid -w $shell /srv/worker.sh
`

// run renders the user data and plays its script. The script is the one that a unit would
// start, unpacked from the format.
func (p *play) run(more ...string) (output string, err error) {
	p.t.Helper()
	p.put("etc/os-release", "ID="+p.system+"\n")
	out, err := userdata.Render(p.spec)
	if err != nil {
		p.t.Fatal(err)
	}
	text := string(out)
	if worker, ok, err := userdata.Unpack(out); err != nil {
		p.t.Fatal(err)
	} else if ok {
		text = string(worker)
		if !p.has("etc/kubernetes/kubelet.conf") { // the outer script brings it until then
			p.put("var/lib/autoscaler-agent-join/token", p.spec.Join.Token)
		}
	} else if _, rest, ok := strings.Cut(text, "<<'END-OF-WORKER'\n"); ok {
		text, _, _ = strings.Cut(rest, "END-OF-WORKER\n")
	} else {
		p.t.Fatal("the format has no script")
	}
	p.put("worker.sh", text)
	if err := os.RemoveAll(filepath.Join(p.dir, "calls")); err != nil {
		p.t.Fatal(err)
	}
	args := []string{"-m", "sh", "-c", host, "host", p.dir, p.system, p.shell}
	for d, size := range p.small {
		args = append(args, d, size)
	}
	c := exec.CommandContext(p.t.Context(), "unshare", args...)
	c.Env = append([]string{"JOIN_PAUSE=0", "JOIN_TRIES=1", "JOIN_CONSOLE=/srv/console", "AWS_EC2_METADATA_SERVICE_ENDPOINT=" + p.mirror.URL, "OPENSTACK_METADATA_ENDPOINT=" + p.mirror.URL, "LC_ALL=C"}, append(p.env, more...)...)
	c.WaitDelay = 10 * time.Second
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	said, err := c.CombinedOutput()
	return string(said), err
}

// last is the last phase marker.
func last(output string) string {
	const begin = "autoscaler-agent: phase="
	i := strings.LastIndex(output, begin)
	if i < 0 {
		return ""
	}
	line, _, _ := strings.Cut(output[i+len(begin):], "\n")
	return line
}

// state lists what the machine holds: path, mode and digest.
func (p *play) state() string {
	p.t.Helper()
	var b strings.Builder
	for _, top := range []string{"etc", "opt", "var", "run", "local", "tmp"} {
		root := filepath.Join(p.dir, top)
		err := filepath.Walk(root, func(file string, info os.FileInfo, err error) error {
			if err != nil {
				return err
			}
			sum := ""
			if info.Mode().IsRegular() {
				data, err := os.ReadFile(file)
				if err != nil {
					return err
				}
				digest := sha256.Sum256(data)
				sum = hex.EncodeToString(digest[:4])
			}
			name, _ := filepath.Rel(p.dir, file)
			_, err = fmt.Fprintf(&b, "%s %s %s\n", name, info.Mode(), sum)
			return err
		})
		if err != nil {
			p.t.Fatal(err)
		}
	}
	return b.String()
}

func sum(data []byte) string {
	digest := sha256.Sum256(data)
	return hex.EncodeToString(digest[:])
}

// noise is text that no compression shrinks.
func noise(n int) string {
	var b strings.Builder
	digest := sha256.Sum256(nil)
	for b.Len() < n {
		digest = sha256.Sum256(digest[:])
		b.Write(digest[:])
	}
	return b.String()[:n]
}
