package round

import (
	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/fit"
)

// startNeeds are the labels, resources and volume drivers that some pod of the cluster asks for. A label that no pod asks for may never
// come (a template promises the zone of a CSI driver that the cluster does not have), and no pod waits
// for it.
type startNeeds struct {
	labels, resources, drivers map[string]bool
	claims                     bool
}

// startNeedsOf costs the terms of the classes.
func startNeedsOf(classes []cluster.PodClass) *startNeeds {
	x := &startNeeds{labels: map[string]bool{}, resources: map[string]bool{}, drivers: map[string]bool{}}
	for i := range classes {
		c := &classes[i]
		for key := range c.NodeSelector {
			x.labels[key] = true
		}
		x.terms(c.Affinity)
		fit.TopologyKeys(c, func(key string) { x.labels[key] = true })
		for k := range c.Volumes {
			v := &c.Volumes[k]
			x.terms(v.Affinity)
			x.terms(v.Topologies)
			x.requirements(v.Zones)
			x.drivers[v.Driver] = true
		}
		x.claims = x.claims || len(c.Claims) > 0
		for name := range c.Requests.Extended {
			x.resources[name] = true
		}
		if c.Requests.EphemeralStorage > 0 {
			x.resources[decision.EphemeralStorage] = true
		}
	}
	return x
}

func (x *startNeeds) terms(terms []cluster.NodeTerm) {
	for i := range terms {
		x.requirements(terms[i].Labels)
	}
}

func (x *startNeeds) requirements(list []cluster.Requirement) {
	for i := range list {
		x.labels[list[i].Key] = true
	}
}

// Of is the part of a start that some pod can wait for.
func (x *startNeeds) Of(s decision.Start) decision.Start {
	s.Labels, s.Drivers = needed(s.Labels, x.labels), needed(s.Drivers, x.drivers)
	if !x.claims {
		s.Devices = nil
	}
	all := s.Resources
	s.Resources = nil
	for name, amount := range all {
		if x.resources[name] {
			s.AddResource(name, amount)
		}
	}
	return s
}

func needed(list []string, by map[string]bool) (out []string) {
	for _, s := range list {
		if by[s] {
			out = append(out, s)
		}
	}
	return out
}
