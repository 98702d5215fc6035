package agent

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/autoscaler-agent/autoscaler-agent/agent/act"
	"github.com/autoscaler-agent/autoscaler-agent/agent/capacity"
	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/config"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/history"
	"github.com/autoscaler-agent/autoscaler-agent/agent/inventory"
	"github.com/autoscaler-agent/autoscaler-agent/agent/inventory/waiting"
	"github.com/autoscaler-agent/autoscaler-agent/agent/nojoin"
	"github.com/autoscaler-agent/autoscaler-agent/agent/observe"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan"
	"github.com/autoscaler-agent/autoscaler-agent/agent/report"
	"github.com/autoscaler-agent/autoscaler-agent/agent/statefile"
	"github.com/autoscaler-agent/autoscaler-agent/internal/flight"
	"github.com/autoscaler-agent/autoscaler-agent/internal/version"
)

// recordPods is the largest number of pods in a Snapshot that the flight recorder
// keeps: beyond it, writing a round down costs more than deciding it.
const recordPods = 5000

// standby is how often an agent that may not act, and would, looks whether it may.
const standby = time.Second

// scaler is the loop of observe, decide, act.
type scaler struct {
	cfg       config.Scaler
	policy    func(now time.Time) decision.Policy
	decided   func(*decision.Policy, []decision.Halt) // writes down for the next leader which rollouts are halted; nil: this agent does not lead
	engine    plan.Engine
	observer  *observe.Observer
	inventory *inventory.Inventory
	executor  *act.Executor
	mayAct    func() (bool, string)
	console   nojoin.Console // nil: not read
	known     func(*cluster.Snapshot, string) nojoin.Known
	buffers   *capacity.Buffers
	requested *capacity.Requests
	file      statefile.File
	recorder  *flight.Recorder
	store     flight.Store
	metrics   *report.Metrics
	history   *history.History
	days      *statefile.HistoryFile // nil: the history is not kept
	log       *logrus.Entry

	mu     sync.Mutex // guards what the local API reads
	memory decision.Memory
	last   decision.Plan
	lastAt time.Time

	gone map[cluster.InstanceID]time.Time // terminated by us lately; guarded by mu

	heldLog   report.HeldLog
	events    report.Events
	page      *report.StatusPage // nil: no status page is kept
	print     uint64             // fingerprint of the last plan
	said      string             // what would be done, as last logged
	could     bool               // whether the last round might act
	saveError string
	daysError string
}

// Run makes rounds until ctx ends.
func (s *scaler) Run(ctx context.Context, beat func()) error {
	s.executor.Beat = beat
	quiet := debounce{quiet: s.cfg.Quiet, limit: s.cfg.Cap, calm: s.cfg.Calm}
	until := time.Now()
	for quiet.wait(ctx, until, s.observer.WakeUps(observe.Soon), s.inventory.Changed(), s.observer.WakeUps(observe.Later)) {
		until = s.round(ctx)
		s.saveHistory(false)
		beat()
	}
	s.saveHistory(true)
	return nil
}

// round is one look, one decision and its effects. It returns when the next round
// is due at the latest.
func (s *scaler) round(ctx context.Context) time.Time {
	next := time.Now().Add(s.cfg.Idle)
	if _, readAt, _ := s.inventory.Last(); readAt.IsZero() {
		return next // the first read wakes the loop; the inventory says why it does not come
	}
	since := s.observer.TakeUnschedulableSince()
	var took report.RoundTimes
	took.Begin()
	snapshot := s.observer.Snapshot()
	s.mu.Lock()
	before := s.memory
	s.mu.Unlock()
	s.requested.Look(&snapshot)
	policy := s.policy(snapshot.Now)
	policy.Headroom, _ = s.observer.CompleteHeadroom(policy.Headroom)
	start := time.Now()
	s.engine.Entered = took.Phase
	p, memory := s.engine.Decide(snapshot, before, policy)
	took.Decided()
	decided := time.Since(start)
	s.metrics.Decided(decided)
	if !since.IsZero() {
		s.metrics.Waited(time.Since(since))
	}
	may, _ := s.mayAct() // agent/statusline tells why not
	if may && !s.cfg.DryRun {
		s.decided(&policy, memory.Halts)
	} else {
		memory = memory.Unacted(&before, &p)
		s.decided(nil, nil)
	}
	s.mu.Lock()
	s.memory, s.last, s.lastAt = memory, p, snapshot.Now
	s.mu.Unlock()
	if may && !s.cfg.DryRun {
		s.judge(snapshot, before, policy)
	}
	if s.engine.Cached() && may == s.could {
		s.still(&snapshot, p, memory, policy, may)
		return s.untilWake(next, p) // all has been said, counted and written down
	}
	print := report.Fingerprint(p)
	s.say(snapshot, p, may, decided, print)
	s.metrics.Round(snapshot, p, memory, policy, may, print != s.print)
	s.history.Look(&snapshot)
	s.print = print
	s.follow(&snapshot, p, may)
	saved := s.startSave(memory)
	if may && !s.cfg.DryRun && s.act(ctx, &snapshot, p, &took) {
		next = earliest(next, time.Now().Add(s.cfg.Calm))
	}
	if !may && len(p.Actions) > 0 {
		// Nothing in the world tells that the Lease has come, or that another
		// autoscaler's has run out.
		next = earliest(next, time.Now().Add(standby))
	}
	if may && !s.cfg.DryRun {
		s.buffers.Decided(p.Held)
		s.requested.Decided(p.Held)
		s.events.Held(&snapshot, p, memory)
		s.page.Round(&snapshot, p, memory, policy, print)
	} else {
		s.page.Skip()
	}
	s.metrics.PartsTook(&took)
	s.metrics.RoundTook(time.Since(start))
	<-saved
	s.record(snapshot, before, policy, p, memory, print)
	return s.untilWake(next, p)
}

