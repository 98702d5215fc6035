package capi

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"
)

// Options of a Cloud. Zero values are usable but for Config and Namespace.
type Options struct {
	Config    *rest.Config // of an administrator of the management cluster
	Namespace string       // that the controllers work in; it must exist
	// Group and Version of the objects; empty: cluster.x-k8s.io, v1beta2.
	Group, Version string
	// Provision is how long an instance takes to run, Boot from then to its Node,
	// Terminate from its deletion to its end, Retry between attempts to start one.
	Provision, Boot, Terminate, Retry time.Duration
	// Lag is how late the controllers see Machines: their caches of Machines and of
	// counts are fed by watches of their own.
	Lag time.Duration
	// ProviderID is the provider ID of a Machine's instance; nil: emulated:///NAMESPACE/NAME.
	ProviderID func(machine string) string
	// Started is called with every instance that runs, and Ended when it runs no more.
	// Without Started, a Machine gets a nodeRef after Boot, and no Node is made.
	Started func(Instance)
	Ended   func(providerID string)
	// NodeOf finds the Node of an instance, for nodeRef; used with Started.
	NodeOf func(ctx context.Context, providerID string) string
	// DeleteNode deletes the Node of a Machine whose instance has ended, as Cluster API
	// does before it lets the Machine go; nil: nobody does.
	DeleteNode func(ctx context.Context, name string) error
	// RealCore says that Cluster API's own controllers run: only the infrastructure
	// provider is emulated. Lag, NodeOf, DeleteNode and Freeze are theirs then.
	RealCore bool
	Log      io.Writer
	Seed     uint64
}

// Instance is a machine of the emulated cloud.
type Instance struct {
	Machine    string // the Machine object's name
	ProviderID string
	Address    string
	Group      string // name of the MachineDeployment, MachineSet or MachinePool
	Secret     string // bootstrap.dataSecretName
	Template   string // infrastructureRef.name
	Alive      bool

	started, ended time.Time
	booted         bool
}

// Cloud runs the controllers of one namespace.
type Cloud struct {
	Options
	client dynamic.Interface
	cancel context.CancelFunc
	wg     sync.WaitGroup
	poke   chan struct{}
	random *rand.Rand // the controllers' own

	working sync.Mutex // held during a reconciliation

	mu        sync.Mutex
	instances map[string]*Instance // by Machine name
	quota     int                  // 0: none
	refusal   Refusal              // of every new instance; zero: none
	frozen    bool                 // the controllers do nothing
	seq       int
	next      time.Time     // when a delay is over
	fault     error         // the last reconciliation's
	looks     int           // reconciliations that have begun
	unsettled string        // what the last of them found to do
	looked    chan struct{} // closed at the next look
}

// New starts the controllers.
func New(o Options) (*Cloud, error) {
	if o.Group == "" {
		o.Group = Group
	}
	if o.Version == "" {
		o.Version = "v1beta2"
	}
	if o.Retry == 0 {
		o.Retry = 100 * time.Millisecond
	}
	if o.Log == nil {
		o.Log = io.Discard
	}
	if o.Seed == 0 {
		o.Seed = 1
	}
	cfg := rest.CopyConfig(o.Config)
	cfg.RateLimiter = flowcontrol.NewFakeAlwaysRateLimiter()
	cfg.WarningHandler = rest.NoWarnings{} // v1beta1 is deprecated, and spoken on purpose
	client, err := dynamic.NewForConfig(cfg)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	c := &Cloud{Options: o, client: client, cancel: cancel, poke: make(chan struct{}, 1),
		random: rand.New(rand.NewPCG(o.Seed, 0)), instances: map[string]*Instance{}, looked: make(chan struct{})}
	watched := []dynamic.ResourceInterface{c.Resource("machinedeployments"), c.Resource("machinesets"), c.Resource("machines"), c.Resource("machinepools")}
	if o.RealCore {
		watched = []dynamic.ResourceInterface{c.Resource("machines"), c.infra("emulatedclusters"), c.infra("emulatedcontrolplanes"), c.infra("emulatedmachines")}
	}
	for _, resource := range watched {
		c.wg.Go(func() { c.watch(ctx, resource) })
	}
	c.wg.Go(func() { c.run(ctx) })
	return c, nil
}

