package providertest

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
)

// hangingCloud: a method ends with its context, whatever the cloud does.
func hangingCloud(s *stage) {
	const limit, patience = 50 * time.Millisecond, time.Minute // the second is reached by a hang alone
	hang := ability[Hang](s)
	alive := s.w.Alive(Workers)
	hang.Hang(s, true)
	for name, call := range map[string]func(context.Context) error{
		"Groups": func(ctx context.Context) error {
			groups, err := s.p.Groups(ctx)
			if groups != nil {
				s.Errorf("Groups: nothing answered, and %d groups were returned; nil means unknown", len(groups))
			}
			return err
		},
		"Resize": func(ctx context.Context) error { return s.p.Resize(ctx, Workers, 2, 3) },
		"Delete": func(ctx context.Context) error { return s.p.Delete(ctx, Workers, alive[0]) },
	} {
		ctx, cancel := context.WithTimeout(s.ctx(), limit)
		done := make(chan error, 1)
		go func() { done <- call(ctx) }()
		select {
		case err := <-done:
			if !errors.Is(err, context.DeadlineExceeded) {
				s.Errorf("%s: %v, want the context's error", name, err)
			}
		case <-time.After(patience):
			s.Errorf("%s goes on %s after its context has ended", name, patience)
		}
		cancel()
	}
	hang.Hang(s, false)
	s.wantTarget(Workers, 2)
	s.wantAlive(Workers, alive)
	s.ok(s.p.Resize(s.ctx(), Workers, 2, 3))
}

// lostAnswer: what was done and not heard of is not done again.
func lostAnswer(s *stage) {
	lose := ability[LoseAnswer](s)
	lose.LoseAnswer(s)
	if err := s.p.Resize(s.ctx(), Workers, 2, 4); err != nil {
		s.wantKind(err, provider.Transient)
		s.wantUnsure(err, true)
	}
	if got := s.group(Workers).Target; got != 4 {
		s.Errorf("target %d after a Resize to 4 whose answer was lost", got)
	}
	if err := s.p.Resize(s.ctx(), Workers, 2, 4); err != nil {
		s.Errorf("the same once more: %v", err)
	}
	s.settle()
	s.wantTarget(Workers, 4)
	alive := s.w.Alive(Workers)
	if len(alive) != 4 {
		s.Fatalf("%d instances, want 4: %v", len(alive), alive)
	}
	lose.LoseAnswer(s)
	if err := s.p.Delete(s.ctx(), Workers, alive[0]); err != nil {
		s.wantKind(err, provider.Transient)
		s.wantUnsure(err, true)
	}
	if err := s.p.Delete(s.ctx(), Workers, alive[0]); err != nil {
		s.Errorf("the same deletion once more: %v", err)
	}
	s.settle()
	s.wantTarget(Workers, 3)
	s.wantAlive(Workers, alive[1:])
}

// readLagsBehindWrites: on reads that are behind, nothing is deleted twice and no
// Resize ends a machine that it does not see.
func readLagsBehindWrites(s *stage) {
	lag := ability[Lag](s)
	alive := s.w.Alive(Workers)
	lag.Lag(s, true)
	s.ok(s.p.Delete(s.ctx(), Workers, alive[0]))
	_ = s.p.Delete(s.ctx(), Workers, alive[0]) // the reads say that it lives, so any answer will do
	s.settle()
	_ = s.p.Delete(s.ctx(), Workers, alive[0])
	s.settle()
	s.wantTarget(Workers, 1)
	s.wantAlive(Workers, alive[1:])
	lag.Lag(s, false)
	lag.Lag(s, true)
	s.ok(s.p.Resize(s.ctx(), Workers, 1, 3))
	s.settle()
	alive = s.w.Alive(Workers)
	if len(alive) != 3 {
		s.Fatalf("%d alive of 3", len(alive))
	}
	_ = s.p.Resize(s.ctx(), Workers, 1, 2) // the reads say that the target is 1
	s.settle()
	s.wantAlive(Workers, alive)
	lag.Lag(s, false)
	for _, in := range s.group(Workers).Instances {
		if in.Phase == cluster.PhaseRunning && !slices.Contains(alive, in.ID) {
			s.Errorf("%s runs, and was deleted", in.ID)
		}
	}
}

// credentialsExpireMidRun: between any two calls that a method makes. What is told is
// whole or marked, and what is said to be done is done.
func credentialsExpireMidRun(s *stage) {
	expire := ability[ExpireAfter](s)
	target := 2
	for calls := range 6 {
		expire.ExpireAfter(s, calls)
		groups, err := s.p.Groups(s.ctx())
		if err == nil && len(groups) != 2 {
			s.Errorf("after %d calls: %d groups and no error", calls, len(groups))
		} else if err != nil {
			s.wantKind(err, provider.Denied)
		}
		for _, g := range groups {
			want := len(s.w.Alive(g.ID))
			if g.Stale == "" && (err == nil || g.ID == Workers) && living(g) != want {
				s.Errorf("after %d calls: %s has %d machines of %d and is not stale", calls, g.ID, living(g), want)
			}
		}
		s.w.Expire(s, false)

		expire.ExpireAfter(s, calls)
		err = s.p.Resize(s.ctx(), Workers, target, target+1)
		if err != nil {
			s.wantKind(err, provider.Denied)
			s.wantTarget(Workers, target)
		} else {
			target++
			s.wantTarget(Workers, target)
		}
		s.w.Expire(s, false)
		if len(s.read()) != 2 {
			s.Errorf("after the credentials were renewed: not everything is read")
		}
		s.settle()
	}
	if target == 2 {
		s.Errorf("Resize makes more than five calls")
	}
}

