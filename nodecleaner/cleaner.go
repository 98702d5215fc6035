package nodecleaner

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/sirupsen/logrus"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/runtime"
	corelisters "k8s.io/client-go/listers/core/v1"
	storagelisters "k8s.io/client-go/listers/storage/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/internal/kube"
	"github.com/autoscaler-agent/autoscaler-agent/nodecleaner/reaper"
)

// Inventory reads the node groups from the cloud; the scaler uses the same reads.
type Inventory interface {
	// Groups returns every node group, read from the cloud no longer than maxAge ago;
	// it asks the cloud again when its last whole read is older.
	Groups(ctx context.Context, maxAge time.Duration) ([]cluster.NodeGroup, error)
}

// Witness asks the cloud for instances by their IDs (provider.Witness).
type Witness interface {
	Instances(ctx context.Context, ids ...cluster.InstanceID) (map[cluster.InstanceID]cluster.Testimony, error)
}

// Metrics counts and measures. Labels are names and values in turn.
type Metrics interface {
	Count(name string, labels ...string)
	Gauge(name string, value float64, labels ...string)
}

// Events is the part of client-go's record.EventRecorder that is used.
type Events interface {
	Event(object runtime.Object, eventtype, reason, message string)
}

// Deps are the dependencies of the service. Nil MayAct means that this agent may always
// act; nil Blind, Sent, ActUntil, Metrics and Events are not used. Without a Witness
// nothing is ever deleted.
type Deps struct {
	Client *kube.Client
	// Informers gives Nodes and VolumeAttachments; package agent starts it after New.
	Informers *kube.Informers
	Inventory Inventory
	Witness   Witness
	Log       *logrus.Entry
	Events    Events
	Metrics   Metrics
	// MayAct reports whether this agent leads, and if not, the reason.
	MayAct func() (bool, string)
	// ActUntil returns the time until which MayAct's answer holds at least: no write may
	// outlive it. The zero time: no write may begin. nil: the right to act has no end.
	ActUntil func() time.Time
	// Blind returns why the view of the cluster may be old; empty: the view is live.
	Blind func() string
	// Sent lists the instances that the scaler has terminated lately.
	Sent func() []cluster.InstanceID
	// Certified returns, by Node name, when the newest approved request for a client certificate was made; nil: not used.
	Certified func() map[cluster.NodeName]time.Time
	// OwnNode is the Node that the agent runs on.
	OwnNode string
	// Host holds the other identities of this machine: its Node may have another name.
	Host Host
	// StateDir keeps the manifests of deleted Nodes (nodes/) and the ledger
	// (nodecleaner.json). Empty: nothing is kept.
	StateDir string
}

// Times of the loop. The rules' own times are in Config.
const (
	idleTick     = 30 * time.Second       // the longest wait between two rounds
	roundPause   = 200 * time.Millisecond // the shortest
	roundTimeout = time.Minute
	waitLeader   = time.Second     // between two looks at MayAct, also while nothing happens
	retryAfter   = 5 * time.Second // after a deletion that did not work
	youngFor     = time.Minute     // a Node that has just joined is not Ready yet, and that is no news
	anyAge       = 365 * 24 * time.Hour
)

// Service deletes the Nodes of instances that are gone.
type Service struct {
	cfg     Config
	deps    Deps
	log     *logrus.Entry
	lister  corelisters.NodeLister
	volumes storagelisters.VolumeAttachmentLister
	synced  []cache.InformerSynced
	wake    chan struct{}

	mu         sync.Mutex // guards what follows up to status
	memory     reaper.Memory
	lastIn     reaper.Input  // of the last round, and the memory before it
	lastMemory reaper.Memory // for Explain
	wanted     map[cluster.NodeName]time.Time
	asked      chan struct{} // closed when the next round has ended
	status     string        // the open breakers, in one line
	breakers   []reaper.Breaker

	led     bool      // a first round was allowed to look
	waits   bool      // it was said that none was yet
	learnt  time.Time // when the ledger was last kept without leading
	outage  string    // what was noticed between two rounds
	ccm     neighbours
	readAt  time.Time
	feltAt  time.Time // when Leases were last read
	savedAt time.Time
	told    map[cluster.NodeName]string
	open    map[string]string // breakers as last told, by rule
	gauged  map[string]bool   // rules with a gauge

	leaseErr  string // the last failure to read a kubelet's Lease
	askError  string // the last failure to ask the cloud by ID
	saveError string // as last told
}

