package election

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sirupsen/logrus"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"

	"github.com/autoscaler-agent/autoscaler-agent/agent/act"
	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/wrap"
	"github.com/autoscaler-agent/autoscaler-agent/internal/testing/kubetest"
)

// leaseStore is the API server's one Lease, with resource versions.
type leaseStore struct {
	mu      sync.Mutex
	lease   *coordinationv1.Lease
	version int
	updates int
}

var leaseKind = schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}

// client reaches the store unless it is cut off.
func (s *leaseStore) client(cut func() bool) *fake.Clientset {
	c := fake.NewClientset()
	c.PrependReactor("*", "leases", func(a clienttesting.Action) (bool, runtime.Object, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if cut() {
			return true, nil, errors.New("connection refused")
		}
		switch a := a.(type) {
		case clienttesting.GetAction:
			if s.lease == nil {
				return true, nil, apierrors.NewNotFound(leaseKind, a.GetName())
			}
			return true, s.lease.DeepCopy(), nil
		case clienttesting.UpdateAction: // CreateAction has the same methods
			l := a.GetObject().(*coordinationv1.Lease).DeepCopy()
			if s.lease != nil && (a.GetVerb() == "create" || l.ResourceVersion != s.lease.ResourceVersion) {
				return true, nil, apierrors.NewConflict(leaseKind, l.Name, errors.New("it was changed"))
			}
			s.version++
			s.updates++
			l.ResourceVersion = strconv.Itoa(s.version)
			s.lease = l
			return true, l.DeepCopy(), nil
		}
		return false, nil, nil
	})
	return c
}

// stallingCloud has one group. It carries a change out when the seed says, also when
// its client has gone.
type stallingCloud struct {
	relative bool // sizes are differences, as a plug-in's are
	delay    func() time.Duration

	mu      sync.Mutex
	target  int
	demand  int // how many machines the cluster needs now
	reached time.Time
	wrong   []string
}

func (c *stallingCloud) Groups(context.Context) ([]cluster.NodeGroup, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return []cluster.NodeGroup{{ID: "g", Max: 1000, Target: c.target, ReadAt: time.Now()}}, nil
}

func (c *stallingCloud) Resize(ctx context.Context, id cluster.GroupID, from, to int) error {
	c.mu.Lock()
	is := c.target
	c.mu.Unlock()
	switch is {
	case to:
		return nil
	case from:
	default:
		return &provider.Error{Op: "resize", Group: id, Kind: provider.Conflict, Err: fmt.Errorf("target is %d, not %d", is, from)}
	}
	if err := ctx.Err(); err != nil {
		return &provider.Error{Op: "resize", Group: id, Err: err}
	}
	done := make(chan struct{})
	time.AfterFunc(c.delay(), func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		now := to
		if c.relative {
			now = c.target + to - from
		}
		if now < c.target {
			c.wrong = append(c.wrong, fmt.Sprintf("lowered from %d to %d", c.target, now))
		}
		if now > c.demand {
			c.wrong = append(c.wrong, fmt.Sprintf("raised to %d, and %d are needed", now, c.demand))
		}
		if c.target = now; now == c.demand {
			c.reached = time.Now()
		}
		close(done)
	})
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return &provider.Error{Op: "resize", Group: id, Kind: provider.Transient, Unsure: true, Err: ctx.Err()}
	}
}

func (c *stallingCloud) Delete(context.Context, cluster.GroupID, ...cluster.InstanceID) error {
	return nil
}

// candidate is one agent: its leadership, the executor and what stands between it and the cloud.
type candidate struct {
	leadership *Leadership
	stop       context.CancelFunc // of the loop
	stopLease  context.CancelFunc
	loop, held chan struct{}
	mu         sync.Mutex
	cut        bool
}

func (p *candidate) isCut() bool { p.mu.Lock(); defer p.mu.Unlock(); return p.cut }

func (p *candidate) setCut(on bool) { p.mu.Lock(); p.cut = on; p.mu.Unlock() }

