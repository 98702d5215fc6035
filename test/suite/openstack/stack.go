package openstack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Stack is a running OpenStack.
type Stack struct {
	*Front
	dir      string
	progress io.Writer
	ports    map[string]int
	env      []string
	began    time.Time

	mu        sync.Mutex
	processes []*process
	seed      Seed
}

type process struct {
	name string
	cmd  *exec.Cmd
	done chan struct{}
	err  error
}

// password of every account of a Stack, which lives on loopback and for one test.
const password = "of-one-test"

// regionName is the stack's only region.
const regionName = "RegionOne"

// Start starts everything in an empty directory and waits until a server can be made.
// What was started is stopped again when it fails.
func Start(ctx context.Context, dir string, progress io.Writer) (s *Stack, err error) {
	s = &Stack{dir: dir, progress: progress, ports: map[string]int{}, began: time.Now(), env: environment(dir)}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Stop())
		}
	}()
	if err := s.choosePorts("keystone", "nova", "placement", "glance", "neutron", "cinder", "magnum", "rabbit", "distribution", "epmd"); err != nil {
		return s, err
	}
	for _, sub := range []string{"log", "etc/placement", "glance/images", "nova/instances", "cinder", "magnum", "lock", "rabbit", "keystone/fernet", "keystone/credential"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o700); err != nil {
			return s, err
		}
	}
	if err := s.writeConfiguration(); err != nil {
		return s, err
	}
	for _, step := range []struct {
		name string
		run  func(context.Context) error
	}{
		{"MariaDB and RabbitMQ", s.startBase}, {"schemas", s.migrate}, {"Keystone", s.startKeystone}, {"accounts and catalog", s.fillKeystone},
		{"Placement, Glance, Neutron, Cinder and Nova", s.startServices}, {"flavors, image, networks, quotas", s.fill}, {"Magnum", s.startMagnum}, {"the front", s.openFront},
	} {
		if err := step.run(ctx); err != nil {
			return s, fmt.Errorf("start openstack: %s: %w", step.name, err)
		}
		fmt.Fprintf(progress, "%5.1fs  %s\n", time.Since(s.began).Seconds(), step.name)
	}
	return s, nil
}

// environment has Debian's own interpreter and nothing of this machine's configuration.
func environment(dir string) []string {
	return []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=" + dir, "LANG=C.UTF-8", "PYTHONDONTWRITEBYTECODE=1", "NO_PROXY=127.0.0.1,localhost", "no_proxy=127.0.0.1,localhost"}
}

// Attach finds a stack that another process has started in dir and keeps running. Stop
// leaves it alone.
func Attach(ctx context.Context, dir string) (*Stack, error) {
	s := &Stack{dir: dir, ports: map[string]int{}, began: time.Now(), env: environment(dir)}
	text, err := os.ReadFile(filepath.Join(dir, portsFile))
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(text, &s.ports); err != nil {
		return nil, fmt.Errorf("%s: %w", portsFile, err)
	}
	delete(s.ports, "epmd") // the port mapper is its owner's to stop
	s.seed.admin = &client{stack: s, user: "admin", project: "admin"}
	if err := s.seed.admin.login(ctx); err != nil {
		return nil, err
	}
	return s, errors.Join(s.enter(ctx), s.openFront(ctx))
}

// portsFile tells others where the services are.
const portsFile = "ports.json"

func (s *Stack) choosePorts(names ...string) error {
	for _, name := range names {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		defer l.Close() // all stay taken until every one is chosen
		s.ports[name] = l.Addr().(*net.TCPAddr).Port
	}
	text, err := json.Marshal(s.ports)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(s.dir, portsFile), text, 0o600)
}

// run runs a command to its end; its output is in log/NAME.log.
func (s *Stack) run(ctx context.Context, name string, env []string, args ...string) error {
	cmd, log, err := s.command(ctx, name, env, args)
	if err != nil {
		return err
	}
	defer log.Close()
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w\n%s", name, err, s.tail(name))
	}
	return nil
}

