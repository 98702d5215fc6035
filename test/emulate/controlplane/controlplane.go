package controlplane

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Patience is how long each part may take to get ready, and whoever uses the control plane waits for it to act: the duration in
// AUTOSCALER_TEST_PATIENCE, else 120 s. An idle machine needs 3 s to get ready; 16 to 38 s were seen on a loaded one.
func Patience() (time.Duration, error) {
	set := os.Getenv("AUTOSCALER_TEST_PATIENCE")
	if set == "" {
		return 120 * time.Second, nil
	}
	d, err := time.ParseDuration(set)
	if err != nil || d <= 0 {
		return 0, fmt.Errorf("AUTOSCALER_TEST_PATIENCE=%q is no duration: write one such as 5m", set)
	}
	return d, nil
}

// Options of one control plane. The zero value is a kubeadm cluster with the
// defaults of Kubernetes, on free ports, in a temporary directory.
type Options struct {
	// Dir keeps PKI, kubeconfigs, logs and data. Empty: a temporary directory that
	// Stop removes. A directory of a former control plane that is dead is emptied
	// first; one that holds anything else is refused. Stop keeps a Dir that was given.
	Dir string
	// Log gets one line per event (nil: none). The parts' own logs are files: Log().
	Log io.Writer
	// Bin are the programs; zero asks Binaries, with its progress on Log.
	Bin Bin
	// Fast lifts the rate limits of controller manager and scheduler to 500/1000 per
	// second, for tests that count seconds. Off: the defaults that real clusters have.
	Fast bool
	// NodeMonitorGrace is how long a Node may be silent before it is NotReady, with a
	// matching monitor period. Zero: the default, 50 s. 6 s works with leases of 8 s.
	NodeMonitorGrace time.Duration
	// NodeLeaseSeconds is nodeLeaseDurationSeconds in the KubeletConfiguration that
	// joining machines read. Zero: the default, 40.
	NodeLeaseSeconds int
	// KubeadmToken keeps the token that kubeadm init always makes (random, 24 hours).
	// Off: it is deleted, and no bootstrap token stands.
	KubeadmToken bool
	// APIPort fixes the API server's port. Zero: a free one.
	APIPort int
	// CertSANs are more names and addresses for the API server's certificate, which
	// always has 127.0.0.1 and localhost.
	CertSANs []string
	// ServiceCIDR and PodCIDR default to 10.96.0.0/16 and 10.244.0.0/16. They are
	// data: nothing here dials them.
	ServiceCIDR, PodCIDR string
	// ClusterName defaults to "kubernetes", as in kubeadm.
	ClusterName string
	// ExtraArgs are appended to a part's arguments, by part name. A flag given again
	// wins over ours.
	ExtraArgs map[string][]string

	patience time.Duration
	// pick chooses ports; tests of the retry choose a busy one.
	pick func(n int) ([]int, error)
}

// ControlPlane is one running control plane. Its methods may be called from any
// goroutine.
type ControlPlane struct {
	opts  Options
	bin   Bin
	dir   string
	temp  bool
	owner *os.File
	ports struct{ api, etcd, peer, kcm, scheduler int }
	parts []*part
	rest  *rest.Config

	client kubernetes.Interface

	logMu   sync.Mutex
	stopMu  sync.Mutex
	stopped bool
}

// Parts lists the names that StopPart and its siblings take, in starting order.
func Parts() []string { return []string{Etcd, APIServer, ControllerManager, Scheduler} }

