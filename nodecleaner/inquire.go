package nodecleaner

import (
	"context"
	"slices"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/nodecleaner/reaper"
)

// inquire answers the questions of a plan: instances by their IDs, once in a round, and
// Leases. It reports whether there are new facts to decide on. next is the memory of the
// decision that made the plan.
func (s *Service) inquire(ctx context.Context, plan reaper.Plan, next reaper.Memory, in *reaper.Input) bool {
	if in.Outage != "" {
		return false
	}
	news := false
	if len(plan.Ask) > 0 && in.AskedAt.IsZero() {
		s.question(ctx, plan.Ask, in)
		news = true
	}
	var of []cluster.NodeName
	all := in.Now.Sub(s.feltAt) >= max(s.pause(), s.cfg.SightInterval/4) || in.Now.Before(s.feltAt)
	for _, name := range plan.Leases {
		if all || next.Watch[name].Pulse.Still.IsZero() {
			of = append(of, name)
		}
	}
	for _, d := range slices.Concat(plan.Delete, plan.Fence) {
		of = append(of, d.Node)
	}
	of = slices.DeleteFunc(of, func(name cluster.NodeName) bool { _, read := in.Leases[name]; return read })
	if len(of) > 0 {
		s.readLeases(ctx, of, in)
		news = true
	}
	return news
}

// question asks the cloud for instances. Answers are dated by the time of the question.
func (s *Service) question(ctx context.Context, ids []cluster.InstanceID, in *reaper.Input) {
	in.AskedAt = time.Now()
	if s.deps.Witness == nil {
		in.Answers = map[cluster.InstanceID]cluster.Testimony{}
		for _, id := range ids {
			in.Answers[id] = cluster.Testimony{Why: "no provider can be asked for an instance by its ID"}
		}
	} else {
		var err error
		in.Answers, err = s.deps.Witness.Instances(ctx, ids...)
		text := ""
		if err != nil {
			text = err.Error()
		}
		if text != s.askError && err != nil {
			s.log.WithFields(logrus.Fields{"rule": "G5", "why": text}).Warn("the cloud does not say of some instances whether they exist: their Nodes are kept")
		}
		s.askError = text
	}
	in.Now = time.Now()
}

// learn keeps the ledger of an agent that has never led, from the reads that its inventory
// makes anyway: when the agent takes over, it knows which Nodes are managed.
func (s *Service) learn(ctx context.Context, now time.Time) error {
	if now.Sub(s.learnt) < idleTick || s.deps.Blind() != "" {
		return nil
	}
	s.learnt = now
	in, err := s.input()
	if err != nil {
		return err
	}
	s.read(ctx, &in, anyAge)
	in.Now = time.Now()
	next := reaper.Learn(in, s.Memory(), s.cfg.Policy())
	s.mu.Lock()
	s.memory = next
	s.mu.Unlock()
	s.save(in.Now, false)
	return nil
}
