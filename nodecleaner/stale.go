package nodecleaner

import (
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// wantedFor is how long a request for a name is remembered.
const wantedFor = 15 * time.Minute

// StaleError is the reason why a Node stays although a new machine needs its name.
type StaleError struct {
	Node string
	Rule string
	Why  string
}

func (e *StaleError) Error() string {
	return fmt.Sprintf("reap stale node %s: [%s] %s", e.Node, e.Rule, e.Why)
}

// ReapStale asks that the Node called name make room for a new machine of the same name
// (S1), before that machine's client certificate is approved. It returns nil once there
// is no such Node: there was none, or it was deleted with a UID precondition because its
// instance was proven gone by the same rules as always, only with the short grace. It
// returns a *StaleError with the rule that holds the Node when time alone does not lift that
// rule (the Node is Ready, or kept, or mode observe), and when ctx ends first; the request
// is remembered, so that a caller may come back. Any other error is the API
// server's.
func (s *Service) ReapStale(ctx context.Context, name string) error {
	s.mu.Lock()
	s.wanted[cluster.NodeName(name)] = time.Now()
	s.mu.Unlock()
	held := &StaleError{Node: name, Rule: "S1", Why: "no round has looked at it yet"}
	for {
		done := s.nextRound()
		_, err := s.deps.Client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			return nil
		case ctx.Err() != nil:
			return held
		case err != nil:
			return fmt.Errorf("reap stale node %s: %w", name, err)
		}
		s.poke()
		select {
		case <-ctx.Done():
			return held
		case <-done:
		}
		if v := s.Explain(name); v.Rule != "" {
			held.Rule, held.Why = v.Rule, v.Why
		}
		if slices.Contains([]string{"L0", "E1", "E2", "E3", "E4", "E5", "E7", "C1", "M1", "M2"}, held.Rule) {
			return held
		}
	}
}

// wishes lists the names requested now, and forgets old requests.
func (s *Service) wishes(now time.Time) []cluster.NodeName {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []cluster.NodeName
	for name, at := range s.wanted {
		if now.Sub(at) > wantedFor {
			delete(s.wanted, name)
			continue
		}
		out = append(out, name)
	}
	return out
}

// nextRound returns a channel that is closed when a round that begins from now on has
// ended.
func (s *Service) nextRound() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.asked == nil {
		s.asked = make(chan struct{})
	}
	return s.asked
}

// begun takes the waiters of the round that begins; the returned function wakes them.
func (s *Service) begun() (ended func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	waiters := s.asked
	s.asked = nil
	return func() {
		if waiters != nil {
			close(waiters)
		}
	}
}

func (s *Service) poke() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}
