package inventory

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
)

// cloud answers what the test says, after a delay.
type cloud struct {
	mu     sync.Mutex
	groups []cluster.NodeGroup
	err    error
	takes  time.Duration
	reads  atomic.Int64
	repeat []time.Duration // by read, how old the facts may be that only an operator changes
}

func (c *cloud) Groups(ctx context.Context) ([]cluster.NodeGroup, error) {
	c.mu.Lock()
	c.reads.Add(1)
	c.repeat = append(c.repeat, provider.Repeated(ctx))
	c.mu.Unlock()
	time.Sleep(c.takes)
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]cluster.NodeGroup(nil), c.groups...), errors.Join(c.err, ctx.Err())
}

func (c *cloud) Resize(context.Context, cluster.GroupID, int, int) error { return nil }

func (c *cloud) Delete(context.Context, cluster.GroupID, ...cluster.InstanceID) error { return nil }

func (c *cloud) set(err error, groups ...cluster.NodeGroup) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.err, c.groups = err, groups
}

func inventory(c *cloud) *Inventory {
	log := logrus.New()
	log.SetOutput(io.Discard)
	return New(c, 2*time.Second, 30*time.Second, 25*time.Second, log.WithField("service", "test"))
}

func TestReadsAreShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &cloud{groups: []cluster.NodeGroup{{ID: "g", Target: 3}}, takes: time.Second}
		i := inventory(c)
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() {
				if groups, err := i.Groups(t.Context(), time.Minute); err != nil || len(groups) != 1 {
					t.Errorf("groups %v, %v", groups, err)
				}
			})
		}
		wg.Wait()
		if _, err := i.Groups(t.Context(), time.Minute); err != nil || c.reads.Load() != 1 {
			t.Errorf("%d reads, want one for all", c.reads.Load())
		}
		time.Sleep(2 * time.Minute)
		if _, err := i.Groups(t.Context(), time.Minute); err != nil || c.reads.Load() != 2 {
			t.Errorf("%d reads, want a second when the first is old", c.reads.Load())
		}
	})
}

// TestRepeatedFacts: the inventory's own reads may repeat facts that only an operator changes; not
// the first one, one that was asked for, and one that a service waits for.
func TestRepeatedFacts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &cloud{groups: []cluster.NodeGroup{{ID: "g", Target: 3}}, takes: time.Second}
		i := inventory(c)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- i.Run(ctx, func() {}) }()
		time.Sleep(30500 * time.Millisecond) // in the middle of the second read
		asked := time.Now()
		if _, err := i.Groups(t.Context(), 0); err != nil || time.Since(asked) != 1500*time.Millisecond {
			t.Errorf("%s, %v: want a read of its own, after the one that is under way", time.Since(asked), err)
		}
		i.Refresh()
		time.Sleep(5 * time.Second)
		i.RefreshGroups("g")
		time.Sleep(5 * time.Second)
		cancel()
		<-done
		if want := []time.Duration{0, repeated, 0, 0, repeated}; !slices.Equal(c.repeat, want) {
			t.Errorf("reads may repeat %v, want %v", c.repeat, want)
		}
	})
}

// TestBeatsWhileOthersRead: a service that reads everything more often than Run does, as csrsigner while a request waits, keeps
// Run from its own reads and not from its heartbeat.
func TestBeatsWhileOthersRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &cloud{groups: []cluster.NodeGroup{{ID: "g", Target: 3}}, takes: time.Second}
		i := inventory(c)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		last := time.Now()
		var longest time.Duration
		go func() {
			done <- i.Run(ctx, func() { longest, last = max(longest, time.Since(last)), time.Now() })
		}()
		for range 40 {
			time.Sleep(20 * time.Second)
			if _, err := i.Groups(t.Context(), 0); err != nil {
				t.Fatal(err)
			}
		}
		cancel()
		<-done
		if longest = max(longest, time.Since(last)); longest > 35*time.Second { // a slow period and a read
			t.Errorf("no beat for %s", longest)
		}
	})
}

// TestRepeatedNamesAreOld: a read that repeated the names of instances serves a caller as a read
// of the time when they were read; those of a stale group are known to be old.
func TestRepeatedNamesAreOld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		c := &cloud{groups: []cluster.NodeGroup{{ID: "g"}, {ID: "named", NamesReadAt: start}}}
		i := inventory(c)
		wants := func(when string, want bool) {
			t.Helper()
			if _, err := i.Groups(provider.WithRepeated(t.Context(), time.Hour), 0); err != nil && len(provider.Errors(err)) == 0 { // as Run does
				t.Fatal(err)
			}
			before := c.reads.Load()
			_, _ = i.Groups(t.Context(), 30*time.Second)
			if read := c.reads.Load() > before; read != want {
				t.Errorf("%s: the cloud is read %t, want %t", when, read, want)
			}
		}
		time.Sleep(20 * time.Second)
		wants("names of 20 s ago", false)
		time.Sleep(20 * time.Second)
		wants("names of 40 s ago", true)
		c.set(&provider.Error{Op: "read", Group: "named", Kind: provider.Denied, Err: errors.New("no right")}, cluster.NodeGroup{ID: "g"})
		wants("names of a stale group", false)
	})
}

