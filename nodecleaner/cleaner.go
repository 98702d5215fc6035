package nodecleaner

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/sirupsen/logrus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
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

// Deps is what the service works with. Nil MayAct means that this agent may always
// act; nil Sent, Metrics and Events are left out.
type Deps struct {
	Client kubernetes.Interface
	// Informers gives the Nodes; package agent starts it after New.
	Informers informers.SharedInformerFactory
	Inventory Inventory
	Log       *logrus.Entry
	Events    Events
	Metrics   Metrics
	// MayAct tells whether this agent leads, and if not, why not.
	MayAct func() (bool, string)
	// Sent lists the instances that the scaler has terminated lately.
	Sent func() []cluster.InstanceID
	// OwnNode is the Node that the agent runs on.
	OwnNode string
	// StateDir keeps the manifests of deleted Nodes (nodes/) and the ledger
	// (nodecleaner.json). Empty: nothing is kept.
	StateDir string
}

// Rhythm of the loop. The rules' own times are in Config.
const (
	idleTick     = 30 * time.Second       // the longest wait between two rounds
	roundPause   = 200 * time.Millisecond // the shortest
	roundTimeout = time.Minute
	waitLeader   = time.Second     // between two looks at MayAct before the first lead
	retryAfter   = 5 * time.Second // after a deletion that did not work
	youngFor     = time.Minute     // a Node that has just joined is not Ready yet, and that is no news
	anyAge       = 365 * 24 * time.Hour
)

// Service deletes the Nodes of instances that are gone.
type Service struct {
	cfg    Config
	deps   Deps
	log    *logrus.Entry
	lister corelisters.NodeLister
	synced cache.InformerSynced
	wake   chan struct{}

	mu     sync.Mutex // guards memory for Memory()
	memory Memory

	led     bool // MayAct has been true
	readAt  time.Time
	savedAt time.Time
	told    map[cluster.NodeName]string
	open    string

	leaseErr  string // the last failure to read a kubelet's Lease
	saveError string // as last told
}

// New wires the service into the informers and loads what it remembers. cfg has
// been validated.
func New(cfg Config, deps Deps) *Service {
	if deps.MayAct == nil {
		deps.MayAct = func() (bool, string) { return true, "" }
	}
	if deps.Sent == nil {
		deps.Sent = func() []cluster.InstanceID { return nil }
	}
	nodes := deps.Informers.Core().V1().Nodes()
	s := &Service{cfg: cfg, deps: deps, log: deps.Log, lister: nodes.Lister(), synced: nodes.Informer().HasSynced,
		wake: make(chan struct{}, 1), told: map[cluster.NodeName]string{}}
	s.memory = s.load()
	_, _ = nodes.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { s.changed(nil, o) },
		UpdateFunc: func(old, o any) { s.changed(old, o) },
	})
	return s
}

// changed starts a round when a Node's readiness, taints or annotations did.
func (s *Service) changed(old, now any) {
	n, ok := now.(*corev1.Node)
	if !ok {
		return
	}
	after := toNode(n)
	if o, ok := old.(*corev1.Node); ok {
		before := toNode(o)
		if before.Ready == after.Ready && tainted(before) == tainted(after) && unreachable(before) == unreachable(after) &&
			len(before.Annotations) == len(after.Annotations) {
			return
		}
	} else if after.Ready == cluster.StatusTrue {
		return
	}
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Memory returns what is remembered now, for explain.
func (s *Service) Memory() Memory {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.memory.clone()
}

// Run works until ctx ends and beats after each round.
func (s *Service) Run(ctx context.Context, beat func()) error {
	for !s.synced() && ctx.Err() == nil {
		beat()
		sleep(ctx, 20*time.Millisecond, nil)
	}
	for ctx.Err() == nil {
		wait, err := s.round(ctx)
		if err != nil && ctx.Err() == nil {
			s.log.WithError(err).Warn("nodes of gone instances are not cleaned yet")
		}
		beat()
		// The pause gathers events that come together; the rest of the wait ends early.
		sleep(ctx, roundPause, nil)
		sleep(ctx, wait-roundPause, s.wake)
	}
	s.save(time.Now(), true)
	return nil
}

// round decides on what is known, reads the cloud if that is asked for, decides
// again and deletes. It returns when to come back.
func (s *Service) round(ctx context.Context) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, roundTimeout)
	defer cancel()
	may, why := s.deps.MayAct()
	if !may && !s.led {
		// Never led: there is no view of our own that could have been interrupted.
		return waitLeader, nil
	}
	s.led = true
	in, err := s.input()
	if err != nil {
		return retryAfter, err
	}
	if !may {
		in.Outage = why
	}
	memory := s.Memory()
	in.take(s.deps.Inventory.Groups(ctx, anyAge))
	in.Now = time.Now()
	plan, next := Decide(in, memory, s.cfg.policy())
	if s.wantsRead(plan, in) {
		s.readAt = in.Now
		in.take(s.deps.Inventory.Groups(ctx, in.Now.Sub(plan.ReadSince)))
		in.Now = time.Now()
		plan, next = Decide(in, memory, s.cfg.policy())
	}
	if len(plan.Delete) > 0 {
		s.readLeases(ctx, in.Nodes, plan.Delete, in.Now)
		plan, next = Decide(in, memory, s.cfg.policy())
	}
	s.mu.Lock()
	s.memory = next
	s.mu.Unlock()
	s.save(in.Now, false)
	s.tell(plan)
	if in.Outage != "" {
		return s.pause(), nil
	}
	failed := s.delete(ctx, plan.Delete)
	wait := s.next(plan, time.Now())
	if failed != nil {
		wait = min(wait, retryAfter)
	}
	return wait, failed
}

