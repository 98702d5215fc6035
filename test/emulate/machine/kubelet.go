package machine

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	certificatesv1client "k8s.io/client-go/kubernetes/typed/certificates/v1"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
)

// kubelet is one run of a machine's kubelet: from start until the machine reboots,
// hangs or dies.
type kubelet struct {
	m      *Machine
	id     *identity
	bootID string

	core   corev1client.CoreV1Interface
	leases coordinationv1client.CoordinationV1Interface
	csrs   certificatesv1client.CertificatesV1Interface

	server *server
	wg     sync.WaitGroup

	mu       sync.Mutex
	pods     map[types.UID]*podState
	used     usage
	ended    float64          // cpu seconds of the pods that are gone
	devices  map[string]int64 // what device plugins have reported since the start
	ready    bool
	statusMu sync.Mutex
}

// newKubelet takes over what survives on disk from the run before: port and serving certificate.
func newKubelet(m *Machine, id *identity, bootID string, last *kubelet) *kubelet {
	k := &kubelet{m: m, id: id, bootID: bootID, pods: map[types.UID]*podState{}, server: newServer(m.cfg.Addresses)}
	if last != nil {
		k.server.port, k.server.pair = last.server.port, last.server.pair
	}
	return k
}

// connect makes the clients over one connection: each machine has a transport of
// its own because each has its own certificate.
func (k *kubelet) connect() (*http.Client, error) {
	client, err := rest.HTTPClientFor(k.id.rest)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	var errs [3]error
	k.core, errs[0] = corev1client.NewForConfigAndClient(k.id.rest, client)
	k.leases, errs[1] = coordinationv1client.NewForConfigAndClient(k.id.rest, client)
	k.csrs, errs[2] = certificatesv1client.NewForConfigAndClient(k.id.rest, client)
	return client, errors.Join(errs[:]...)
}

// run returns when ctx has ended and every goroutine of the run with it.
func (k *kubelet) run(ctx context.Context) {
	client, err := k.connect()
	if err != nil {
		k.m.setErr(err)
		return
	}
	defer client.CloseIdleConnections()
	if err := k.server.listen(k); err != nil {
		k.m.setErr(err)
		return
	}
	defer k.server.close()
	if !k.retry(ctx, "register", k.register) {
		return
	}
	k.m.mark(func(t *Times) {
		if t.Registered.IsZero() {
			t.Registered = time.Now()
		}
	})
	for _, loop := range []func(context.Context){k.heartbeat, k.becomeReady, k.serving, k.watchPods, k.begin} {
		k.wg.Go(func() { loop(ctx) })
	}
	<-ctx.Done()
	k.wg.Wait()
}

// retry calls f until it succeeds, with a growing wait between, and tells whether
// ctx lasted.
func (k *kubelet) retry(ctx context.Context, what string, f func(context.Context) error) bool {
	for wait := 100 * time.Millisecond; ; wait = min(2*wait, 5*time.Second) {
		err := f(ctx)
		if err == nil {
			return true
		}
		if ctx.Err() != nil {
			return false
		}
		fmt.Fprintf(k.m.console, "kubelet: %s: %v\n", what, err)
		if !pause(ctx, wait) {
			return false
		}
	}
}

// heartbeat renews the Node's Lease and refreshes the Node's status, at the
// kubelet's own rates: a quarter of the lease's length, and five minutes; the status
// sooner where somebody else (the node controller, after an outage) has changed what
// it says of the kubelet, which is looked at every ten seconds.
func (k *kubelet) heartbeat(ctx context.Context) {
	seconds := k.leaseSeconds()
	ticker := time.NewTicker(time.Duration(seconds) * time.Second / 4)
	defer ticker.Stop()
	reported, looked := time.Now(), time.Now()
	for {
		if err := k.renewLease(ctx, seconds); err != nil && ctx.Err() == nil {
			fmt.Fprintf(k.m.console, "kubelet: renew lease: %v\n", err)
		}
		changed := false
		if time.Since(looked) > 10*time.Second {
			looked, changed = time.Now(), k.overruled(ctx)
		}
		if changed || time.Since(reported) > 5*time.Minute {
			reported = time.Now()
			k.retry(ctx, "report status", k.reportStatus)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// overruled tells whether the Node says another readiness than this kubelet's.
func (k *kubelet) overruled(ctx context.Context) bool {
	node, err := k.core.Nodes().Get(ctx, k.name(), metav1.GetOptions{ResourceVersion: "0"})
	if err != nil {
		return false
	}
	k.mu.Lock()
	ready := k.ready
	k.mu.Unlock()
	return ready && slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status != corev1.ConditionTrue
	})
}

func (k *kubelet) leaseSeconds() int32 {
	if n := k.id.config.NodeLeaseDurationSeconds; n > 0 {
		return n
	}
	return 40
}

// becomeReady waits for what a real kubelet waits for (its network plugin) and
// reports Ready.
func (k *kubelet) becomeReady(ctx context.Context) {
	if !pause(ctx, k.m.cfg.ReadyDelay) {
		return
	}
	k.mu.Lock()
	k.ready = true
	k.mu.Unlock()
	if !k.retry(ctx, "report ready", k.reportStatus) {
		return
	}
	k.m.mark(func(t *Times) {
		if t.Ready.IsZero() {
			t.Ready = time.Now()
		}
	})
}
