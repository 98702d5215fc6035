package providertest_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
	"github.com/autoscaler-agent/autoscaler-agent/internal/testing/fake"
	"github.com/autoscaler-agent/autoscaler-agent/internal/testing/providertest"
)

// moreMutants go on where mutants ends: the cases that the clouds taught.
var moreMutants = map[string]func(c *fake.Cloud) mutant{
	"ProviderIDsInEveryForm": func(c *fake.Cloud) mutant {
		return eachInstance(c, func(in *cluster.Instance) {
			parts := strings.Split(string(in.ID), "/") // the machine before the zone
			slices.Reverse(parts[3:])
			in.ID = cluster.InstanceID(strings.Join(parts, "/"))
		})
	},
	"TemplateWithTaintsAndLabels/no taints": func(c *fake.Cloud) mutant {
		return edited(c, func(g *cluster.NodeGroup) { g.Template.Taints = nil })
	},
	"TemplateWithTaintsAndLabels/no labels": func(c *fake.Cloud) mutant {
		return edited(c, func(g *cluster.NodeGroup) { delete(g.Template.Labels, providertest.FurnishLabel[0]) })
	},
	"TemplateWithTaintsAndLabels/of all groups": func(c *fake.Cloud) mutant {
		m := mutant{Cloud: c}
		m.groups = func(ctx context.Context) ([]cluster.NodeGroup, error) {
			groups, err := c.Groups(ctx)
			for i := range groups {
				for _, other := range groups {
					groups[i].Template.Taints = append(groups[i].Template.Taints, other.Template.Taints...)
				}
			}
			return groups, err
		}
		return m
	},
	"TemplateChanges/never": func(c *fake.Cloud) mutant {
		return edited(c, func(g *cluster.NodeGroup) { g.Template.Spec = "the spec of " + string(g.ID) })
	},
	"TemplateChanges/with time": func(c *fake.Cloud) mutant {
		reads := 0
		return edited(c, func(g *cluster.NodeGroup) { reads++; g.Template.Spec += strings.Repeat("'", reads) })
	},
	"NeverJoiningInstance/awaited from now on": func(c *fake.Cloud) mutant {
		return eachInstance(c, func(in *cluster.Instance) { in.Created = time.Now() })
	},
	"NeverJoiningInstance/pending until it joins": func(c *fake.Cloud) mutant {
		joined := map[cluster.InstanceID]bool{}
		for _, id := range c.Alive(providertest.Workers) {
			joined[id] = true
		}
		return eachInstance(c, func(in *cluster.Instance) {
			if in.Phase == cluster.PhaseRunning && !joined[in.ID] {
				in.Phase = cluster.PhasePending
			}
		})
	},
	"FailedInstance/taken for one that runs": func(c *fake.Cloud) mutant {
		return eachInstance(c, func(in *cluster.Instance) {
			if in.Phase == cluster.PhaseFailed {
				in.Phase = cluster.PhaseRunning
			}
		})
	},
	"FailedInstance/without a reason": func(c *fake.Cloud) mutant {
		return eachInstance(c, func(in *cluster.Instance) { in.Failure = nil })
	},
	"FailedInstance/every failure is of capacity": func(c *fake.Cloud) mutant {
		return eachInstance(c, func(in *cluster.Instance) {
			if in.Failure != nil {
				in.Failure.Cause = cluster.CauseCapacity
			}
		})
	},
	"PausedGroup/not told": func(c *fake.Cloud) mutant {
		return edited(c, func(g *cluster.NodeGroup) { g.Paused = "" })
	},
	"PausedGroup/taken for stale": func(c *fake.Cloud) mutant {
		return edited(c, func(g *cluster.NodeGroup) { g.Stale = g.Paused })
	},
	"NoGroupsAreNotUnknown": func(c *fake.Cloud) mutant {
		return mutant{Cloud: c, groups: func(ctx context.Context) ([]cluster.NodeGroup, error) {
			groups, err := c.Groups(ctx)
			if len(groups) == 0 {
				return nil, errors.Join(err, &provider.Error{Op: "read", Kind: provider.NotFound, Err: errors.New("no groups")})
			}
			return groups, err
		}}
	},
	"CapacityIsExhausted": func(c *fake.Cloud) mutant {
		return edited(c, func(g *cluster.NodeGroup) {
			for i := range g.Failures {
				g.Failures[i].Cause = cluster.CauseQuota
			}
		})
	},
	"ResizeWhileDeleting": func(c *fake.Cloud) mutant {
		return mutant{Cloud: c, resize: func(ctx context.Context, id cluster.GroupID, from, to int) error {
			groups, _ := c.Groups(ctx)
			for _, g := range groups {
				if g.ID == id && slices.ContainsFunc(g.Instances, func(i cluster.Instance) bool { return i.Phase == cluster.PhaseDeleting }) {
					return c.Resize(ctx, id, from, to-1) // counts the one that goes
				}
			}
			return c.Resize(ctx, id, from, to)
		}}
	},
	"DeleteMoreThanSurplus": func(c *fake.Cloud) mutant {
		return mutant{Cloud: c, delete: func(ctx context.Context, id cluster.GroupID, ids ...cluster.InstanceID) error {
			before := c.Target(id)
			err := c.Delete(ctx, id, ids...)
			if err == nil {
				c.SetTarget(id, before-len(ids))
			}
			return err
		}}
	},
	"DeletionRefusedForOne/gives up": func(c *fake.Cloud) mutant {
		return mutant{Cloud: c, delete: func(ctx context.Context, id cluster.GroupID, ids ...cluster.InstanceID) error {
			for _, i := range ids {
				if err := c.Delete(ctx, id, i); err != nil {
					return err
				}
			}
			return nil
		}}
	},
	"DeletionRefusedForOne/does not say which": func(c *fake.Cloud) mutant {
		return mutant{Cloud: c, delete: func(ctx context.Context, id cluster.GroupID, ids ...cluster.InstanceID) error {
			err := c.Delete(ctx, id, ids...)
			for _, e := range provider.Errors(err) {
				e.Instance = ""
			}
			return err
		}}
	},
	"ConcurrentDeletes": func(c *fake.Cloud) mutant {
		// All eight that the case sends look before one of them writes. Were fewer
		// awaited, one that comes late would look at what the others wrote and set it
		// right again.
		look := together(8)
		return mutant{Cloud: c, delete: func(ctx context.Context, id cluster.GroupID, ids ...cluster.InstanceID) error {
			before := c.Target(id)
			look()
			err := c.Delete(ctx, id, ids...)
			c.SetTarget(id, before-1) // as it was before somebody else deleted too
			return err
		}}
	},
	"ConcurrentReads": func(c *fake.Cloud) mutant {
		old, _ := c.Groups(context.Background())
		var reads atomic.Int32
		return mutant{Cloud: c, groups: func(ctx context.Context) ([]cluster.NodeGroup, error) {
			groups, err := c.Groups(ctx)
			if reads.Add(1)%5 == 0 {
				return old, err // now and then one from a cache
			}
			return groups, err
		}}
	},
	"CredentialsExpireMidRun/for ever": func(c *fake.Cloud) mutant {
		var broken error
		return mutant{Cloud: c, groups: func(ctx context.Context) ([]cluster.NodeGroup, error) {
			if broken != nil {
				return nil, broken
			}
			groups, err := c.Groups(ctx)
			broken = err
			return groups, err
		}}
	},
	"CredentialsExpireMidRun/half is taken for whole": func(c *fake.Cloud) mutant {
		first, _ := c.Groups(context.Background())
		return mutant{Cloud: c, groups: func(ctx context.Context) ([]cluster.NodeGroup, error) {
			groups, err := c.Groups(ctx)
			if err != nil {
				return first[:1], nil
			}
			return groups, nil
		}}
	},
	"CredentialsExpireMidRun/said to be done": func(c *fake.Cloud) mutant {
		return mutant{Cloud: c, resize: func(ctx context.Context, id cluster.GroupID, from, to int) error {
			if err := c.Resize(ctx, id, from, to); provider.KindOf(err) != provider.Denied {
				return err
			}
			return nil
		}}
	},
	"ReadLagsBehindWrites": func(c *fake.Cloud) mutant {
		return mutant{Cloud: c, delete: func(ctx context.Context, id cluster.GroupID, ids ...cluster.InstanceID) error {
			groups, _ := c.Groups(ctx)
			lower := 0
			for _, g := range groups {
				for _, in := range g.Instances {
					if g.ID == id && in.Phase == cluster.PhaseRunning && slices.Contains(ids, in.ID) {
						lower++
					}
				}
			}
			before := c.Target(id)
			err := c.Delete(ctx, id, ids...)
			if err == nil {
				c.SetTarget(id, before-lower)
			}
			return err
		}}
	},
	"TemplateCannotBeRead": func(c *fake.Cloud) mutant {
		return edited(c, func(g *cluster.NodeGroup) {
			if g.TemplateStale != "" {
				g.Stale, g.Instances = g.TemplateStale, nil
			}
		})
	},
	"PartialRead/half a list that looks whole": func(c *fake.Cloud) mutant {
		return edited(c, func(g *cluster.NodeGroup) {
			if g.Stale != "" {
				g.TemplateStale, g.Stale = g.Stale, ""
			}
		})
	},
	"LostAnswer/nobody says that it may have been done": func(c *fake.Cloud) mutant { return sure(c, false) },
	"ResizeOnOldFactsConflicts/unsure of everything":    func(c *fake.Cloud) mutant { return sure(c, true) },
	"LostAnswer/once more": func(c *fake.Cloud) mutant {
		return mutant{Cloud: c, resize: func(ctx context.Context, id cluster.GroupID, from, to int) error {
			err := c.Resize(ctx, id, from, to)
			if provider.KindOf(err) == provider.Transient {
				return c.Resize(ctx, id, c.Target(id), c.Target(id)+to-from)
			}
			return err
		}}
	},
	"LostAnswer/deletes once more": func(c *fake.Cloud) mutant {
		return mutant{Cloud: c, delete: func(ctx context.Context, id cluster.GroupID, ids ...cluster.InstanceID) error {
			before := c.Target(id)
			err := c.Delete(ctx, id, ids...)
			if provider.KindOf(err) == provider.Transient && err != nil {
				c.SetTarget(id, before-2*len(ids))
			}
			return err
		}}
	},
	// A narrowed read that repeats what was read before the change.
	"NarrowedRead": func(c *fake.Cloud) mutant {
		var last []cluster.NodeGroup
		return mutant{Cloud: c, groups: func(ctx context.Context) ([]cluster.NodeGroup, error) {
			if provider.Only(ctx) != nil && last != nil {
				return last, nil
			}
			list, err := c.Groups(ctx)
			last = slices.Clone(list)
			return list, err
		}}
	},
	"HangingCloud": func(c *fake.Cloud) mutant {
		return mutant{Cloud: c, resize: func(ctx context.Context, id cluster.GroupID, from, to int) error {
			if err := c.Resize(ctx, id, from, to); ctx.Err() == nil {
				return err
			}
			return &provider.Error{Op: "resize", Group: id, Kind: provider.Transient, Err: errors.New("no answer")}
		}}
	},
}

// eachInstance lets edit change every instance that is read.
func eachInstance(c *fake.Cloud, edit func(*cluster.Instance)) mutant {
	return edited(c, func(g *cluster.NodeGroup) {
		for i := range g.Instances {
			edit(&g.Instances[i])
		}
	})
}

// sure sets what every error of a change says of Unsure.
func sure(c *fake.Cloud, unsure bool) mutant {
	change := func(err error) error {
		var e *provider.Error
		if !errors.As(err, &e) {
			return err
		}
		own := *e
		own.Unsure = unsure
		return &own
	}
	return mutant{Cloud: c,
		resize: func(ctx context.Context, id cluster.GroupID, from, to int) error {
			return change(c.Resize(ctx, id, from, to))
		},
		delete: func(ctx context.Context, id cluster.GroupID, ids ...cluster.InstanceID) error {
			return change(c.Delete(ctx, id, ids...))
		},
	}
}
