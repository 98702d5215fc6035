package userdata

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// What `containerd config default` prints of the sandbox image, by major version.
const (
	containerd1 = "version = 2\n[plugins.\"io.containerd.grpc.v1.cri\"]\n    sandbox_image = \"registry.k8s.io/pause:3.8\"\n      config_path = \"\"\n            SystemdCgroup = false\n"
	containerd2 = "version = 3\n  [plugins.'io.containerd.cri.v1.images']\n    [plugins.'io.containerd.cri.v1.images'.pinned_images]\n      sandbox = 'registry.k8s.io/pause:3.10'\n          sandboxer = 'podsandbox'\n            SystemdCgroup = false\n"
)

// TestSandboxImage: the image that kubeadm names takes the place of containerd's own where the
// configuration is the script's or a repository was named, and only there.
func TestSandboxImage(t *testing.T) {
	foreign := "version = 2\nsandbox_image = \"ecr.example.net/pause:1\"\n"
	for name, c := range map[string]struct {
		defaults, before, images, kubeadm string
		want, log                         string
	}{
		"containerd 1.7":             {defaults: containerd1, want: "    sandbox_image = \"registry.k8s.io/pause:3.10.1\"\n", log: "--kubernetes-version v1.36.3\n"},
		"containerd 2":               {defaults: containerd2, want: "      sandbox = \"registry.k8s.io/pause:3.10.1\"\n          sandboxer = 'podsandbox'\n", log: "--kubernetes-version v1.36.3\n"},
		"a repository":               {defaults: containerd2, images: "reg.example.net/k8s", want: "      sandbox = \"reg.example.net/k8s/pause:3.10.1\"\n", log: "--kubernetes-version v1.36.3 --image-repository reg.example.net/k8s\n"},
		"an operator's file":         {before: foreign, want: "ecr.example.net/pause:1"},
		"an operator's, and a flag":  {before: foreign, images: "reg.example.net/k8s", want: "sandbox_image = \"reg.example.net/k8s/pause:3.10.1\"\n", log: "--kubernetes-version v1.36.3 --image-repository reg.example.net/k8s\n"},
		"kubeadm names none":         {defaults: containerd2, kubeadm: "exit 1", want: "sandbox = 'registry.k8s.io/pause:3.10'\n", log: "phase warning reason=sandbox-image\n"},
		"no file, as Flatcar's":      {},
		"no file, but a repository":  {images: "reg.example.net/k8s"},
		"an image without the line":  {before: "version = 2\n", images: "reg.example.net/k8s", want: "version = 2\n", log: "--kubernetes-version v1.36.3 --image-repository reg.example.net/k8s\n"},
		"a comment of the same form": {before: "# sandbox_image = \"x\"\n", images: "reg.example.net/k8s", want: "# sandbox_image = \"x\"\n", log: "--kubernetes-version v1.36.3 --image-repository reg.example.net/k8s\n"},
	} {
		for _, shell := range []string{"dash", "bash", "busybox sh"} {
			t.Run(name+" "+shell, func(t *testing.T) {
				words := strings.Fields(shell)
				if _, err := exec.LookPath(words[0]); err != nil {
					t.Skipf("%s is not here", words[0])
				}
				dir := t.TempDir()
				conf := filepath.Join(t.TempDir(), "config.toml")
				if c.before != "" {
					if err := os.WriteFile(conf, []byte(c.before), 0o644); err != nil {
						t.Fatal(err)
					}
				}
				kubeadm := or(c.kubeadm, "shift 3; echo \"$@\" >&3\nr=registry.k8s.io\n[ $# -lt 4 ] || r=$4\nprintf '%s\\n' $r/kube-proxy:v1.36.3 $r/pause:3.10.1 $r/etcd:3")
				script := "set -eu\nexec 3>>'" + dir + "/log'\ntmp='" + dir + "'\nphase() { echo \"phase $*\" >&3; }\nsystemctl() { :; }\n" +
					"containerd() { cat <<'END'\n" + c.defaults + "END\n}\nkubeadm() { ( " + kubeadm + "\n) }\n" +
					"VERSION=v1.36.3 IMAGES='" + c.images + "'\n" + strings.ReplaceAll(containerdSteps, "/etc/containerd/config.toml", conf)
				if c.defaults != "" {
					script += "own_config\n"
				}
				call := "sandbox --kubernetes-version \"$VERSION\" ${IMAGES:+--image-repository \"$IMAGES\"}\n"
				if !strings.Contains(programSteps, "\n"+call) {
					t.Fatal("the script does not call it so")
				}
				cmd := exec.Command(words[0], append(words[1:], "-c", script+call+call)...)
				if out, err := cmd.CombinedOutput(); err != nil {
					t.Fatalf("%v\n%s", err, out)
				}
				got, _ := os.ReadFile(conf)
				log, _ := os.ReadFile(filepath.Join(dir, "log"))
				if !strings.Contains(string(got), c.want) || c.want == "" && len(got) > 0 {
					t.Errorf("%s\nlacks %q", got, c.want)
				}
				if c.defaults != "" && (!strings.HasPrefix(string(got), "# Made by autoscaler-agent.\nversion") || !strings.Contains(string(got), "SystemdCgroup = true")) {
					t.Errorf("the configuration is\n%s", got)
				}
				want := c.log + c.log
				if string(log) != want {
					t.Errorf("called %q, want twice %q", log, c.log)
				}
			})
		}
	}
}
