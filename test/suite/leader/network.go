package leader

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"

	"github.com/autoscaler-agent/autoscaler-agent/test/suite/worker"
)

// router is the address of the test's own network namespace, on its loopback.
const router = "10.90.0.1"

// wired boots a container in a network namespace of its own, with one address and a way to
// the test's. The thread that started it lives until remove is called: it is the container's
// parent, and with the thread the container would go. again switches the machine off and on; with
// another address it has that one from then on.
func wired(ctx context.Context, c *worker.Container, address string) (remove func() error, again func(address string) error, err error) {
	up, calls, gone := make(chan error), make(chan func()), make(chan error, 1)
	onThread(func() {
		err := syscall.Unshare(syscall.CLONE_NEWNET)
		if err == nil {
			err = wire(c.Name, address)
		}
		if err == nil {
			err = c.Boot(ctx)
		}
		up <- err
		for call := range calls {
			call()
		}
		gone <- c.Remove()
	})
	remove = func() error { close(calls); return <-gone }
	again = func(next string) error {
		booted := make(chan error)
		calls <- func() {
			_ = c.Halt() // a control plane takes longer to stop than Halt waits: its machine is switched off
			if next != address {
				if err := readdress(c.Name, address, next); err != nil {
					booted <- err
					return
				}
				address = next
			}
			booted <- c.Boot(ctx)
		}
		return <-booted
	}
	return remove, again, <-up
}

// onThread runs f on a thread of its own that ends with f: no other goroutine gets its
// namespace. It is never the first thread, by which others name the process's namespace.
func onThread(f func()) {
	locked := make(chan struct{})
	go func() {
		runtime.LockOSThread()
		if syscall.Gettid() == os.Getpid() {
			onThread(f)
			runtime.UnlockOSThread()
			close(locked)
			return
		}
		close(locked)
		f()
	}()
	<-locked
}

// link is the test's end of a machine's wire.
func link(name string) string { return "v" + name[max(0, len(name)-12):] }

// readdress gives the machine of this thread's namespace another address.
func readdress(name, old, next string) error {
	inside := fmt.Sprintf(`ip addr add %[4]s/32 dev eth0
ip addr del %[3]s/32 dev eth0
ip route replace %[5]s dev eth0
ip route replace default via %[5]s
nsenter -t %[2]s -n sh -ec 'ip route replace %[4]s dev %[1]s; ip route del %[3]s'`, link(name), fmt.Sprint(os.Getpid()), old, next, router)
	if out, err := exec.Command("sh", "-ec", inside).CombinedOutput(); err != nil {
		return fmt.Errorf("give %s the address %s: %w: %s", name, next, err, out)
	}
	return nil
}

func wire(name, address string) error {
	base := fmt.Sprint(os.Getpid())
	inside := fmt.Sprintf(`echo 1 >/proc/sys/net/ipv4/ip_forward # the container sees it read-only
ip link set lo up
ip link add eth0 type veth peer name %[1]s netns %[2]s
ip addr add %[3]s/32 dev eth0
ip link set eth0 up
ip route add %[4]s dev eth0
ip route add default via %[4]s
nsenter -t %[2]s -n sh -ec 'ip link set %[1]s up; ip route replace %[3]s dev %[1]s'`, link(name), base, address, router)
	if out, err := exec.Command("sh", "-ec", inside).CombinedOutput(); err != nil {
		return fmt.Errorf("make the network of %s: %w: %s", name, err, out)
	}
	return nil
}

// forward makes a server of this process's loopback reachable at the router's address, by the
// same port.
func forward(address string) (io.Closer, error) {
	_, port, err := net.SplitHostPort(strings.TrimPrefix(address, "http://"))
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", net.JoinHostPort(router, port))
	if err != nil {
		return nil, err
	}
	go func() {
		for {
			from, err := l.Accept()
			if err != nil {
				return // closed
			}
			go func() {
				to, err := net.Dial("tcp", "127.0.0.1:"+port)
				if err != nil {
					from.Close()
					return
				}
				splice(from, to)
			}()
		}
	}()
	return l, nil
}

// splice copies both ways until both have ended. How a connection ends is its ends' affair.
func splice(from, to net.Conn) {
	defer from.Close()
	defer to.Close()
	done := make(chan struct{})
	go func() {
		_, _ = io.Copy(to, from)
		_ = to.(*net.TCPConn).CloseWrite()
		close(done)
	}()
	_, err := io.Copy(from, to)
	if err == nil {
		err = from.(*net.TCPConn).CloseWrite()
	}
	if !errors.Is(err, net.ErrClosed) {
		<-done
	}
}