// Close stops the controllers.
func (c *Cloud) Close() {
	c.cancel()
	c.wg.Wait()
}

func (c *Cloud) gvr(resource string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: c.Group, Version: c.Version, Resource: resource}
}

// Resource is the namespaced client of one of Cluster API's resources.
func (c *Cloud) Resource(resource string) dynamic.ResourceInterface {
	return c.client.Resource(c.gvr(resource)).Namespace(c.Namespace)
}

func (c *Cloud) wake() {
	select {
	case c.poke <- struct{}{}:
	default:
	}
}

// watch wakes the controllers at every event; a watch that ends is begun again.
func (c *Cloud) watch(ctx context.Context, resource dynamic.ResourceInterface) {
	for ctx.Err() == nil {
		w, err := resource.Watch(ctx, metav1.ListOptions{})
		if err != nil {
			pause(ctx, 200*time.Millisecond)
			continue
		}
		c.wake()
		for range w.ResultChan() {
			c.wake()
		}
	}
}

func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}

// run reconciles everything after each event and when a delay is over.
func (c *Cloud) run(ctx context.Context) {
	for {
		c.mu.Lock()
		wait := 500 * time.Millisecond
		if !c.next.IsZero() {
			wait = max(time.Until(c.next), time.Millisecond)
		}
		c.mu.Unlock()
		t := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			t.Stop()
			return
		case <-c.poke:
			// Events come in swarms, and a reconciliation sees them all.
			pause(ctx, 4*time.Millisecond)
			select {
			case <-c.poke:
			default:
			}
		case <-t.C:
		}
		t.Stop()
		c.working.Lock()
		c.mu.Lock()
		frozen := c.frozen
		c.next = time.Time{}
		c.mu.Unlock()
		var err error
		switch {
		case frozen:
		case c.RealCore:
			err = c.provide(ctx)
		default:
			err = c.reconcile(ctx)
		}
		c.working.Unlock()
		if frozen {
			continue
		}
		c.mu.Lock()
		c.fault = err
		c.mu.Unlock()
		if err != nil && ctx.Err() == nil {
			fmt.Fprintf(c.Log, "%s reconcile: %v\n", time.Now().UTC().Format(time.RFC3339Nano), err)
			c.due(50 * time.Millisecond)
		}
	}
}

// due asks for a reconciliation after d.
func (c *Cloud) due(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if at := time.Now().Add(d); c.next.IsZero() || at.Before(c.next) {
		c.next = at
	}
}

// Freeze stops the controllers from doing anything, as a management cluster whose
// controller manager is down. What is under way has ended when it returns.
func (c *Cloud) Freeze(on bool) {
	c.working.Lock()
	c.mu.Lock()
	c.frozen = on
	c.mu.Unlock()
	c.working.Unlock()
	c.wake()
}

// Quota limits the instances that may run; 0 lifts the limit.
func (c *Cloud) Quota(n int) {
	c.mu.Lock()
	c.quota = n
	c.mu.Unlock()
	c.wake()
}

// Refusal is why the emulated infrastructure starts no instance.
type Refusal struct {
	Reason, Text string
	// Terminal makes Cluster API give the Machine up: it is Failed.
	Terminal bool
}

// Refuse refuses every new instance; the zero Refusal ends it.
func (c *Cloud) Refuse(r Refusal) {
	c.mu.Lock()
	c.refusal = r
	c.mu.Unlock()
	c.wake()
}

