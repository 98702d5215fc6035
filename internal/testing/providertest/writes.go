package providertest

import (
	"strings"
	"sync"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
)

func unknownGroup(s *stage) {
	s.wantKind(s.p.Resize(s.ctx(), "no-such-group", 2, 3), provider.NotFound)
	alive := s.w.Alive(Workers)
	s.wantKind(s.p.Delete(s.ctx(), "no-such-group", alive[0]), provider.NotFound)
	s.wantAlive(Workers, alive)
}

func resizeIsSeenAtOnce(s *stage) {
	s.ok(s.p.Resize(s.ctx(), Workers, 2, 4))
	if got := s.group(Workers).Target; got != 4 {
		s.Errorf("target %d right after a Resize to 4", got)
	}
	s.settle()
	s.wantTarget(Workers, 4)
	if got := len(s.w.Alive(Workers)); got != 4 {
		s.Errorf("%d instances came of 4", got)
	}
}

func resizeOnOldFactsConflicts(s *stage) {
	s.w.SetTarget(Workers, 3)
	err := s.p.Resize(s.ctx(), Workers, 2, 5)
	s.wantKind(err, provider.Conflict)
	s.wantUnsure(err, false)
	if err != nil && !strings.Contains(err.Error(), "3") {
		s.Errorf("the conflict does not name the target: %v", err)
	}
	s.wantTarget(Workers, 3)
}

func resizeNeverDeletes(s *stage) {
	alive := s.w.Alive(Workers)
	s.wantKind(s.p.Resize(s.ctx(), Workers, 2, 1), provider.Invalid)
	s.wantKind(s.p.Resize(s.ctx(), Workers, 2, 0), provider.Invalid)
	s.settle()
	s.wantTarget(Workers, 2)
	s.wantAlive(Workers, alive)
}

func resizeToSameIsSuccess(s *stage) {
	s.ok(s.p.Resize(s.ctx(), Workers, 2, 2))
	s.ok(s.p.Resize(s.ctx(), Workers, 2, 4))
	// The same call again, as after an answer that was lost.
	if err := s.p.Resize(s.ctx(), Workers, 2, 4); err != nil {
		s.Errorf("setting what is set: %v", err)
	}
	s.wantTarget(Workers, 4)
}

func boundsAreHeld(s *stage) {
	s.wantKind(s.p.Resize(s.ctx(), Workers, 2, 11), provider.Invalid)
	s.wantKind(s.p.Resize(s.ctx(), Workers, 2, -1), provider.Invalid)
	s.wantKind(s.p.Resize(s.ctx(), Others, 1, 0), provider.Invalid)
	s.wantKind(s.p.Delete(s.ctx(), Others, s.w.Alive(Others)[0]), provider.Invalid)
	s.wantTarget(Workers, 2)
	s.wantTarget(Others, 1)
	s.ok(s.p.Resize(s.ctx(), Workers, 2, 10))
}

func concurrentResizes(s *stage) {
	const from, callers = 2, 8
	errs := make([]error, callers)
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() { errs[i] = s.p.Resize(s.ctx(), Workers, from, from+1+i) })
	}
	wg.Wait()
	won := -1
	for i, err := range errs {
		switch {
		case err == nil && won >= 0:
			s.Errorf("two callers set the target from %d, to %d and to %d", from, from+1+won, from+1+i)
		case err == nil:
			won = i
		default:
			s.wantLate(err)
		}
	}
	if won < 0 {
		s.Fatalf("nobody set the target")
	}
	s.wantTarget(Workers, from+1+won)
}

func quotaIsExhausted(s *stage) {
	s.exhausted(func(on bool) { s.w.Quota(s, on) }, cluster.CauseQuota)
}

func capacityIsExhausted(s *stage) {
	limit := ability[LimitCapacity](s)
	s.exhausted(func(on bool) { limit.LimitCapacity(s, on) }, cluster.CauseCapacity)
}

