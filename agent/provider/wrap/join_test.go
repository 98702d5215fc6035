package wrap_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/wrap"
	"github.com/autoscaler-agent/autoscaler-agent/internal/testing/fake"
	"github.com/autoscaler-agent/autoscaler-agent/internal/testing/fakeworld"
	"github.com/autoscaler-agent/autoscaler-agent/internal/testing/providertest"
)

// pair is the suite's world in two clouds: Workers in one, Others in the other.
type pair struct{ workers, others fakeworld.World }

func newPair() pair {
	return pair{fakeworld.Of("a", providertest.Workers), fakeworld.Of("b", providertest.Others)}
}

func (p pair) join() provider.Provider {
	return wrap.Join(map[string]provider.Provider{"first": p.workers.Cloud, "second": p.others.Cloud})
}

func (p pair) of(id cluster.GroupID) fakeworld.World {
	if id == providertest.Others {
		return p.others
	}
	return p.workers
}

func (p pair) Target(id cluster.GroupID) int                 { return p.of(id).Target(id) }
func (p pair) Alive(id cluster.GroupID) []cluster.InstanceID { return p.of(id).Alive(id) }
func (p pair) Foreign(t testing.TB) cluster.InstanceID       { return p.workers.Foreign(t) }
func (p pair) ForeignAlive(id cluster.InstanceID) bool       { return p.workers.ForeignAlive(id) }
func (p pair) SetTarget(id cluster.GroupID, n int)           { p.of(id).SetTarget(id, n) }
func (p pair) Vanish(id cluster.GroupID)                     { p.of(id).Vanish(id) }
func (p pair) Quota(t testing.TB, on bool)                   { p.workers.Quota(t, on) }
func (p pair) RefuseDeletes(t testing.TB, on bool)           { p.workers.RefuseDeletes(t, on) }
func (p pair) BreakRead(t testing.TB, on bool)               { p.workers.BreakRead(t, on) }
func (p pair) Kill(id cluster.InstanceID)                    { p.workers.Kill(id); p.others.Kill(id) }
func (p pair) Throttle(t testing.TB, on bool)                { p.workers.Throttle(t, on); p.others.Throttle(t, on) }
func (p pair) Expire(t testing.TB, on bool)                  { p.workers.Expire(t, on); p.others.Expire(t, on) }
func (p pair) FailLaunches(t testing.TB, on bool)            { p.workers.FailLaunches(t, on) }
func (p pair) LimitCapacity(t testing.TB, on bool)           { p.workers.LimitCapacity(t, on) }
func (p pair) RefuseOneDelete(t testing.TB)                  { p.workers.RefuseOneDelete(t) }
func (p pair) LoseAnswer(t testing.TB)                       { p.workers.LoseAnswer(t) }
func (p pair) Pause(t testing.TB, on bool)                   { p.workers.Pause(t, on) }
func (p pair) Furnish(t testing.TB)                          { p.workers.Furnish(t) }
func (p pair) ChangeTemplate(t testing.TB)                   { p.workers.ChangeTemplate(t) }
func (p pair) Forms(id cluster.InstanceID) []string          { return p.workers.Forms(id)[:1] } // short ones are of both clouds
func (p pair) ExpireAfter(t testing.TB, n int) {
	p.workers.ExpireAfter(t, n)
	p.others.ExpireAfter(t, n)
}
func (p pair) Lag(t testing.TB, on bool)  { p.workers.Lag(t, on); p.others.Lag(t, on) }
func (p pair) Hang(t testing.TB, on bool) { p.workers.Hang(t, on); p.others.Hang(t, on) }
func (p pair) Node(id cluster.InstanceID) cluster.Node {
	if n := p.workers.Node(id); n.Name != "" {
		return n
	}
	return p.others.Node(id)
}

func TestSeveralProvidersKeepTheContract(t *testing.T) {
	providertest.Suite{
		New: func(testing.TB) (provider.Provider, providertest.World) {
			p := newPair()
			return p.join(), p
		},
		Settle: func(t testing.TB, w providertest.World) {
			fakeworld.Settle(t, w.(pair).workers)
			fakeworld.Settle(t, w.(pair).others)
		},
	}.Run(t)
}

