package providertest_test

import (
	"context"
	"errors"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
	"github.com/autoscaler-agent/autoscaler-agent/internal/testing/fake"
	"github.com/autoscaler-agent/autoscaler-agent/internal/testing/fakeworld"
	"github.com/autoscaler-agent/autoscaler-agent/internal/testing/providertest"
)

// mutant is the fake with one mistake in it.
type mutant struct {
	*fake.Cloud
	groups func(ctx context.Context) ([]cluster.NodeGroup, error)
	resize func(ctx context.Context, id cluster.GroupID, from, to int) error
	delete func(ctx context.Context, id cluster.GroupID, ids ...cluster.InstanceID) error

	instances func(ctx context.Context, ids ...cluster.InstanceID) (testimonies, error)
}

func (m mutant) Instances(ctx context.Context, ids ...cluster.InstanceID) (testimonies, error) {
	if m.instances != nil {
		return m.instances(ctx, ids...)
	}
	return m.Cloud.Instances(ctx, ids...)
}

func (m mutant) Groups(ctx context.Context) ([]cluster.NodeGroup, error) {
	if m.groups != nil {
		return m.groups(ctx)
	}
	return m.Cloud.Groups(ctx)
}

func (m mutant) Resize(ctx context.Context, id cluster.GroupID, from, to int) error {
	if m.resize != nil {
		return m.resize(ctx, id, from, to)
	}
	return m.Cloud.Resize(ctx, id, from, to)
}

func (m mutant) Delete(ctx context.Context, id cluster.GroupID, ids ...cluster.InstanceID) error {
	if m.delete != nil {
		return m.delete(ctx, id, ids...)
	}
	return m.Cloud.Delete(ctx, id, ids...)
}

// edited lets edit change every group that is read.
func edited(c *fake.Cloud, edit func(*cluster.NodeGroup)) mutant {
	return mutant{Cloud: c, groups: func(ctx context.Context) ([]cluster.NodeGroup, error) {
		groups, err := c.Groups(ctx)
		for i := range groups {
			edit(&groups[i])
		}
		return groups, err
	}}
}

// rekinded lets every error of every method lose or change its kind.
func rekinded(c *fake.Cloud, from, to provider.Kind) mutant {
	change := func(err error) error {
		if provider.KindOf(err) == from && err != nil {
			return &provider.Error{Op: "call", Kind: to, Err: err}
		}
		return err
	}
	return mutant{Cloud: c,
		groups: func(ctx context.Context) ([]cluster.NodeGroup, error) {
			groups, err := c.Groups(ctx)
			return groups, change(err)
		},
		resize: func(ctx context.Context, id cluster.GroupID, from, to int) error {
			return change(c.Resize(ctx, id, from, to))
		},
		delete: func(ctx context.Context, id cluster.GroupID, ids ...cluster.InstanceID) error {
			return change(c.Delete(ctx, id, ids...))
		},
	}
}

