// Package demo plays the project's story on one machine, with no cloud account: a
// real Kubernetes control plane, an emulated AWS whose instances join like VMs, and
// the agent as the binary that users get, run as its own process with its own
// least-privilege credentials.
//
// It refuses to look inside the agent: everything it shows is read from the
// cluster, from the cloud's record of calls, or from the agent's own journal.
package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"sync"
	"time"

	"k8s.io/client-go/kubernetes"

	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/cloud/aws"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/controlplane"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/machine"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/world"
)

const (
	namespace  = "default"
	deployment = "autoscaler-demo"
	groupName  = "workers"
)

// Options are what `make demo DEMO_FLAGS=...` can set; zero values are the story of
// the seeds.
type Options struct {
	Provider     string // whose emulated cloud it is, default asg; see world.Providers
	Replicas     int    // of autoscaler-demo, default 300
	Small        int    // replicas after the load has gone, default 3
	Max          int    // of the worker group, default 40
	InstanceType string // default the cloud's of about 4 cores and 16 GiB
	CPU          string // request of each pod, default 100m
	Memory       string // request of each pod, default 128Mi
	Seed         uint64 // of the emulated cloud; 0 picks one and prints it
	Keep         bool   // leave everything running until Ctrl-C
	Dir          string // where logs and files go, default a temporary directory
	Agent        string // path of a built agent; empty builds it
	Out          io.Writer
}

func (o *Options) defaults() {
	set := func(n *int, d int) {
		if *n == 0 {
			*n = d
		}
	}
	set(&o.Replicas, 300)
	set(&o.Small, 3)
	set(&o.Max, 40)
	for p, d := range map[*string]string{&o.Provider: "asg", &o.CPU: "100m", &o.Memory: "128Mi"} {
		if *p == "" {
			*p = d
		}
	}
	if o.Out == nil {
		o.Out = os.Stdout
	}
}

// demo is one run of the story.
type demo struct {
	Options
	screen *screen
	dir    string
	ownDir bool

	w      *world.World
	cloud  world.Cloud
	agent  *world.Process
	client kubernetes.Interface
	seen   *sights

	mu       sync.Mutex
	launched map[string]time.Time // when each instance ran

	optimum  int       // machines that the pods need, by arithmetic on the cloud's own table
	ran      int       // pods Running at once at the height of the load
	allRan   time.Time // when they all were first seen to run
	atSmall  int       // Nodes when the load had gone
	dialled  int       // Nodes whose serving certificate was verified
	findings []string
}

// Run plays the story to its end and returns an error when anything in it was not
// as promised. Cancelling ctx ends it early and cleans up.
func Run(ctx context.Context, opts Options) (err error) {
	opts.defaults()
	d := &demo{Options: opts, screen: newScreen(opts.Out), dir: opts.Dir, launched: map[string]time.Time{}}
	if d.dir == "" {
		if d.dir, err = os.MkdirTemp("", "autoscaler-demo-"); err != nil {
			return fmt.Errorf("make a directory for the demo: %w", err)
		}
		d.ownDir = true
	}
	defer func() { err = errors.Join(err, d.cleanUp(err)) }()
	for _, step := range []func(context.Context) error{
		d.setUp, d.makeGroup,
		d.scaleUp, d.verifyFleet, d.scaleDown, d.backToMin, d.summary,
	} {
		if err := step(ctx); err != nil {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			d.showWhy()
			return err
		}
	}
	if d.Keep {
		d.screen.Step("kept running; in another shell:\n\n  export KUBECONFIG=%s\n  export PATH=%s:$PATH\n\nCtrl-C ends it", d.w.ControlPlane.Kubeconfig(), d.w.ControlPlane.Binaries().Dir)
		<-ctx.Done()
	}
	return nil
}

// story is how long the demo takes once Kubernetes is built, on two idle cores.
const story = "about two minutes"

// setUp starts the control plane, the cloud and the agent.
func (d *demo) setUp(ctx context.Context) (err error) {
	first, err := controlplane.FirstBuild(ctx)
	if err != nil {
		return err
	}
	if first != "" {
		d.screen.Step("the demo takes %s, and %s before that: Kubernetes and etcd are built, once", story, first)
	} else {
		d.screen.Step("the demo takes %s", story)
	}
	d.w, err = world.Start(ctx, world.Options{
		Dir: d.dir, Progress: d.screen, Fast: true,
		NodeMonitorGrace: 6 * time.Second, NodeLeaseSeconds: 8,
		Tune: func(c *machine.Config) {
			d.mu.Lock()
			d.launched[c.InstanceID] = time.Now()
			d.mu.Unlock()
		},
		Providers: []string{d.Provider},
		Pace: world.Pace{
			Launch: 500 * time.Millisecond, Boot: 2 * time.Second, Terminate: time.Second, Jitter: 0.3, Seed: d.Seed,
		},
		Cloud: aws.Options{Region: "eu-west-1"},
	})
	if err != nil {
		return err
	}
	d.cloud = d.w.Clouds[0]
	if d.InstanceType == "" {
		d.InstanceType = d.cloud.MachineType()
	}
	d.client = d.w.ControlPlane.Client()
	if d.seen, err = watchCluster(ctx, d.client); err != nil {
		return err
	}
	if d.Agent == "" {
		d.screen.Step("building autoscaler-agent (CGO_ENABLED=0; slow the first time)")
		began := time.Now()
		if d.Agent, err = d.w.BuildAgent(ctx); err != nil {
			return err
		}
		d.screen.Step("built in %s", time.Since(began).Round(100*time.Millisecond))
	}
	d.agent, err = d.w.StartAgent(ctx, d.Agent)
	if err != nil {
		return err
	}
	d.screen.Step("autoscaler-agent runs (pid %d) as user %q with units/rbac.yaml, configured by its environment alone", d.agent.PID(), world.AgentUser)
	return nil
}