func (s *stage) exhausted(set func(on bool), cause cluster.Cause) {
	s.Helper()
	set(true)
	err := s.p.Resize(s.ctx(), Workers, 2, 5)
	if err != nil {
		s.wantKind(err, provider.Exhausted)
		s.wantTarget(Workers, 2)
		return
	}
	s.settle()
	g := s.group(Workers)
	if len(g.Failures) == 0 {
		s.Fatalf("the cloud starts no more machines, and the group has no failure")
	}
	for i, f := range g.Failures {
		if f.Cause != cause || f.Text == "" || f.At.IsZero() {
			s.Errorf("failure %+v, want cause %s, the cloud's words and a time", f, cause)
		}
		if i > 0 && f.At.After(g.Failures[i-1].At) {
			s.Errorf("failures are not newest first")
		}
	}
	if g.Stale != "" {
		s.Errorf("no %s makes the facts stale: %s", cause, g.Stale)
	}
	if other := s.group(Others); len(other.Failures) > 0 {
		s.Errorf("%s asked for nothing and has failures: %v", Others, other.Failures)
	}
	set(false)
	s.settle()
	if g := s.group(Workers); len(g.Failures) > 0 || len(s.w.Alive(Workers)) != 5 {
		s.Errorf("after that was over: %d alive of 5, failures %v", len(s.w.Alive(Workers)), g.Failures)
	}
}

func deleteLowersTheTarget(s *stage) {
	alive := s.w.Alive(Workers)
	s.ok(s.p.Delete(s.ctx(), Workers, alive[0]))
	s.wantTarget(Workers, 1)
	s.settle()
	s.wantTarget(Workers, 1)
	s.wantAlive(Workers, alive[1:])
	s.ok(s.p.Delete(s.ctx(), Workers))
	s.wantTarget(Workers, 1)
}

func deleteTwiceIsOnce(s *stage) {
	alive := s.w.Alive(Workers)
	again := func() {
		s.Helper()
		if err := s.p.Delete(s.ctx(), Workers, alive[0], alive[0]); err != nil {
			s.Errorf("deleting what is going or gone: %v", err)
		}
		s.wantTarget(Workers, 1)
	}
	again()
	again()
	s.settle()
	again()
	s.settle()
	s.wantAlive(Workers, alive[1:])
}

func deleteForeignInstanceIsNotFound(s *stage) {
	foreign, alive, others := s.w.Foreign(s), s.w.Alive(Workers), s.w.Alive(Others)
	s.wantKind(s.p.Delete(s.ctx(), Workers, foreign), provider.NotFound)
	s.wantKind(s.p.Delete(s.ctx(), Workers, others[0]), provider.NotFound)
	s.wantKind(s.p.Delete(s.ctx(), Workers, "nonsense"), provider.NotFound)
	s.wantTarget(Workers, 2)
	// The failure of one does not keep the others alive.
	err := s.p.Delete(s.ctx(), Workers, foreign, alive[0])
	s.wantKind(err, provider.NotFound)
	for _, e := range provider.Errors(err) {
		if e.Instance != foreign || e.Group != Workers {
			s.Errorf("the error does not name the instance and the group: %v", e)
		}
	}
	s.settle()
	s.wantTarget(Workers, 1)
	s.wantAlive(Workers, alive[1:])
	s.wantAlive(Others, others)
	if !s.w.ForeignAlive(foreign) {
		s.Errorf("the foreign instance %s was ended", foreign)
	}
}

func deletionRefused(s *stage) {
	alive := s.w.Alive(Workers)
	s.w.RefuseDeletes(s, true)
	err := s.p.Delete(s.ctx(), Workers, alive[0])
	s.wantKind(err, provider.Denied)
	for _, e := range provider.Errors(err) {
		if e.Remedy == "" {
			s.Errorf("no remedy: %v", e)
		}
	}
	s.settle()
	s.wantTarget(Workers, 2)
	s.wantAlive(Workers, alive)
	s.w.RefuseDeletes(s, false)
	s.ok(s.p.Delete(s.ctx(), Workers, alive[0]))
	s.wantTarget(Workers, 1)
}