// mutants lists one mistake for each case of the suite, by the case that must see
// it. The two names of one case are told apart by what follows the slash.
var mutants = map[string]func(c *fake.Cloud) mutant{
	"ReadIsWhole": func(c *fake.Cloud) mutant {
		return edited(c, func(g *cluster.NodeGroup) { g.Instances = g.Instances[:min(1, len(g.Instances))] })
	},
	"ReadIsACopy": func(c *fake.Cloud) mutant {
		cache, _ := c.Groups(context.Background())
		return mutant{Cloud: c, groups: func(context.Context) ([]cluster.NodeGroup, error) { return cache, nil }}
	},
	"PartialRead/hides all": func(c *fake.Cloud) mutant {
		return mutant{Cloud: c, groups: func(ctx context.Context) ([]cluster.NodeGroup, error) {
			groups, err := c.Groups(ctx)
			if err != nil {
				return nil, err
			}
			return groups, nil
		}}
	},
	"PartialRead/not stale": func(c *fake.Cloud) mutant {
		return edited(c, func(g *cluster.NodeGroup) { g.Stale = "" })
	},
	"CancelledContext": func(c *fake.Cloud) mutant {
		return mutant{Cloud: c, resize: func(ctx context.Context, id cluster.GroupID, from, to int) error {
			return c.Resize(context.WithoutCancel(ctx), id, from, to)
		}}
	},
	"ThrottleIsTransient": func(c *fake.Cloud) mutant { return rekinded(c, provider.Transient, provider.Other) },
	"CredentialsExpired/no groups": func(c *fake.Cloud) mutant {
		return mutant{Cloud: c, groups: func(ctx context.Context) ([]cluster.NodeGroup, error) {
			groups, err := c.Groups(ctx)
			if err != nil {
				return []cluster.NodeGroup{}, nil
			}
			return groups, nil
		}}
	},
	"CredentialsExpired/transient": func(c *fake.Cloud) mutant { return rekinded(c, provider.Denied, provider.Transient) },
	"ProviderIDMatchesNode": func(c *fake.Cloud) mutant {
		return edited(c, func(g *cluster.NodeGroup) {
			for i := range g.Instances {
				id := string(g.Instances[i].ID)
				g.Instances[i].ID = cluster.InstanceID(id[strings.LastIndex(id, "/")+1:])
			}
		})
	},
	"TemplateFromZero": func(c *fake.Cloud) mutant {
		return edited(c, func(g *cluster.NodeGroup) {
			if !slices.ContainsFunc(g.Instances, func(i cluster.Instance) bool { return i.Phase == cluster.PhaseRunning }) {
				g.Template = cluster.Template{Unknown: "no node to learn from"}
			}
		})
	},
	"GoneInstanceIsPhaseGone": func(c *fake.Cloud) mutant {
		return edited(c, func(g *cluster.NodeGroup) {
			for i := range g.Instances {
				if g.Instances[i].Phase == cluster.PhaseGone {
					g.Instances[i].Phase, g.Instances[i].Member = cluster.PhaseStopped, true
				}
			}
		})
	},
	"GroupVanished": func(c *fake.Cloud) mutant {
		seen := map[cluster.GroupID]cluster.NodeGroup{}
		first, _ := c.Groups(context.Background())
		for _, g := range first {
			seen[g.ID] = g
		}
		return mutant{Cloud: c, groups: func(ctx context.Context) ([]cluster.NodeGroup, error) {
			groups, err := c.Groups(ctx)
			for id, g := range seen {
				if !slices.ContainsFunc(groups, func(g cluster.NodeGroup) bool { return g.ID == id }) {
					groups = append(groups, g)
				}
			}
			return groups, err
		}}
	},
	"UnknownGroup": func(c *fake.Cloud) mutant { return rekinded(c, provider.NotFound, provider.Invalid) },
	"ResizeIsSeenAtOnce": func(c *fake.Cloud) mutant {
		late := map[cluster.GroupID]int{}
		m := edited(c, func(g *cluster.NodeGroup) {
			if t, ok := late[g.ID]; ok {
				g.Target = t
				delete(late, g.ID)
			}
		})
		m.resize = func(ctx context.Context, id cluster.GroupID, from, to int) error {
			late[id] = from
			return c.Resize(ctx, id, from, to)
		}
		return m
	},
	"ResizeOnOldFactsConflicts": func(c *fake.Cloud) mutant {
		return mutant{Cloud: c, resize: func(ctx context.Context, id cluster.GroupID, from, to int) error {
			return c.Resize(ctx, id, c.Target(id), c.Target(id)+to-from)
		}}
	},
	"ResizeNeverDeletes": func(c *fake.Cloud) mutant {
		return mutant{Cloud: c, resize: func(ctx context.Context, id cluster.GroupID, from, to int) error {
			if alive := c.Alive(id); to >= 0 && to < len(alive) {
				return c.Delete(ctx, id, alive[to:]...)
			}
			return c.Resize(ctx, id, from, to)
		}}
	},
	"ResizeToSameIsSuccess": func(c *fake.Cloud) mutant {
		return mutant{Cloud: c, resize: func(ctx context.Context, id cluster.GroupID, from, to int) error {
			if target := c.Target(id); target != from {
				return &provider.Error{Op: "resize", Group: id, Kind: provider.Conflict, Err: errors.New("drift")}
			}
			return c.Resize(ctx, id, from, to)
		}}
	},
	"BoundsAreHeld": func(c *fake.Cloud) mutant {
		return mutant{Cloud: c, resize: func(ctx context.Context, id cluster.GroupID, from, to int) error {
			if to > 10 {
				to = 10
			}
			return c.Resize(ctx, id, from, to)
		}}
	},
	"ConcurrentResizes": func(c *fake.Cloud) mutant {
		look := together(2)
		return mutant{Cloud: c, resize: func(ctx context.Context, id cluster.GroupID, from, to int) error {
			if c.Target(id) != from {
				return c.Resize(ctx, id, from, to)
			}
			look() // between the look and the leap another one looks too
			c.SetTarget(id, to)
			return nil
		}}
	},
	"QuotaIsExhausted/hidden": func(c *fake.Cloud) mutant {
		return edited(c, func(g *cluster.NodeGroup) { g.Failures = nil })
	},
	"QuotaIsExhausted/wrong cause": func(c *fake.Cloud) mutant {
		return edited(c, func(g *cluster.NodeGroup) {
			for i := range g.Failures {
				g.Failures[i].Cause = cluster.CauseCapacity
			}
		})
	},
	"DeleteLowersTheTarget": func(c *fake.Cloud) mutant {
		return mutant{Cloud: c, delete: func(ctx context.Context, id cluster.GroupID, ids ...cluster.InstanceID) error {
			before := c.Target(id)
			err := c.Delete(ctx, id, ids...)
			if before >= 0 {
				c.SetTarget(id, before)
			}
			return err
		}}
	},
	"DeleteTwiceIsOnce": func(c *fake.Cloud) mutant {
		return mutant{Cloud: c, delete: func(ctx context.Context, id cluster.GroupID, ids ...cluster.InstanceID) error {
			before := c.Target(id)
			err := c.Delete(ctx, id, ids...)
			if err == nil && before > 0 {
				c.SetTarget(id, max(0, before-len(ids)))
			}
			return err
		}}
	},
	"DeleteForeignInstanceIsNotFound/ends it": func(c *fake.Cloud) mutant {
		return mutant{Cloud: c, delete: func(ctx context.Context, id cluster.GroupID, ids ...cluster.InstanceID) error {
			for _, i := range ids {
				if slices.Contains(c.Alive(""), i) {
					c.Kill(i)
				}
			}
			return c.Delete(ctx, id, ids...)
		}}
	},
	"DeleteForeignInstanceIsNotFound/gives up": func(c *fake.Cloud) mutant {
		return mutant{Cloud: c, delete: func(ctx context.Context, id cluster.GroupID, ids ...cluster.InstanceID) error {
			for _, i := range ids {
				if err := c.Delete(ctx, id, i); err != nil {
					return err
				}
			}
			return nil
		}}
	},
	"DeletionRefused": func(c *fake.Cloud) mutant {
		return mutant{Cloud: c, delete: func(ctx context.Context, id cluster.GroupID, ids ...cluster.InstanceID) error {
			err := c.Delete(ctx, id, ids...)
			if provider.KindOf(err) == provider.Denied {
				return nil
			}
			return err
		}}
	},
}