func TestJoinOfOneIsThatOne(t *testing.T) {
	c := fake.New(time.Now())
	if p := wrap.Join(map[string]provider.Provider{"only": c}); p != provider.Provider(c) {
		t.Errorf("%T", p)
	}
}

// read reads and gives the groups by ID.
func read(t *testing.T, p provider.Provider) (map[cluster.GroupID]cluster.NodeGroup, error) {
	t.Helper()
	list, err := p.Groups(ctx)
	if list == nil {
		return nil, err
	}
	out := map[cluster.GroupID]cluster.NodeGroup{}
	for _, g := range list {
		if _, twice := out[g.ID]; twice {
			t.Errorf("%s is listed twice", g.ID)
		}
		out[g.ID] = g
	}
	return out, err
}

// A cloud that is down hides nothing of the other, and what it had stays known as old.
func TestOneCloudDown(t *testing.T) {
	w := newPair()
	p := w.join()
	w.workers.Expire(t, true)
	groups, err := read(t, p)
	if err == nil || len(groups) != 1 || groups[providertest.Others].Stale != "" {
		t.Errorf("never read before: %+v", groups)
	}
	if err := p.Resize(ctx, providertest.Workers, 2, 3); provider.KindOf(err) != provider.Denied || !strings.Contains(err.Error(), "no provider that can be read") {
		t.Errorf("a group that may be in the cloud that is down: %v", err)
	}
	w.workers.Expire(t, false)
	if _, err := read(t, p); err != nil {
		t.Fatal(err)
	}
	w.workers.Expire(t, true)
	groups, err = read(t, p)
	if g := groups[providertest.Workers]; len(g.Instances) != 2 || !strings.Contains(g.Stale, "provider first") || !strings.Contains(g.Stale, "expired") {
		t.Errorf("%s: %d instances, stale %q", g.ID, len(g.Instances), g.Stale)
	}
	if g := groups[providertest.Others]; len(g.Instances) != 1 || g.Stale != "" {
		t.Errorf("%+v", g)
	}
	list := provider.Errors(err)
	if len(list) != 1 || list[0].Provider != "first" || list[0].Kind != provider.Denied || list[0].Remedy == "" || !strings.HasPrefix(list[0].Error(), "first: ") {
		t.Errorf("%v", err)
	}
	if err := p.Resize(ctx, providertest.Others, 1, 2); err != nil {
		t.Errorf("the other cloud's group: %v", err)
	}
	if err := p.Resize(ctx, providertest.Workers, 2, 3); provider.KindOf(err) != provider.Denied || provider.Errors(err)[0].Provider != "first" {
		t.Errorf("%v", err)
	}
	w.others.Throttle(t, true)
	if groups, err := read(t, p); groups != nil || len(provider.Errors(err)) != 2 {
		t.Errorf("nothing could be read, which is nil: %v, %v", groups, err)
	}
	w.workers.Expire(t, false)
	w.others.Throttle(t, false)
	if groups, err := read(t, p); len(groups) != 2 || err != nil || groups[providertest.Workers].Stale != "" {
		t.Errorf("%v, %v", groups, err)
	}
}

// script is a provider that says what it is told to.
type script struct {
	provider.Provider
	groups func(ctx context.Context) ([]cluster.NodeGroup, error)
	resize func(ctx context.Context) error
}

func (s *script) Groups(ctx context.Context) ([]cluster.NodeGroup, error) { return s.groups(ctx) }
func (s *script) Resize(ctx context.Context, _ cluster.GroupID, _, _ int) error {
	return s.resize(ctx)
}

func says(err error, groups ...cluster.NodeGroup) *script {
	return &script{
		groups: func(context.Context) ([]cluster.NodeGroup, error) { return groups, err },
		resize: func(context.Context) error { return nil },
	}
}

