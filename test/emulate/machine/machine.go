package machine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// Annotation of a Node holds the loopback host:port on which its kubelet serves.
const Annotation = "machine.test/kubelet"

// Config is what the cloud knows about a machine, and how fast it is.
type Config struct {
	UserData     []byte
	InstanceID   string // "i-0123456789abcdef0"
	Name         string // private DNS name
	Zone         string
	InstanceType string
	Arch         string // "amd64" (default) or "arm64"
	// Capacity is what the kernel shows, in cluster's units. Pods is the kubelet's
	// own setting and ignored here.
	Capacity  cluster.Resources
	Addresses []netip.Addr
	// IMDSEndpoint is EC2's instance metadata service, http://127.0.0.1:PORT; empty on
	// other clouds.
	IMDSEndpoint string
	// Metadata are variables of the user data's environment, by which it finds
	// another cloud's metadata service: each an address on loopback, as a URL.
	Metadata map[string]string
	// SystemUUID is what the firmware shows, as OpenStack puts the server's ID there;
	// empty: one made from InstanceID.
	SystemUUID string
	NeverJoins bool // it runs, but its user data never starts
	// Start is what the Node has and lacks when it registers, and when that changes.
	Start Start
	// SelfSigned makes the kubelet sign its own serving certificate, as one without
	// serverTLSBootstrap does.
	SelfSigned bool

	Tools Tools // zero: BuildTools
	// Log gets the machine's console, a line at a time behind its instance ID. nil:
	// none; Console keeps the end of it in any case.
	Log io.Writer

	BootTime         time.Duration // from Boot to the user data's first line; default 0
	RetrySleep       time.Duration // what the user data's sleeps take; default 1 s
	DiscoveryTimeout time.Duration // kubeadm's; default 5 min
	BootstrapTimeout time.Duration // kubeadm's; default 5 min
	ReadyDelay       time.Duration // from registration to Ready; default 200 ms
	PodStart         time.Duration // from binding to Running; default 300 ms
	PodStop          time.Duration // from deletion to gone, at most the pod's grace period; default 300 ms
}

// nobody is where a script finds no metadata service of EC2: the discard port. Without
// it, a script that looks for one would leave this host.
const nobody = "http://127.0.0.1:9"

func (c Config) withDefaults() Config {
	def := func(d *time.Duration, value time.Duration) {
		if *d == 0 {
			*d = value
		}
	}
	def(&c.RetrySleep, time.Second)
	def(&c.DiscoveryTimeout, 5*time.Minute)
	def(&c.BootstrapTimeout, 5*time.Minute)
	def(&c.ReadyDelay, 200*time.Millisecond)
	def(&c.PodStart, 300*time.Millisecond)
	def(&c.PodStop, 300*time.Millisecond)
	if c.Arch == "" {
		c.Arch = "amd64"
	}
	if c.SystemUUID == "" {
		c.SystemUUID = systemUUID(c.InstanceID)
	}
	if c.IMDSEndpoint == "" {
		c.IMDSEndpoint = nobody
	}
	return c
}

// State is where a machine is in its life.
type State string

// The states of a machine.
const (
	Booting State = "booting" // until the user data starts; for ever if it NeverJoins
	Joining State = "joining" // the user data runs
	Failed  State = "failed"  // the user data ended with an error: see Err
	Joined  State = "joined"  // the kubelet runs
	Hung    State = "hung"
	Dead    State = "dead"
)

// Times are the moments of a machine's last boot; zero when not reached. Ready and
// ServingCert stay those of the first time.
type Times struct {
	Booted, Joining, Discovered, ClientCert, Registered, Ready, ServingCert time.Time
}

// Machine is one played machine. Its methods may be called from any goroutine.
type Machine struct {
	cfg     Config
	dir     string
	console *console
	done    chan struct{}
	kill    context.CancelFunc
	life    context.Context

	op sync.Mutex // one of Reboot and Hang at a time

	mu       sync.Mutex
	state    State
	changed  chan struct{} // closed at each change of state or times
	err      error
	times    Times
	identity *identity
	bootID   string
	kubelet  *kubelet
	stop     context.CancelFunc // ends the current boot
	stopped  chan struct{}      // closed when it has ended
}

// Boot starts a machine and returns at once. It dies with ctx, or by Die.
func Boot(ctx context.Context, cfg Config) (*Machine, error) {
	cfg = cfg.withDefaults()
	if cfg.InstanceID == "" || cfg.Name == "" || len(cfg.Addresses) == 0 {
		return nil, errors.New("boot machine: instance ID, name or address is missing")
	}
	for _, endpoint := range append(slices.Collect(maps.Values(cfg.Metadata)), cfg.IMDSEndpoint) {
		if at, err := url.Parse(endpoint); err != nil || !loopback(at.Host) {
			return nil, fmt.Errorf("boot machine %s: metadata endpoint %q is not on loopback", cfg.InstanceID, endpoint)
		}
	}
	if cfg.Tools.Dir == "" {
		tools, err := BuildTools(ctx, false)
		if err != nil {
			return nil, fmt.Errorf("boot machine %s: %w", cfg.InstanceID, err)
		}
		cfg.Tools = tools
	}
	dir, err := os.MkdirTemp("", "machine-"+cfg.InstanceID+"-")
	if err != nil {
		return nil, fmt.Errorf("boot machine %s: %w", cfg.InstanceID, err)
	}
	m := &Machine{
		cfg: cfg, dir: dir, state: Booting, changed: make(chan struct{}), done: make(chan struct{}),
		console: &console{id: cfg.InstanceID, out: cfg.Log},
	}
	m.life, m.kill = context.WithCancel(ctx)
	m.start()
	go m.bury()
	return m, nil
}

