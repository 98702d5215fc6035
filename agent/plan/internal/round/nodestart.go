package round

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/fit"
)

// A machine that has just joined is not yet what its group's machines are: a network plugin takes
// its taint off, feature discovery sets labels, a device plugin reports its devices, a CSI driver
// registers with its limit. The group's template says what machines of the group have when all of
// that is over (observe/template learns it from nodes that have started). What a young node has
// beside it, or lacks of it, is passing, whatever its name: until then the node counts as a machine
// that is coming, with what the template promises. Otherwise each machine that joins buys another
// one for the pods that wait for it.
//
// What no pod can be kept off a node by is left out (startNeeds). Nothing is decided by the name of a taint, a label or a
// resource that an operator has not named and Kubernetes has not defined.

// comingNode is a node that is starting: what sets it apart from its group's template, and what it soon is.
type comingNode struct {
	Start        decision.Start
	Shape        fit.NodeInfo
	VolumeLimits map[string]int64
	Allocatable  cluster.Resources

	template cluster.Template
	zone     string
	needs    *startNeeds
	until    time.Time
	words    string // until that time
}

// newComing compares a young node, whose machine is in a zone, with its group's template. It costs the labels
// and taints of both.
func newComing(n *cluster.Node, zone string, t *cluster.Template, needs *startNeeds, p *decision.Policy) *comingNode {
	c := &comingNode{template: *t, zone: zone, needs: needs}
	c.Start.Taints = passingTaints(n, t, p)
	if t.Unknown == "" {
		lacking(&c.Start, n, t, zone)
	}
	c.Start = needs.Of(c.Start)
	c.become(n)
	return c
}

// Of tells whether newComing would return the same for a zone, a template and needs.
func (c *comingNode) Of(zone string, t *cluster.Template, needs *startNeeds) bool {
	return c.needs == needs && c.zone == zone && Same(&c.template, t)
}

// WordsUntil say what has not passed yet, and how long pods count on the node at most.
func (c *comingNode) WordsUntil(until time.Time) string {
	if !c.until.Equal(until) {
		c.until = until
		c.words = "starting: " + c.Start.Words("has not passed yet", "has not come yet") + "; pods count on it as on a machine that is coming, until " + until.UTC().Format(time.RFC3339)
	}
	return c.words
}

// passingTaints are the taints that a young node loses by itself: all that keep pods off it and that
// its template does not have. Without a template, those of Kubernetes itself. What a person has set
// is meant, unless the operator names the taint as one of a node's start.
func passingTaints(n *cluster.Node, t *cluster.Template, p *decision.Policy) (out []cluster.Taint) {
	for _, x := range n.Taints {
		switch {
		case x.Effect == "PreferNoSchedule" || condition(x) || isStatusTaint(x, p):
		case isStartupTaint(x, p):
			out = append(out, x)
		case t.Unknown == "" && !slices.Contains(t.Taints, x) && !slices.Contains(n.OperatorTaints, x):
			out = append(out, x)
		}
	}
	slices.SortFunc(out, func(a, b cluster.Taint) int {
		return cmp.Or(strings.Compare(a.Key, b.Key), strings.Compare(a.Effect, b.Effect), strings.Compare(a.Value, b.Value))
	})
	return out
}

// condition tells a taint that says how a node is, and not how far its start has come.
func condition(t cluster.Taint) bool {
	switch t.Key {
	case cluster.TaintToBeDeleted, cluster.TaintShutdown, cluster.TaintOutOfService:
		return true
	}
	return strings.HasSuffix(t.Key, "-pressure")
}

// isStartupTaint tells a taint that the operator, or its name, says belongs to a node's start.
func isStartupTaint(t cluster.Taint, p *decision.Policy) bool {
	return slices.Contains(p.StartupTaints, t.Key) || fit.Startup(t)
}

// isStatusTaint tells a taint that the operator, or its name, says tells a node's state.
func isStatusTaint(t cluster.Taint, p *decision.Policy) bool {
	return slices.Contains(p.StatusTaints, t.Key) || fit.Status(t)
}

// lastingTaints are the taints of a template or of a node that say what the group's next node has.
func lastingTaints(taints []cluster.Taint, p *decision.Policy) []cluster.Taint {
	named := func(t cluster.Taint) bool {
		return slices.Contains(p.StartupTaints, t.Key) || slices.Contains(p.StatusTaints, t.Key)
	}
	taints = fit.WithoutStartupTaints(taints)
	if !slices.ContainsFunc(taints, named) {
		return taints
	}
	return slices.DeleteFunc(slices.Clone(taints), named)
}