func join(parts map[string]*script) provider.Provider {
	all := map[string]provider.Provider{}
	for name, p := range parts {
		all[name] = p
	}
	return wrap.Join(all)
}

// A group that a partial read leaves out was perhaps not read: it stays, as old, and
// its provider is still the one that is asked. A whole read without it ends it.
func TestAGroupThatAPartialReadLeavesOut(t *testing.T) {
	g := cluster.NodeGroup{ID: "g", Instances: []cluster.Instance{{ID: "i"}}}
	a, b := says(nil, g, cluster.NodeGroup{ID: "h"}), says(nil, cluster.NodeGroup{ID: "o"})
	p := join(map[string]*script{"a": a, "b": b})
	if groups, err := read(t, p); len(groups) != 3 || err != nil {
		t.Fatalf("%v %v", groups, err)
	}
	a.groups = says(&provider.Error{Op: "read", Group: "g", Kind: provider.Transient, Err: errors.New("page 2\nis missing")}, cluster.NodeGroup{ID: "h"}).groups
	for range 2 {
		groups, err := read(t, p)
		if len(groups) != 3 || err == nil || groups["h"].Stale != "" || groups["o"].Stale != "" {
			t.Errorf("%v %v", groups, err)
		}
		if g := groups["g"]; !strings.Contains(g.Stale, "provider a was not read whole") || strings.Contains(g.Stale, "\n") || len(g.Instances) != 1 {
			t.Errorf("%+v", g)
		}
		if err := p.Resize(ctx, "g", 0, 1); err != nil {
			t.Error(err)
		}
	}
	a.groups = says(nil, cluster.NodeGroup{ID: "h"}).groups
	if groups, err := read(t, p); len(groups) != 2 || err != nil {
		t.Errorf("%v %v", groups, err)
	}
	if err := p.Resize(ctx, "g", 0, 1); provider.KindOf(err) != provider.NotFound {
		t.Errorf("%v", err)
	}
	a.groups = says(nil).groups // nil without an error
	if groups, err := read(t, p); len(groups) != 1 || err != nil {
		t.Errorf("%v %v", groups, err)
	}
	if err := p.Resize(ctx, "h", 0, 1); provider.KindOf(err) != provider.NotFound {
		t.Errorf("%v", err)
	}
}

// Groups are told apart by their IDs alone: one that several have is nobody's.
func TestOneNameInSeveralClouds(t *testing.T) {
	g := cluster.NodeGroup{ID: "g"}
	a, b, c := says(nil, g, cluster.NodeGroup{ID: "own"}), says(nil, g), says(nil, g)
	p := join(map[string]*script{"a": a, "b": b, "c": c})
	groups, err := read(t, p)
	if len(groups) != 1 || groups["own"].Stale != "" {
		t.Errorf("%v", groups)
	}
	list := provider.Errors(err)
	if len(list) != 1 || list[0].Group != "g" || list[0].Kind != provider.Invalid || list[0].Remedy == "" || !strings.Contains(err.Error(), "a and b and c") {
		t.Errorf("%v", err)
	}
	for what, err := range map[string]error{"resize": p.Resize(ctx, "g", 0, 1), "delete": p.Delete(ctx, "g", "i")} {
		if provider.KindOf(err) != provider.Invalid || !strings.Contains(err.Error(), "a and b and c") {
			t.Errorf("%s: %v", what, err)
		}
	}
	b.groups, c.groups = says(nil).groups, says(nil).groups
	if groups, err := read(t, p); len(groups) != 2 || err != nil {
		t.Errorf("%v %v", groups, err)
	}
	if err := p.Resize(ctx, "g", 0, 1); err != nil {
		t.Error(err)
	}
}