// judge decides, and carries nothing out, whether one ProvisioningRequest has room whole. It costs one more decision while a
// request is open, at most one in ten seconds for each.
func (s *scaler) judge(snapshot cluster.Snapshot, memory decision.Memory, policy decision.Policy) {
	ask, open := s.requested.Open(snapshot.Now)
	if !open {
		return
	}
	rooms, known := s.observer.CompleteHeadroom(ask.Rooms)
	if !known {
		return
	}
	policy.Headroom = slices.Concat(policy.Headroom, rooms)
	if !ask.Grows {
		snapshot.Groups = slices.Clone(snapshot.Groups)
		for i := range snapshot.Groups {
			g := &snapshot.Groups[i]
			g.Max = min(g.Max, g.Target)
		}
	}
	p, _ := plan.Decide(snapshot, memory, policy)
	s.requested.Judged(ask, snapshot.Now, p.Held)
}

// act carries the plan out and hands on what became of it; it tells whether anything
// was tried.
func (s *scaler) act(ctx context.Context, snapshot *cluster.Snapshot, p decision.Plan, took *report.RoundTimes) bool {
	if len(p.Actions) == 0 {
		return false
	}
	p = s.console.Explain(ctx, p, func(id cluster.InstanceID) nojoin.Known { return s.known(snapshot, string(id)) }, s.log)
	start := time.Now()
	outcomes := s.executor.Do(ctx, p)
	took.Acted(start, outcomes)
	s.observer.AddOutcomes(outcomes)
	s.metrics.Outcomes(outcomes, p)
	s.events.Outcomes(snapshot, p, outcomes)
	s.history.Acted(p, outcomes)
	s.noteSent(outcomes)
	s.inventory.RefreshGroups(changed(outcomes)...)
	return len(outcomes) > 0
}

// follow says which groups are read at the fast pace. An agent that may not act reads at the
// slow pace, and everything anew once it may.
func (s *scaler) follow(snapshot *cluster.Snapshot, p decision.Plan, may bool) {
	var w inventory.Waiting
	if may {
		w = waiting.For(snapshot, p)
	}
	if may && !s.could {
		s.inventory.Refresh()
	}
	s.could = may
	s.inventory.SetWaiting(w)
}

// changed are the groups in which something was asked of the cloud. Taints, cordons and
// evictions change nothing there.
func changed(outcomes []cluster.Outcome) []cluster.GroupID {
	var out []cluster.GroupID
	for _, o := range outcomes {
		if o.Action == "grow" || o.Action == "terminate" {
			out = append(out, o.Group)
		}
	}
	return out
}

// still is what a round in which nothing changed has to do: to show that the agent
// lives, and to say again what Events have forgotten by now.
func (s *scaler) still(snapshot *cluster.Snapshot, p decision.Plan, memory decision.Memory, policy decision.Policy, may bool) {
	s.metrics.Active(snapshot.Now)
	if s.history.Due(snapshot.Now) {
		s.history.Look(snapshot)
	}
	if !may || s.cfg.DryRun {
		return
	}
	s.page.Refresh(snapshot, p, memory, policy, s.print)
	if s.events.Due(snapshot.Now) {
		s.events.Held(snapshot, p, memory)
	}
}

