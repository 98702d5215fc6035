package worker

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

//go:embed init.sh
var initScript []byte

// Container is one machine: an overlay over the tree with systemd as its first process. A
// reboot keeps the files.
type Container struct {
	Dir, Name string
	root      string // the overlay
	nspawn    *exec.Cmd
	gone      bool
	ended     chan struct{}
	leader    int // the container's systemd, seen from the host
	// Disks are block devices of the host that the machine has. They stand for the place of what
	// containerd and kubelet keep: nothing else is mounted there.
	Disks []string
	// ReadOnlyUsr is an image whose /usr nothing can write to.
	ReadOnlyUsr bool
}

// NewContainer mounts the overlay. Size is that of the file system that holds everything
// that the machine writes, "" for 6 GiB. Remove takes it away.
func NewContainer(parts Parts, dir, name, size string) (*Container, error) {
	if size == "" {
		size = "6G"
	}
	c := &Container{Dir: dir, Name: name, root: filepath.Join(dir, "root")}
	upper := filepath.Join(dir, "upper")
	for _, d := range []string{upper, c.root} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			return nil, err
		}
	}
	if err := syscall.Mount("worker", upper, "tmpfs", 0, "mode=755,size="+size); err != nil {
		return nil, fmt.Errorf("mount the machine's disk: %w", err)
	}
	// An overlay cannot lie on an overlay: what containerd and kubelet keep is beside it.
	for _, d := range []string{"u", "w", "containerd", "kubelet"} {
		if err := os.Mkdir(filepath.Join(upper, d), 0o755); err != nil {
			return nil, err
		}
	}
	options := "lowerdir=" + parts.Tree + ",upperdir=" + upper + "/u,workdir=" + upper + "/w"
	if err := syscall.Mount("worker", c.root, "overlay", 0, options); err != nil {
		return nil, fmt.Errorf("mount the machine's files: %w", err)
	}
	return c, errors.Join(c.Write("/usr/local/sbin/worker-init", initScript, 0o755), c.quietCloudInit())
}

// quietCloudInit lets cloud-init's stages end on a kernel with cgroup v1. There systemd is not
// told inside a container when a unit's last process ends: a stage that failed while its "tee"
// still ran was waited for without a limit (TimeoutSec=0), and the boot stood at basic.target.
// So no stage fails for want of a locale or a host key, none starts a tee, and the wait has a limit.
func (c *Container) quietCloudInit() error {
	errs := []error{c.Write("/etc/cloud/cloud.cfg.d/91-stages.cfg",
		[]byte("locale: false\nssh_genkeytypes: []\noutput: {all: '>> /var/log/cloud-init-output.log'}\n"), 0o644)}
	for _, stage := range []string{"cloud-init-local", "cloud-init", "cloud-config", "cloud-final"} {
		errs = append(errs, c.Write("/etc/systemd/system/"+stage+".service.d/limit.conf", []byte("[Service]\nTimeoutStopSec=10s\n"), 0o644))
	}
	return errors.Join(errs...)
}

// Write puts a file on the machine's disk.
func (c *Container) Write(file string, text []byte, mode os.FileMode) error {
	file = filepath.Join(c.root, file)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(file, text, mode); err != nil {
		return err
	}
	return os.Chmod(file, mode)
}

// Read reads a file of the machine's disk.
func (c *Container) Read(file string) ([]byte, error) {
	return os.ReadFile(filepath.Join(c.root, file))
}

