// Package world puts the parts of test/ together: a real control plane, emulated
// clouds, a fleet of emulated machines, and the agent as its own process with its own
// least-privilege credentials. The demo and the end-to-end tests share it.
//
// It refuses to reach into the agent: the agent gets an environment and a
// kubeconfig, as under systemd, and is judged by what it does to the cluster and to
// the cloud.
package world

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/klog/v2"

	"github.com/autoscaler-agent/autoscaler-agent/test/await"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/cloud/aws"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/controlplane"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/machine"
)

// ClusterName is what the cluster is called in clouds that need a name of it: on AWS
// that of the tag k8s.io/cluster-autoscaler/<name>.
const ClusterName = "demo"

// Options of Start. Zero values are usable.
type Options struct {
	Dir      string    // where everything is written; must exist
	Progress io.Writer // lines about slow steps; nil: none
	// Fast, NodeMonitorGrace, NodeLeaseSeconds and ExtraArgs are the control plane's.
	Fast             bool
	NodeMonitorGrace time.Duration
	NodeLeaseSeconds int
	ExtraArgs        map[string][]string
	// Providers are those that the agent is to work with, each with its emulated
	// cloud; nil: asg. See Providers.
	Providers []string
	Pace      Pace        // of every cloud
	Cloud     aws.Options // more of the emulated AWS; what is set here wins over Pace
	// Tune may change each machine before it boots: its behaviour, its speed.
	Tune func(*machine.Config)
	// KernelShare is the share of an instance type's memory that the kernel shows;
	// zero: 0.925, the figure that the agent assumes of a type that it has not seen.
	KernelShare float64
}

// World is everything that Start started.
type World struct {
	Options
	ControlPlane *controlplane.ControlPlane
	Clouds       []Cloud    // in the order of Options.Providers
	Cloud        *aws.Cloud // the first emulated AWS; nil where there is none
	Fleet        *machine.Fleet

	mu        sync.Mutex
	extra     []string       // what the last StartAgent added to AgentEnv
	sections  map[string]any // of groups.yaml
	logs      map[string]io.Writer
	processes []*Process
	files     []io.Closer
}

// Start starts the control plane, the cloud and the fleet. What was started is
// stopped again when it fails.
func Start(ctx context.Context, opts Options) (w *World, err error) {
	if opts.Progress == nil {
		opts.Progress = io.Discard
	}
	if len(opts.Providers) == 0 {
		opts.Providers = []string{"asg"}
	}
	for _, name := range opts.Providers {
		if _, err := lookUp(name); err != nil { // before anything slow
			return nil, err
		}
	}
	// The machines' and the test's own clients are cut off on purpose all the time;
	// client-go would report each on stderr.
	klog.SetLogger(klog.Logger{})
	w = &World{Options: opts}
	defer func() {
		if err != nil {
			err = errors.Join(err, w.Stop(context.WithoutCancel(ctx)))
		}
	}()
	bin, err := controlplane.Binaries(ctx, opts.Progress)
	if err != nil {
		return w, err
	}
	fmt.Fprintln(opts.Progress, "starting etcd, kube-apiserver, kube-controller-manager and kube-scheduler (real, on loopback)")
	w.ControlPlane, err = controlplane.Start(ctx, controlplane.Options{
		Dir: filepath.Join(opts.Dir, "controlplane"), Bin: bin, Fast: opts.Fast,
		NodeMonitorGrace: opts.NodeMonitorGrace, NodeLeaseSeconds: opts.NodeLeaseSeconds, ExtraArgs: opts.ExtraArgs,
	})
	if err != nil {
		return w, err
	}
	fmt.Fprintf(opts.Progress, "Kubernetes is ready at %s\n", w.ControlPlane.Endpoint())
	return w, w.startClouds(ctx)
}

// startClouds starts the fleet and the clouds whose instances are its machines.
func (w *World) startClouds(ctx context.Context) (err error) {
	log := w.LogFile("machines.log")
	w.Fleet, err = machine.NewFleet(context.WithoutCancel(ctx), func(c *machine.Config) {
		c.Log = log
		if w.Tune != nil {
			w.Tune(c)
		}
		if c.Start.Client == nil {
			c.Start.Client = w.ControlPlane.Client()
		}
	})
	if err != nil {
		return err
	}
	for _, name := range w.Options.Providers {
		start, err := lookUp(name)
		if err != nil {
			return err
		}
		c, err := start(ctx, w)
		if err != nil {
			return fmt.Errorf("start the cloud of provider %s: %w", name, err)
		}
		w.Clouds = append(w.Clouds, c)
		fmt.Fprintln(w.Progress, c.Banner())
	}
	return nil
}

// KernelMemory is what a machine's kernel shows of its nominal memory, in bytes.
func (w *World) KernelMemory(nominal int64) int64 {
	share := w.KernelShare
	if share == 0 {
		share = 0.925
	}
	return int64(float64(nominal) * share)
}

