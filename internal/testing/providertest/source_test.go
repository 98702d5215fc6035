package providertest_test

import (
	"context"
	"maps"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/internal/testing/fake"
)

// sourceMutants are mistakes about what instances were started from.
var sourceMutants = map[string]func(c *fake.Cloud) mutant{
	"SourceIsTold/of no instance": func(c *fake.Cloud) mutant {
		return edited(c, func(g *cluster.NodeGroup) { setSources(g, nil) })
	},
	"SourceIsTold/of no template": func(c *fake.Cloud) mutant {
		return edited(c, func(g *cluster.NodeGroup) { g.Template.Source = nil })
	},
	"SourceIsTold/in other words": func(c *fake.Cloud) mutant {
		return edited(c, func(g *cluster.NodeGroup) { setSources(g, cluster.Spec{"the image": "image-1"}) })
	},
	"SourceIsTold/written otherwise": func(c *fake.Cloud) mutant {
		return edited(c, func(g *cluster.NodeGroup) { setSources(g, cluster.Spec{"image": "IMAGE-1"}) })
	},
	"SourceAfterAChange/as the template is now": func(c *fake.Cloud) mutant {
		return edited(c, func(g *cluster.NodeGroup) { setSources(g, g.Template.Source) })
	},
	"SourceAfterAChange/as the template was first": func(c *fake.Cloud) mutant {
		first, _ := c.Groups(context.Background())
		return edited(c, func(g *cluster.NodeGroup) {
			g.Template.Source = first[0].Template.Source
			setSources(g, first[0].Template.Source)
		})
	},
	"SourceAfterAChange/of another group": func(c *fake.Cloud) mutant {
		return mutant{Cloud: c, groups: func(ctx context.Context) ([]cluster.NodeGroup, error) {
			groups, err := c.Groups(ctx)
			for i := range groups { // sorted: others, workers
				groups[i].Template.Source = groups[len(groups)-1].Template.Source
			}
			return groups, err
		}}
	},
	"SourceTellsUserData/of no instance": func(c *fake.Cloud) mutant {
		return edited(c, func(g *cluster.NodeGroup) { setSources(g, cluster.Spec{"image": "image-1"}) })
	},
	"SourceThroughRotation/as the user data is written": func(c *fake.Cloud) mutant {
		started := map[cluster.InstanceID]string{}
		return edited(c, func(g *cluster.NodeGroup) {
			g.Template.Source = with(g.Template.Source, g.Template.Spec)
			for i := range g.Instances {
				in := &g.Instances[i]
				if started[in.ID] == "" {
					started[in.ID] = g.Template.Spec
				}
				in.Source = with(in.Source, started[in.ID])
			}
		})
	},
}

// with is a spec with other user data.
func with(s cluster.Spec, userData string) cluster.Spec {
	s = maps.Clone(s)
	s["user data"] = userData
	return s
}

func setSources(g *cluster.NodeGroup, s cluster.Spec) {
	for i := range g.Instances {
		g.Instances[i].Source = s
	}
}
