package providertest_test

import (
	"context"
	"errors"
	"strings"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
	"github.com/autoscaler-agent/autoscaler-agent/internal/testing/fake"
)

type testimonies = map[cluster.InstanceID]cluster.Testimony

// asked lets change change what the fake says by ID.
func asked(c *fake.Cloud, change func(testimonies, error) (testimonies, error)) mutant {
	return mutant{Cloud: c, instances: func(ctx context.Context, ids ...cluster.InstanceID) (testimonies, error) {
		return change(c.Instances(ctx, ids...))
	}}
}

// said turns one word into another.
func said(c *fake.Cloud, from, to cluster.Existence) mutant {
	return asked(c, func(all testimonies, err error) (testimonies, error) {
		for id, one := range all {
			if one.Existence == from {
				all[id] = cluster.Testimony{Existence: to}
			}
		}
		return all, err
	})
}

var existenceMutants = map[string]func(c *fake.Cloud) mutant{
	"InstancesByID/unknown": func(c *fake.Cloud) mutant { return said(c, cluster.InstanceExists, cluster.ExistenceUnknown) },
	"InstancesByID/without a question": func(c *fake.Cloud) mutant {
		return asked(c, func(all testimonies, err error) (testimonies, error) {
			all["fake:///zone-1/vm-0"] = cluster.Testimony{}
			return all, err
		})
	},
	"InstanceOutsideGroupsByID": func(c *fake.Cloud) mutant {
		return asked(c, func(all testimonies, err error) (testimonies, error) {
			for id, one := range all {
				if strings.Contains(one.Why, "no group") {
					all[id] = cluster.Testimony{Existence: cluster.InstanceNotFound}
				}
			}
			return all, err
		})
	},
	"GoneInstanceByID/lives on": func(c *fake.Cloud) mutant { return said(c, cluster.InstanceTerminated, cluster.InstanceExists) },
	"GoneInstanceByID/one for all": func(c *fake.Cloud) mutant {
		return asked(c, func(all testimonies, err error) (testimonies, error) {
			for _, one := range all {
				if one.Existence != cluster.InstanceTerminated {
					continue
				}
				for id := range all {
					all[id] = one
				}
				break
			}
			return all, err
		})
	},
	"MalformedIDIsUnknown": func(c *fake.Cloud) mutant {
		return asked(c, func(all testimonies, err error) (testimonies, error) {
			for id, one := range all {
				if strings.Contains(one.Why, "malformed") {
					all[id] = cluster.Testimony{Existence: cluster.InstanceNotFound}
				}
			}
			return all, err
		})
	},
	"TroubleEndsNothing/not found": func(c *fake.Cloud) mutant { return said(c, cluster.ExistenceUnknown, cluster.InstanceNotFound) },
	"TroubleEndsNothing/no error": func(c *fake.Cloud) mutant {
		return asked(c, func(all testimonies, err error) (testimonies, error) {
			if provider.KindOf(err) == provider.Denied {
				err = nil
			}
			return all, err
		})
	},
	"TroubleEndsNothing/no reason": func(c *fake.Cloud) mutant { return said(c, cluster.ExistenceUnknown, cluster.ExistenceUnknown) },
	"TroubleEndsNothing/goes on": func(c *fake.Cloud) mutant {
		return mutant{Cloud: c, instances: func(ctx context.Context, ids ...cluster.InstanceID) (testimonies, error) {
			if errors.Is(ctx.Err(), context.Canceled) {
				ctx = context.WithoutCancel(ctx)
			}
			return c.Instances(ctx, ids...)
		}}
	},
}