// New adds the service's handlers to the informers and loads its memory. cfg has been
// validated.
func New(cfg Config, deps Deps) *Service {
	if deps.MayAct == nil {
		deps.MayAct = func() (bool, string) { return true, "" }
	}
	if deps.Sent == nil {
		deps.Sent = func() []cluster.InstanceID { return nil }
	}
	if deps.Blind == nil {
		deps.Blind = func() string { return "" }
	}
	nodes, volumes := deps.Informers.Nodes(), deps.Informers.VolumeAttachments()
	s := &Service{cfg: cfg, deps: deps, log: deps.Log, lister: deps.Informers.NodeLister(), volumes: deps.Informers.VolumeAttachmentLister(),
		synced: []cache.InformerSynced{nodes.HasSynced, volumes.HasSynced}, wake: make(chan struct{}, 1),
		wanted: map[cluster.NodeName]time.Time{}, told: map[cluster.NodeName]string{}, open: map[string]string{}, gauged: map[string]bool{}}
	s.memory = s.load()
	_, _ = nodes.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { s.changed(nil, o) },
		UpdateFunc: func(old, o any) { s.changed(old, o) },
	})
	_, _ = volumes.AddEventHandler(cache.ResourceEventHandlerFuncs{DeleteFunc: s.detached})
	return s
}

// changed starts a round when a Node's readiness, taints or the annotation that keeps it changed. The
// group that this service writes itself is no news.
func (s *Service) changed(old, now any) {
	n, ok := now.(*corev1.Node)
	if !ok {
		return
	}
	after := toNode(n)
	if o, ok := old.(*corev1.Node); ok {
		before := toNode(o)
		if before.Ready == after.Ready && before.Deleting == after.Deleting && before.Annotations[cluster.AnnotationKeep] == after.Annotations[cluster.AnnotationKeep] &&
			slices.Equal(before.Taints, after.Taints) {
			return
		}
	} else if after.Ready == cluster.StatusTrue {
		return
	}
	s.poke()
}

// detached starts a round when a volume was detached from a Node that waits for that.
func (s *Service) detached(o any) {
	if unknown, ok := o.(cache.DeletedFinalStateUnknown); ok {
		o = unknown.Obj
	}
	v, ok := o.(*storagev1.VolumeAttachment)
	if !ok {
		return
	}
	s.mu.Lock()
	waits := !s.memory.Watch[cluster.NodeName(v.Spec.NodeName)].Fenced.IsZero()
	s.mu.Unlock()
	if waits {
		s.poke()
	}
}

// Memory returns the present memory, for explain.
func (s *Service) Memory() reaper.Memory {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.memory.Clone()
}

// Explain is the verdict of the last round. The zero Verdict means that there was no
// such Node then.
func (s *Service) Explain(name string) reaper.Verdict {
	s.mu.Lock()
	in, m := s.lastIn, s.lastMemory
	s.mu.Unlock()
	if in.Now.IsZero() {
		return reaper.Verdict{}
	}
	return reaper.Explain(in, m, s.cfg.Policy(), cluster.NodeName(name))
}

// Run works until ctx ends and beats after each round.
func (s *Service) Run(ctx context.Context, beat func()) error {
	for !s.isSynced() && ctx.Err() == nil {
		beat()
		sleep(ctx, 20*time.Millisecond, nil)
	}
	for ctx.Err() == nil {
		ended := s.begun()
		wait, err := s.round(ctx)
		ended()
		if err != nil && ctx.Err() == nil {
			s.log.WithError(err).Warn("nodes of gone instances are not cleaned yet")
		}
		beat()
		// The pause collects events that come together; after it, an event ends the wait.
		sleep(ctx, roundPause, nil)
		s.rest(ctx, wait-roundPause)
	}
	s.save(time.Now(), true)
	return nil
}

func (s *Service) isSynced() bool {
	for _, synced := range s.synced {
		if !synced() {
			return false
		}
	}
	return true
}

