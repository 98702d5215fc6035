package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/autoscaler-agent/autoscaler-agent/internal/atomicfile"
)

// A Sink is a place where workers find join information, beside the file.
type Sink interface {
	Name() string
	Publish(context.Context, Join) error
}

// A Permit proves that this agent may write now, and bounds what is written to the time for
// which that holds. A sink in a cloud asks it before each write.
type Permit func(context.Context) (context.Context, context.CancelFunc, error)

// A Holder is a sink that can tell whether it still holds what was published: somebody else may
// have written there, or an old leader's write may have come late.
type Holder interface {
	Holds(context.Context, Join) (bool, error)
}

// holdsEvery is how often a Holder is asked.
const holdsEvery = 5 * time.Minute

// publish writes the file if its bytes would change, and every sink that does not hold
// them.
func (s *Service) publish(ctx context.Context, join Join) error {
	data, err := Render(join)
	if err != nil {
		return err
	}
	if s.cfg.File != "" {
		changed, err := atomicfile.Write(s.cfg.File, data, 0o600)
		if err != nil {
			return fmt.Errorf("publish join information: %w (make its directory writable for the agent's user, or set AUTOSCALER_BOOTSTRAP_FILE)", err)
		}
		if changed {
			s.log.WithFields(logrus.Fields{"file": s.cfg.File, "why": join.String()}).Info("join information published")
			s.count("bootstrap_publications_total")
		}
	}
	s.mu.Lock()
	s.join = join
	s.mu.Unlock()
	if err := s.sink(ctx, join, string(data)); err != nil {
		return err
	}
	s.rehearse(ctx, join)
	return nil
}

// rehearse tries what is published now, once for each change, and tells what machines will
// stumble over.
func (s *Service) rehearse(ctx context.Context, join Join) {
	what := join.Token + " " + strings.Join(join.CAHashes, ",") + " " + join.Endpoint
	if s.deps.Rehearse == nil || s.rehearsed == what {
		return
	}
	s.rehearsed = what
	for _, step := range s.deps.Rehearse(ctx, join) {
		if step.Err != nil {
			s.log.WithFields(logrus.Fields{"step": step.What, "why": step.Err.Error()}).Error("no machine can join with what is published (autoscaler-agent check --join tries it again)")
			s.count("bootstrap_rehearsals_total", "result", "failed")
			return
		}
	}
	s.count("bootstrap_rehearsals_total", "result", "ok")
}

// sink publishes to all sinks; one that fails keeps the others from nothing. One that does
// not lead leaves them to the leader.
func (s *Service) sink(ctx context.Context, join Join, data string) error {
	if leads, _ := s.deps.MayAct(); !leads {
		clear(s.sunk) // another one writes meanwhile
		return nil
	}
	var errs []error
	for _, sink := range s.deps.Sinks {
		if s.sunk[sink.Name()] == data && s.holds(ctx, sink, join) {
			continue
		}
		if err := sink.Publish(ctx, join); err != nil {
			errs = append(errs, fmt.Errorf("publish join information to %s: %w", sink.Name(), err))
			continue
		}
		s.sunk[sink.Name()], s.asked[sink.Name()] = data, time.Now()
		s.log.WithFields(logrus.Fields{"sink": sink.Name(), "why": join.String()}).Info("join information published")
		s.count("bootstrap_publications_total")
	}
	return errors.Join(errs...)
}

// holds tells whether a sink that was written still has what was written. One that cannot be
// asked is taken for one that has.
func (s *Service) holds(ctx context.Context, sink Sink, join Join) bool {
	h, ok := sink.(Holder)
	if !ok || time.Since(s.asked[sink.Name()]) < holdsEvery {
		return true
	}
	s.asked[sink.Name()] = time.Now()
	held, err := h.Holds(ctx, join)
	if err != nil {
		s.log.WithError(err).WithField("sink", sink.Name()).Warn("whether join information still is where it was published cannot be seen")
		return true
	}
	return held
}

// clearResidue removes what a crash left beside the published file, which holds a token, and
// sets a directory in its place aside.
func (s *Service) clearResidue() {
	if s.cfg.File == "" {
		return
	}
	removed, err := atomicfile.Sweep(s.cfg.File)
	if err != nil {
		s.log.WithError(err).Warn("what a crash left beside the published file cannot be removed, and may hold a token")
	}
	if len(removed) > 0 {
		s.log.WithField("why", strings.Join(removed, ", ")).Info("what a crash left beside the published file is removed")
	}
	aside, err := atomicfile.SetAsideDirectory(s.cfg.File, time.Now())
	if err != nil {
		s.log.WithError(err).Warn("a directory stands where join information is published")
	}
	if aside != "" {
		s.log.WithField("why", aside).Warn("a directory stood where join information is published: it is set aside")
	}
}
