package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/cloud/aws"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/controlplane"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/world"
)

// limit ends a wait that only a hang reaches.
const limit = 10 * time.Minute

// rig is one cluster with its cloud and the program under measurement.
type rig struct {
	o     options
	dir   string
	cp    *controlplane.ControlPlane
	cloud *aws.Cloud
	load  *load
	wire  *wire
	cmd   *exec.Cmd
	done  chan struct{} // closed when cmd has ended
	out   figures
}

// auditPolicy has the API server write a line for each request of the measured user.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
  users: ["` + world.AgentUser + `"]
- level: None
`

func measure(ctx context.Context, o options, nodes int) (out figures, err error) {
	r := &rig{o: o, dir: o.dir, out: figures{nodes: nodes, groups: o.groups, load: loadavg()}}
	if r.dir == "" {
		if r.dir, err = os.MkdirTemp("", "benchagent-"); err != nil {
			return out, err
		}
		defer os.RemoveAll(r.dir)
	}
	defer r.stop()
	for _, step := range []struct {
		what string
		do   func(context.Context) error
	}{
		{"start etcd and the API server", r.startCluster},
		{fmt.Sprintf("fill them with %d nodes and %d pods", nodes, nodes*o.pods), func(ctx context.Context) error { return r.fill(ctx, nodes) }},
		{"start the program", r.startProgram},
		{"measure rest", r.measureIdle},
		{"measure churn", r.measureChurn},
		{"measure a burst", r.measureBurst},
	} {
		fmt.Fprintf(os.Stderr, "%s %d nodes: %s\n", time.Now().Format("15:04:05"), nodes, step.what)
		if err := step.do(ctx); err != nil {
			return out, fmt.Errorf("%s: %w", step.what, err)
		}
	}
	r.out.load += ", " + loadavg()
	return r.out, nil
}

func (r *rig) startCluster(ctx context.Context) (err error) {
	policy := filepath.Join(r.dir, "audit.yaml")
	if err := os.WriteFile(policy, []byte(auditPolicy), 0o600); err != nil {
		return err
	}
	r.cp, err = controlplane.Start(ctx, controlplane.Options{Dir: filepath.Join(r.dir, "controlplane"), Fast: true, ExtraArgs: map[string][]string{
		controlplane.APIServer: {"--audit-policy-file=" + policy, "--audit-log-path=" + r.auditLog()},
		// Nodes and owners are made by hand: nobody may clean them up.
		controlplane.ControllerManager: {"--controllers=*,-garbage-collector-controller,-node-lifecycle-controller,-taint-eviction-controller,-pod-garbage-collector-controller"},
	}})
	if err != nil {
		return err
	}
	r.cloud, err = aws.New(aws.Options{Buckets: true, LaunchDelay: time.Second, BootDelay: 20 * time.Second, Latency: 40 * time.Millisecond})
	return err
}

func (r *rig) auditLog() string { return filepath.Join(r.dir, "audit.log") }

// fill makes the groups with their instances, then the nodes and pods.
func (r *rig) fill(ctx context.Context, nodes int) (err error) {
	for i := range r.o.groups {
		name := fmt.Sprintf("bench-%02d", i)
		r.cloud.PutLaunchTemplate(aws.LaunchTemplate{Name: name, InstanceType: "m5.4xlarge", UserData: "#!/bin/sh\n: " + name})
		size := nodes / r.o.groups
		if i < nodes%r.o.groups {
			size++
		}
		if err := r.cloud.PutGroup(aws.Group{Name: name, Max: size + 200, Desired: size, LaunchTemplate: name, Version: "$Latest", Zones: []string{"a"},
			ProtectNew: true, KeepTags: true, SuspendedProcesses: []string{"AZRebalance"},
			Tags: map[string]string{"k8s.io/cluster-autoscaler/enabled": "", "k8s.io/cluster-autoscaler/" + world.ClusterName: ""}}); err != nil {
			return err
		}
	}
	if err := until(ctx, "the instances", func() bool { return len(r.cloud.Instances()) == nodes }); err != nil {
		return err
	}
	if r.load, err = newLoad(r.cp.RESTConfig(), r.cloud, r.o.pods); err != nil {
		return err
	}
	return r.load.fill(ctx)
}

func (r *rig) startProgram(ctx context.Context) error {
	go r.load.beat(ctx)
	w := &world.World{Options: world.Options{Dir: r.dir, Providers: []string{"asg"}}, ControlPlane: r.cp}
	kubeconfig, err := w.AgentKubeconfig(ctx)
	if err != nil {
		return err
	}
	if r.wire, err = listen(strings.TrimPrefix(r.cp.Endpoint(), "https://")); err != nil {
		return err
	}
	raw, err := os.ReadFile(kubeconfig)
	if err == nil {
		err = os.WriteFile(kubeconfig, bytes.ReplaceAll(raw, []byte(r.cp.Endpoint()), []byte("https://"+r.wire.addr())), 0o600)
	}
	if err != nil {
		return err
	}
	binary, args := r.o.binary, r.o.args
	if binary == "" {
		binary, args = filepath.Join(r.dir, "autoscaler-agent"), []string{"run"}
		if err := world.BuildAgent(ctx, binary); err != nil {
			return err
		}
	} else if err := r.everyRight(ctx); err != nil {
		return err
	}
	state := filepath.Join(r.dir, "state")
	if err := os.MkdirAll(state, 0o700); err != nil {
		return err
	}
	for i, a := range args {
		args[i] = strings.NewReplacer("{kubeconfig}", kubeconfig, "{cluster}", world.ClusterName, "{metrics}", r.o.metrics).Replace(a)
	}
	log, err := os.Create(filepath.Join(r.dir, "program.log"))
	if err != nil {
		return err
	}
	defer log.Close()
	r.cmd = exec.Command(binary, args...)
	r.cmd.Stdout, r.cmd.Stderr = log, log
	r.cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "AUTOSCALER_KUBECONFIG=" + kubeconfig, "AUTOSCALER_NODE_NAME=leader", "AUTOSCALER_STATE_DIR=" + state,
		"AUTOSCALER_SOCKET=" + filepath.Join(r.dir, "agent.sock"), "AUTOSCALER_LISTEN=" + r.o.metrics, "AUTOSCALER_PROVIDER=asg", "AUTOSCALER_GROUPS_FILE=" + w.GroupsFile(),
		"AUTOSCALER_BOOTSTRAP_FILE=" + w.WorkerEnv(), "AUTOSCALER_AWS_CLUSTER_NAME=" + world.ClusterName}, r.cloud.Env()...)
	if err := os.WriteFile(w.GroupsFile(), nil, 0o600); err != nil {
		return err
	}
	began := time.Now()
	if err := r.cmd.Start(); err != nil {
		return err
	}
	r.done = make(chan struct{})
	go func() {
		_ = r.cmd.Wait() // the log tells why it ended
		close(r.done)
	}()
	if err := until(ctx, "its first decision", func() bool { return r.ended() != nil || decided(r.o.metrics) }); err != nil {
		return err
	}
	r.out.startWall, r.out.startCPU = time.Since(began), r.cpu()
	return r.ended()
}

// everyRight lets another autoscaler do what it likes: its rights are not what is measured.
func (r *rig) everyRight(ctx context.Context) error {
	_, err := r.cp.Client().RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "benchagent"},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: world.AgentUser}}}, metav1.CreateOptions{})
	return err
}

// ended tells that the program has ended, with the end of its log.
func (r *rig) ended() error {
	select {
	case <-r.done:
		raw, _ := os.ReadFile(filepath.Join(r.dir, "program.log"))
		return fmt.Errorf("it ended: %s", raw[max(0, len(raw)-2000):])
	default:
		return nil
	}
}

// decided reports whether the program's metrics tell of a finished round.
func decided(addr string) bool {
	client := http.Client{Timeout: 2 * time.Second}
	answer, err := client.Get("http://" + addr + "/metrics")
	if err != nil {
		return false
	}
	defer answer.Body.Close()
	body, _ := io.ReadAll(answer.Body)
	for line := range strings.Lines(string(body)) {
		if rest, ok := strings.CutPrefix(line, `cluster_autoscaler_last_activity{activity="main"} `); ok {
			at, err := strconv.ParseFloat(strings.TrimSpace(rest), 64)
			return err == nil && at > 0
		}
	}
	return false
}

// sample is what is counted so far.
type sample struct {
	at       time.Time
	cpu      float64
	requests int
	bytes    int64
	calls    int
}

func (r *rig) sample() sample {
	s := sample{at: time.Now(), cpu: r.cpu(), requests: requests(r.auditLog()), bytes: r.wire.received.Load()}
	for _, n := range r.cloud.Counts() {
		s.calls += n
	}
	return s
}

// per is how often a minute something was counted since.
func (s sample) per(now sample) (cpu, requests, kb, calls float64) {
	minutes := now.at.Sub(s.at).Minutes()
	return (now.cpu - s.cpu) / minutes, float64(now.requests-s.requests) / minutes, float64(now.bytes-s.bytes) / 1024 / minutes, float64(now.calls-s.calls) / minutes
}

// warm waits until what the program does once after its start is done: until it makes fewer
// than four requests a second to the API server, for 20 minutes at most.
func (r *rig) warm(ctx context.Context) error {
	const window = 15 * time.Second
	for range 80 {
		before := requests(r.auditLog())
		if err := pause(ctx, window); err != nil {
			return err
		}
		if requests(r.auditLog())-before < 60 {
			return pause(ctx, window)
		}
	}
	return errors.New("the program does not come to rest")
}

func (r *rig) measureIdle(ctx context.Context) error {
	if err := r.warm(ctx); err != nil {
		return err
	}
	before := r.sample()
	if err := pause(ctx, r.o.phase); err != nil {
		return err
	}
	var calls float64
	r.out.idleCPU, r.out.idleRequests, r.out.idleKB, calls = before.per(r.sample())
	r.out.calls = calls * 60
	r.out.rss, _ = r.memory()
	return r.ended()
}

func (r *rig) measureChurn(ctx context.Context) error {
	before := r.sample()
	bounded, cancel := context.WithTimeout(ctx, r.o.phase)
	defer cancel()
	n := r.load.churn(bounded, r.o.churn)
	r.out.churnCPU, r.out.churnRequests, r.out.churnKB, _ = before.per(r.sample())
	if want := int(r.o.phase.Seconds()) * r.o.churn; n < want*9/10 {
		fmt.Fprintf(os.Stderr, "%d pods were replaced in %s, not %d: the machine is too slow for the churn\n", n, r.o.phase, want)
	}
	return errors.Join(ctx.Err(), r.ended())
}

// settled is how long no order comes after the last one, and after kube-scheduler has judged a
// pod of each ReplicaSet: nothing is bought for pods of which it has judged none.
const settled = 20 * time.Second

func (r *rig) measureBurst(ctx context.Context) error {
	orders := func() []aws.Call {
		return r.cloud.Calls(func(c aws.Call) bool { return c.Action == "SetDesiredCapacity" && c.Done })
	}
	size := func() (n int) {
		for i := range r.o.groups {
			g, _ := r.cloud.Group(fmt.Sprintf("bench-%02d", i))
			n += g.Desired
		}
		return n
	}
	old, before, began := len(orders()), size(), time.Now()
	if err := r.load.burst(ctx, r.o.burst); err != nil {
		return err
	}
	if err := until(ctx, "the burst to be made and judged", func() bool {
		return r.ended() != nil || r.load.made(ctx, r.o.burst) && r.load.judged(ctx)
	}); err != nil {
		return err
	}
	judged := time.Now()
	err := until(ctx, "the orders for the burst", func() bool {
		list := orders()
		return r.ended() != nil || len(list) > old && time.Since(judged) > settled && time.Since(list[len(list)-1].At) > settled
	})
	if err != nil {
		return err
	}
	list := orders()
	if len(list) > old {
		r.out.burst = list[len(list)-1].At.Sub(began)
	}
	r.out.orders, r.out.bought = len(list)-old, size()-before
	for _, n := range r.cloud.Throttled() {
		r.out.throttled += n
	}
	_, r.out.peak = r.memory()
	return r.ended()
}

// stop ends everything that was started.
func (r *rig) stop() {
	if r.cmd != nil && r.cmd.Process != nil {
		_ = r.cmd.Process.Signal(os.Interrupt)
		select {
		case <-r.done:
		case <-time.After(30 * time.Second):
			_ = r.cmd.Process.Kill()
			<-r.done
		}
	}
	if r.wire != nil {
		_ = r.wire.listener.Close()
	}
	if r.cloud != nil {
		r.cloud.Close()
	}
	if r.cp != nil {
		_ = r.cp.Stop(context.Background())
	}
}

// wire passes connections on to the API server and counts what comes back.
type wire struct {
	listener net.Listener
	received atomic.Int64
}

func listen(to string) (*wire, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	w := &wire{listener: l}
	go func() {
		for {
			from, err := l.Accept()
			if err != nil {
				return
			}
			go w.pass(from, to)
		}
	}()
	return w, nil
}

func (w *wire) addr() string { return w.listener.Addr().String() }

func (w *wire) pass(from net.Conn, to string) {
	defer from.Close()
	server, err := net.Dial("tcp", to)
	if err != nil {
		return
	}
	defer server.Close()
	go func() {
		_, _ = io.Copy(server, from) // ends with either connection
		_ = server.Close()
	}()
	_, _ = io.Copy(from, io.TeeReader(server, counter{&w.received}))
}

type counter struct{ n *atomic.Int64 }

func (c counter) Write(p []byte) (int, error) {
	c.n.Add(int64(len(p)))
	return len(p), nil
}