// rest waits for an event, for at most d. It notices an interruption of our own view that
// ends before the next round (B3).
func (s *Service) rest(ctx context.Context, d time.Duration) {
	for ; d > 0 && ctx.Err() == nil; d -= waitLeader {
		if s.led && s.outage == "" {
			if s.outage = s.interrupted(); s.outage != "" {
				return
			}
		}
		if sleep(ctx, min(d, waitLeader), s.wake) {
			return
		}
	}
}

// interrupted returns why this agent cannot trust its view of the cluster, or may not act on
// it.
func (s *Service) interrupted() string {
	if may, why := s.deps.MayAct(); !may {
		return why
	}
	return s.deps.Blind()
}

// round decides, reads the cloud if the plan asks for that, decides again and deletes. It
// returns the wait until the next round.
func (s *Service) round(ctx context.Context) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, roundTimeout)
	defer cancel()
	outage := s.interrupted()
	if outage != "" && !s.led {
		// This agent has never led: it has no view that an outage could have interrupted.
		if !s.waits {
			s.log.WithField("why", outage).Info("dead nodes are not looked for yet")
		}
		s.waits = true
		return waitLeader, s.learn(ctx, time.Now())
	}
	s.led = true
	in, err := s.input()
	if err != nil {
		return retryAfter, err
	}
	if in.Outage = outage; in.Outage == "" {
		in.Outage = s.outage
	}
	s.outage = ""
	memory, policy := s.Memory(), s.cfg.Policy()
	if len(memory.Watch) > 0 {
		in.Coexist = s.coexist(ctx, time.Now())
	}
	s.read(ctx, &in, anyAge)
	in.Now = time.Now()
	plan, next := reaper.Decide(in, memory, policy)
	if s.wantsRead(plan, in) {
		s.readAt = in.Now
		s.read(ctx, &in, in.Now.Sub(plan.ReadSince))
		in.Now = time.Now()
		plan, next = reaper.Decide(in, memory, policy)
	}
	for s.inquire(ctx, plan, next, &in) {
		plan, next = reaper.Decide(in, memory, policy)
	}
	s.mu.Lock()
	s.memory, s.lastIn, s.lastMemory = next, in, memory
	s.mu.Unlock()
	s.save(in.Now, false)
	s.tell(plan)
	if in.Outage != "" {
		return s.pause(), nil
	}
	failed := s.act(ctx, plan, len(in.Nodes))
	wait := s.next(plan, len(in.Nodes), time.Now())
	if failed != nil {
		wait = min(wait, retryAfter)
	}
	return wait, failed
}

func (s *Service) input() (reaper.Input, error) {
	nodes, own, err := s.nodes()
	if err != nil {
		return reaper.Input{}, err
	}
	in := reaper.Input{Nodes: nodes, Own: own, Sent: s.deps.Sent(), Attached: s.attached(), Wanted: s.wishes(time.Now())}
	if s.deps.Certified != nil {
		in.Certified = s.deps.Certified()
	}
	return in, nil
}

// read puts a read of the inventory, no older than maxAge, into the Input.
func (s *Service) read(ctx context.Context, in *reaper.Input, maxAge time.Duration) {
	groups, err := s.deps.Inventory.Groups(ctx, maxAge)
	in.Groups, in.ReadProblem = groups, ""
	if err != nil {
		in.ReadProblem = err.Error()
	}
}

// pause is the least time between two reads of the cloud that this service causes.
func (s *Service) pause() time.Duration { return s.cfg.Policy().UnknownLook() }

func (s *Service) wantsRead(plan reaper.Plan, in reaper.Input) bool {
	return in.Outage == "" && !plan.ReadSince.IsZero() && !plan.ReadSince.After(in.Now) && in.Now.Sub(s.readAt) >= s.pause()
}

func (s *Service) watching() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.memory.Watch) > 0
}

func (s *Service) next(plan reaper.Plan, nodes int, now time.Time) time.Duration {
	wait := idleTick
	if s.watching() {
		wait = min(wait, max(waitLeader, s.cfg.SightInterval/4)) // somebody else may have read the cloud
	}
	for _, at := range []time.Time{plan.Due, plan.AskAt} {
		if !at.IsZero() {
			wait = min(wait, at.Sub(now))
		}
	}
	if len(plan.Claims) > len(claims(plan, nodes)) {
		wait = min(wait, waitLeader)
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

func sleep(ctx context.Context, d time.Duration, sooner <-chan struct{}) (woken bool) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	case <-sooner:
		return true
	}
	return false
}