func (s *Stack) command(ctx context.Context, name string, env, args []string) (*exec.Cmd, *os.File, error) {
	log, err := os.OpenFile(filepath.Join(s.dir, "log", name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, nil, err
	}
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Env, cmd.Dir, cmd.Stdout, cmd.Stderr = append(append([]string{}, s.env...), env...), s.dir, log, log
	// A daemon and its children are one process group, and end with the test. They are a
	// session, too: Linux deals processors out to sessions alike, and all daemons in one
	// would get no more than any other program that this machine runs.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGTERM}
	return cmd, log, nil
}

// start starts a daemon.
func (s *Stack) start(name string, env []string, args ...string) error {
	cmd, log, err := s.command(context.Background(), name, env, args)
	if err != nil {
		return err
	}
	defer log.Close()
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	p := &process{name: name, cmd: cmd, done: make(chan struct{})}
	go func() {
		p.err = cmd.Wait()
		close(p.done)
	}()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.processes = append(s.processes, p)
	return nil
}

// python runs a service's own main().
func (s *Stack) python(name, module string, args ...string) error {
	code := fmt.Sprintf("import sys; sys.argv[0]=%q; from %s import main; sys.exit(main())", name, module)
	return s.start(name, nil, append([]string{"/usr/bin/python3", "-c", code}, args...)...)
}

// wsgi serves an application that brings no server of its own.
func (s *Stack) wsgi(name string, env []string, application string) error {
	code := fmt.Sprintf("import sys; sys.argv=sys.argv[:1]; from werkzeug.serving import WSGIRequestHandler, run_simple; %s\n"+
		"WSGIRequestHandler.protocol_version='HTTP/1.1'; run_simple('127.0.0.1', %d, application, threaded=True)", application, s.ports[name])
	return s.start(name, env, "/usr/bin/python3", "-c", code)
}

// answers waits until a port takes connections, or its daemon has ended.
func (s *Stack) answers(ctx context.Context, names ...string) error {
	for _, name := range names {
		err := s.until(ctx, name+" takes connections", func() error {
			if err := s.ended(); err != nil {
				return fmt.Errorf("%w: %w", errOver, err)
			}
			c, err := net.DialTimeout("tcp", fmt.Sprintf("127.0.0.1:%d", s.ports[name]), time.Second)
			if err == nil {
				c.Close()
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// errOver ends a wait.
var errOver = errors.New("no use to wait")

// until polls until try succeeds.
func (s *Stack) until(ctx context.Context, what string, try func() error) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		err := try()
		if err == nil {
			return nil
		}
		if errors.Is(err, errOver) {
			return fmt.Errorf("until %s: %w", what, err)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("until %s: %w: %w", what, ctx.Err(), err)
		case <-tick.C:
		}
	}
}

// ended names a daemon that is no more, with the end of its log.
func (s *Stack) ended() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.processes {
		select {
		case <-p.done:
			return fmt.Errorf("%s ended: %v\n%s", p.name, p.err, s.tail(p.name))
		default:
		}
	}
	return nil
}

// CPU is how much processor time this stack's daemons have taken so far, in total: what a
// test costs, however busy the machine is otherwise.
func (s *Stack) CPU() time.Duration {
	s.mu.Lock()
	groups := map[string]bool{}
	for _, p := range s.processes {
		groups[strconv.Itoa(p.cmd.Process.Pid)] = true
	}
	s.mu.Unlock()
	const ticks = 100 // a second, in every Linux's /proc
	var sum int
	files, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, file := range files {
		text, _ := os.ReadFile(file)
		_, rest, _ := strings.Cut(string(text), ") ")
		// state, parent, process group; user and system time are the twelfth and thirteenth.
		if f := strings.Fields(rest); len(f) > 12 && groups[f[2]] {
			user, _ := strconv.Atoi(f[11])
			system, _ := strconv.Atoi(f[12])
			sum += user + system
		}
	}
	return time.Duration(sum) * time.Second / ticks
}

func (s *Stack) tail(name string) string {
	text, _ := os.ReadFile(filepath.Join(s.dir, "log", name+".log"))
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.Join(lines[max(0, len(lines)-25):], "\n")
}

// Stop stops what Start started, the last first.
func (s *Stack) Stop() error {
	s.Front.close()
	s.mu.Lock()
	list := s.processes
	s.processes = nil
	s.mu.Unlock()
	for i := len(list) - 1; i >= 0; i-- {
		p := list[i]
		_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGTERM)
		select {
		case <-p.done:
		case <-time.After(10 * time.Second):
		}
		_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
	}
	// Erlang leaves its port mapper behind; it goes once no node is registered.
	if s.ports["epmd"] != 0 {
		cmd := exec.Command("epmd", "-kill")
		cmd.Env = append(append([]string{}, s.env...), fmt.Sprintf("ERL_EPMD_PORT=%d", s.ports["epmd"]))
		_ = cmd.Run()
	}
	return nil
}
