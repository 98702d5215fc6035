package worker

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/autoscaler-agent/autoscaler-agent/userdata"
)

// apply has Ignition's own program write a configuration below a directory.
func apply(t *testing.T, config []byte, root string) {
	t.Helper()
	program, err := PrepareIgnition(t.Context(), os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), program, "--offline", "--root", root, "-")
	cmd.Stdin = bytes.NewReader(config)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// TestIgnitionApplies: the files that Ignition's own program writes, their modes and the unit that it
// enables, on each cloud. Nothing lies below /usr, and the script is whole.
func TestIgnitionApplies(t *testing.T) {
	if os.Getenv(gate) != "inside" {
		t.Skip("builds Ignition's program with cgo once: make e2e-worker")
	}
	parts, err := Prepare(t.Context(), t.Output())
	if err != nil {
		t.Fatal(err)
	}
	ca, err := os.ReadFile("../../../userdata/testdata/ca.crt")
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*userdata.Spec){
		"aws": func(*userdata.Spec) {}, "openstack": func(s *userdata.Spec) { s.Cloud = "openstack" },
		"attested": func(s *userdata.Spec) {
			s.Join.Token, s.Join.Attest, s.Join.CACert = "", "leader.example.net:6444", ca
			s.Join.CACertHashes = []string{"sha256:0d5ab4e5308b73414847abcbcf7ea8ed2f42170faab0634ed9f41288b75fd2e4"}
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := (&rig{parts: parts}).spec()
			s.System = "flatcar"
			change(&s)
			config, err := userdata.Render(s)
			if err != nil {
				t.Fatal(err)
			}
			root := t.TempDir()
			apply(t, config, root)
			const dir = "/var/lib/autoscaler-agent-join/"
			want := map[string]fs.FileMode{
				dir + "token": 0o600, dir + "worker.sh": 0o700,
				"/etc/systemd/system/autoscaler-agent-join.service": 0o644, "/etc/systemd/system-preset/20-ignition.preset": 0o644,
			}
			if name == "attested" {
				delete(want, dir+"token")
			}
			got := map[string]fs.FileMode{}
			err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
				if err != nil || d.IsDir() {
					return err
				}
				info, err := d.Info()
				got[strings.TrimPrefix(path, root)] = info.Mode().Perm()
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			for path, mode := range want {
				if got[path] != mode {
					t.Errorf("%s has mode %v, want %v", path, got[path], mode)
				}
				delete(got, path)
			}
			if len(got) > 0 {
				t.Errorf("more files than these: %v", got)
			}
			if out, err := exec.Command("sh", "-n", root+dir+"worker.sh").CombinedOutput(); err != nil {
				t.Errorf("the script: %v\n%s", err, out)
			}
			preset, err := os.ReadFile(root + "/etc/systemd/system-preset/20-ignition.preset")
			if err != nil || strings.TrimSpace(string(preset)) != "enable autoscaler-agent-join.service" {
				t.Errorf("%v, %q", err, preset)
			}
		})
	}
}

// flatcarUnit is containerd's unit of Flatcar's image in what counts here: the configuration is in /usr
// and another one goes by a variable.
const flatcarUnit = `[Unit]
Description=containerd container runtime
After=network.target
[Service]
Delegate=yes
Environment=CONTAINERD_CONFIG=/usr/share/containerd/config.toml
ExecStart=/usr/bin/containerd --config ${CONTAINERD_CONFIG}
KillMode=process
Restart=always
Type=notify
[Install]
WantedBy=multi-user.target
`

