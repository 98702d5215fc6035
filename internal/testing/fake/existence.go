package fake

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
)

var _ provider.Witness = (*Cloud)(nil)

// Instances implements provider.Witness.
func (c *Cloud) Instances(ctx context.Context, ids ...cluster.InstanceID) (map[cluster.InstanceID]cluster.Testimony, error) {
	if len(ids) == 0 {
		return map[cluster.InstanceID]cluster.Testimony{}, nil
	}
	var ours []cluster.InstanceID
	for _, id := range ids {
		if strings.HasPrefix(string(id), "fake://"+c.Name+"/") {
			ours = append(ours, id)
		}
	}
	if err := c.enter(ctx, "ask for instances"); err != nil {
		return provider.Unknown(err.Error(), ours...), err
	}
	defer c.mu.Unlock()
	out := make(map[cluster.InstanceID]cluster.Testimony, len(ours))
	for _, id := range ours {
		out[id] = c.existence(id)
	}
	return out, nil
}

func (c *Cloud) existence(id cluster.InstanceID) cluster.Testimony {
	if lives, ok := c.loose[id]; ok {
		if lives {
			return cluster.Testimony{Existence: cluster.InstanceExists, Why: "in no group"}
		}
		return cluster.Testimony{Existence: cluster.InstanceTerminated, Why: "terminated"}
	}
	number, ok := strings.CutPrefix(string(id), "fake://"+c.Name+"/zone-1/vm-")
	if _, err := strconv.Atoi(number); !ok || err != nil {
		return cluster.Testimony{Why: "the ID is malformed"}
	}
	for _, g := range c.groups {
		for _, i := range g.instances {
			switch {
			case i.facts.ID != id:
			case i.facts.Phase == cluster.PhaseGone:
				return cluster.Testimony{Existence: cluster.InstanceTerminated, Why: "terminated"}
			default:
				return cluster.Testimony{Existence: cluster.InstanceExists, Why: string(i.facts.Phase)}
			}
		}
	}
	return cluster.Testimony{Existence: cluster.InstanceNotFound, Why: "there is no such instance"}
}

// Detach takes a living instance out of its group, as another client would; the target
// falls with it.
func (c *Cloud) Detach(id cluster.InstanceID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, g := range c.groups {
		at := slices.IndexFunc(g.instances, func(i *instance) bool { return i.facts.ID == id && alive(i.facts.Phase) })
		if at >= 0 {
			g.instances = slices.Delete(g.instances, at, at+1)
			g.facts.Target--
			c.loose[id] = true
		}
	}
}