// untilWake is next, or the timer of the plan or of the status page where that is
// earlier. One that has passed already must not spin the loop.
func (s *scaler) untilWake(next time.Time, p decision.Plan) time.Time {
	for _, wake := range []time.Time{p.Wake, s.page.Due()} {
		if !wake.IsZero() {
			next = earliest(next, later(wake, time.Now().Add(s.cfg.Quiet)))
		}
	}
	return next
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// say writes what this round holds, and what it would do where it may not act: what
// is done is told by the executor.
func (s *scaler) say(snapshot cluster.Snapshot, p decision.Plan, may bool, took time.Duration, print uint64) {
	s.log.WithField("took", took.Round(10*time.Microsecond).String()).
		Debugf("round: %d nodes, %d pods, %d groups; %d actions", len(snapshot.Nodes), snapshot.PodCount(), len(snapshot.Groups), len(p.Actions))
	if print != s.print { // equal plans hold the same, and it was told
		s.heldLog.Write(p.Held)
	}
	intent := ""
	if !may || s.cfg.DryRun {
		for _, a := range p.Actions {
			intent += a.String() + "\n"
		}
	}
	if intent == s.said {
		return
	}
	s.said = intent
	if intent == "" {
		return
	}
	prefix := "not acting; would "
	if s.cfg.DryRun {
		prefix = "AUTOSCALER_SCALER_DRY_RUN is true; would "
	}
	for _, a := range p.Actions {
		s.log.Info(prefix + a.String())
	}
}

// startSave writes the memory down beside the actions: a sync of a busy disk may take
// longer than the whole reaction, and a kill between the two loses timers only. The
// machines that were bought are in the cloud's own target.
func (s *scaler) startSave(memory decision.Memory) (saved chan struct{}) {
	saved = make(chan struct{})
	go func() {
		defer close(saved)
		s.save(memory)
	}()
	return saved
}

// save writes the memory down; a failure is logged when it is new.
func (s *scaler) save(memory decision.Memory) {
	err := s.file.Save(statefile.State{Memory: memory, Specs: s.inventory.Specs(), Corrections: s.observer.Corrections()})
	text := ""
	if err != nil {
		text = err.Error()
	}
	if text == s.saveError {
		return
	}
	s.saveError = text
	if err != nil {
		s.log.WithField("why", text).Error("the state is not written down, so a restart starts its timers anew: make " + config.Prefix + "_STATE_DIR a directory that the agent may write to")
	} else {
		s.log.Info("the state is written down again")
	}
}

// saveHistory writes the history down where that is due; a failure is logged when it is new.
func (s *scaler) saveHistory(end bool) {
	text := ""
	if err := s.days.Save(s.history, time.Now(), end); err != nil {
		text = err.Error()
	}
	if text != s.daysError && text != "" {
		s.log.WithField("why", text).Warn("the history of the page is not written down")
	}
	s.daysError = text
}

// record keeps a round whose plan is a new one, and on disk if it does something.
func (s *scaler) record(snapshot cluster.Snapshot, before decision.Memory, policy decision.Policy, p decision.Plan, after decision.Memory, print uint64) {
	if snapshot.PodCount() > recordPods || s.recorder.Same(print) {
		return
	}
	packed, err := flight.Pack(version.Current(), snapshot, before, policy, p.Data(), after, p.String())
	if err == nil {
		s.recorder.Keep(packed, print)
		if len(p.Actions) > 0 {
			err = s.store.Write(snapshot.Now, packed)
		}
	}
	if err != nil {
		s.log.WithField("why", err.Error()).Debug("the round is not recorded")
	}
}

// sentFor is how long a termination of ours stays known to the node cleaner.
const sentFor = time.Hour

func (s *scaler) noteSent(outcomes []cluster.Outcome) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gone == nil {
		s.gone = map[cluster.InstanceID]time.Time{}
	}
	for _, o := range outcomes {
		if o.Action == "terminate" && o.Error == "" {
			s.gone[o.Instance] = o.At
		}
	}
	for id, at := range s.gone {
		if time.Since(at) > sentFor {
			delete(s.gone, id)
		}
	}
}

// sent lists the instances that this agent terminated within the last hour.
func (s *scaler) sent() []cluster.InstanceID {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]cluster.InstanceID, 0, len(s.gone))
	for id := range s.gone {
		out = append(out, id)
	}
	return out
}

// remembered is the memory after the last round.
func (s *scaler) remembered() decision.Memory {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.memory
}

// lastPlan is the plan of the last round, and when that was decided on.
func (s *scaler) lastPlan() (decision.Plan, time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last, s.lastAt
}
