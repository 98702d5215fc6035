package csrsigner

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sirupsen/logrus"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/csrsigner/ledger"
	"github.com/autoscaler-agent/autoscaler-agent/csrsigner/queue"
	"github.com/autoscaler-agent/autoscaler-agent/csrsigner/rules"
	"github.com/autoscaler-agent/autoscaler-agent/internal/kube"
)

// Inventory is the cloud as the scaler reads it.
type Inventory interface {
	// Groups returns every node group, read from the cloud no longer than maxAge ago;
	// it asks the cloud again when its last whole read is older.
	Groups(ctx context.Context, maxAge time.Duration) ([]cluster.NodeGroup, error)
}

// Metrics counts. Labels are names and values in turn.
type Metrics interface {
	Count(name string, labels ...string)
}

// Events is the part of client-go's record.EventRecorder that is used.
type Events interface {
	Event(object runtime.Object, eventtype, reason, message string)
}

// Deps is what the service works with. Client, Rest, Informers, Inventory and Log are
// needed. A nil MayAct means that this agent may always act; nil Metrics and Events are
// silent.
type Deps struct {
	Client *kube.Client
	// Rest leads to the API server whose certificate names are forbidden to workers.
	Rest *rest.Config
	// Informers gives the Nodes; package agent starts it after New.
	Informers *kube.Informers
	Inventory Inventory
	Log       *logrus.Entry
	Events    Events
	Metrics   Metrics
	// MayAct tells whether this agent leads, and if not, why not.
	MayAct func() (bool, string)
	// ActUntil tells until when MayAct's yes holds if nothing renews it: no write of this
	// service outlives it; the zero time: none may begin. nil: it has no end.
	ActUntil func() time.Time
	// Forbidden replaces the reading of what R9 protects; nil reads it from the
	// cluster.
	Forbidden func(context.Context) (*rules.Forbidden, error)
	// OwnNode is the name of the Node that the agent runs on; empty: it is none, and no
	// control-plane Node's request is approved.
	OwnNode string
	// Self replaces the reading of this host's names and addresses (R16).
	Self func() rules.Self
	// Machines are the operator's own inventory as it is now; nil: there is none.
	Machines func() []rules.Machine
	// ControlPlane is the operator's list of the control plane's machines (R21); nil: there is none.
	ControlPlane func() []rules.Machine

	// The rest is for the closed join (Config.Join).

	// TokenGroup is the auth group of the agent's own join tokens.
	TokenGroup string
	// Token looks a bootstrap token up by its ID. An error means that nothing is known.
	Token func(ctx context.Context, id string) (rules.Token, error)
	// ReapStale makes a Node go whose name a new machine wants: nil once there is none of
	// that name. It deletes only that very object (UID precondition), and only once its
	// machine is proven gone; an error says what holds it. It returns when ctx ends, and
	// is asked again later. nil: such a join waits until the nodecleaner has
	// deleted the Node by itself.
	ReapStale func(ctx context.Context, node string) error
	// StateDir is where the ledger of joined machines is kept; empty: in memory only.
	StateDir string
}

// Rhythm of the loop. The rules' own times are in Config.
const (
	workers        = joinListSize           // judgements at a time: joins that wait for one update of the list fill it
	judgeTimeout   = 30 * time.Second       // one judgement, cloud calls included
	idleBeat       = 10 * time.Second       // the longest wait between two beats
	waitLeader     = time.Second            // between two looks at MayAct
	sweepEvery     = time.Minute            // all pending requests are looked for again
	countEvery     = 5 * time.Second        // between two counts of what is pending
	reapPatience   = time.Second            // how long a judgement waits for a stale Node to go
	forbiddenTTL   = 10 * time.Minute       // how long what R9 protects is remembered
	justNow        = time.Second            // what was read so lately says all that there is to say
	refetchAge     = 200 * time.Millisecond // how new an inventory is asked for when the first says no
	refetchBurst   = 10                     // such reads at once ...
	refetchPerHour = 1800                   // ... and per hour, for all Nodes together; the same for all joins
)