// Start starts a control plane and returns when all parts are healthy and the
// cluster is furnished as kubeadm init leaves it. ctx bounds the start only: what
// runs is ended by Stop, or by the end of this process. When a port is lost to
// another process, the start is tried once more on other ports.
func Start(ctx context.Context, opts Options) (*ControlPlane, error) {
	if opts.Bin.Dir == "" {
		bin, err := Binaries(ctx, opts.Log)
		if err != nil {
			return nil, fmt.Errorf("start control plane: %w", err)
		}
		opts.Bin = bin
	}
	opts.defaults()
	var err error
	if opts.patience, err = Patience(); err != nil {
		return nil, err
	}
	for name := range opts.ExtraArgs {
		if !slices.Contains(Parts(), name) {
			return nil, fmt.Errorf("start control plane: extra arguments: no part %q: use one of %s", name, strings.Join(Parts(), ", "))
		}
	}
	cp, err := attempt(ctx, opts)
	if err != nil && portLost(err) && ctx.Err() == nil {
		opts.pick = freePorts
		cp, err = attempt(ctx, opts)
	}
	if err != nil {
		return nil, fmt.Errorf("start control plane: %w", err)
	}
	return cp, nil
}

func (o *Options) defaults() {
	if o.ServiceCIDR == "" {
		o.ServiceCIDR = "10.96.0.0/16"
	}
	if o.PodCIDR == "" {
		o.PodCIDR = "10.244.0.0/16"
	}
	if o.ClusterName == "" {
		o.ClusterName = "kubernetes"
	}
	if o.pick == nil {
		o.pick = freePorts
	}
}

// portLost: the text comes from the part's own log, which is part of the error. A
// taken port that the caller fixed carries the error itself and is not retried.
func portLost(err error) bool {
	return strings.Contains(err.Error(), "address already in use") && !errors.Is(err, syscall.EADDRINUSE)
}

// attempt is one whole start. What it began is gone when it fails.
func attempt(ctx context.Context, opts Options) (*ControlPlane, error) {
	cp := &ControlPlane{opts: opts, bin: opts.Bin}
	began := time.Now()
	if err := cp.claimDir(); err != nil {
		return nil, err
	}
	if err := cp.bringUp(ctx); err != nil {
		return nil, errors.Join(err, cp.Stop(context.WithoutCancel(ctx)))
	}
	cp.note("ready at %s in %s (Kubernetes %s)", cp.Endpoint(), time.Since(began).Round(10*time.Millisecond), cp.bin.Version)
	return cp, nil
}

func (cp *ControlPlane) bringUp(ctx context.Context) error {
	if err := cp.choosePorts(); err != nil {
		return err
	}
	if err := cp.writeKubeadmConfig(); err != nil {
		return err
	}
	if err := cp.phase(ctx, "certs", "all"); err != nil {
		return err
	}
	cp.layOut()
	if err := cp.part(Etcd).start(); err != nil {
		return err
	}
	// etcd boots while the kubeconfigs are written.
	if err := cp.writeKubeconfigs(ctx); err != nil {
		return err
	}
	if err := cp.makeClients(); err != nil {
		return err
	}
	for _, name := range []string{Etcd, APIServer} {
		p := cp.part(name)
		if name != Etcd {
			if err := p.start(); err != nil {
				return err
			}
		}
		if err := p.ready(ctx); err != nil {
			return err
		}
	}
	g, both := errgroup.WithContext(ctx)
	for _, name := range []string{ControllerManager, Scheduler} {
		g.Go(func() error {
			if err := cp.part(name).start(); err != nil {
				return err
			}
			return cp.part(name).ready(both)
		})
	}
	g.Go(func() error { return cp.furnish(both) })
	if err := g.Wait(); err != nil {
		return err
	}
	// Until the controller manager has made it, no pod can be created.
	return cp.until(ctx, "the default service account", func(ctx context.Context) error {
		_, err := cp.client.CoreV1().ServiceAccounts("default").Get(ctx, "default", metav1.GetOptions{})
		return err
	})
}

func (cp *ControlPlane) choosePorts() error {
	free, err := cp.opts.pick(5)
	if err != nil {
		return err
	}
	if cp.opts.APIPort != 0 {
		// A fixed port that is taken would only be found out after seconds, twice.
		if err := portFree(cp.opts.APIPort); err != nil {
			return fmt.Errorf("choose ports: the fixed API port: %w", err)
		}
		free[0] = cp.opts.APIPort
	}
	cp.ports.api, cp.ports.etcd, cp.ports.peer, cp.ports.kcm, cp.ports.scheduler = free[0], free[1], free[2], free[3], free[4]
	return nil
}