// makeGroup is what an operator does once: on AWS, paste the generated user data into
// a launch template and make an Auto Scaling group with Cluster Autoscaler's tags.
func (d *demo) makeGroup(ctx context.Context) error {
	d.screen.Status("waiting for the agent to publish the join values")
	userData, err := d.w.RenderUserData(ctx, d.Agent, d.cloud.RenderFlags()...)
	if err != nil {
		return err
	}
	d.screen.Step("join values published to worker.env (0600): a token that expires, the CA pin, the endpoint")
	how, err := d.w.PutWorkersIn(ctx, d.cloud, world.Workers{Name: groupName, Max: d.Max, InstanceType: d.InstanceType, UserData: userData})
	if err != nil {
		return err
	}
	d.screen.Step("worker group %q: %s, min 0, max %d, %s", groupName, d.InstanceType, d.Max, how)
	d.screen.Status("waiting for the agent to discover the group")
	return d.w.WaitForGroup(ctx, d.Agent, groupName)
}

func (d *demo) scaleUp(ctx context.Context) error {
	if err := d.createDeployment(ctx); err != nil {
		return err
	}
	if err := d.scale(ctx, d.Replicas); err != nil {
		return err
	}
	d.screen.Step("kubectl scale deployment %s --replicas=%d", deployment, d.Replicas)
	err := d.seen.until(ctx, 3*time.Minute, fmt.Sprintf("%d pods Running", d.Replicas),
		func(c count) bool {
			return c.running == d.Replicas && c.nodes > 0 && c.csrOK >= c.nodes && c.csrsPending == 0
		}, d.show)
	if err != nil {
		return err
	}
	d.ran = d.seen.count().running
	_, d.allRan = span(d.seen.times("running"))
	d.screen.Step("%d/%d pods Running on %d machines, every serving certificate issued", d.ran, d.Replicas, d.seen.count().nodes)
	return nil
}

// verifyFleet dials every Node's kubelet port and checks the chain and the names,
// and compares the number of machines with what the pods need.
func (d *demo) verifyFleet(ctx context.Context) error {
	roots, err := d.roots()
	if err != nil {
		return err
	}
	var capacity int64 = math.MaxInt64
	for _, n := range d.seen.nodeList() {
		if _, err := machine.DialServing(ctx, n, roots); err != nil {
			return fmt.Errorf("verify the serving certificate of %s: %w", n.Name, err)
		}
		d.dialled++
		capacity = min(capacity, d.podsThatFit(n))
	}
	d.screen.Step("%d kubelet ports dialled: each serving certificate chains to the cluster CA and covers the Node's names and addresses", d.dialled)
	d.optimum = int((int64(d.Replicas) + capacity - 1) / capacity)
	if got := d.seen.count().nodes; got != d.optimum {
		d.finding("%d machines were started where %d hold the pods", got, d.optimum)
	}
	if raises := d.cloud.Raises(); len(raises) != 1 {
		d.finding("the burst took %d scale-ups, not 1: %v", len(raises), raises)
	}
	return nil
}

func (d *demo) scaleDown(ctx context.Context) error {
	if err := d.scale(ctx, d.Small); err != nil {
		return err
	}
	d.screen.Step("kubectl scale deployment %s --replicas=%d", deployment, d.Small)
	err := d.seen.until(ctx, 3*time.Minute, "idle machines drained, terminated and their Nodes reaped",
		func(c count) bool { return c.running == d.Small && c.pods == d.Small && c.nodes == 1 }, d.show)
	if err != nil {
		return err
	}
	d.atSmall = d.seen.count().nodes
	d.screen.Step("%d pods left, %d machine left; the others were drained, terminated and their Nodes reaped", d.Small, d.atSmall)
	return nil
}

func (d *demo) backToMin(ctx context.Context) error {
	if err := d.deleteDeployment(ctx); err != nil {
		return err
	}
	d.screen.Step("kubectl delete deployment %s", deployment)
	err := d.seen.until(ctx, 3*time.Minute, "the group back at min, no Node left",
		func(c count) bool {
			g, ok := d.cloud.Group(groupName)
			return c.nodes == 0 && c.pods == 0 && ok && g.Target == g.Min && d.living() == 0
		}, d.show)
	if err != nil {
		return err
	}
	d.screen.Step("worker group back at its minimum of 0")
	return d.verifyNothingLeft(ctx)
}

func (d *demo) show(c count) {
	g, _ := d.cloud.Group(groupName)
	d.screen.Status("pods [%s] %d/%d running, %d waiting | group target %d, instances %d | nodes %d/%d ready | certificates %d/%d",
		bar(c.running, d.Replicas, 20), c.running, d.Replicas, c.pending, g.Target, d.living(), c.ready, c.nodes, c.csrOK, c.csrs)
}

func (d *demo) finding(format string, args ...any) {
	d.findings = append(d.findings, fmt.Sprintf(format, args...))
	d.screen.Step("NOT AS PROMISED: "+format, args...)
}
