package provider_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/fake"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/providertest"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/providertest/fakeworld"
)

var ctx = context.Background()

// TestDecoratorsKeepTheContract runs the suite through the whole stack.
func TestDecoratorsKeepTheContract(t *testing.T) {
	providertest.Suite{Settle: fakeworld.Settle, New: func(t testing.TB) (provider.Provider, providertest.World) {
		p, w := fakeworld.New(t)
		log := logrus.New()
		log.SetOutput(&bytes.Buffer{})
		p = provider.Count(p, func(string, time.Duration, error) {})
		return provider.Journal(provider.Timeout(p, time.Minute), logrus.NewEntry(log)), w
	}}.Run(t)
}

// slow answers when its context ends.
type slow struct{}

func (slow) Groups(ctx context.Context) ([]cluster.NodeGroup, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}
func (slow) Resize(ctx context.Context, _ cluster.GroupID, _, _ int) error {
	<-ctx.Done()
	return ctx.Err()
}
func (slow) Delete(ctx context.Context, _ cluster.GroupID, _ ...cluster.InstanceID) error {
	<-ctx.Done()
	return ctx.Err()
}

func TestTimeoutCutsShort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := provider.Timeout(slow{}, 7*time.Second)
		_, err := p.Groups(ctx)
		for what, err := range map[string]error{"groups": err, "resize": p.Resize(ctx, "g", 1, 2), "delete": p.Delete(ctx, "g", "i")} {
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s: %v", what, err)
			}
		}
	})
}

func TestDryRunWritesNothing(t *testing.T) {
	inner, w := fakeworld.New(t)
	p := provider.DryRun(inner)
	alive := w.Alive(providertest.Workers)
	before := fmt.Sprint(inner)
	if err := p.Resize(ctx, providertest.Workers, 2, 5); !errors.Is(err, provider.ErrDryRun) || !strings.Contains(err.Error(), "from 2 to 5") {
		t.Errorf("%v", err)
	}
	err := p.Delete(ctx, providertest.Workers, alive...)
	if list := provider.Errors(err); len(list) != 2 || list[1].Instance != alive[1] || !errors.Is(err, provider.ErrDryRun) {
		t.Errorf("%v", err)
	}
	if after := fmt.Sprint(inner); after != before {
		t.Errorf("something was written:\n%s\nbefore\n%s", after, before)
	}
	if groups, err := p.Groups(ctx); len(groups) != 2 || err != nil {
		t.Errorf("%v %v", groups, err)
	}
}

func TestJournalEntries(t *testing.T) {
	inner, w := fakeworld.New(t)
	var out bytes.Buffer
	log := logrus.New()
	log.SetOutput(&out)
	log.SetFormatter(&logrus.JSONFormatter{DisableTimestamp: true})
	p := provider.Journal(inner, logrus.NewEntry(log))
	alive := w.Alive(providertest.Workers)
	for _, step := range []struct {
		what string
		do   func()
		want []string // parts of the one line
	}{
		{"read", func() { p.Groups(ctx) }, nil},
		{"resize", func() { p.Resize(ctx, providertest.Workers, 2, 3) }, []string{`"group":"workers"`, `"took":`, "from 2 to 3", `"level":"info"`}},
		{"conflict", func() { p.Resize(ctx, providertest.Workers, 2, 4) }, []string{`"kind":"conflict"`, `"level":"warning"`}},
		{"delete", func() { p.Delete(ctx, providertest.Workers, alive[0]) }, []string{`"instance":"` + string(alive[0]), `"level":"info"`}},
		{"foreign", func() { p.Delete(ctx, providertest.Workers, "x") }, []string{`"instance":"x"`, `"kind":"not found"`}},
		{"no group", func() { p.Delete(ctx, "none", alive[1]) }, []string{`"group":"none"`, `"kind":"not found"`}},
		{"partial", func() { w.BreakRead(t, true); p.Groups(ctx) }, []string{`"group":"workers"`, `"kind":"transient"`}},
		{"plain error", func() { w.(fakeworld.World).Cloud.Next(errors.New("plain")); p.Groups(ctx) }, []string{`"kind":"other"`, "plain"}},
	} {
		out.Reset()
		step.do()
		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		if step.want == nil {
			if out.Len() > 0 {
				t.Errorf("%s: %s", step.what, out.String())
			}
			continue
		}
		if len(lines) != 1 {
			t.Errorf("%s: %d entries: %q", step.what, len(lines), lines)
		}
		for _, part := range step.want {
			if !strings.Contains(lines[0], part) {
				t.Errorf("%s: %s is not in %s", step.what, part, lines[0])
			}
		}
	}
}

func TestCountSeesEveryCall(t *testing.T) {
	c := fake.New(time.Now())
	var got []string
	p := provider.Count(c, func(method string, _ time.Duration, err error) {
		got = append(got, method+" "+provider.KindOf(err).String())
	})
	p.Groups(ctx)
	p.Resize(ctx, "none", 0, 1)
	p.Delete(ctx, "none", "i")
	if s := strings.Join(got, ", "); s != "groups other, resize not found, delete not found" {
		t.Error(s)
	}
}

func TestErrorsInATree(t *testing.T) {
	a := &provider.Error{Op: "read", Group: "a", Kind: provider.Denied, Err: errors.New("no"), Remedy: "do this"}
	b := &provider.Error{Op: "read", Group: "b", Instance: "i", Kind: provider.Transient}
	tree := fmt.Errorf("round 7: %w", errors.Join(a, errors.New("plain"), errors.Join(b)))
	if list := provider.Errors(tree); len(list) != 2 || list[0] != a || list[1] != b {
		t.Errorf("%v", list)
	}
	if provider.KindOf(tree) != provider.Denied || provider.KindOf(nil) != provider.Other || provider.Errors(nil) != nil {
		t.Error("kinds")
	}
	if got := a.Error(); got != "read a: denied: no (do this)" {
		t.Error(got)
	}
	if got := b.Error(); got != "read b i: transient" {
		t.Error(got)
	}
}
