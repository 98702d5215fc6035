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
	"k8s.io/client-go/informers"
	certinformers "k8s.io/client-go/informers/certificates/v1"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
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

// Deps is what the service works with. All fields are needed, except that a nil
// MayAct means that this agent may always act, and that nil Metrics and Events are
// silent.
type Deps struct {
	Client kubernetes.Interface
	// Rest leads to the API server whose certificate names are forbidden to workers.
	Rest *rest.Config
	// Informers gives the Nodes; package agent starts it after New.
	Informers informers.SharedInformerFactory
	Inventory Inventory
	Log       *logrus.Entry
	Events    Events
	Metrics   Metrics
	// MayAct tells whether this agent leads, and if not, why not.
	MayAct func() (bool, string)
	// Forbidden replaces the reading of what R9 protects; nil reads it from the
	// cluster.
	Forbidden func(context.Context) (*Forbidden, error)
}

// Rhythm of the loop. The rules' own times are in Config.
const (
	workers        = 8                      // judgements at a time
	judgeTimeout   = 30 * time.Second       // one judgement, cloud calls included
	idleBeat       = 10 * time.Second       // the longest wait between two beats
	waitLeader     = time.Second            // between two looks at MayAct
	sweepEvery     = time.Minute            // all pending requests are looked for again
	firstRetry     = 250 * time.Millisecond // doubles ...
	lastRetry      = time.Minute            // ... up to this
	settledRetry   = 5 * time.Minute        // after the Warning event
	sameNodePause  = 50 * time.Millisecond  // between two judgements for one Node
	forbiddenTTL   = 10 * time.Minute       // how long what R9 protects is remembered
	justNow        = time.Second            // an inventory read so lately says all that there is to say
	refetchAge     = 200 * time.Millisecond // how new an inventory is asked for when the first says no
	refetchBurst   = 10                     // such reads at once ...
	refetchPerHour = 1800                   // ... and per hour, for all Nodes together
)

const byRequester = "requester"

// Service approves kubelet serving certificates.
type Service struct {
	cfg   Config
	deps  Deps
	log   *logrus.Entry
	nodes corelisters.NodeLister
	ready []cache.InformerSynced
	csrs  cache.SharedIndexInformer
	queue *queue

	refused      atomic.Bool // that requests may not be watched was told
	mu           sync.Mutex
	allowances   map[string]*bucket // by requester
	refetches    bucket
	refetchedAt  time.Time
	forbidden    *Forbidden
	forbiddenAt  time.Time
	forbiddenErr string
}

// New wires the service into the informers. cfg has been validated.
func New(cfg Config, deps Deps) *Service {
	if deps.MayAct == nil {
		deps.MayAct = func() (bool, string) { return true, "" }
	}
	if deps.Forbidden == nil {
		deps.Forbidden = func(ctx context.Context) (*Forbidden, error) {
			return readForbidden(ctx, deps.Client, deps.Rest, cfg)
		}
	}
	nodes := deps.Informers.Core().V1().Nodes()
	s := &Service{cfg: cfg, deps: deps, log: deps.Log, nodes: nodes.Lister(), queue: newQueue(),
		allowances: map[string]*bucket{}, refetches: bucket{tokens: refetchBurst}}
	s.csrs = certinformers.NewFilteredCertificateSigningRequestInformer(deps.Client, 0,
		cache.Indexers{byRequester: indexRequester}, func(o *metav1.ListOptions) {
			o.FieldSelector = fields.OneTermEqualSelector("spec.signerName", signerName).String()
		})
	// The requests themselves are read live when they are judged, so that a flood of
	// large ones does not live in memory.
	_ = s.csrs.SetTransform(slim)
	_ = s.csrs.SetWatchErrorHandler(s.watchFailed)
	_, _ = s.csrs.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { s.wake(o) },
		UpdateFunc: func(_, o any) { s.wake(o) },
	})
	_, _ = nodes.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { s.wakeNode(o) },
		UpdateFunc: func(_, o any) { s.wakeNode(o) },
	})
	s.ready = []cache.InformerSynced{s.csrs.HasSynced, nodes.Informer().HasSynced}
	return s
}

