package worker

import (
	"context"
	"os"
	"os/exec"
	"runtime"
	"syscall"
)

// Inside runs this test program again, after some commands of the shell, in a network and a mount
// namespace of its own. It ends with this program, and its mounts with it: a run that was killed
// leaves none on the host.
func Inside(ctx context.Context, commands string, env ...string) error {
	runtime.LockOSThread() // Pdeathsig follows the thread that starts a process
	defer runtime.UnlockOSThread()
	args := append([]string{"--net", "--mount", "sh", "-ec", "ip link set lo up; " + commands + `
echo 1 >/proc/sys/net/ipv4/ip_forward; exec "$0" "$@"`}, os.Args...)
	cmd := exec.CommandContext(ctx, "unshare", args...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return cmd.Run()
}