// PutWorkers makes a group in the first cloud.
func (w *World) PutWorkers(g Workers) error {
	_, err := w.PutWorkersIn(context.Background(), w.Clouds[0], g)
	return err
}

// PutWorkersIn makes a group in one of Clouds and tells how.
func (w *World) PutWorkersIn(ctx context.Context, c Cloud, g Workers) (how string, err error) {
	if g.InstanceType == "" {
		g.InstanceType = c.MachineType()
	}
	if how, err = c.PutWorkers(ctx, g); err != nil {
		return "", fmt.Errorf("make the group %s: %w", g.Name, err)
	}
	return how, nil
}

// GroupsFile is the agent's groups.yaml, empty until PutSection writes it.
func (w *World) GroupsFile() string { return filepath.Join(w.Dir, "groups.yaml") }

// PutSection writes one section of groups.yaml ("groups", or a provider's name) and
// keeps the others. The agent looks at the file every two seconds.
func (w *World) PutSection(name string, section any) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.sections == nil {
		w.sections = map[string]any{}
	}
	w.sections[name] = section
	text, err := json.MarshalIndent(w.sections, "", "  ") // JSON is YAML
	if err != nil {
		return fmt.Errorf("write section %s of groups.yaml: %w", name, err)
	}
	part := w.GroupsFile() + ".part"
	if err := errors.Join(os.WriteFile(part, text, 0o600), os.Rename(part, w.GroupsFile())); err != nil {
		return fmt.Errorf("write section %s of groups.yaml: %w", name, err)
	}
	return nil
}

// WorkerEnv is the file that the agent publishes its join values to.
func (w *World) WorkerEnv() string { return filepath.Join(w.Dir, "worker.env") }

// Socket is the agent's local API.
func (w *World) Socket() string { return filepath.Join(w.Dir, "agent.sock") }

// StateDir is the agent's state directory.
func (w *World) StateDir() string { return filepath.Join(w.Dir, "state") }

// AgentEnv is the agent's whole configuration: times are demo-speed, nothing else
// differs from what an operator would write.
func (w *World) AgentEnv(kubeconfig string) []string {
	env := []string{
		"PATH=" + os.Getenv("PATH"),
		"AUTOSCALER_KUBECONFIG=" + kubeconfig,
		"AUTOSCALER_NODE_NAME=leader",
		"AUTOSCALER_STATE_DIR=" + w.StateDir(),
		"AUTOSCALER_SOCKET=" + w.Socket(),
		"AUTOSCALER_LISTEN=127.0.0.1:0",
		"AUTOSCALER_PROVIDER=" + strings.Join(w.Options.Providers, ","),
		"AUTOSCALER_GROUPS_FILE=" + w.GroupsFile(),
		"AUTOSCALER_BOOTSTRAP_FILE=" + w.WorkerEnv(),
		"AUTOSCALER_OBSERVE_SLOW=5s",
		"AUTOSCALER_SCALING_UNNEEDED_FOR=10s",
		"AUTOSCALER_SCALING_DELAY_AFTER_ADD=10s",
		"AUTOSCALER_SCALING_DELAY_AFTER_TAINT=1s",
		"AUTOSCALER_NODECLEANER_OBSERVE_FIRST=0",
		"AUTOSCALER_NODECLEANER_SIGHT_INTERVAL=3s",
		"AUTOSCALER_NODECLEANER_GONE_GRACE=1s",
		"AUTOSCALER_NODECLEANER_SENT_GRACE=3s", // for clouds that do not list what is gone
	}
	for _, c := range w.Clouds {
		env = append(env, c.Env()...)
	}
	return env
}

// BuildAgent builds the agent into the world's directory.
func (w *World) BuildAgent(ctx context.Context) (binary string, err error) {
	binary = filepath.Join(w.Dir, "autoscaler-agent")
	return binary, BuildAgent(ctx, binary)
}

// StartAgent runs `autoscaler-agent run`; env is added to AgentEnv and wins over it.
func (w *World) StartAgent(ctx context.Context, binary string, env ...string) (*Process, error) {
	return w.StartAgentAs(ctx, "agent", binary, env...)
}

