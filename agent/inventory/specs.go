package inventory

import (
	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// Specs returns, by instance, the group's Template.Spec that was current when the
// instance appeared. Of the instances that were there before the first read it has
// those that the cloud tells to be started from what the group starts today.
func (i *Inventory) Specs() map[cluster.InstanceID]string {
	i.mu.Lock()
	defer i.mu.Unlock()
	out := make(map[cluster.InstanceID]string, len(i.specs))
	for id, spec := range i.specs {
		out[id] = spec
	}
	return out
}

// RestoreSpecs restores what Specs returned before a restart.
func (i *Inventory) RestoreSpecs(specs map[cluster.InstanceID]string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for id, spec := range specs {
		i.specs[id] = spec
	}
}

// recordSpecs records the template spec of each new instance, and of each that is what the template is, and removes instances that
// are gone.
func (i *Inventory) recordSpecs(groups []cluster.NodeGroup, first bool) {
	seen := make(map[cluster.InstanceID]bool, len(i.specs))
	known := map[cluster.InstanceID]bool{}
	for _, g := range i.groups {
		for _, in := range g.Instances {
			known[in.ID] = true
		}
	}
	for _, g := range groups {
		for _, in := range g.Instances {
			seen[in.ID] = true
			if _, has := i.specs[in.ID]; has || g.Template.Spec == "" || g.Stale != "" || g.TemplateStale != "" {
				continue
			}
			if !first && !known[in.ID] || in.Source.Is(g.Template.Source) {
				i.specs[in.ID] = g.Template.Spec
			}
		}
	}
	for id := range i.specs {
		if !seen[id] && len(groups) > 0 {
			delete(i.specs, id)
		}
	}
}