// layOut fixes the arguments of every part for all of its lives.
func (cp *ControlPlane) layOut() {
	for _, name := range Parts() {
		p := &part{name: name, file: cp.bin.Path(name), log: cp.path("log/" + name + ".log"), note: cp.note, patience: cp.opts.patience}
		switch name {
		case Etcd:
			p.args, p.url = cp.etcdArgs(), loopback(cp.ports.etcd)+"/health"
		case APIServer:
			p.args, p.url = cp.apiserverArgs(), loopback(cp.ports.api)+"/readyz"
		case ControllerManager:
			p.args, p.url = cp.controllerManagerArgs(), loopback(cp.ports.kcm)+"/healthz"
		case Scheduler:
			p.args, p.url = cp.schedulerArgs(), loopback(cp.ports.scheduler)+"/healthz"
		}
		p.args = append(p.args, cp.opts.ExtraArgs[name]...)
		cp.parts = append(cp.parts, p)
	}
}

func (cp *ControlPlane) makeClients() error {
	cfg, err := clientcmd.BuildConfigFromFlags("", cp.Kubeconfig())
	if err != nil {
		return fmt.Errorf("read kubeconfig: %w", err)
	}
	cfg.QPS = -1
	cp.rest = cfg
	if cp.client, err = kubernetes.NewForConfig(cfg); err != nil {
		return fmt.Errorf("make client: %w", err)
	}
	for _, p := range cp.parts {
		switch p.name {
		case Etcd:
			p.http, err = tlsClient(cp.pki("etcd/ca.crt"), cp.pki("apiserver-etcd-client.crt"), cp.pki("apiserver-etcd-client.key"))
		default:
			// Any certificate of the cluster will do: health is open to everybody.
			p.http, err = tlsClient(cp.CAFile(), cp.pki("apiserver-kubelet-client.crt"), cp.pki("apiserver-kubelet-client.key"))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// until repeats try until it succeeds.
func (cp *ControlPlane) until(ctx context.Context, what string, try func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, cp.opts.patience)
	defer cancel()
	for {
		err := try(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for %s: %w: %w", what, ctx.Err(), err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func (cp *ControlPlane) note(format string, args ...any) {
	if cp.opts.Log == nil {
		return
	}
	cp.logMu.Lock()
	defer cp.logMu.Unlock()
	fmt.Fprintf(cp.opts.Log, "controlplane: "+format+"\n", args...)
}

// Stop ends every part and removes a temporary directory. A control plane whose
// directory is kept is shut down in order (ctx, or 10 s, bounds the wait before a
// part is killed); one whose data goes away is killed at once. It may be called
// again and then does nothing.
func (cp *ControlPlane) Stop(ctx context.Context) error {
	cp.stopMu.Lock()
	defer cp.stopMu.Unlock()
	if cp.stopped {
		return nil
	}
	cp.stopped = true
	sig, grace := syscall.SIGTERM, 10*time.Second
	if cp.temp {
		sig = syscall.SIGKILL
	}
	var g errgroup.Group
	for _, p := range cp.parts {
		if p.name != Etcd || cp.temp {
			g.Go(func() error { return p.end(ctx, sig, grace) })
		}
	}
	errs := []error{g.Wait()}
	for _, p := range cp.parts {
		errs = append(errs, p.end(ctx, sig, grace))
		// Nothing is written to Log after Stop: a test's log panics by then.
		p.watchers.Wait()
	}
	if cp.temp {
		errs = append(errs, os.RemoveAll(cp.dir))
	}
	errs = append(errs, cp.owner.Close())
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("stop control plane: %w", err)
	}
	return nil
}

func (cp *ControlPlane) path(name string) string {
	return filepath.Join(cp.dir, filepath.FromSlash(name))
}
func (cp *ControlPlane) pki(name string) string  { return cp.path("pki/" + name) }
func (cp *ControlPlane) conf(name string) string { return cp.path("conf/" + name) }
