package oracle

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// Run says what to judge.
type Run struct {
	Program    string // the judge, from JudgeProgram
	Seed       uint64 // of the first world; the next world has the next seed
	Judgements int64  // stop when at least so many are made
	Workers    int
	Enough     int  // stop after so many worlds with differences; 0: one
	Spread     bool // worlds in which nearly all pods are spread
	Progress   func(done int64, took time.Duration)
}

// Finding is a world on which the two sides differ.
type Finding struct {
	Seed  uint64
	World *World
	Diffs []Difference
}

// Do judges worlds until enough judgements are made or differences are found.
func (r Run) Do(ctx context.Context) (*Coverage, []Finding, error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var (
		next, done atomic.Int64
		mu         sync.Mutex
		all        = newCoverage()
		found      []Finding
		failed     error
		wg         sync.WaitGroup
		began      = time.Now()
	)
	enough := max(r.Enough, 1)
	for range max(r.Workers, 1) {
		wg.Go(func() {
			c := newCoverage()
			err := r.work(ctx, c, &next, &done, began, func(f Finding) bool {
				mu.Lock()
				defer mu.Unlock()
				found = append(found, f)
				return len(found) < enough
			})
			mu.Lock()
			defer mu.Unlock()
			all.Merge(c)
			if err != nil && failed == nil {
				failed = err
				stop()
			}
		})
	}
	wg.Wait()
	return all, found, failed
}

func (r Run) work(ctx context.Context, c *Coverage, next, done *atomic.Int64, began time.Time, found func(Finding) bool) error {
	j, err := StartJudge(ctx, r.Program)
	if err != nil {
		return err
	}
	defer j.Close()
	for ctx.Err() == nil && done.Load() < r.Judgements {
		seed := r.Seed + uint64(next.Add(1)-1)
		w := generateAll(seed, r.Spread)
		if err := j.Send(w); err != nil {
			return fmt.Errorf("seed %d: %w", seed, err)
		}
		ours, err := Answers(w) // while the judge thinks
		if err != nil {
			return fmt.Errorf("seed %d: %w", seed, err)
		}
		real, err := j.Receive(len(w.Waiting), len(w.Nodes))
		if err != nil {
			return fmt.Errorf("seed %d: %w", seed, err)
		}
		before := c.Judgements
		c.Add(w, real, ours, j.Filters())
		n := done.Add(c.Judgements - before)
		if r.Progress != nil {
			r.Progress(n, time.Since(began))
		}
		if diffs := Compare(w, real, ours); len(diffs) > 0 && !found(Finding{Seed: seed, World: w, Diffs: diffs}) {
			return nil
		}
	}
	return nil
}