// Service approves kubelets' certificates: serving ones, and, in a closed join, the
// client certificates of machines that come.
type Service struct {
	cfg    Config
	deps   Deps
	log    *logrus.Entry
	nodes  corelisters.NodeLister
	ready  []cache.InformerSynced
	csrs   cache.SharedIndexInformer
	joins  cache.SharedIndexInformer // nil: the join is open
	queue  *queue.Queue
	ledger *ledger.Ledger
	list   *joinList

	refused      atomic.Bool // that requests may not be watched was told
	runs         atomic.Bool // Run has begun: approvals that are seen are kept
	mu           sync.Mutex
	allowances   map[string]*allowance // by key
	refetches    map[string]*bucket    // by signer
	refetchedAt  time.Time
	protecting   chan struct{} // held by the one that reads forbidden
	forbidden    *rules.Forbidden
	forbiddenAt  time.Time
	forbiddenErr string
	alarm        string   // why it rings; empty: it does not
	recent       []Judged // the newest at the end
	control      []string // names of the control plane, read at controlAt
	controlAt    time.Time
}

// New wires the service into the informers. cfg has been validated.
func New(cfg Config, deps Deps) *Service {
	if deps.MayAct == nil {
		deps.MayAct = func() (bool, string) { return true, "" }
	}
	if deps.Forbidden == nil {
		deps.Forbidden = func(ctx context.Context) (*rules.Forbidden, error) {
			return ReadForbidden(ctx, deps.Client, deps.Rest, cfg)
		}
	}
	deps.OwnNode = rules.CanonicalName(deps.OwnNode) // kubeadm lower-cases the host name
	if deps.Self == nil {
		deps.Self = func() rules.Self { return readSelf(deps.OwnNode, cfg.SelfNames) }
	}
	nodes := deps.Informers.Nodes()
	s := &Service{cfg: cfg, deps: deps, log: deps.Log, nodes: deps.Informers.NodeLister(), queue: queue.New(), allowances: map[string]*allowance{}, protecting: make(chan struct{}, 1),
		refetches: map[string]*bucket{rules.ServingSigner: {tokens: refetchBurst}, rules.ClientSigner: {tokens: refetchBurst}}}
	s.csrs = s.watch(rules.ServingSigner)
	s.ready = []cache.InformerSynced{s.csrs.HasSynced, nodes.HasSynced}
	if s.closed() {
		s.ledger = ledger.Open(deps.StateDir, deps.Log)
		s.joins = s.watch(rules.ClientSigner)
		s.list = newJoinList(deps.Client, deps.Log, s.isPending)
		s.ready = append(s.ready, s.joins.HasSynced)
	}
	_, _ = nodes.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { s.wakeNode(o) },
		UpdateFunc: func(_, o any) { s.wakeNode(o) },
		DeleteFunc: func(o any) { s.wakeNode(o) },
	})
	return s
}

// closed tells whether the agent alone lets machines join with its tokens.
func (s *Service) closed() bool { return s.cfg.Join == JoinClosed && s.deps.TokenGroup != "" }

// watch makes the informer of one signer's requests.
func (s *Service) watch(signer string) cache.SharedIndexInformer {
	requests := kube.ListWatch(s.deps.Client, s.deps.Client.CertificatesV1().CertificateSigningRequests(), func(o *metav1.ListOptions) {
		o.FieldSelector = fields.OneTermEqualSelector("spec.signerName", signer).String()
	})
	// The requests themselves are read live when they are judged, so that a flood of
	// large ones does not live in memory.
	i := kube.NewInformer(requests, &certificatesv1.CertificateSigningRequest{}, s.slim)
	_ = i.AddIndexers(cache.Indexers{byKey: s.indexKey, byGranted: indexGranted})
	_ = i.SetWatchErrorHandler(s.watchFailed)
	_, _ = i.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { s.wake(o); s.learn(o) },
		UpdateFunc: func(old, o any) { s.wake(o); s.learn(o); s.wakeRivals(old, o) },
		DeleteFunc: func(o any) { s.wakeRivals(o, nil) },
	})
	return i
}

// watchFailed says once that requests may not be watched: without them nothing is
// approved. A lost connection is the reflector's own business, and the agent's.
func (s *Service) watchFailed(_ *cache.Reflector, err error) {
	if apierrors.IsForbidden(err) && s.refused.CompareAndSwap(false, true) {
		s.log.WithField("why", err.Error()).Warn("no certificate is approved: the requests may not be watched (kubectl apply -f rbac.yaml)")
	}
}

func (s *Service) wake(o any) {
	if keys, _ := s.indexKey(o); len(keys) == 1 {
		s.queue.Add(keys[0], time.Now())
	}
}

// wakeRivals judges again what J16 holds when a join is decided or deleted: it may have
// been the other key.
func (s *Service) wakeRivals(before, after any) {
	if gone, ok := before.(cache.DeletedFinalStateUnknown); ok {
		before = gone.Obj
	}
	was, _ := s.indexKey(before)
	is, _ := s.indexKey(after)
	if len(was) == 1 && len(is) == 0 && strings.HasPrefix(was[0], joinPrefix) {
		s.queue.HurryHeld(rules.RuleRival, time.Now())
	}
}

