package inventory

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
)

// priced is a cloud in which every read costs requests.
type priced struct {
	provider.Provider
	mu       sync.Mutex
	requests int64
	price    int64 // of a read
	err      error // of reads of some groups
	whole    int
	some     [][]cluster.GroupID
}

func (p *priced) Groups(ctx context.Context) ([]cluster.NodeGroup, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.requests += p.price
	all := []cluster.NodeGroup{{ID: "a", ReadAt: time.Now()}, {ID: "b", ReadAt: time.Now()}, {ID: "c", ReadAt: time.Now()}}
	only := provider.Only(ctx)
	if only == nil {
		p.whole++
		return all, nil
	}
	p.some = append(p.some, only)
	if p.err != nil {
		return nil, p.err
	}
	return slices.DeleteFunc(all, func(g cluster.NodeGroup) bool { return !slices.Contains(only, g.ID) }), nil
}

func (p *priced) count() (whole, some int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	whole, some = p.whole, len(p.some)
	p.whole, p.some = 0, nil
	return whole, some
}

// run plays an inventory of p until the test ends.
func (p *priced) run(t *testing.T) (*Inventory, func()) {
	i := inventory(nil)
	i.cloud, i.Requests = p, func() int64 { p.mu.Lock(); defer p.mu.Unlock(); return p.requests }
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- i.Run(ctx, func() {}) }()
	time.Sleep(time.Second)
	p.count()
	return i, func() { cancel(); <-done }
}

func wait(ids ...cluster.GroupID) Waiting {
	w := Waiting{Groups: map[cluster.GroupID]time.Time{}}
	for _, id := range ids {
		w.Groups[id] = time.Time{}
	}
	return w
}

func TestWaitingGroupsAloneAreReadFast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &priced{price: 1}
		i, stop := p.run(t)
		defer stop()
		w := wait("b")
		w.Groups["c"] = time.Now().Add(10 * time.Second)
		i.SetWaiting(w)
		time.Sleep(9 * time.Second)
		synctest.Wait() // a read of this moment is done
		p.mu.Lock()
		for _, only := range p.some {
			if !slices.Equal(only, []cluster.GroupID{"b", "c"}) {
				t.Errorf("read %v", only)
			}
		}
		p.mu.Unlock()
		if whole, some := p.count(); whole != 0 || some != 5 {
			t.Errorf("%d and %d reads in nine seconds, want 5 of the waiting groups", whole, some)
		}
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		p.mu.Lock()
		last := p.some[len(p.some)-1]
		p.mu.Unlock()
		if !slices.Equal(last, []cluster.GroupID{"b"}) {
			t.Errorf("the time of c is over, and %v is read", last)
		}
		if whole, some := p.count(); whole != 10 || some < 130 || some > 150 {
			t.Errorf("%d and %d reads in five minutes, want 10 and about 140", whole, some)
		}
		i.SetWaiting(Waiting{})
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		if whole, some := p.count(); whole != 10 || some != 0 {
			t.Errorf("%d and %d reads in five minutes without waiting", whole, some)
		}
	})
}

// TestDearReadsAreBounded: reads of 10 requests each, as of a cloud without a list of
// everything, are made at the full pace in the beginning and from the budget then; whole
// reads come at the slow pace of dear reads in any case.
func TestDearReadsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &priced{price: 10}
		i, stop := p.run(t)
		defer stop()
		i.SetWaiting(wait("a", "b", "c"))
		time.Sleep(9 * time.Second)
		if _, some := p.count(); some != 5 {
			t.Errorf("%d reads in the first nine seconds, want the full pace", some)
		}
		time.Sleep(time.Minute)
		before := i.Requests()
		p.count()
		time.Sleep(time.Hour)
		if n := i.Requests() - before; n > 5500 || n < 5000 {
			t.Errorf("%d requests in an hour, want the budget of 5,400", n)
		}
		if whole, _ := p.count(); whole < 79 {
			t.Errorf("%d whole reads in an hour, want one in 45 seconds", whole)
		}
	})
}

// TestDearWholeReadsAreRarer: at rest a read that costs more than six requests is made less
// often, but at least once in 45 seconds.
func TestDearWholeReadsAreRarer(t *testing.T) {
	for price, want := range map[int64]int{1: 120, 6: 120, 8: 90, 9: 80, 30: 80} {
		synctest.Test(t, func(t *testing.T) {
			p := &priced{price: price}
			_, stop := p.run(t)
			defer stop()
			time.Sleep(time.Hour)
			if whole, some := p.count(); whole < want-1 || whole > want || some > 0 {
				t.Errorf("%d whole reads of %d requests in an hour and %d others, want %d", whole, price, some, want)
			}
		})
	}
}

// TestThrottledReadsSlowDown: a failing read of some groups marks them, a whole read tells
// of it, and the budget shrinks by half each time and grows again by little.
func TestThrottledReadsSlowDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &priced{price: 3, err: &provider.Error{Op: "read", Kind: provider.Transient, Err: errors.New("throttled")}}
		i, stop := p.run(t)
		defer stop()
		i.SetWaiting(wait("b"))
		time.Sleep(100 * time.Millisecond)
		groups, _, _ := i.Last()
		if groups[0].Stale != "" || groups[1].Stale == "" || groups[2].Stale != "" {
			t.Errorf("%+v", groups)
		}
		time.Sleep(10 * time.Minute)
		p.count()
		before := i.Requests()
		time.Sleep(10 * time.Minute)
		whole, some := p.count()
		throttled := i.Requests() - before
		if some > whole+1 || throttled > 500 {
			t.Errorf("%d whole reads, %d of some, %d requests in ten minutes of throttling, want a whole one after each failure and half the budget", whole, some, throttled)
		}
		p.mu.Lock()
		p.err = nil
		p.mu.Unlock()
		time.Sleep(2 * time.Minute)
		p.count()
		time.Sleep(time.Minute)
		if _, some := p.count(); some < 25 {
			t.Errorf("%d reads in a minute after the throttling, want the full pace again", some)
		}
	})
}

// TestGroupsOfAnActionAreReadAtOnce, and only they.
func TestGroupsOfAnActionAreReadAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &priced{price: 1}
		i, stop := p.run(t)
		defer stop()
		i.RefreshGroups("c")
		synctest.Wait()
		if whole, some := p.count(); whole != 0 || some != 1 {
			t.Errorf("%d and %d reads", whole, some)
		}
		time.Sleep(10 * time.Second)
		if whole, some := p.count(); whole != 0 || some != 0 {
			t.Errorf("%d and %d reads later", whole, some)
		}
		i.Refresh()
		synctest.Wait()
		if whole, some := p.count(); whole != 1 || some != 0 {
			t.Errorf("%d and %d reads after Refresh", whole, some)
		}
	})
}