// Instances are all that ever ran.
func (c *Cloud) Instances() []Instance {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []Instance
	for _, i := range c.instances {
		out = append(out, *i)
	}
	return out
}

// Unsettled says what the controllers have still to do; empty: nothing.
func (c *Cloud) Unsettled(ctx context.Context) string {
	w, err := c.look(ctx)
	if err != nil {
		return err.Error()
	}
	return c.judge(w)
}

func (c *Cloud) judge(w world) string {
	c.mu.Lock()
	limited, fault := c.quota > 0 || c.refusal.Text != "", c.fault
	c.mu.Unlock()
	if fault != nil {
		return fault.Error()
	}
	for _, d := range w.deployments {
		sets := slices.DeleteFunc(w.setsOf(d), func(s object) bool { return replicas(s) == 0 && len(w.machinesOf("MachineSet", s)) == 0 })
		if n := replicas(d); n > 0 && (len(sets) != 1 || replicas(sets[0]) != n) || n == 0 && len(sets) > 0 || c.unseen(d) {
			return d.GetName() + " has a rollout or a scaling to do"
		}
	}
	for _, s := range w.sets {
		if c.unseen(s) {
			return s.GetName() + " was not looked at"
		}
		if n := len(w.machinesOf("MachineSet", s)); n != replicas(s) {
			return fmt.Sprintf("%s has %d machines and wants %d", s.GetName(), n, replicas(s))
		}
	}
	for _, p := range w.pools {
		if n := len(w.machinesOf("MachinePool", p)); n != replicas(p) {
			return fmt.Sprintf("%s has %d machines and wants %d", p.GetName(), n, replicas(p))
		}
	}
	for _, m := range w.machines {
		phase := str(m, "status", "phase")
		switch {
		case m.GetDeletionTimestamp() != nil:
			return m.GetName() + " is being deleted"
		case phase == "Running", givenUp(m):
		case phase != "Provisioned" && limited && blocked(m):
		default:
			return m.GetName() + " is " + phase
		}
	}
	return ""
}

// unseen tells whether the real controller has still to look at an object.
func (c *Cloud) unseen(o object) bool {
	seen, _, _ := unstructured.NestedInt64(o.Object, "status", "observedGeneration")
	return c.RealCore && seen < o.GetGeneration()
}

// told notes what a reconciliation saw before it did anything.
func (c *Cloud) told(why string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.looks++
	c.unsettled = why
	close(c.looked)
	c.looked = make(chan struct{})
}

// Settle waits until nothing is left to do. It goes by what the controllers themselves
// see, in a look that begins after the call: looks of its own would be most of the work
// that a test gives an API server.
func (c *Cloud) Settle(ctx context.Context) error {
	c.mu.Lock()
	frozen, first := c.frozen, c.looks+2 // one look may have begun
	c.mu.Unlock()
	if frozen || c.RealCore {
		return c.poll(ctx)
	}
	for {
		c.mu.Lock()
		why, fresh, looked := c.unsettled, c.looks >= first, c.looked
		c.mu.Unlock()
		if fresh && why == "" {
			return nil
		}
		if !fresh {
			c.wake()
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("not settled: %s", why)
		case <-looked:
		}
	}
}

// poll is Settle where the controllers are stopped, or are not these.
func (c *Cloud) poll(ctx context.Context) error {
	tick := time.NewTicker(50 * time.Millisecond) // each look is four lists
	defer tick.Stop()
	last := "not looked"
	for {
		why := c.Unsettled(ctx)
		if ctx.Err() == nil {
			last = why
		}
		if why == "" {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("not settled: %s", last)
		case <-tick.C:
		}
	}
}

func str(u *unstructured.Unstructured, fields ...string) string {
	s, _, _ := unstructured.NestedString(u.Object, fields...)
	return s
}

func replicas(u *unstructured.Unstructured) int {
	n, _, _ := unstructured.NestedInt64(u.Object, "spec", "replicas")
	return int(n)
}