// wakeNode judges again what waited for this Node, or for its end.
func (s *Service) wakeNode(o any) {
	if gone, ok := o.(cache.DeletedFinalStateUnknown); ok {
		o = gone.Obj
	}
	if n, ok := o.(*corev1.Node); ok {
		s.queue.Hurry(rules.UserPrefix+n.Name, time.Now())
		s.queue.Hurry(joinPrefix+n.Name, time.Now())
	}
}

// Run judges until ctx ends. It beats after every dispatch; when all workers hang
// it does not.
func (s *Service) Run(ctx context.Context, beat func()) error {
	s.runs.Store(true)
	var running sync.WaitGroup
	defer running.Wait()
	running.Go(func() { s.csrs.Run(ctx.Done()) })
	if s.joins != nil {
		running.Go(func() { s.joins.Run(ctx.Done()) })
		running.Go(func() { s.tellProof(ctx) })
	}
	if !s.synced(ctx, beat) {
		return nil
	}
	slots := make(chan struct{}, workers)
	var swept, counted, noted time.Time
	pruned := time.Now()
	for ctx.Err() == nil {
		beat()
		wait := idleBeat
		now := time.Now()
		if now.Sub(counted) >= countEvery {
			counted = now
			s.ring()
		}
		if s.ledger != nil && now.Sub(noted) >= ledger.NoteEvery {
			noted = now
			s.noteWatch(now)
		}
		if may, _ := s.deps.MayAct(); !may {
			if s.ledger != nil && now.Sub(pruned) >= ledger.Keep {
				pruned = now
				s.pruneStandby(ctx, now)
			}
			sleep(ctx, waitLeader, nil)
			continue
		}
		if now.Sub(swept) >= sweepEvery {
			swept = now
			s.sweep(ctx, now)
		}
		key, next, ok := s.queue.Take(now)
		if !ok {
			if !next.IsZero() {
				wait = min(wait, max(next.Sub(now), 0))
			}
			sleep(ctx, wait, s.queue.Changed())
			continue
		}
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
			return nil
		}
		running.Go(func() {
			defer func() { <-slots }()
			s.turn(ctx, key)
		})
	}
	return nil
}

// noteWatch has the ledger keep that this agent still sees every approval.
func (s *Service) noteWatch(now time.Time) {
	if err := s.ledger.Watches(now); err != nil {
		s.log.WithError(err).Warn("that approvals are watched is not kept: after a restart machines that were launched an hour before are held")
	}
}

func (s *Service) synced(ctx context.Context, beat func()) bool {
	for ctx.Err() == nil {
		beat()
		done := true
		for _, f := range s.ready {
			done = done && f()
		}
		if done {
			return true
		}
		sleep(ctx, 20*time.Millisecond, nil)
	}
	return false
}

// sweep finds again what an event may have been lost for, and forgets allowances
// that are whole again and machines that are gone.
func (s *Service) sweep(ctx context.Context, now time.Time) {
	for _, i := range s.informers() {
		for _, key := range i.GetIndexer().ListIndexFuncValues(byKey) {
			s.queue.Ensure(key, now)
		}
	}
	if s.ledger != nil {
		if groups, err := s.deps.Inventory.Groups(ctx, ledger.PruneAge); err == nil {
			s.ledger.Prune(groups, now)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, b := range s.allowances {
		if b.full(now) {
			delete(s.allowances, key)
		}
	}
}

func (s *Service) informers() []cache.SharedIndexInformer {
	if s.joins == nil {
		return []cache.SharedIndexInformer{s.csrs}
	}
	return []cache.SharedIndexInformer{s.csrs, s.joins}
}

// turn judges the newest request of one key and says when to look again.
func (s *Service) turn(ctx context.Context, key string) {
	ctx, cancel := context.WithTimeout(ctx, judgeTimeout)
	defer cancel()
	csr := s.newest(key)
	if csr == nil {
		s.queue.Done(key, time.Now())
		return
	}
	outcome, err := s.judge(ctx, key, csr)
	if err != nil && !errors.Is(err, context.Canceled) {
		s.log.WithFields(logrus.Fields{"csr": csr.Name, "node": nodeOfKey(key)}).WithError(err).Warn("certificate request is not decided yet")
	}
	s.queue.Again(key, time.Now(), outcome)
}

func sleep(ctx context.Context, d time.Duration, sooner <-chan struct{}) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	case <-sooner:
	}
}