// TestSameFactsAtOtherTimes: the times of reads are no news.
func TestSameFactsAtOtherTimes(t *testing.T) {
	was := []cluster.NodeGroup{{ID: "g", Target: 3, ReadAt: time.Unix(1, 0), NamesReadAt: time.Unix(1, 0)}}
	now := []cluster.NodeGroup{{ID: "g", Target: 3, ReadAt: time.Unix(9, 0), NamesReadAt: time.Unix(5, 0)}}
	if !sameFacts(was, now) {
		t.Error("other times are other facts")
	}
	if got := WithReadTimes(was, now)[0]; !got.WitnessedAt().Equal(time.Unix(5, 0)) || !got.ReadAt.Equal(time.Unix(9, 0)) {
		t.Errorf("%+v", got)
	}
}

func TestLastGoodFactsOutliveFailures(t *testing.T) {
	boom := &provider.Error{Op: "read", Kind: provider.Transient, Err: errors.New("throttled")}
	full := []cluster.NodeGroup{{ID: "a", Target: 3}, {ID: "b", Target: 4}}
	for name, c := range map[string]struct {
		err    error
		groups []cluster.NodeGroup
		want   map[cluster.GroupID]string // target and staleness
	}{
		"nothing read":    {boom, nil, map[cluster.GroupID]string{"a": "stale 3", "b": "stale 4"}},
		"one missing":     {boom, []cluster.NodeGroup{{ID: "a", Target: 5}}, map[cluster.GroupID]string{"a": "live 5", "b": "stale 4"}},
		"one partial":     {boom, []cluster.NodeGroup{{ID: "a", Target: 5}, {ID: "b", Stale: "cut short"}}, map[cluster.GroupID]string{"a": "live 5", "b": "stale 4"}},
		"one really gone": {nil, []cluster.NodeGroup{{ID: "a", Target: 5}}, map[cluster.GroupID]string{"a": "live 5"}},
		"new and stale":   {boom, []cluster.NodeGroup{{ID: "a", Target: 3}, {ID: "b", Target: 4}, {ID: "c", Stale: "no template"}}, map[cluster.GroupID]string{"a": "live 3", "b": "live 4", "c": "stale 0"}},
	} {
		t.Run(name, func(t *testing.T) {
			cl := &cloud{groups: full}
			i := inventory(cl)
			if _, err := i.Groups(t.Context(), 0); err != nil {
				t.Fatal(err)
			}
			cl.set(c.err, c.groups...)
			groups, err := i.Groups(t.Context(), 0)
			if (err == nil) != (c.err == nil) || len(groups) != len(c.want) {
				t.Fatalf("groups %+v, %v", groups, err)
			}
			for _, g := range groups {
				word := "live "
				if g.Stale != "" {
					word = "stale "
				}
				if got := word + string(rune('0'+g.Target)); got != c.want[g.ID] {
					t.Errorf("%s is %q, want %q (%s)", g.ID, got, c.want[g.ID], g.Stale)
				}
			}
			cl.set(nil, full...)
			if groups, err := i.Groups(t.Context(), 0); err != nil || len(groups) != 2 || groups[0].Stale != "" || groups[1].Stale != "" {
				t.Errorf("after recovery: %+v, %v", groups, err)
			}
		})
	}
}

func TestPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &cloud{groups: []cluster.NodeGroup{{ID: "g"}}}
		i := inventory(c)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- i.Run(ctx, func() {}) }()
		reads := func(d time.Duration) int {
			before := c.reads.Load()
			time.Sleep(d)
			synctest.Wait()
			return int(c.reads.Load() - before)
		}
		reads(time.Second)
		if n := reads(5 * time.Minute); n != 10 {
			t.Errorf("%d reads in 5 idle minutes, want 10", n)
		}
		i.SetWaiting(Waiting{Groups: map[cluster.GroupID]time.Time{"g": {}}})
		if n := reads(61 * time.Second); n < 30 || n > 32 {
			t.Errorf("%d reads in a busy minute, want about 31", n)
		}
		c.set(&provider.Error{Kind: provider.Transient, Err: errors.New("throttled")})
		if n := reads(5 * time.Minute); n > 16 {
			t.Errorf("%d reads in 5 minutes of throttling, want the slow pace after a few", n)
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// An instance keeps the spec that its group's template had when the instance appeared.
func TestSpecsOfInstances(t *testing.T) {
	c := &cloud{groups: []cluster.NodeGroup{{ID: "g", Template: cluster.Template{Spec: "v1"}, Instances: []cluster.Instance{{ID: "old", Member: true}}}}}
	i := inventory(c)
	ctx := t.Context()
	read := func() {
		if _, err := i.Groups(ctx, 0); err != nil {
			t.Fatal(err)
		}
	}
	read()
	group := cluster.NodeGroup{ID: "g", Template: cluster.Template{Spec: "v1"},
		Instances: []cluster.Instance{{ID: "old", Member: true}, {ID: "new", Member: true}}}
	c.set(nil, group)
	read()
	group.Template.Spec = "v2"
	group.Instances = append(group.Instances, cluster.Instance{ID: "newer", Member: true})
	c.set(nil, group)
	read()
	specs := i.Specs()
	if specs["old"] != "" || specs["new"] != "v1" || specs["newer"] != "v2" {
		t.Fatalf("specs %v", specs)
	}
}

// TestSpecsOfInstancesThatWereThere: an instance that was there before the first read is one of the template where the cloud tells that it
// was started from all that the group starts today.
func TestSpecsOfInstancesThatWereThere(t *testing.T) {
	of := func(data string) cluster.Spec { return cluster.Spec{"image": "a", cluster.PropertyUserData: data} }
	c := &cloud{groups: []cluster.NodeGroup{{ID: "g", Template: cluster.Template{Spec: "v3", Source: of("x")}, Instances: []cluster.Instance{
		{ID: "same", Source: of("x")}, {ID: "other", Source: of("y")}, {ID: "half told", Source: cluster.Spec{"image": "a"}}, {ID: "not told"}}},
		{ID: "untold", Template: cluster.Template{Spec: "v1"}, Instances: []cluster.Instance{{ID: "untold", Source: of("x")}}}}}
	i := inventory(c)
	if _, err := i.Groups(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	if specs := i.Specs(); len(specs) != 1 || specs["same"] != "v3" {
		t.Errorf("specs %v", specs)
	}
}

// TestEachFailureIsLoggedOnce: the failure of a second cloud or group is logged while the
// first one lasts, and so is the end of each.
func TestEachFailureIsLoggedOnce(t *testing.T) {
	var out strings.Builder
	log := logrus.New()
	log.SetOutput(&out)
	i := New(&cloud{}, time.Second, time.Second, time.Second, log.WithField("service", "test"))
	trouble := func(by string, group cluster.GroupID) error {
		return &provider.Error{Op: "read", Provider: by, Group: group, Kind: provider.Transient, Err: errors.New("trouble of " + by + string(group))}
	}
	a, b, g := trouble("a", ""), trouble("b", ""), trouble("a", "g")
	for n, step := range []struct {
		err  error
		want string // part of each line
	}{
		{a, "trouble of a"}, {a, ""}, {errors.Join(a, b), "trouble of b"}, {errors.Join(b, a), ""},
		{b, "provider a can be read again"}, {errors.Join(b, g), "trouble of ag"}, {b, "group g of provider a can be read again"},
		{nil, "all node groups can be read again"}, {nil, ""}, {errors.New("plain"), "plain"}, {errors.New("other words"), ""}, {nil, "all node groups can be read again"},
	} {
		out.Reset()
		i.logFailures(step.err)
		if got := out.String(); (got == "") != (step.want == "") || !strings.Contains(got, step.want) || strings.Count(got, "\n") > 1 {
			t.Errorf("step %d logged %q, want one line with %q", n, got, step.want)
		}
	}
}

// TestOneFailingCloudDoesNotSlowTheOthers: the pace is that of a healthy cloud as long
// as anything can be read.
func TestOneFailingCloudDoesNotSlowTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		boom := &provider.Error{Provider: "a", Kind: provider.Transient, Err: errors.New("down")}
		c := &cloud{groups: []cluster.NodeGroup{{ID: "g"}, {ID: "h", Stale: "down"}}, err: boom}
		i := inventory(c)
		i.SetWaiting(Waiting{Groups: map[cluster.GroupID]time.Time{"g": {}}})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- i.Run(ctx, func() {}) }()
		time.Sleep(61 * time.Second)
		synctest.Wait()
		if n := c.reads.Load(); n < 30 || n > 33 {
			t.Errorf("%d reads in a busy minute, want about 31", n)
		}
		cancel()
		<-done
	})
}
