package systemd

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/test/await"
)

//go:embed boot.sh
var bootScript string

// container is systemd as PID 1 over this machine's own root, with a tmpfs for what it
// writes. The network is the host's: a control plane on loopback is reachable.
type container struct {
	t      *testing.T
	name   string
	root   string // where the overlay is mounted
	leader string // pid of its systemd
	nspawn *exec.Cmd
	ended  chan struct{}
}

func newContainer(t *testing.T) *container {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Fatal("a container needs root")
	}
	if _, err := exec.LookPath("systemd-nspawn"); err != nil {
		t.Fatal("systemd-nspawn is not here: apt-get install systemd-container")
	}
	dir, err := os.MkdirTemp("", "agent-systemd")
	if err != nil {
		t.Fatal(err)
	}
	c := &container{t: t, name: "agent-systemd-" + strconv.Itoa(os.Getpid()), root: filepath.Join(dir, "root")}
	t.Cleanup(func() { c.remove(dir) })
	c.host("mount -t tmpfs -o size=3G agent-systemd " + dir)
	c.host(fmt.Sprintf("mkdir -p %[1]s/root %[1]s/upper %[1]s/work && mount -t overlay agent-systemd -o lowerdir=/,upperdir=%[1]s/upper,workdir=%[1]s/work %[1]s/root", dir))
	// Only the units of the test run, on a machine that never had the agent.
	c.host(fmt.Sprintf(`cd %s && rm -rf etc/systemd/system/*.wants etc/autoscaler-agent var/lib/autoscaler-agent etc/kubernetes &&
		: >etc/machine-id && mkdir -p var/log/journal && rm -f usr/sbin/policy-rc.d`, c.root))
	c.boot()
	return c
}

// host runs a line of shell outside of the container.
func (c *container) host(line string) {
	c.t.Helper()
	if out, err := exec.Command("/bin/sh", "-ec", line).CombinedOutput(); err != nil {
		c.t.Fatalf("%s: %v\n%s", line, err, out)
	}
}

// boot starts systemd and waits until it is up.
func (c *container) boot() {
	c.t.Helper()
	var console bytes.Buffer
	c.nspawn, c.ended = exec.Command("/bin/sh", "-c", bootScript, "boot.sh", c.root, c.name), make(chan struct{})
	c.nspawn.Stdout, c.nspawn.Stderr = &console, &console
	if err := c.nspawn.Start(); err != nil {
		c.t.Fatal(err)
	}
	ended := c.ended
	go func() {
		_ = c.nspawn.Wait() // how a container ends is told by its journal
		close(ended)
	}()
	deadline := time.Now().Add(await.Limit)
	for c.leader = ""; ; time.Sleep(50 * time.Millisecond) {
		select {
		case <-ended:
			c.t.Fatalf("the container ended:\n%s", console.String())
		default:
		}
		if c.leader = c.pid1(); c.leader != "" {
			out, _ := c.try("systemctl is-system-running --wait")
			c.t.Logf("the container is up: %s", strings.TrimSpace(out))
			return
		}
		if time.Now().After(deadline) {
			c.t.Fatal("the container did not boot in time")
		}
	}
}

// pid1 is the child of nspawn that is PID 1 of its own namespace and answers systemctl.
func (c *container) pid1() string {
	children, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", c.nspawn.Process.Pid))
	for pid := range strings.FieldsSeq(string(children)) {
		if _, err := os.Stat("/proc/" + pid + "/root/run/systemd/private"); err == nil {
			return pid
		}
	}
	return ""
}

// shutdown powers the container off and waits.
func (c *container) shutdown() {
	pid, err := strconv.Atoi(c.leader)
	if err != nil {
		return
	}
	const poweroff = syscall.Signal(34 + 4) // SIGRTMIN+4 (systemd(1))
	_ = syscall.Kill(pid, poweroff)
	select {
	case <-c.ended:
	case <-time.After(time.Minute):
		_ = c.nspawn.Process.Kill()
		<-c.ended
	}
	c.leader = ""
}

func (c *container) remove(dir string) {
	c.shutdown()
	for _, at := range []string{c.root, dir} {
		if out, err := exec.Command("umount", at).CombinedOutput(); err != nil {
			c.t.Logf("umount %s: %v %s", at, err, out)
			return // a directory that is still mounted is not removed
		}
	}
	_ = os.RemoveAll(dir)
	for _, h := range []string{"unified", "systemd", ""} {
		_ = exec.Command("find", filepath.Join("/sys/fs/cgroup", h, c.name), "-depth", "-type", "d", "-exec", "rmdir", "{}", ";").Run()
	}
}

// try runs a line of shell in the container as a unit of its own, and returns its output.
func (c *container) try(line string) (string, error) {
	ctx, cancel := context.WithTimeout(c.t.Context(), 3*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "nsenter", "-t", c.leader, "-m", "-u", "-i", "-n", "-p", "-C", "--", "env", "-i",
		"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C", "SYSTEMD_COLORS=0", "SYSTEMD_PAGER=", "HOME=/root", "/bin/sh", "-c", line)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// run is try for what must not fail.
func (c *container) run(line string) string {
	c.t.Helper()
	out, err := c.try(line)
	if err != nil {
		journal, _ := c.try("journalctl -u autoscaler-agent --no-pager -o cat | tail -30")
		c.t.Fatalf("%s: %v\n%s\njournal:\n%s", line, err, out, journal)
	}
	return out
}

// until waits for a line of shell to succeed.
func (c *container) until(what, line string) {
	c.t.Helper()
	for deadline := time.Now().Add(await.Limit); ; time.Sleep(300 * time.Millisecond) {
		out, err := c.try(line)
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			journal, _ := c.try("journalctl -u autoscaler-agent --no-pager -o cat | tail -30")
			c.t.Fatalf("%s did not come: %s: %v\n%s\njournal:\n%s", what, line, err, out, journal)
		}
	}
}

// put copies a file into the container.
func (c *container) put(from, to string) {
	c.t.Helper()
	c.host(fmt.Sprintf("mkdir -p $(dirname /proc/%[1]s/root%[2]s) && cp %[3]s /proc/%[1]s/root%[2]s", c.leader, to, from))
}