// flatcar makes a machine's files those of Flatcar: its name, containerd with its configuration in a
// read-only /usr, no package manager, no cloud-init; Ignition's program has written the user data.
func flatcar(t *testing.T, parts Parts, config []byte) func(*Container) {
	return func(c *Container) {
		toml := host(t, filepath.Join(parts.Bin, "containerd"), "config", "default")
		for from, to := range map[string]string{"SystemdCgroup = false": "SystemdCgroup = true", "restrict_oom_score_adj = false": "restrict_oom_score_adj = true"} {
			if !strings.Contains(toml, from) {
				t.Fatalf("containerd's configuration has no line %s", from)
			}
			toml = strings.ReplaceAll(toml, from, to) // the host of the test lacks CAP_SYS_RESOURCE
		}
		errs := []error{
			c.Write("/usr/lib/os-release", []byte("NAME=\"Flatcar Container Linux by Kinvolk\"\nID=flatcar\nID_LIKE=coreos\nVERSION_ID=4230.2.0\n"), 0o644),
			c.Write("/usr/share/containerd/config.toml", []byte(toml), 0o644), c.Write("/usr/lib/systemd/system/containerd.service", []byte(flatcarUnit), 0o644),
			c.Write("/etc/cloud/cloud-init.disabled", nil, 0o644),
		}
		for _, program := range []string{"containerd", "containerd-shim-runc-v2", "ctr", "runc"} {
			data, err := parts.plain(program)()
			errs = append(errs, err, c.Write("/usr/bin/"+program, data, 0o755))
		}
		for _, file := range []string{"/usr/bin/apt-get", "/usr/bin/apt", "/usr/bin/dpkg"} {
			errs = append(errs, os.Remove(filepath.Join(c.root, file)))
		}
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
		apply(t, config, c.root)
		host(t, "chroot", c.root, "systemctl", "preset", "autoscaler-agent-join.service") // as at Flatcar's first boot
		c.ReadOnlyUsr = true
	}
}

// TestFlatcar: the Ignition configuration joins a machine with Flatcar's layout. The image's containerd
// runs with the image's configuration, and nothing is written to /usr.
func TestFlatcar(t *testing.T) {
	r := newRig(t)
	config := r.renderPlain(t, "--os", "flatcar")
	r.furnish = flatcar(t, r.parts, config)
	c, i := r.machine(t, config, "")
	console(t, c, "joined")
	node := r.node(t, i)
	checkNode(t, node, i)
	r.checkServing(t, i)
	checkSecrets(t, c, r)
	if out := run(t, c, "sh", "-c", "command -v containerd; ls /opt/bin; readlink -f /proc/$(pidof kubelet)/exe; touch /usr/x 2>&1 || :"); !strings.Contains(out, "/usr/bin/containerd") ||
		!strings.Contains(out, "kubeadm") || !strings.Contains(out, "/opt/bin/kubelet") || !strings.Contains(out, "Read-only file system") {
		t.Errorf("not Flatcar's layout: %s", out)
	}
	if out := run(t, c, "sh", "-c", "ls /etc/containerd/config.toml 2>/dev/null || :"); out != "" {
		t.Errorf("a configuration of containerd was written beside the image's: %s", out)
	}
	r.reboot(t, c, i, node.UID)
}

// TestFlatcarImageRepository: with --image-repository containerd runs with the image's configuration and
// the repository's sandbox image.
func TestFlatcarImageRepository(t *testing.T) {
	r := newRig(t)
	config := r.renderPlain(t, "--os", "flatcar", "--image-repository", "registry.example.net/k8s")
	r.furnish = flatcar(t, r.parts, config)
	c, i := r.machine(t, config, "")
	console(t, c, "joined")
	r.node(t, i)
	if out := run(t, c, "containerd", "config", "dump"); !strings.Contains(out, "sandbox = 'registry.example.net/k8s/pause:") || !strings.Contains(out, "restrict_oom_score_adj = true") {
		t.Errorf("containerd's configuration is %s", out)
	}
	if out := run(t, c, "sh", "-c", "tr '\\0' ' ' </proc/$(pidof containerd)/cmdline"); !strings.Contains(out, "--config /etc/containerd/config.toml") {
		t.Errorf("containerd runs as %s", out)
	}
}