// start runs an agent that wants as many machines as the cluster needs. careless is the
// agent without what this test is about.
func start(name string, store *leaseStore, cloud *stallingCloud, careless bool) *candidate {
	log := logrus.New()
	log.SetOutput(io.Discard)
	p := &candidate{loop: make(chan struct{}), held: make(chan struct{})}
	p.leadership = New(Config{Namespace: "kube-system", Name: "autoscaler-agent", Duration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 2 * time.Second},
		Deps{Identity: name, Client: kubetest.Client(store.client(p.isCut)), Log: log.WithField("service", "lease"), Heard: func() {}})
	ahead := wrap.NewWriteAhead(cloud, p.leadership.Announce)
	p.leadership.deps.Writes = ahead
	var way provider.Provider = ahead
	executor := &act.Executor{Cloud: way, Recorder: record.NewFakeRecorder(10), Log: log.WithField("service", "act"), MayAct: p.leadership.MayAct, Until: p.leadership.ActUntil}
	if careless {
		way, executor.Cloud, executor.Until = cloud, cloud, nil
	}
	ctx, stop := context.WithCancel(context.Background())
	leaseCtx, stopLease := context.WithCancel(context.Background())
	p.stop, p.stopLease = stop, stopLease
	go func() { defer close(p.held); _ = p.leadership.Run(leaseCtx, func() {}) }()
	go func() {
		defer close(p.loop)
		for ctx.Err() == nil {
			groups, err := way.Groups(ctx)
			cloud.mu.Lock()
			demand := cloud.demand
			cloud.mu.Unlock()
			if g := groups[0]; err == nil && g.Busy == "" && g.Target < demand {
				executor.Do(ctx, decision.Plan{Actions: []decision.Action{decision.Grow{Group: g.ID, From: g.Target, To: demand}}})
			}
			select {
			case <-ctx.Done():
			case <-time.After(time.Second):
			}
		}
	}()
	return p
}

// end is what systemd's stop does: the Lease goes back when the loop has ended.
func (p *candidate) end() {
	p.stop()
	<-p.loop
	p.stopLease()
	<-p.held
}

// kill ends it without a word: what it sent is on its way.
func (p *candidate) kill() {
	p.setCut(true)
	p.end()
}

// handOver plays one seed: demand rises, writes stall, and the leader changes in one of
// four ways while one is under way. It returns what went wrong, and how long the cloud
// took to be asked for the last demand.
func handOver(seed uint64, careless bool) (wrong []string, took time.Duration) {
	rng := rand.New(rand.NewPCG(seed, 17))
	var mu sync.Mutex
	upTo := func(d time.Duration) time.Duration {
		mu.Lock()
		defer mu.Unlock()
		return time.Duration(rng.Int64N(int64(d)))
	}
	var writes atomic.Int32 // the first takes long, and the second where the seed says so
	cloud := &stallingCloud{relative: seed%2 == 1}
	cloud.delay = func() time.Duration {
		if writes.Add(1) <= int32(1+seed/8%2) {
			return 45*time.Second - upTo(30*time.Second)
		}
		return 50*time.Millisecond + upTo(time.Second)
	}
	store := &leaseStore{}
	a := start("a", store, cloud, careless)
	time.Sleep(3 * time.Second)
	b := start("b", store, cloud, careless)
	need := func(more int) {
		cloud.mu.Lock()
		cloud.demand += more
		cloud.mu.Unlock()
	}
	need(1 + int(seed%5))
	time.Sleep(upTo(8 * time.Second)) // the write that was asked for is under way now, mostly
	all := []*candidate{a, b}
	switch seed / 2 % 4 {
	case 0: // the API server is out of a's reach for a while
		a.setCut(true)
		time.AfterFunc(upTo(90*time.Second), func() { a.setCut(false) })
	case 1: // a is killed
		a.kill()
	case 2: // a is killed and started again at once
		a.kill()
		all = append(all, start("a", store, cloud, careless))
	case 3: // a is stopped
		a.end()
	}
	time.Sleep(upTo(30 * time.Second))
	need(2)
	asked := time.Now()
	time.Sleep(5 * time.Minute)
	for _, p := range all {
		p.end()
	}
	cloud.mu.Lock()
	defer cloud.mu.Unlock()
	if cloud.target != cloud.demand {
		cloud.wrong = append(cloud.wrong, fmt.Sprintf("the target is %d after five minutes, and %d are needed", cloud.target, cloud.demand))
	}
	return cloud.wrong, cloud.reached.Sub(asked)
}

// TestHandOverUnderAStalledWrite: a write that the cloud carries out up to 45 s late,
// whoever leads by then, neither lowers a target nor raises it twice.
func TestHandOverUnderAStalledWrite(t *testing.T) {
	klog.SetLogger(klog.Logger{}) // the elector tells of every attempt
	defer klog.ClearLogger()
	const seeds = 200
	var waits []time.Duration
	for seed := range uint64(seeds) {
		var wrong []string
		var took time.Duration
		synctest.Test(t, func(*testing.T) { wrong, took = handOver(seed, false) })
		for _, w := range wrong {
			t.Errorf("seed %d: %s", seed, w)
		}
		waits = append(waits, took)
	}
	slices.Sort(waits)
	t.Logf("%d seeds: the last demand was met after %s in the median, %s at most", seeds, waits[seeds/2].Round(time.Second), waits[seeds-1].Round(time.Second))
	bad := 0
	for seed := range uint64(seeds) {
		synctest.Test(t, func(*testing.T) {
			if wrong, _ := handOver(seed, true); len(wrong) > 0 {
				bad++
			}
		})
	}
	t.Logf("without it %d of %d seeds go wrong", bad, seeds)
	if bad == 0 {
		t.Error("nothing goes wrong without it either: this test sees nothing")
	}
}