// lacking adds what a template promises and a node does not have yet. A label that is there with
// another value, and less of a resource on a machine of another type, are no matter of time.
func lacking(s *decision.Start, n *cluster.Node, t *cluster.Template, zone string) {
	for key := range t.Labels {
		if _, has := n.Labels[key]; !has && key != labelHostname {
			s.Labels = append(s.Labels, key)
		}
	}
	for _, key := range t.ZoneLabels {
		if _, has := n.Labels[key]; !has && zone != "" && !slices.Contains(s.Labels, key) {
			s.Labels = append(s.Labels, key)
		}
	}
	slices.Sort(s.Labels)
	own, promised := n.Labels[labelInstanceType], t.Labels[labelInstanceType]
	oneType := own == "" || promised == "" || own == promised
	for name, v := range t.Allocatable.Extended {
		if has := n.Allocatable.Extended[name]; has < v && (oneType || has == 0) {
			s.AddResource(name, v)
		}
	}
	if n.Allocatable.EphemeralStorage == 0 && t.Allocatable.EphemeralStorage > 0 {
		s.AddResource(decision.EphemeralStorage, t.Allocatable.EphemeralStorage)
	}
	for driver := range t.VolumeLimits {
		if _, has := n.VolumeLimits[driver]; !has {
			s.Drivers = append(s.Drivers, driver)
		}
	}
	slices.Sort(s.Drivers)
	if oneType {
		s.Devices = slices.DeleteFunc(t.Devices.Drivers(), n.Devices.Has)
	}
}

const (
	labelHostname     = "kubernetes.io/hostname"
	labelInstanceType = "node.kubernetes.io/instance-type"
)

// become works out what the node soon is: without the taints of its start, and with what its template
// promises. It costs the labels of the node.
func (c *comingNode) become(n *cluster.Node) {
	t, s := &c.template, &c.Start
	c.Shape, c.VolumeLimits, c.Allocatable = fit.NodeInfo{Name: n.Name, Labels: n.Labels, Taints: n.Taints, Devices: n.Devices, Extended: n.Allocatable.Extended}, n.VolumeLimits, n.Allocatable
	passing := func(x cluster.Taint) bool { return slices.Contains(s.Taints, x) || fit.Startup(x) }
	c.Shape.Taints = slices.DeleteFunc(slices.Clone(n.Taints), passing)
	if t.Unknown != "" {
		return
	}
	promised := slices.DeleteFunc(slices.Clone(s.Labels), func(key string) bool { _, has := t.Labels[key]; return !has })
	c.Shape.Labels = with(n.Labels, t.Labels, promised)
	c.Shape = c.Shape.Placed(t, c.zone) // its zone is known before the cloud's controller labels it
	c.VolumeLimits = with(n.VolumeLimits, t.VolumeLimits, s.Drivers)
	if len(s.Devices) > 0 { // those that are there are among them
		c.Shape.Devices = t.Devices
	}
	if n.Allocatable.MilliCPU == 0 || n.Allocatable.Memory == 0 || n.Allocatable.Pods == 0 {
		c.Allocatable, c.Shape.Extended = t.Allocatable, t.Allocatable.Extended
		return
	}
	c.Allocatable.Extended = with(n.Allocatable.Extended, s.Resources, slices.Collect(maps.Keys(s.Resources)))
	if promised, late := s.Resources[decision.EphemeralStorage]; late {
		c.Allocatable.EphemeralStorage = promised
		delete(c.Allocatable.Extended, decision.EphemeralStorage)
	}
	c.Shape.Extended = c.Allocatable.Extended
}

// nextMachine is a group's next machine, as the filters see it when its start is over.
func nextMachine(t *cluster.Template, p *decision.Policy) fit.NodeInfo {
	lasting := *t
	lasting.Taints = lastingTaints(t.Taints, p)
	return fit.NextMachine(&lasting)
}

// with is a map with some keys of another one.
func with[V any](has, promised map[string]V, keys []string) map[string]V {
	out := make(map[string]V, len(has)+len(keys))
	maps.Copy(out, has)
	for _, key := range keys {
		out[key] = promised[key]
	}
	return out
}