// bury waits for the end of the machine's life and leaves nothing of it on the host.
func (m *Machine) bury() {
	<-m.life.Done()
	m.op.Lock()
	defer m.op.Unlock()
	m.halt()
	m.set(func() { m.state = Dead })
	os.RemoveAll(m.dir)
	close(m.done)
}

// start begins a boot: the user data if the machine has not joined, else the
// kubelet. The caller holds op, or is Boot.
func (m *Machine) start() {
	ctx, cancel := context.WithCancel(m.life)
	stopped := make(chan struct{})
	m.set(func() { m.stop, m.stopped, m.bootID = cancel, stopped, newUUID() })
	go func() {
		defer close(stopped)
		m.boot(ctx)
	}()
}

// halt ends the current boot or kubelet and waits until nothing of it runs.
func (m *Machine) halt() {
	m.mu.Lock()
	stop, stopped := m.stop, m.stopped
	m.mu.Unlock()
	stop()
	<-stopped
}

func (m *Machine) boot(ctx context.Context) {
	if !pause(ctx, m.cfg.BootTime) {
		return
	}
	m.mark(func(t *Times) { *t = Times{Booted: time.Now()} })
	if m.cfg.NeverJoins {
		fmt.Fprintln(m.console, "kernel: boot device not found")
		<-ctx.Done()
		return
	}
	if m.joined() == nil {
		m.set(func() { m.state = Joining })
		if err := m.runScript(ctx, m.join); err != nil {
			if ctx.Err() == nil {
				m.set(func() { m.state, m.err = Failed, err })
			}
			return
		}
	}
	m.runKubelet(ctx)
}

// runKubelet runs until ctx ends.
func (m *Machine) runKubelet(ctx context.Context) {
	m.mu.Lock()
	k := newKubelet(m, m.identity, m.bootID, m.kubelet)
	m.mu.Unlock()
	m.set(func() { m.state, m.err, m.kubelet = Joined, nil, k })
	k.run(ctx)
}

// Reboot restarts the machine: its kubelet stops, BootTime passes, and it comes back
// with another boot ID. User data runs again only on a machine that has not joined.
func (m *Machine) Reboot(ctx context.Context) error {
	m.op.Lock()
	defer m.op.Unlock()
	if err := m.alive(ctx); err != nil {
		return fmt.Errorf("reboot machine %s: %w", m.cfg.InstanceID, err)
	}
	m.halt()
	m.set(func() { m.state = Booting })
	m.start()
	return nil
}

// Hang stops everything that the machine does; it goes on existing.
func (m *Machine) Hang() error {
	m.op.Lock()
	defer m.op.Unlock()
	if err := m.alive(m.life); err != nil {
		return fmt.Errorf("hang machine %s: %w", m.cfg.InstanceID, err)
	}
	m.halt()
	m.set(func() { m.state = Hung })
	return nil
}

// Die ends the machine at once, as a power cut does: nothing is said to Kubernetes.
// It returns when no goroutine, process, port or file of the machine is left.
func (m *Machine) Die() {
	m.kill()
	<-m.done
}

func (m *Machine) alive(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if m.life.Err() != nil {
		return errors.New("it is dead")
	}
	return nil
}

// State tells where the machine is in its life.
func (m *Machine) State() State {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.state
}

// Err is why the machine has not joined (yet); nil once it has.
func (m *Machine) Err() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.err
}

// Times are the moments of the machine's boot so far.
func (m *Machine) Times() Times {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.times
}

// Config is what the machine was booted with, defaults filled in.
func (m *Machine) Config() Config { return m.cfg }

// Console is the end of what the machine wrote to its console.
func (m *Machine) Console() string { return m.console.String() }

// Done is closed when the machine is dead and nothing of it is left.
func (m *Machine) Done() <-chan struct{} { return m.done }

// Wait returns when ok holds for the machine; it is asked again at each change of
// state, error or times.
func (m *Machine) Wait(ctx context.Context, ok func(State, Times, error) bool) error {
	for {
		m.mu.Lock()
		state, times, err, changed := m.state, m.times, m.err, m.changed
		m.mu.Unlock()
		if ok(state, times, err) {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for machine %s (%s, %v): %w", m.cfg.InstanceID, state, err, ctx.Err())
		case <-changed:
		}
	}
}

// WaitReady waits until the machine's Node is Ready. A serving certificate may take
// longer: somebody has to approve it.
func (m *Machine) WaitReady(ctx context.Context) error {
	return m.Wait(ctx, func(s State, t Times, _ error) bool { return s == Joined && !t.Ready.IsZero() })
}

func (m *Machine) set(change func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	change()
	close(m.changed)
	m.changed = make(chan struct{})
}

func (m *Machine) mark(change func(*Times)) { m.set(func() { change(&m.times) }) }
func (m *Machine) setErr(err error)         { m.set(func() { m.err = err }) }
func (m *Machine) setIdentity(id *identity) { m.set(func() { m.identity = id }) }
func (m *Machine) joined() (id *identity)   { m.mu.Lock(); defer m.mu.Unlock(); return m.identity }

// loopback tells whether a host:port stays on this host. A machine dials nobody else,
// whatever its user data says.
func loopback(hostport string) bool {
	host, _, err := net.SplitHostPort(hostport)
	if err != nil {
		return false
	}
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && addr.IsLoopback()
}

// pause sleeps for d and tells whether ctx lasted.
func pause(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