// One machine that two clouds' groups both count would be bought for twice and deleted
// behind one's back: both groups freeze, and no other.
func TestOneMachineInGroupsOfTwoClouds(t *testing.T) {
	in := []cluster.Instance{{ID: "aws:///z/i-1", Phase: cluster.PhaseRunning}, {ID: "aws:///z/i-2", Phase: cluster.PhaseRunning}}
	a := says(nil, cluster.NodeGroup{ID: "by-tag", Instances: in}, cluster.NodeGroup{ID: "free"})
	b := says(nil, cluster.NodeGroup{ID: "by-plugin", Instances: in})
	p := join(map[string]*script{"asg": a, "externalgrpc": b})
	groups, err := read(t, p)
	if list := provider.Errors(err); len(list) != 1 || list[0].Kind != provider.Invalid || list[0].Remedy == "" {
		t.Errorf("%v", err)
	}
	for _, id := range []cluster.GroupID{"by-tag", "by-plugin"} {
		for _, want := range []string{"by-tag of provider asg", "by-plugin of provider externalgrpc", "i-1"} {
			if !strings.Contains(groups[id].Stale, want) {
				t.Errorf("%s is stale for %q, which does not name %s", id, groups[id].Stale, want)
			}
		}
	}
	if groups["free"].Stale != "" {
		t.Errorf("%+v", groups["free"])
	}
	for i := range in {
		in[i].Phase = cluster.PhaseGone
	}
	if groups, err := read(t, p); err != nil || groups["by-tag"].Stale != "" {
		t.Errorf("machines that are gone are nobody's: %v %v", groups, err)
	}
}

// hung is a provider that answers when it is let, or when its context ends.
func hung(list ...cluster.NodeGroup) (*script, chan struct{}) {
	let := make(chan struct{}, 100)
	return &script{
		groups: func(ctx context.Context) ([]cluster.NodeGroup, error) {
			select {
			case <-let:
				return list, nil
			case <-ctx.Done():
				return nil, &provider.Error{Op: "read", Kind: provider.Transient, Err: ctx.Err()}
			}
		},
		resize: func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() },
	}, let
}

// A cloud that hangs costs the others a few seconds, not the whole time that one read
// may take; its answer is used when it comes, unless something was written since.
func TestOneCloudHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow, let := hung(cluster.NodeGroup{ID: "s", Target: 1})
		p := wrap.Timeout(join(map[string]*script{"slow": slow, "quick": says(nil, cluster.NodeGroup{ID: "q"})}), 25*time.Second)
		timed := func(want time.Duration) (map[cluster.GroupID]cluster.NodeGroup, error) {
			t.Helper()
			start := time.Now()
			groups, err := read(t, p)
			if took := time.Since(start); took != want {
				t.Errorf("took %s, want %s", took, want)
			}
			return groups, err
		}
		let <- struct{}{}
		if groups, err := timed(0); len(groups) != 2 || err != nil {
			t.Fatalf("%v %v", groups, err)
		}
		groups, err := timed(5 * time.Second)
		if list := provider.Errors(err); len(list) != 1 || list[0].Provider != "slow" || list[0].Kind != provider.Transient {
			t.Errorf("%v", err)
		}
		if groups["s"].Stale == "" || groups["q"].Stale != "" {
			t.Errorf("%v", groups)
		}
		let <- struct{}{} // the answer comes between two calls
		synctest.Wait()
		if groups, err := timed(5 * time.Second); err != nil || groups["s"].Stale != "" {
			t.Errorf("the late answer was not used: %v %v", groups, err)
		}
		let <- struct{}{}
		synctest.Wait()
		slow.resize = func(context.Context) error { return nil }
		if err := p.Resize(ctx, "s", 1, 2); err != nil {
			t.Fatal(err)
		}
		if groups, err := timed(5 * time.Second); err == nil || groups["s"].Stale == "" {
			t.Errorf("an answer from before a write was told after it: %v %v", groups, err)
		}
		if groups, err := timed(5 * time.Second); err == nil || groups["s"].Stale == "" {
			t.Errorf("%v %v", groups, err)
		}
		time.Sleep(time.Minute)
		if groups, err := timed(5 * time.Second); err == nil || groups["s"].Stale == "" || groups["q"].Stale != "" {
			t.Errorf("%v %v", groups, err)
		}
		time.Sleep(time.Minute) // what reads on has its own end
	})
}