// watchFailed says once that requests may not be watched: without them nothing is
// approved. A lost connection is the reflector's own business, and the agent's.
func (s *Service) watchFailed(_ *cache.Reflector, err error) {
	if apierrors.IsForbidden(err) && s.refused.CompareAndSwap(false, true) {
		s.log.WithField("why", err.Error()).Warn("no certificate is approved: the requests may not be watched (kubectl apply -f rbac.yaml)")
	}
}

// slim keeps of a request what the queue needs.
func slim(o any) (any, error) {
	csr, ok := o.(*certificatesv1.CertificateSigningRequest)
	if !ok {
		return o, nil
	}
	out := &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{Name: csr.Name, UID: csr.UID, ResourceVersion: csr.ResourceVersion,
			CreationTimestamp: csr.CreationTimestamp, DeletionTimestamp: csr.DeletionTimestamp},
		Spec: certificatesv1.CertificateSigningRequestSpec{SignerName: csr.Spec.SignerName, Username: csr.Spec.Username},
	}
	for _, c := range csr.Status.Conditions {
		out.Status.Conditions = append(out.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{Type: c.Type, Status: c.Status})
	}
	if len(csr.Status.Certificate) > 0 {
		out.Status.Certificate = []byte{0}
	}
	return out, nil
}

// indexRequester files pending requests of nodes under their requester.
func indexRequester(o any) ([]string, error) {
	csr, ok := o.(*certificatesv1.CertificateSigningRequest)
	if !ok || csr.Spec.SignerName != signerName || settled(csr) != "" || !strings.HasPrefix(csr.Spec.Username, userPrefix) {
		return nil, nil
	}
	return []string{csr.Spec.Username}, nil
}

func (s *Service) wake(o any) {
	if keys, _ := indexRequester(o); len(keys) == 1 {
		s.queue.add(keys[0], time.Now())
	}
}

// wakeNode judges again what waited for this Node.
func (s *Service) wakeNode(o any) {
	if n, ok := o.(*corev1.Node); ok {
		s.queue.hurry(userPrefix+n.Name, time.Now())
	}
}

// Run judges until ctx ends. It beats after every dispatch; when all workers hang
// it does not.
func (s *Service) Run(ctx context.Context, beat func()) error {
	var running sync.WaitGroup
	defer running.Wait()
	running.Go(func() { s.csrs.Run(ctx.Done()) })
	if !s.synced(ctx, beat) {
		return nil
	}
	slots := make(chan struct{}, workers)
	var swept time.Time
	for ctx.Err() == nil {
		beat()
		wait := idleBeat
		if may, _ := s.deps.MayAct(); !may {
			sleep(ctx, waitLeader, nil)
			continue
		}
		now := time.Now()
		if now.Sub(swept) >= sweepEvery {
			swept = now
			s.sweep(now)
		}
		key, next, ok := s.queue.take(now)
		if !ok {
			if !next.IsZero() {
				wait = min(wait, max(next.Sub(now), 0))
			}
			sleep(ctx, wait, s.queue.changed)
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
// that are whole again.
func (s *Service) sweep(now time.Time) {
	for _, key := range s.csrs.GetIndexer().ListIndexFuncValues(byRequester) {
		s.queue.ensure(key, now)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, b := range s.allowances {
		if b.full(now, float64(s.cfg.PerNodeHour)) {
			delete(s.allowances, key)
		}
	}
}

// turn judges the newest request of one requester and says when to look again.
func (s *Service) turn(ctx context.Context, key string) {
	ctx, cancel := context.WithTimeout(ctx, judgeTimeout)
	defer cancel()
	csr := s.newest(key)
	if csr == nil {
		s.queue.done(key)
		return
	}
	retry, err := s.judge(ctx, csr)
	if err != nil && !errors.Is(err, context.Canceled) {
		s.log.WithFields(logrus.Fields{"csr": csr.Name, "node": strings.TrimPrefix(key, userPrefix)}).WithError(err).Warn("certificate request is not decided yet")
	}
	s.queue.again(key, time.Now(), retry)
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
