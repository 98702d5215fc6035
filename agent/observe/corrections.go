package observe

import (
	"maps"
	"slices"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/inventory"
	"github.com/autoscaler-agent/autoscaler-agent/agent/observe/template"
)

// corrected are the groups with their templates corrected by what their nodes report.
// They are valid until the inventory or the nodes change, and until validUntil.
type corrected struct {
	inventoryVersion, nodeVersion int
	validUntil                    time.Time
	groups                        []cluster.NodeGroup
}

// correctGroups corrects the groups' templates. Callers hold o.mu.
func (o *Observer) correctGroups(groups []cluster.NodeGroup, seen template.Evidence, now time.Time) {
	seen.Specs, seen.ProvisionTime = o.inventory.Specs(), o.ProvisionTime
	groups, advice := template.Correct(slices.Clone(groups), seen, o.corrections, now)
	for i := range groups {
		groups[i].Template.Devices = o.store.JudgeDevices(groups[i].Template.Devices)
	}
	for g, text := range advice {
		if o.loggedAdvice[g] != text {
			o.log.WithFields(logrus.Fields{"group": string(g), "why": text}).Warn("the group's nodes differ from its template; decisions use what the nodes report")
		}
	}
	o.loggedAdvice = advice
	o.corrected = corrected{groups: groups, validUntil: template.ValidUntil(groups, seen, now)}
}

// withReadTimes returns the groups with the times of their last reads.
func (c *corrected) withReadTimes(read []cluster.NodeGroup) []cluster.NodeGroup {
	same := func(a, b cluster.NodeGroup) bool { return a.ReadAt.Equal(b.ReadAt) }
	if !slices.EqualFunc(c.groups, read, same) {
		c.groups = inventory.WithReadTimes(c.groups, read)
	}
	return c.groups
}

// Corrections returns the corrections of all templates, by Template.Spec, for the state
// file.
func (o *Observer) Corrections() map[string]template.Correction {
	o.mu.Lock()
	defer o.mu.Unlock()
	return maps.Clone(o.corrections)
}

// RestoreCorrections restores what Corrections returned before a restart.
func (o *Observer) RestoreCorrections(corrections map[string]template.Correction) {
	o.mu.Lock()
	defer o.mu.Unlock()
	maps.Copy(o.corrections, corrections)
	o.corrected = corrected{}
}