// Two calls at once share a read that is under way, but not one from before a write.
func TestReadsAreShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow, let := hung(cluster.NodeGroup{ID: "s"})
		reads := 0
		inner := slow.groups
		slow.groups = func(ctx context.Context) ([]cluster.NodeGroup, error) { reads++; return inner(ctx) }
		slow.resize = func(context.Context) error { return nil }
		p := join(map[string]*script{"slow": slow, "quick": says(nil)})
		let <- struct{}{}
		if _, err := p.Groups(ctx); err != nil {
			t.Fatal(err)
		}
		reads = 0
		var both sync.WaitGroup
		both.Go(func() { _, _ = p.Groups(ctx) })
		both.Go(func() { _, _ = p.Groups(ctx) })
		synctest.Wait()
		if reads != 1 {
			t.Errorf("%d reads, want one that is shared", reads)
		}
		if err := p.Resize(ctx, "s", 0, 1); err != nil {
			t.Fatal(err)
		}
		both.Go(func() { _, _ = p.Groups(ctx) })
		synctest.Wait()
		if reads != 2 {
			t.Errorf("%d reads, want another one after the write", reads)
		}
		both.Wait()
		time.Sleep(2 * time.Minute)
	})
}

func TestAllCloudsHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _ := hung()
		b, _ := hung()
		p := wrap.Timeout(join(map[string]*script{"a": a, "b": b}), 25*time.Second)
		start := time.Now()
		groups, err := p.Groups(ctx)
		if groups != nil || !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != 25*time.Second || len(provider.Errors(err)) != 2 {
			t.Errorf("after %s: %v %v", time.Since(start), groups, err)
		}
		stopped, cancel := context.WithCancel(ctx)
		time.AfterFunc(3*time.Second, cancel)
		start = time.Now()
		if groups, err = p.Groups(stopped); groups != nil || !errors.Is(err, context.Canceled) || time.Since(start) != 3*time.Second {
			t.Errorf("after %s: %v %v", time.Since(start), groups, err)
		}
		if err := p.Resize(stopped, "g", 0, 1); !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
		time.Sleep(time.Minute) // what reads on has its own end
	})
}

// Errors of any shape come out with the provider's name, and nothing of them is lost.
func TestErrorsAreAttributed(t *testing.T) {
	plain, inner := errors.New("plain"), &provider.Error{Op: "read", Kind: provider.Denied, Err: errors.New("inner")}
	shared := errors.Join(plain, fmt.Errorf("outer: %w", errors.Join(inner, context.Canceled)))
	p := join(map[string]*script{"a": says(shared), "b": says(nil, cluster.NodeGroup{ID: "g"})})
	_, err := p.Groups(ctx)
	list := provider.Errors(err)
	if len(list) != 3 || !errors.Is(err, plain) || !errors.Is(err, context.Canceled) {
		t.Fatalf("%v", err)
	}
	for _, e := range list {
		if e.Provider != "a" || e.Op != "read" || !strings.HasPrefix(e.Error(), "a: read: ") {
			t.Errorf("%v", e)
		}
	}
	if inner.Provider != "" {
		t.Error("the provider's own error was changed")
	}
}

