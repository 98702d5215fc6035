package worker

import (
	_ "embed"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/autoscaler-agent/autoscaler-agent/test/await"
)

//go:embed devices.sh
var devicesScript []byte

// disk is a blank disk of 2 GiB: a loop device of this host.
func disk(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "disk")
	if err := errors.Join(os.WriteFile(file, nil, 0o600), os.Truncate(file, 2<<30)); err != nil {
		t.Fatal(err)
	}
	return attach(t, file)
}

func attach(t *testing.T, file string) string {
	t.Helper()
	device := strings.TrimSpace(host(t, "losetup", "--find", "--show", file))
	t.Cleanup(func() { host(t, "losetup", "--detach", device) })
	return device
}

func host(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.Command(args[0], args[1:]...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// withDisks gives machines the disks as AWS names instance-store volumes, and the host's mkfs.xfs,
// which the image brings or its package manager.
func withDisks(t *testing.T, disks ...string) func(*Container) {
	return func(c *Container) {
		c.Disks = disks
		errs := []error{c.Write("/usr/local/sbin/worker-devices", devicesScript, 0o755), c.Write("/usr/bin/udevadm", devicesScript, 0o755)}
		tool := host(t, "sh", "-c", "command -v mkfs.xfs")
		files := append(strings.Fields(host(t, "ldd", strings.TrimSpace(tool))), strings.TrimSpace(tool))
		for _, f := range files {
			if !filepath.IsAbs(f) {
				continue
			}
			if _, err := c.Read(f); err == nil {
				continue
			}
			text, err := os.ReadFile(f)
			errs = append(errs, err, c.Write(f, text, 0o755))
		}
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
	}
}

// TestInstanceStore: what the kubelet, containerd and pods' logs keep is on the machine's own disk.
// A reboot mounts it again, and a machine that finds a disk of its kind takes it as it is.
func TestInstanceStore(t *testing.T) {
	r := newRig(t)
	device := disk(t)
	r.furnish = withDisks(t, device)
	c, i := r.machine(t, r.render(t, "--instance-store", "raid0"), "")
	console(t, c, "joined")
	uid := r.node(t, i).UID
	uuid := checkStore(t, c, device)
	run(t, c, "sh", "-c", "echo mine >/mnt/k8s-local/kubelet/marker && sync")
	r.reboot(t, c, i, uid)
	if again := checkStore(t, c, device); again != uuid {
		t.Errorf("the reboot made the file system %s anew, was %s", again, uuid)
	}
	if out := run(t, c, "cat", "/var/lib/kubelet/marker"); out != "mine" {
		t.Errorf("the reboot lost a file: %q", out)
	}
	run(t, c, "rm", "-rf", "/mnt/k8s-local/kubelet/pki") // the next machine has another name
	if err := c.Remove(); err != nil {
		t.Fatal(err)
	}
	c, i = r.machine(t, r.render(t, "--instance-store", "raid0"), "")
	console(t, c, "joined")
	r.node(t, i)
	if again := checkStore(t, c, device); again != uuid {
		t.Errorf("a second run made the file system %s anew, was %s", again, uuid)
	}
	if out := run(t, c, "cat", "/var/lib/kubelet/marker"); out != "mine" {
		t.Errorf("a second run lost a file: %q", out)
	}
}

// checkStore: the three directories are on an XFS of the device, and are used.
func checkStore(t *testing.T, c *Container, device string) (uuid string) {
	t.Helper()
	for dir, used := range map[string]string{"/var/lib/kubelet": "config.yaml", "/var/lib/containerd": "io.containerd.metadata.v1.bolt/meta.db", "/var/log/pods": ""} {
		await.Empty(t, func() string {
			out, err := c.Run(t.Context(), "findmnt", "-nro", "SOURCE,FSTYPE", dir)
			if want := device + "[/" + filepath.Base(dir) + "] xfs"; err != nil || strings.TrimSpace(out) != want {
				return dir + " is on " + out + ", want " + want
			}
			return ""
		})
		run(t, c, "test", "-e", filepath.Join("/mnt/k8s-local", filepath.Base(dir), used))
	}
	for _, unit := range []string{"containerd", "kubelet"} {
		if out := run(t, c, "systemctl", "show", "-p", "RequiresMountsFor", unit); !strings.Contains(out, "/var/lib/containerd") {
			t.Errorf("%s starts without its disk: %s", unit, out)
		}
	}
	return run(t, c, "blkid", "-s", "UUID", "-o", "value", device)
}

func run(t *testing.T, c *Container, args ...string) string {
	t.Helper()
	out, err := c.Run(t.Context(), args...)
	if err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(out)
}

// TestUsedDisks: a disk that anybody may use is never formatted, whatever shows the use, and the
// blank one beside it is not either.
func TestUsedDisks(t *testing.T) {
	r := newRig(t)
	table := make([]byte, 512)
	copy(table[446:], []byte{0, 1, 1, 0, 0x83, 254, 255, 255, 0, 8, 0, 0, 0, 8, 0, 0}) // one partition of Linux
	table[510], table[511] = 0x55, 0xaa
	for name, use := range map[string]func(t *testing.T, device string){
		"ext4":      func(t *testing.T, device string) { host(t, "mkfs.ext4", "-q", device) },
		"xfs":       func(t *testing.T, device string) { host(t, "mkfs.xfs", "-q", "-L", "theirs", device) },
		"swap":      func(t *testing.T, device string) { host(t, "mkswap", device) },
		"partition": func(t *testing.T, device string) { write(t, device, table, 0) },
	} {
		t.Run(name, func(t *testing.T) {
			device := disk(t)
			use(t, device)
			before := host(t, "sha256sum", device)
			r.furnish = withDisks(t, disk(t), device)
			c, _ := r.machine(t, r.render(t, "--instance-store", "raid0"), "")
			console(t, c, "failed reason=disk-not-blank disk="+device)
			if err := c.Remove(); err != nil {
				t.Fatal(err)
			}
			if after := host(t, "sha256sum", device); after != before {
				t.Error("the disk was written to")
			}
		})
	}
}

func write(t *testing.T, device string, data []byte, at int64) {
	t.Helper()
	f, err := os.OpenFile(device, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.WriteAt(data, at)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		t.Fatal(err)
	}
}

// TestRAID: two disks become one, where the kernel has MD.
func TestRAID(t *testing.T) {
	if _, err := os.Stat("/proc/mdstat"); err != nil {
		t.Skip("this kernel has no MD driver: several disks cannot be joined here")
	}
	r := newRig(t)
	r.furnish = withDisks(t, disk(t), disk(t))
	c, _ := r.machine(t, r.render(t, "--instance-store", "raid0"), "")
	console(t, c, "joined")
	checkStore(t, c, run(t, c, "sh", "-c", "readlink -f /dev/md/k8s-local"))
}
