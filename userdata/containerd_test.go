package userdata

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// fakeContainerd prints what a file and those that it imports set, each setting in the one form of `containerd config
// dump`. A real one reads the same files in test/suite/worker (TestRegistryMirror).
const fakeContainerd = `containerd() {
  if [ "$1 $2" = "config default" ]; then echo "version = $NEWEST"; return; fi
  f=$2
  grep -q '^broken' "$f" && return 1
  if grep -q '^imports = .*conf.d' "$f" && [ -e DIR/conf.d/autoscaler-agent.toml ]; then set -- "$f" DIR/conf.d/autoscaler-agent.toml; else set -- "$f"; fi
  cat "$@" | sed -E "s/^.*\.(sandbox|sandbox_image|config_path) = /    \1 = /"
}
`

// TestConfigure: the script's own configuration, and what an image's own gets of what was asked for.
func TestConfigure(t *testing.T) {
	const own = "# Made by autoscaler-agent.\n" + `imports = ["DIR/conf.d/*.toml"]` + "\n"
	const old = "version = 2\n  sandbox_image = 'ecr.example.net/pause:1'\n    config_path = ''\n"
	const image = "version = 3\n[plugins.'io.containerd.cri.v1.images'.pinned_images]\n  sandbox = 'ecr.example.net/pause:1'\n"
	const dropIn = "version = 3\n" + `plugins."io.containerd.cri.v1.images".pinned_images.sandbox = "reg.example.net/k8s/pause:3.10.1"` + "\n"
	const mirrors = `plugins."io.containerd.cri.v1.images".registry.config_path = "/etc/containerd/certs.d"` + "\n"
	const repository = "reg.example.net/k8s"
	for name, c := range map[string]struct {
		newest                              int
		before, images, registries, kubeadm string
		want, file, log                     string // the configuration, the file that it imports
	}{
		"containerd 1.7": {newest: 2, want: own + "version = 2\n" + `plugins."io.containerd.grpc.v1.cri".sandbox_image = "registry.k8s.io/pause:3.10.1"
plugins."io.containerd.grpc.v1.cri".registry.config_path = "/etc/containerd/certs.d"
plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.runtime_type = "io.containerd.runc.v2"
plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options.SystemdCgroup = true
`},
		"containerd 2.2": {newest: 3, want: own + "version = 3\n" + `plugins."io.containerd.cri.v1.images".pinned_images.sandbox = "registry.k8s.io/pause:3.10.1"
` + mirrors + `plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.runtime_type = "io.containerd.runc.v2"
plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options.SystemdCgroup = true
`},
		"a repository":       {newest: 4, images: repository, want: `pinned_images.sandbox = "reg.example.net/k8s/pause:3.10.1"`},
		"CRI is off":         {newest: 3, before: "disabled_plugins = ['cri']\n", want: own},
		"kubeadm names none": {newest: 3, kubeadm: "exit 1", want: "SystemdCgroup = true", log: "warning reason=sandbox-image\n"},
		"an image's":         {newest: 3, before: image, want: image},
		"an image's, and a repository": {newest: 3, before: image, images: repository, want: `imports = ["DIR/conf.d/*.toml"]` + "\n" + image,
			file: dropIn},
		"an image's, and mirrors": {newest: 3, before: image, registries: "/etc/containerd/certs.d", want: `imports = ["DIR/conf.d/*.toml"]` + "\n" + image, file: "version = 3\n" + mirrors},
		"an image's that imports": {newest: 3, before: `imports = ["DIR/conf.d/*.toml"]` + "\n" + image, images: repository, registries: "/etc/containerd/certs.d",
			want: `imports = ["DIR/conf.d/*.toml"]` + "\n" + image, file: dropIn + mirrors},
		"an image's that imports none":        {newest: 3, before: "imports = []\n" + image, images: repository, want: `imports = ["DIR/conf.d/*.toml", ]` + "\n" + image, file: dropIn},
		"an image's that imports others":      {newest: 3, before: "imports = ['x.toml']\n" + image, images: repository, want: `imports = ["DIR/conf.d/*.toml", 'x.toml']` + "\n" + image, file: dropIn},
		"an image's that has them":            {newest: 3, before: image + "  config_path = '/etc/containerd/certs.d'\n", registries: "/etc/containerd/certs.d", want: image + "  config_path = '/etc/containerd/certs.d'\n"},
		"an image's of containerd 1":          {newest: 2, before: old, images: repository, want: strings.Replace(old, "'ecr.example.net/pause:1'", `"reg.example.net/k8s/pause:3.10.1"`, 1)},
		"an image's of containerd 1, mirrors": {newest: 2, before: old, registries: "/etc/containerd/certs.d", want: strings.Replace(old, "''", `"/etc/containerd/certs.d"`, 1)},
		"an image's without the line":         {newest: 2, before: "version = 2\n", images: repository, want: "version = 2\n", log: "warning reason=containerd-config\n"},
		"an image's that nobody reads":        {newest: 3, before: "broken\n", images: repository, want: "broken\n", log: "warning reason=containerd-config\n"},
		"an image's of the first version":     {newest: 2, before: "# sandbox_image = \"x\"\n", images: repository, want: "# sandbox_image = \"x\"\n", log: "warning reason=containerd-config\n"},
	} {
		for _, shell := range []string{"dash", "bash", "busybox sh"} {
			t.Run(name+" "+shell, func(t *testing.T) {
				words := strings.Fields(shell)
				if _, err := exec.LookPath(words[0]); err != nil {
					t.Skipf("%s is not here", words[0])
				}
				dir := t.TempDir()
				here := func(s string) string {
					return strings.NewReplacer("DIR/", dir+"/", "/etc/containerd/conf", dir+"/conf", "/etc/containerd/.conf", dir+"/.conf", "/usr/share/containerd/", dir+"/usr/").Replace(s)
				}
				conf := filepath.Join(dir, "config.toml")
				if err := os.Mkdir(filepath.Join(dir, "conf.d"), 0o755); err != nil {
					t.Fatal(err)
				}
				if c.before != "" {
					if err := os.WriteFile(conf, []byte(here(c.before)), 0o644); err != nil {
						t.Fatal(err)
					}
				}
				kubeadm := or(c.kubeadm, "shift 3\nr=registry.k8s.io\n[ $# -lt 4 ] || r=$4\nprintf '%s\\n' $r/kube-proxy:v1.36.3 $r/pause:3.10.1 $r/etcd:3")
				script := "set -eu\nexec 3>>'" + dir + "/log'\ntmp='" + dir + "'\nphase() { echo \"$*\" >&3; }\ndie() { exit 1; }\nsystemctl() { echo restart >>$tmp/restarts; }\n" +
					fmt.Sprintf("NEWEST=%d\n", c.newest) + fakeContainerd + "kubeadm() { ( " + kubeadm + "\n) }\n" +
					"VERSION=v1.36.3 IMAGES='" + c.images + "' REGISTRIES=" + c.registries + "\n" + containerdSteps
				call := "configure --kubernetes-version \"$VERSION\" ${IMAGES:+--image-repository \"$IMAGES\"}\n"
				if !strings.Contains(programSteps, "\n"+call) {
					t.Fatal("the script does not call it so")
				}
				cmd := exec.Command(words[0], append(words[1:], "-c", here(script)+call+call)...)
				if out, err := cmd.CombinedOutput(); err != nil {
					t.Fatalf("%v\n%s", err, out)
				}
				read := func(name string) string { text, _ := os.ReadFile(filepath.Join(dir, name)); return string(text) }
				if got := read("config.toml"); !strings.Contains(got, here(c.want)) || c.before != "" && c.want != own && got != here(c.want) {
					t.Errorf("%s\nis not %s", got, here(c.want))
				}
				if got := read("conf.d/autoscaler-agent.toml"); got != c.file {
					t.Errorf("the file is %q, want %q", got, c.file)
				}
				if got := read("log"); got != c.log+c.log { // it runs twice, as for a leader
					t.Errorf("said %q, want twice %q", got, c.log)
				}
				if n := strings.Count(read("restarts"), "restart"); n > 1 {
					t.Errorf("%d restarts", n)
				}
			})
		}
	}
}