// TestJoinUnderRace lets everything happen at once; the race detector watches, and in
// the end each cloud has what its own group was told.
func TestJoinUnderRace(t *testing.T) {
	const rounds = 200
	w := newPair()
	p := w.join()
	var all sync.WaitGroup
	for n := range 4 {
		all.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(n), 1))
			for range rounds {
				groups, _ := p.Groups(ctx)
				for _, g := range groups {
					g.Template.Labels["mine"] = fmt.Sprint(n) // the result is the caller's
					if to := g.Target + 1; to <= g.Max && rng.IntN(3) == 0 {
						_ = p.Resize(ctx, g.ID, g.Target, to)
					}
					if len(g.Instances) > 0 && rng.IntN(5) == 0 {
						_ = p.Delete(ctx, g.ID, g.Instances[rng.IntN(len(g.Instances))].ID)
					}
				}
			}
		})
	}
	all.Go(func() {
		for i := range rounds {
			w.workers.Throttle(t, i%3 == 0)
			w.others.BreakRead(t, i%5 == 0)
			fakeworld.Settle(t, w.workers)
			fakeworld.Settle(t, w.others)
		}
		w.workers.Throttle(t, false)
	})
	all.Wait()
	fakeworld.Settle(t, w.workers)
	groups, err := read(t, p)
	if err != nil {
		t.Fatal(err)
	}
	for id, g := range groups {
		if g.Target != w.Target(id) || g.Target < g.Min || g.Target > g.Max || g.Template.Labels["mine"] != "" {
			t.Errorf("%+v", g)
		}
		for _, in := range g.Instances {
			if own := map[cluster.GroupID]string{providertest.Workers: "fake://a/", providertest.Others: "fake://b/"}[id]; !strings.HasPrefix(string(in.ID), own) {
				t.Errorf("%s is in %s", in.ID, id)
			}
		}
	}
}

// TestCloneSharesNothing fills every field of a group, whatever fields there are, and
// wants no pointer, map or slice in common between it and its copy.
func TestCloneSharesNothing(t *testing.T) {
	var g cluster.NodeGroup
	fill(reflect.ValueOf(&g).Elem())
	c := wrap.Clone(g)
	if !reflect.DeepEqual(g, c) {
		t.Errorf("the copy differs:\n%+v\n%+v", g, c)
	}
	for _, at := range sharedParts("group", reflect.ValueOf(g), reflect.ValueOf(c)) {
		t.Errorf("%s is shared", at)
	}
	if got := wrap.Clone(cluster.NodeGroup{}); !reflect.DeepEqual(got, cluster.NodeGroup{}) {
		t.Errorf("the copy of nothing is %+v", got)
	}
}

// opaque types are values, whatever they hold inside; nobody writes to a Spec or to Devices.
func opaque(t reflect.Type) bool {
	return slices.Contains([]string{"time.Time", "netip.Addr", "cluster.Spec", "*cluster.Devices"}, t.String())
}

func fill(v reflect.Value) {
	if opaque(v.Type()) {
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i))
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0))
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		key := reflect.New(v.Type().Key()).Elem()
		v.SetMapIndex(key, reflect.New(v.Type().Elem()).Elem())
	}
}

func sharedParts(at string, a, b reflect.Value) (out []string) {
	if opaque(a.Type()) {
		return nil
	}
	switch a.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		if a.Pointer() == b.Pointer() {
			out = append(out, at)
		}
	}
	switch a.Kind() {
	case reflect.Pointer:
		out = append(out, sharedParts(at, a.Elem(), b.Elem())...)
	case reflect.Struct:
		for i := range a.NumField() {
			out = append(out, sharedParts(at+"."+a.Type().Field(i).Name, a.Field(i), b.Field(i))...)
		}
	case reflect.Slice:
		out = append(out, sharedParts(at+"[0]", a.Index(0), b.Index(0))...)
	}
	return out
}

// TestNarrowedReadAsksTheOwners: a read of one provider's group asks no other provider, and
// one of a group that nobody has listed asks all.
func TestNarrowedReadAsksTheOwners(t *testing.T) {
	p := newPair()
	joined := p.join()
	if _, err := joined.Groups(t.Context()); err != nil {
		t.Fatal(err)
	}
	p.others.Throttle(t, true)
	list, err := joined.Groups(provider.WithOnly(t.Context(), []cluster.GroupID{providertest.Workers}))
	if err != nil || len(list) != 1 || list[0].ID != providertest.Workers {
		t.Errorf("%v, %v: the other provider was asked, too", list, err)
	}
	if _, err := joined.Groups(provider.WithOnly(t.Context(), []cluster.GroupID{"new"})); err == nil {
		t.Error("a group that nobody has listed: not all providers were asked")
	}
	p.others.Throttle(t, false)
	if list, err := joined.Groups(t.Context()); err != nil || len(list) != 2 {
		t.Errorf("%v, %v after a narrowed read", list, err)
	}
}
