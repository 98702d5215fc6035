package inventory

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
)

// TestEachKindOfFactIsOldByItself: a template, or the failures, that cannot be read hold
// back no machine: one that came meanwhile must be known, or it cannot join.
func TestEachKindOfFactIsOldByItself(t *testing.T) {
	old := cluster.NodeGroup{ID: "g", Target: 1, Instances: []cluster.Instance{{ID: "a", Member: true}}, Quota: "q",
		Template: cluster.Template{Spec: "s1"}, Failures: []cluster.Failure{{Text: "stockout"}}}
	fresh := cluster.NodeGroup{ID: "g", Target: 2, Instances: []cluster.Instance{{ID: "a", Member: true}, {ID: "b", Member: true}}, Quota: "q2",
		Template: cluster.Template{Spec: "s2"}}
	with := func(change func(*cluster.NodeGroup)) cluster.NodeGroup {
		g := fresh
		change(&g)
		return g
	}
	for name, c := range map[string]struct {
		now      cluster.NodeGroup
		target   int
		spec     string
		failures int
	}{
		"all is read": {fresh, 2, "s2", 0},
		"no template": {with(func(g *cluster.NodeGroup) {
			g.TemplateStale, g.Template = "throttled", cluster.Template{Unknown: "throttled"}
		}), 2, "s1", 0},
		"no failures":        {with(func(g *cluster.NodeGroup) { g.FailuresStale = "denied" }), 2, "s2", 1},
		"no machines":        {with(func(g *cluster.NodeGroup) { g.Stale, g.Instances, g.Target = "half a page", nil, 0 }), 1, "s2", 1},
		"nothing":            {cluster.NodeGroup{ID: "g", Stale: "down", TemplateStale: "down", FailuresStale: "down"}, 1, "s1", 1},
		"nothing, in a word": {cluster.NodeGroup{ID: "g", Stale: "down"}, 1, "s1", 1},
	} {
		t.Run(name, func(t *testing.T) {
			got := mergeGroups([]cluster.NodeGroup{old}, []cluster.NodeGroup{c.now}, nil)
			if g := got[0]; len(got) != 1 || g.Target != c.target || len(g.Instances) != c.target || g.Template.Spec != c.spec || len(g.Failures) != c.failures {
				t.Errorf("%+v, want target %d, spec %s, %d failures", got, c.target, c.spec, c.failures)
			}
			if g := got[0]; g.Stale != c.now.Stale || g.TemplateStale != c.now.TemplateStale || g.FailuresStale != c.now.FailuresStale {
				t.Errorf("stale %q %q %q", g.Stale, g.TemplateStale, g.FailuresStale)
			}
		})
	}
}

// TestAMachineThatComesWhileTemplatesAreThrottledIsKnown, and is not taken for one of the
// template that was last read: nobody knows of which one it is.
func TestAMachineThatComesWhileTemplatesAreThrottledIsKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one := cluster.NodeGroup{ID: "g", Target: 1, Template: cluster.Template{Spec: "s1"}, Instances: []cluster.Instance{{ID: "a", Member: true}}}
		c := &cloud{groups: []cluster.NodeGroup{one}}
		i := inventory(c)
		if _, err := i.Groups(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
		two := one
		two.Target, two.Template, two.TemplateStale = 2, cluster.Template{Unknown: "throttled"}, "throttled"
		two.Instances = append([]cluster.Instance{{ID: "b", Phase: cluster.PhaseRunning, Member: true}}, one.Instances...)
		c.set(&provider.Error{Op: "resolve template", Group: "g", Kind: provider.Transient, Err: errors.New("throttled")}, two)
		groups, _ := i.Groups(t.Context(), 0)
		if g := groups[0]; g.Stale != "" || len(g.Instances) != 2 || g.Template.Spec != "s1" {
			t.Errorf("%+v", g)
		}
		if spec, known := i.Specs()["b"]; known {
			t.Errorf("b is taken for one of %s", spec)
		}
	})
}

// TestANameThatNothingHasKeepsNoReadFromBeingServed: one entry of AUTOSCALER_AWS_GROUPS
// that does not exist is an error of every read, and made every request of a kubelet a
// read of the whole cloud.
func TestANameThatNothingHasKeepsNoReadFromBeingServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, k := range []struct {
			kind  provider.Kind
			reads int64
		}{{provider.NotFound, 1}, {provider.Invalid, 1}, {provider.Denied, 1}, {provider.Transient, 5}, {provider.Other, 5}} {
			c := &cloud{groups: []cluster.NodeGroup{{ID: "g", Target: 3}}, err: &provider.Error{Op: "read", Group: "typo", Kind: k.kind, Err: errors.New("no such group")}}
			i := inventory(c)
			for range 5 {
				time.Sleep(time.Second)
				if groups, err := i.Groups(t.Context(), time.Minute); len(groups) != 1 || err == nil {
					t.Errorf("%v: %d groups, %v: want what was read, and the error", k.kind, len(groups), err)
				}
			}
			if got := c.reads.Load(); got != k.reads {
				t.Errorf("%v: %d reads, want %d", k.kind, got, k.reads)
			}
		}
	})
}