// Boot starts systemd. The console is the file Console.
func (c *Container) Boot(ctx context.Context) error {
	console, err := os.OpenFile(c.Console(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer console.Close()
	c.nspawn = exec.CommandContext(context.WithoutCancel(ctx), "sh", "-ec", ownCgroup+`exec systemd-nspawn --quiet -D "$1" --machine="$2" --register=no --keep-unit \
  --console=read-only --link-journal=no --resolv-conf=off --capability=all "--system-call-filter=@keyring bpf" --bind=/dev/kmsg \
  $3 /usr/local/sbin/worker-init`, "worker", c.root, c.Name, c.binds())
	c.nspawn.Env = append(os.Environ(), "SYSTEMD_NSPAWN_UNIFIED_HIERARCHY=0")
	c.nspawn.Stdout, c.nspawn.Stderr = console, console
	c.nspawn.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM, Setpgid: true}
	if err := c.nspawn.Start(); err != nil {
		return fmt.Errorf("start systemd-nspawn: %w", err)
	}
	c.ended = make(chan struct{})
	go func() {
		_ = c.nspawn.Wait() // its console tells why it ended
		close(c.ended)
	}()
	for {
		if c.leader = c.findLeader(); c.leader != 0 {
			return nil
		}
		select {
		case <-c.ended:
			return fmt.Errorf("systemd-nspawn ended: %s", c.ConsoleText())
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// binds are nspawn's flags for what the machine has of the host, without blanks in a path.
func (c *Container) binds() string {
	flags := ""
	if c.ReadOnlyUsr {
		flags = "--bind-ro=" + c.root + "/usr:/usr "
	}
	if len(c.Disks) > 0 {
		return flags + "--bind=" + strings.Join(c.Disks, " --bind=")
	}
	upper := filepath.Join(c.Dir, "upper")
	return flags + "--bind=" + upper + "/containerd:/var/lib/containerd --bind=" + upper + "/kubelet:/var/lib/kubelet"
}

// ownCgroup puts the container below a cgroup of its own in every hierarchy.
const ownCgroup = `for h in /sys/fs/cgroup/*/; do
  d=$h/worker-$2
  mkdir -p "$d" 2>/dev/null || continue
  if [ -e "$d/cpuset.cpus" ]; then cat "$h/cpuset.cpus" >"$d/cpuset.cpus"; cat "$h/cpuset.mems" >"$d/cpuset.mems"; echo 1 >"$d/cgroup.clone_children"; fi
  echo $$ >"$d/cgroup.procs" || :
done
`

// findLeader is the child of nspawn that is process 1 of its own namespace and answers.
func (c *Container) findLeader() int {
	pid := strconv.Itoa(c.nspawn.Process.Pid)
	children, err := os.ReadFile("/proc/" + pid + "/task/" + pid + "/children")
	if err != nil {
		return 0
	}
	for _, child := range strings.Fields(string(children)) {
		status, err := os.ReadFile("/proc/" + child + "/status")
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(status)) {
			f := strings.Fields(line)
			if f[0] == "NSpid:" && len(f) > 2 && f[len(f)-1] == "1" {
				if _, err := os.Stat("/proc/" + child + "/root/run/systemd/private"); err == nil {
					n, _ := strconv.Atoi(child)
					return n
				}
			}
		}
	}
	return 0
}

// Console is the file that the machine's console goes to, over all of its boots.
func (c *Container) Console() string { return filepath.Join(c.Dir, "console.log") }

// ConsoleText is what the console has shown.
func (c *Container) ConsoleText() string {
	text, err := os.ReadFile(c.Console())
	if err != nil {
		return err.Error()
	}
	return strings.ReplaceAll(string(text), "\r", "")
}

// Run executes a command inside the machine.
func (c *Container) Run(ctx context.Context, args ...string) (string, error) {
	enter := append([]string{"-t", strconv.Itoa(c.leader), "-m", "-u", "-i", "-n", "-p", "-C", "--", "/usr/bin/env", "-i",
		"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C", "SYSTEMD_COLORS=0", "SYSTEMD_PAGER="}, args...)
	out, err := exec.CommandContext(ctx, "nsenter", enter...).CombinedOutput()
	return string(out), err
}

// Journal is what a test that failed shows: the last lines of the units by which the machine joins and
// acts, but for those by which a kubelet answers a test that waits for its certificate, and containerd's warnings and errors, which it writes at the priority of information.
func (c *Container) Journal(ctx context.Context) string {
	out, err := c.Run(ctx, "sh", "-c", `journalctl --no-pager -u autoscaler-agent -u autoscaler-agent-join -u kubelet -u cloud-final | grep -v 'TLS handshake error' | tail -n 60
journalctl --no-pager -u containerd | grep -E 'level=(warning|error|fatal)' | tail -n 15`)
	if err != nil {
		out += err.Error()
	}
	return out
}

// Halt powers the machine off and waits; its files stay.
func (c *Container) Halt() error {
	if c.nspawn == nil {
		return nil
	}
	select {
	case <-c.ended:
		return nil
	default:
	}
	if c.leader != 0 {
		_ = syscall.Kill(c.leader, syscall.Signal(34+4)) // SIGRTMIN+4: power off
	}
	select {
	case <-c.ended:
		return nil
	case <-time.After(20 * time.Second):
	}
	_ = syscall.Kill(-c.nspawn.Process.Pid, syscall.SIGKILL)
	<-c.ended
	return errors.New("the machine did not power off within 20 s and was killed")
}

// Remove takes the machine away.
func (c *Container) Remove() error {
	if c.gone {
		return nil
	}
	c.gone = true
	err := c.Halt()
	groups, _ := filepath.Glob("/sys/fs/cgroup/*/worker-" + c.Name)
	for _, g := range groups {
		_ = exec.Command("find", g, "-depth", "-type", "d", "-exec", "rmdir", "{}", "+").Run() // empty by now; a busy one goes with the host
	}
	return errors.Join(err, syscall.Unmount(c.root, syscall.MNT_DETACH), syscall.Unmount(filepath.Join(c.Dir, "upper"), syscall.MNT_DETACH))
}