func (s *Service) input() (Input, error) {
	nodes, err := s.nodes()
	if err != nil {
		return Input{}, err
	}
	return Input{Nodes: nodes, OwnNode: cluster.NodeName(s.deps.OwnNode), Sent: s.deps.Sent()}, nil
}

// take puts the result of a read into the Input.
func (in *Input) take(groups []cluster.NodeGroup, err error) {
	in.Groups, in.ReadProblem = groups, ""
	if err != nil {
		in.ReadProblem = err.Error()
	}
}

// pause is the least time between two reads of the cloud that this service causes.
func (s *Service) pause() time.Duration { return min(unknownLook, s.cfg.SightInterval) }

func (s *Service) wantsRead(plan Plan, in Input) bool {
	return in.Outage == "" && !plan.ReadSince.IsZero() && !plan.ReadSince.After(in.Now) && in.Now.Sub(s.readAt) >= s.pause()
}

func (s *Service) next(plan Plan, now time.Time) time.Duration {
	wait := idleTick
	if !plan.Due.IsZero() {
		wait = min(wait, plan.Due.Sub(now))
	}
	if !plan.ReadSince.IsZero() {
		at := plan.ReadSince
		if soonest := s.readAt.Add(s.pause()); soonest.After(at) {
			at = soonest
		}
		wait = min(wait, at.Sub(now))
	}
	return max(wait, 0)
}

// tell reports what is new about each Node that is held, and about the breakers.
func (s *Service) tell(plan Plan) {
	held := map[cluster.NodeName]string{}
	for _, d := range plan.Delete {
		held[d.Node] = s.told[d.Node] // deleteOne reports these
	}
	for _, h := range plan.Held {
		if n, err := s.lister.Get(string(h.Node)); err == nil && time.Since(n.CreationTimestamp.Time) < youngFor && s.told[h.Node] == "" {
			continue // it is only joining; a later round tells it if it goes on
		}
		held[h.Node] = h.Rule
		if s.told[h.Node] == h.Rule {
			continue
		}
		s.log.WithFields(logrus.Fields{"node": h.Node, "rule": h.Rule, "why": h.Why}).Info("node is not ready and is kept")
		s.count("nodecleaner_held_total", "rule", h.Rule)
	}
	s.told = held
	open := strings.Join(plan.Breakers, "; ")
	if open == s.open {
		return
	}
	s.open = open
	if open == "" {
		s.log.Info("node deletion goes on: no breaker is open")
		return
	}
	rule, _, _ := strings.Cut(open, ":")
	s.log.WithFields(logrus.Fields{"rule": rule, "why": open}).Warn("node deletion is stopped by a breaker")
	s.count("nodecleaner_breakers_total", "rule", rule)
	for _, h := range plan.Held {
		if h.Rule == rule {
			s.event(h.Node, "", corev1.EventTypeWarning, "NodeCleanerBreaker", open)
		}
	}
}

func (s *Service) count(name string, labels ...string) {
	if s.deps.Metrics != nil {
		s.deps.Metrics.Count(name, labels...)
	}
}

func (s *Service) delete(ctx context.Context, deletions []Deletion) error {
	var errs []error
	for _, d := range deletions {
		if may, _ := s.deps.MayAct(); !may {
			break
		}
		errs = append(errs, s.deleteOne(ctx, d))
	}
	return errors.Join(errs...)
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