func living(g cluster.NodeGroup) int {
	n := 0
	for _, in := range g.Instances {
		if in.Phase == cluster.PhasePending || in.Phase == cluster.PhaseRunning {
			n++
		}
	}
	return n
}

// failedInstance: a machine that cannot be started is told with its reason, is not
// taken for one that runs, and can be removed where the cloud keeps it.
func failedInstance(s *stage) {
	fail := ability[FailLaunches](s)
	alive := s.w.Alive(Workers)
	fail.FailLaunches(s, true)
	if err := s.p.Resize(s.ctx(), Workers, 2, 3); err != nil {
		s.wantKind(err, provider.Invalid)
		s.wantTarget(Workers, 2)
		return
	}
	s.settle()
	g := s.group(Workers)
	failures := slices.Clone(g.Failures)
	var broken []cluster.InstanceID
	for _, in := range g.Instances {
		if in.Failure != nil {
			failures = append(failures, *in.Failure)
		}
		switch {
		case slices.Contains(alive, in.ID):
		case in.Phase == cluster.PhaseFailed:
			broken = append(broken, in.ID)
			if in.Failure == nil {
				s.Errorf("%s could not start, and there is no failure", in.ID)
			}
		case in.Phase != cluster.PhaseGone && in.Phase != cluster.PhaseDeleting:
			s.Errorf("%s could not start and is in phase %q", in.ID, in.Phase)
		}
	}
	if len(failures) == 0 {
		s.Fatalf("a machine could not start, and nothing tells why")
	}
	for _, f := range failures {
		if f.Text == "" || f.Cause == "" || f.Cause == cluster.CauseQuota || f.Cause == cluster.CauseCapacity || f.At.IsZero() {
			s.Errorf("failure %+v, want the cloud's words, a time and a cause that is neither quota nor capacity", f)
		}
	}
	if g.Stale != "" {
		s.Errorf("a failed machine makes the facts stale: %s", g.Stale)
	}
	fail.FailLaunches(s, false)
	if len(broken) > 0 {
		s.ok(s.p.Delete(s.ctx(), Workers, broken...))
		s.settle()
		s.wantTarget(Workers, 3-len(broken))
		s.wantAlive(Workers, alive)
	}
}

// deletionRefusedForOne: the error names that one; the other goes.
func deletionRefusedForOne(s *stage) {
	ability[RefuseOneDelete](s).RefuseOneDelete(s)
	alive := s.w.Alive(Workers)
	err := s.p.Delete(s.ctx(), Workers, alive...)
	s.wantKind(err, provider.Denied)
	list := provider.Errors(err)
	if len(list) != 1 || !slices.Contains(alive, list[0].Instance) || list[0].Group != Workers {
		s.Fatalf("one of two was refused, and the errors are %v", err)
	}
	s.settle()
	s.wantTarget(Workers, 1)
	s.wantAlive(Workers, []cluster.InstanceID{list[0].Instance})
	s.ok(s.p.Delete(s.ctx(), Workers, alive...))
	s.settle()
	s.wantTarget(Workers, 0)
	s.wantAlive(Workers, nil)
}

// concurrentDeletes: what several delete at once goes once. A cloud that does one thing
// at a time says Busy to all but one.
func concurrentDeletes(s *stage) {
	alive := s.w.Alive(Workers)
	errs := make([]error, 8)
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() { errs[i] = s.p.Delete(s.ctx(), Workers, alive[i%2]) })
	}
	wg.Wait()
	refused := 0
	for _, err := range errs {
		if err != nil {
			refused++
			s.wantLate(err)
		}
	}
	if refused == len(errs) {
		s.Errorf("nobody deleted anything")
	}
	for range refused {
		s.settle()
		s.ok(s.p.Delete(s.ctx(), Workers, alive[0]))
		s.settle()
		s.ok(s.p.Delete(s.ctx(), Workers, alive[1]))
	}
	s.wantTarget(Workers, 0)
	s.settle()
	s.wantTarget(Workers, 0)
	s.wantAlive(Workers, nil)
}

// concurrentReads: reads beside writes are whole, and one that begins when a write has
// been answered shows it.
func concurrentReads(s *stage) {
	const to, readers, between = 7, 4, 8
	var answered atomic.Int64
	answered.Store(2)
	seen, stop := make(chan bool), make(chan struct{})
	var wg sync.WaitGroup
	for range readers {
		wg.Go(func() {
			for good := true; good; {
				least := int(answered.Load())
				groups, err := s.p.Groups(s.ctx())
				g := s.byID(groups)[Workers]
				if good = err == nil && len(groups) == 2 && g.Target >= least && g.Target <= to; !good {
					s.Errorf("a read beside writes: %d groups, target %d where %d was set, %v", len(groups), g.Target, least, err)
				}
				select {
				case seen <- good:
				case <-stop:
					return
				}
			}
		})
	}
	good := true
	for n := 2; n < to && good; n++ {
		err := s.p.Resize(s.ctx(), Workers, n, n+1)
		if late(err) { // a cloud that does one thing at a time
			s.settle()
			err = s.p.Resize(s.ctx(), Workers, n, n+1)
		}
		if err != nil {
			s.Errorf("a write beside reads: %v", err)
			break
		}
		answered.Store(int64(n + 1))
		for i := 0; i < between && good; i++ {
			good = <-seen
		}
	}
	close(stop)
	wg.Wait()
}