// together returns a wait that ends when n callers have come to it: the schedule under
// which a look and a leap that are two steps go wrong, every time. Who is never joined
// goes on after ten seconds, so that a case that sends fewer fails and does not hang.
func together(n int32) func() {
	var come atomic.Int32
	return func() {
		come.Add(1)
		for until := time.Now().Add(10 * time.Second); come.Load() < n && time.Now().Before(until); {
			runtime.Gosched()
		}
	}
}

// TestMutants proves that the suite bites: every mistake is found, by its own case,
// and every case has a mistake that only a case like it can find.
func TestMutants(t *testing.T) {
	bitten := map[string]bool{}
	all := maps.Clone(mutants)
	maps.Copy(all, moreMutants)
	maps.Copy(all, existenceMutants)
	maps.Copy(all, sourceMutants)
	for name, breed := range all {
		own, _, _ := strings.Cut(name, "/")
		bitten[own] = true
		t.Run(name, func(t *testing.T) {
			suite := providertest.Suite{Settle: fakeworld.Settle, New: func(t testing.TB) (provider.Provider, providertest.World) {
				_, w := fakeworld.New(t)
				return breed(w.(fakeworld.World).Cloud), w
			}}
			complaints := suite.Fails(t, own)
			if len(complaints) == 0 {
				t.Errorf("%s does not see the mistake", own)
			}
			t.Logf("%s", complaints)
		})
	}
	for _, c := range providertest.Cases() {
		if !bitten[c] {
			t.Errorf("no mutant is there for case %s", c)
		}
	}
}

// TestTheSoundFakeHasNoComplaints is the other half: what TestMutants sees is not
// the suite failing by itself.
func TestTheSoundFakeHasNoComplaints(t *testing.T) {
	for _, c := range providertest.Cases() {
		if complaints := (providertest.Suite{New: fakeworld.New, Settle: fakeworld.Settle}).Fails(t, c); len(complaints) > 0 {
			t.Errorf("%s: %s", c, complaints)
		}
	}
}
