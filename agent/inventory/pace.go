package inventory

import (
	"maps"
	"slices"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// Waiting are the groups whose instances are expected to come or go.
type Waiting struct {
	// Groups are the groups, and until when each is waited for; zero: without an end.
	Groups map[cluster.GroupID]time.Time
	// All is until when an instance is expected in a group that is not known.
	All time.Time
}

// The budget of requests to the cloud that reads of waiting groups are made from, in
// requests per fast period: 90 a minute with the default of 2 s. Whole reads once per slow
// period are made in any case and count against it.
const (
	perFast = 3.0
	// saved is the most that is saved up: a burst is followed at the full pace at first.
	saved = 60.0
	// least is the part of perFast that an overloaded cloud is asked with.
	least = 1.0 / 16
	// perSlow is what a slow period may cost: 720 requests an hour with the default of 30 s.
	// A whole read that costs more is made less often.
	perSlow = 6.0
	// stretch is the longest time between two whole reads, in slow periods. Nothing is removed
	// from a group by facts that are older than AUTOSCALER_SCALING_FRESH_FOR, a minute.
	stretch = 1.5
	// repeated is how old facts may be in Run's own reads that only an operator changes
	// (provider.WithRepeated).
	repeated = 5 * time.Minute
)

// pace decides what Run reads next. It does no I/O and reads no clock.
type pace struct {
	fast, slow time.Duration

	waiting Waiting
	asked   map[cluster.GroupID]bool // to be read at once: something was changed there
	askAll  bool                     // everything is to be read at once

	all, some time.Time // when the last read began
	cost      int64     // of the last whole read, in requests
	failed    int       // consecutive whole reads without any group
	broken    bool      // the last read failed, so that a whole one is to tell of it
	known     bool      // a whole read has told of groups

	tokens float64 // what is left of the budget; below 0 it is overdrawn
	share  float64 // of perFast: halved by each read that fails, raised by each that does not
	filled time.Time
}

func newPace(fast, slow time.Duration) pace {
	return pace{fast: fast, slow: slow, tokens: saved, share: 1}
}

// step is a read: of all groups (only is nil) or of some, at a time.
type step struct {
	only []cluster.GroupID
	at   time.Time
	anew bool // nothing may be repeated
}

// next is the next read as it is known now.
func (p *pace) next(now time.Time) step {
	if p.askAll || p.all.IsZero() {
		return step{at: now, anew: true}
	}
	maps.DeleteFunc(p.waiting.Groups, func(_ cluster.GroupID, until time.Time) bool { return !until.IsZero() && !now.Before(until) })
	whole := step{at: p.all.Add(p.wholePeriod(now)), anew: now.Before(p.waiting.All)}
	if !p.known || p.broken {
		return whole
	}
	only := map[cluster.GroupID]bool{}
	maps.Copy(only, p.asked)
	for id := range p.waiting.Groups {
		only[id] = true
	}
	if len(only) == 0 {
		return whole
	}
	some := step{only: slices.Sorted(maps.Keys(only)), at: now}
	if len(p.asked) == 0 {
		last := p.some
		if p.all.After(last) {
			last = p.all
		}
		some.at = latest(last.Add(p.fast), p.affordable(now))
	}
	if whole.at.After(some.at) {
		return some
	}
	return whole
}

// wholePeriod is the time between two whole reads. It is the fast one only where reads of
// some groups do not help: before the first groups are known, while reads fail, and while an
// instance of an unknown group is expected.
func (p *pace) wholePeriod(now time.Time) time.Duration {
	longest := time.Duration(float64(p.slow) * min(max(1, float64(p.cost)/perSlow), stretch))
	period := longest
	if !p.known || now.Before(p.waiting.All) || p.broken && len(p.waiting.Groups)+len(p.asked) > 0 {
		period = max(p.fast, p.affordable(now).Sub(p.all))
	}
	for n := 0; n < p.failed && period < p.slow; n++ {
		period *= 2
	}
	return min(period, longest)
}

// affordable is when the budget is no longer overdrawn.
func (p *pace) affordable(now time.Time) time.Time {
	p.fill(now)
	if p.tokens >= 0 {
		return now
	}
	return now.Add(time.Duration(-p.tokens / (perFast * p.share) * float64(p.fast)))
}

func (p *pace) fill(now time.Time) {
	if !p.filled.IsZero() && now.After(p.filled) {
		p.tokens = min(saved, p.tokens+float64(now.Sub(p.filled))/float64(p.fast)*perFast*p.share)
	}
	p.filled = now
}

// spend takes requests out of the budget. A cloud that fails for a reason that may pass is
// asked less often: additive increase, multiplicative decrease.
func (p *pace) spend(now time.Time, requests int64, err error) {
	p.fill(now)
	p.tokens -= float64(requests)
	if lasting(err) {
		p.share = min(1, p.share+1.0/16)
	} else {
		p.share = max(least, p.share/2)
	}
}

// readAll notes a whole read; live tells that it returned a group that is not stale.
func (p *pace) readAll(began, now time.Time, requests int64, live bool, err error) {
	p.spend(now, requests, err)
	p.all, p.cost, p.askAll, p.broken = began, requests, false, !lasting(err)
	clear(p.asked)
	if p.failed++; live {
		p.failed, p.known = 0, true
	}
}

// readSome notes a read of some groups.
func (p *pace) readSome(began, now time.Time, only []cluster.GroupID, requests int64, err error) {
	p.spend(now, requests, err)
	p.some, p.broken = began, err != nil
	for _, id := range only {
		delete(p.asked, id)
	}
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// Refresh makes Run read everything at once, for example after a change of settings.
func (i *Inventory) Refresh() {
	i.mu.Lock()
	i.pace.askAll = true
	i.mu.Unlock()
	notify(i.wake)
}

// RefreshGroups makes Run read some groups at once, for example after an action there.
func (i *Inventory) RefreshGroups(ids ...cluster.GroupID) {
	i.mu.Lock()
	i.pace.ask(ids)
	i.mu.Unlock()
	notify(i.wake)
}

func (p *pace) ask(ids []cluster.GroupID) {
	if p.asked == nil {
		p.asked = map[cluster.GroupID]bool{}
	}
	for _, id := range ids {
		p.asked[id] = true
	}
}

// SetWaiting says which groups are read at the fast pace. A group that is new among them is
// read at once.
func (i *Inventory) SetWaiting(w Waiting) {
	i.mu.Lock()
	defer i.mu.Unlock()
	var fresh []cluster.GroupID
	for id := range w.Groups {
		if _, was := i.pace.waiting.Groups[id]; !was {
			fresh = append(fresh, id)
		}
	}
	if now := time.Now(); w.All.After(now) && !i.pace.waiting.All.After(now) {
		i.pace.askAll = true
	}
	i.pace.waiting = Waiting{Groups: maps.Clone(w.Groups), All: w.All}
	i.pace.ask(fresh)
	notify(i.wake)
}
