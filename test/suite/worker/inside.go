package worker

import (
	"context"
	"os"
	"os/exec"
	"runtime"
	"syscall"
)

// inotifyInstances is enough for all machines of several runs beside each other. A leader has some
// 25 of them, and Linux gives root 128 in all, because the containers have no user namespace: the
// containerd of the machine that came too late was without its CRI service.
const inotifyInstances = "8192"

// Inside runs this test program again, after some commands of the shell, in a network and a mount
// namespace of its own. It ends with this program, and its mounts with it: a run that was killed
// leaves none on the host. What stays is the host's limit of inotify instances, which is raised.
func Inside(ctx context.Context, commands string, env ...string) error {
	runtime.LockOSThread() // Pdeathsig follows the thread that starts a process
	defer runtime.UnlockOSThread()
	args := append([]string{"--net", "--mount", "sh", "-ec", "ip link set lo up; " + commands + `
limit=/proc/sys/fs/inotify/max_user_instances
[ "$(cat $limit)" -ge ` + inotifyInstances + ` ] || echo ` + inotifyInstances + ` >$limit
echo 1 >/proc/sys/net/ipv4/ip_forward; exec "$0" "$@"`}, os.Args...)
	cmd := exec.CommandContext(ctx, "unshare", args...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return cmd.Run()
}