// StartAgentAs is StartAgent for one of several agents: its log is NAME.log. What they must
// not share (state directory, socket, published file) env has to say.
func (w *World) StartAgentAs(ctx context.Context, name, binary string, env ...string) (*Process, error) {
	kubeconfig, err := w.AgentKubeconfig(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(w.GroupsFile()); err != nil { // the agent's settings name it, so it has to be there
		if err := os.WriteFile(w.GroupsFile(), nil, 0o600); err != nil {
			return nil, fmt.Errorf("write groups.yaml: %w", err)
		}
	}
	if err := os.MkdirAll(w.StateDir(), 0o700); err != nil {
		return nil, fmt.Errorf("make the agent's state directory: %w", err)
	}
	p, err := startProcess(filepath.Join(w.Dir, name+".log"), append(w.AgentEnv(kubeconfig), env...), binary, "run")
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	w.extra, w.processes = env, append(w.processes, p)
	w.mu.Unlock()
	return p, nil
}

// AgentKubeconfig applies the rights that ship with the unit and makes a kubeconfig
// whose client certificate is signed by the cluster CA for AgentUser.
func (w *World) AgentKubeconfig(ctx context.Context) (string, error) {
	to := filepath.Join(w.Dir, "agent.kubeconfig")
	if _, err := os.Stat(to); err == nil {
		return to, nil
	}
	cp := w.ControlPlane
	if err := ApplyUnits(ctx, cp, "admission-policy.yaml", "rbac.yaml"); err != nil {
		return "", err
	}
	return UserKubeconfig(cp, AgentUser, to)
}

// ApplyUnits applies manifests of units/ as an administrator does.
func ApplyUnits(ctx context.Context, cp *controlplane.ControlPlane, files ...string) error {
	args := []string{"--kubeconfig", cp.Kubeconfig(), "apply"}
	for _, f := range files {
		args = append(args, "-f", shipped(f))
	}
	if out, err := exec.CommandContext(ctx, cp.Binaries().Path("kubectl"), args...).CombinedOutput(); err != nil {
		return fmt.Errorf("apply %s: %w\n%s", strings.Join(files, ", "), err, out)
	}
	return nil
}

// shipped is a file of units/.
func shipped(name string) string {
	_, here, _, _ := runtime.Caller(0)
	return filepath.Join(filepath.Dir(here), "..", "..", "..", "units", name)
}

// RenderUserData waits for the published join values and asks the agent's own
// generator for the user data, as an operator would; flags are Cloud.RenderFlags.
func (w *World) RenderUserData(ctx context.Context, binary string, flags ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, await.Limit, errors.New("the agent did not publish join values"))
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		st, err := os.Stat(w.WorkerEnv())
		if err == nil && st.Mode().Perm() != 0o600 {
			return nil, fmt.Errorf("worker.env is readable by others: mode %s", st.Mode())
		}
		if err == nil {
			break
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("look for the published join values: %w", err)
		}
		if err := w.ended(); err != nil {
			return nil, err
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-tick.C:
		}
	}
	args := append([]string{"userdata", "render", "--join-file", w.WorkerEnv()}, flags...)
	render := exec.CommandContext(ctx, binary, args...)
	w.mu.Lock()
	render.Env = append(os.Environ(), w.extra...) // the kubelets keep back what the agent counts with
	w.mu.Unlock()
	out, err := render.Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			return nil, fmt.Errorf("autoscaler-agent userdata render: %w\n%s", err, exit.Stderr)
		}
		return nil, fmt.Errorf("autoscaler-agent userdata render: %w", err)
	}
	return out, nil
}

// WaitForGroup waits until the agent knows a group, by its own `status`. Cluster API's
// groups are called KIND/NAMESPACE/NAME: the last part is enough.
func (w *World) WaitForGroup(ctx context.Context, binary, group string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, await.Limit, fmt.Errorf("the agent did not discover group %s", group))
	defer cancel()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		var status struct{ Groups []struct{ ID string } }
		out, err := exec.CommandContext(ctx, binary, "status", "--socket", w.Socket(), "--output", "json").Output()
		if err == nil {
			err = json.Unmarshal(out, &status)
		}
		if err == nil && slices.ContainsFunc(status.Groups, func(g struct{ ID string }) bool { return g.ID == group || strings.HasSuffix(g.ID, "/"+group) }) {
			return nil
		}
		if err := w.ended(); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
	}
}

// ended tells when the agent that was started last has ended.
func (w *World) ended() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.processes) == 0 {
		return nil
	}
	p := w.processes[len(w.processes)-1]
	select {
	case <-p.Done:
		return fmt.Errorf("the agent has ended: %v", p.Err)
	default:
		return nil
	}
}

// Stop ends everything in reverse order and reports what did not end by itself.
func (w *World) Stop(ctx context.Context) error {
	var errs []error
	w.mu.Lock()
	processes := w.processes
	w.mu.Unlock()
	for _, p := range processes {
		errs = append(errs, p.Stop(ctx))
	}
	for _, c := range slices.Backward(w.Clouds) {
		errs = append(errs, c.Close())
	}
	if w.Fleet != nil {
		w.Fleet.Close()
	}
	if w.ControlPlane != nil {
		errs = append(errs, w.ControlPlane.Stop(ctx))
	}
	for _, f := range w.files {
		errs = append(errs, f.Close())
	}
	return errors.Join(errs...)
}

// LogFile is a file in Dir that is appended to until Stop.
func (w *World) LogFile(name string) io.Writer {
	w.mu.Lock()
	defer w.mu.Unlock()
	if f := w.logs[name]; f != nil {
		return f
	}
	f, err := os.OpenFile(filepath.Join(w.Dir, name), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		fmt.Fprintf(w.Progress, "no log of %s: %v\n", name, err)
		return io.Discard
	}
	if w.logs == nil {
		w.logs = map[string]io.Writer{}
	}
	w.logs[name], w.files = f, append(w.files, f)
	return f
}
