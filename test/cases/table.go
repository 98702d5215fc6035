package cases

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/klog/v2"

	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/cloud/aws"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/controlplane"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/world"
)

// Options of Open.
type Options struct {
	Dir      string    // where everything is written; must exist
	Agent    string    // the agent's binary; empty: it is built
	Progress io.Writer // lines about slow steps; nil: none
}

// Backend is a simulated cluster that cases are played on in place of a control plane, and the agent in this process.
type Backend struct {
	Dir    string
	Config *rest.Config // of its API server
	// Cloud makes the AWS of a case.
	Cloud func(aws.Options) (*aws.Cloud, error)
	// Command is one of the agent's commands; Run is the agent until ctx ends.
	Command func(ctx context.Context, env []string, args ...string) (out, log string, err error)
	Run     func(ctx context.Context, env []string, log io.Writer) error
}

// On is a table on a simulated cluster.
func On(b Backend) (*Table, error) {
	t := &Table{dir: b.Dir, kubeconfig: filepath.Join(b.Dir, "kubeconfig"), patience: 2 * time.Minute, cloud: b.Cloud, command: b.Command, run: b.Run}
	err := t.connect(b.Config)
	return t, err
}

// connect makes the clients, and the kubelets.
func (t *Table) connect(cfg *rest.Config) (err error) {
	if t.client, err = kubernetes.NewForConfig(cfg); err == nil {
		t.dynamic, err = dynamic.NewForConfig(cfg)
	}
	if err != nil {
		return fmt.Errorf("make a client: %w", err)
	}
	t.mapper = restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(t.client.Discovery()))
	t.kubelet = startKubelet(t.client)
	return nil
}

// Table is a control plane that cases are played on, one after the other.
type Table struct {
	cloud                  func(aws.Options) (*aws.Cloud, error)
	command                func(ctx context.Context, env []string, args ...string) (out, log string, err error)
	run                    func(ctx context.Context, env []string, log io.Writer) error
	dir, agent, kubeconfig string
	progress               io.Writer
	patience               time.Duration
	cp                     *controlplane.ControlPlane
	client                 kubernetes.Interface
	dynamic                dynamic.Interface
	mapper                 *restmapper.DeferredDiscoveryRESTMapper
	kubelet                *kubelet
	played                 int
}

// schedulerConfig shortens the wait between two attempts at a pod: by default it grows to 10 s.
const schedulerConfig = `apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
clientConnection: {kubeconfig: %q, qps: 500, burst: 1000}
leaderElection: {leaderElect: false}
podInitialBackoffSeconds: 1
podMaxBackoffSeconds: 1
`

// Open starts a control plane and builds the agent.
func Open(ctx context.Context, o Options) (t *Table, err error) {
	if o.Progress == nil {
		o.Progress = io.Discard
	}
	klog.SetLogger(klog.Logger{}) // client-go's lines about watches that end
	patience, err := controlplane.Patience()
	if err != nil {
		return nil, err
	}
	t = &Table{dir: o.Dir, agent: o.Agent, progress: o.Progress, patience: patience, cloud: aws.New}
	t.command, t.run = t.process, t.runProcess
	defer func() {
		if err != nil {
			err = errors.Join(err, t.Close(context.WithoutCancel(ctx)))
		}
	}()
	if t.agent == "" {
		t.agent = filepath.Join(o.Dir, "autoscaler-agent")
		if err := world.BuildAgent(ctx, t.agent); err != nil {
			return t, err
		}
	}
	if err := t.startControlPlane(ctx); err != nil {
		return t, err
	}
	if err = t.connect(t.cp.RESTConfig()); err != nil {
		return t, err
	}
	if err := world.ApplyUnits(ctx, t.cp, "admission-policy.yaml", "rbac.yaml"); err != nil {
		return t, err
	}
	if t.kubeconfig, err = world.UserKubeconfig(t.cp, world.AgentUser, filepath.Join(o.Dir, "agent.kubeconfig")); err != nil {
		return t, err
	}
	return t, nil
}

func (t *Table) startControlPlane(ctx context.Context) error {
	dir := filepath.Join(t.dir, "controlplane")
	config := filepath.Join(t.dir, "scheduler.yaml")
	text := fmt.Sprintf(schedulerConfig, filepath.Join(dir, "conf", "scheduler.conf"))
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		return fmt.Errorf("configure kube-scheduler: %w", err)
	}
	bin, err := controlplane.Binaries(ctx, t.progress)
	if err != nil {
		return err
	}
	t.cp, err = controlplane.Start(ctx, controlplane.Options{
		Dir: dir, Bin: bin, Fast: true,
		NodeMonitorGrace: time.Hour, // no kubelet renews a Lease
		ExtraArgs:        map[string][]string{controlplane.Scheduler: {"--config=" + config}},
	})
	return err
}

// Close stops what Open started.
func (t *Table) Close(ctx context.Context) error {
	if t.kubelet != nil {
		t.kubelet.stop()
	}
	if t.cp != nil {
		return t.cp.Stop(ctx)
	}
	return nil
}

// resource is the client of an object's kind, in its namespace or the default one.
func (t *Table) resource(o *unstructured.Unstructured) (dynamic.ResourceInterface, error) {
	gvk := o.GroupVersionKind()
	mapping, err := t.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil { // a kind that a case has just defined
		t.mapper.Reset()
		mapping, err = t.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", gvk, err)
	}
	api := t.dynamic.Resource(mapping.Resource)
	if mapping.Scope.Name() == "root" {
		return api, nil
	}
	if o.GetNamespace() == "" {
		o.SetNamespace("default")
	}
	return api.Namespace(o.GetNamespace()), nil
}

// process runs the agent's binary and returns both of its outputs.
func (t *Table) process(ctx context.Context, env []string, args ...string) (out, log string, err error) {
	ctx, cancel := context.WithTimeout(ctx, t.patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, t.agent, args...)
	var stdout, stderr bytes.Buffer
	cmd.Env, cmd.Stdout, cmd.Stderr = env, &stdout, &stderr
	if err = cmd.Run(); err != nil {
		err = fmt.Errorf("autoscaler-agent %s: %w\n%s", strings.Join(args, " "), err, stderr.String())
	}
	return stdout.String(), stderr.String(), err
}

func ignoreNotFound(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
