package template

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// witnesses is how many of the newest nodes have to show a taint, or to lack a label, before the
// group's next machine is expected to.
const witnesses = 2

// readyNodes are the Ready nodes of one template.
type readyNodes struct {
	template   *cluster.Template
	known      *Correction
	firstSeen  map[cluster.NodeName]FirstSeen
	classes    []cluster.PodClass
	nodes      []*cluster.Node
	youngAfter time.Time // nodes that were created later may still lose taints and gain what they lack
}

func (r *readyNodes) young(n *cluster.Node) bool { return n.Created.After(r.youngAfter) }

func (r *readyNodes) newestFirst() {
	slices.SortFunc(r.nodes, func(a, b *cluster.Node) int {
		return cmp.Or(b.Created.Compare(a.Created), strings.Compare(string(a.Name), string(b.Name)))
	})
}

// correction sums up what the nodes report, but for labels that the template does not promise and
// for volume limits. It costs the nodes, times the labels of the template.
func (r *readyNodes) correction() (c Correction, ok bool) {
	r.newestFirst()
	capacity, allocatable := r.sizes()
	if allocatable == nil || allocatable.MilliCPU <= 0 || allocatable.Memory <= 0 {
		return Correction{}, false
	}
	c.Capacity, c.Allocatable = *capacity, *allocatable
	for k, v := range r.template.Labels {
		if r.lack(k, v) {
			c.MissingLabels = append(c.MissingLabels, k)
		}
	}
	slices.Sort(c.MissingLabels)
	for _, x := range r.taintsSeen() {
		if !slices.Contains(r.template.Taints, x) && r.share(x) {
			c.Taints = append(c.Taints, x)
		}
	}
	return c, true
}

// sizes are the smallest amounts; of extended resources see devices. Of these, and of a disk, a
// young node may report less than it will: there it has what older nodes have, or have had.
func (r *readyNodes) sizes() (capacity, allocatable *cluster.Resources) {
	var old []*cluster.Node
	for _, n := range r.nodes {
		if !r.young(n) {
			capacity, allocatable = minimum(capacity, n.Capacity), minimum(allocatable, n.Allocatable)
			old = append(old, n)
		}
	}
	if len(old) > 0 {
		newest := old[:min(len(old), witnesses)]
		capacity.Extended = devices(r.template.Capacity.Extended, newest, func(n *cluster.Node) map[string]int64 { return n.Capacity.Extended })
		allocatable.Extended = devices(r.template.Allocatable.Extended, newest, func(n *cluster.Node) map[string]int64 { return n.Allocatable.Extended })
	}
	wholeCapacity, whole := capacity, allocatable
	if whole == nil {
		wholeCapacity, whole = &r.known.Capacity, &r.known.Allocatable
	}
	for _, n := range r.nodes {
		if r.young(n) {
			capacity = minimum(capacity, grown(n.Capacity, wholeCapacity, &r.template.Capacity))
			allocatable = minimum(allocatable, grown(n.Allocatable, whole, &r.template.Allocatable))
		}
	}
	return capacity, allocatable
}

// devices are the most that the newest witnesses have of each extended resource: one broken machine
// does not close its group. A promised resource that none of them has is 0: a GPU that its plug-in
// splits into MIG devices, or a tag of another machine. Left as promised it would be bought again
// and again for the same pod.
func devices(promised map[string]int64, newest []*cluster.Node, of func(*cluster.Node) map[string]int64) map[string]int64 {
	out := map[string]int64{}
	for name := range promised {
		out[name] = 0
	}
	for _, n := range newest {
		for name, v := range of(n) {
			out[name] = max(out[name], v)
		}
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

// static is what static pods take of the newest witnesses, the lesser of two: one machine may have
// a static pod of its own. The kubelet reports them moments after its Node, so a young node without
// any is no witness. It costs the pods of the nodes that it asks.
func (r *readyNodes) static() cluster.Resources {
	r.newestFirst()
	var least *cluster.Resources
	seen := 0
	for _, n := range r.nodes {
		var sum cluster.Resources
		for i := range n.Pods {
			if p := &n.Pods[i]; p.Mirror && !p.Finished {
				sum = sum.Add(r.classes[p.Class].Requests)
			}
		}
		if sum.Pods == 0 && r.young(n) {
			continue
		}
		least = minimum(least, sum)
		if seen++; seen == witnesses {
			break
		}
	}
	if least == nil {
		return r.known.Static
	}
	least.Extended = nil // the kubelet gives static pods no devices
	return *least
}

// grown is what a young node reports, with what it may still get. What only the template promises is
// left out: no node has shown it.
func grown(seen cluster.Resources, whole, promised *cluster.Resources) cluster.Resources {
	if seen.EphemeralStorage == 0 {
		seen.EphemeralStorage = cmp.Or(whole.EphemeralStorage, promised.EphemeralStorage)
	}
	seen.Extended = maps.Clone(seen.Extended)
	maps.DeleteFunc(seen.Extended, func(name string, v int64) bool { return v == 0 || v < promised.Extended[name] })
	for name, v := range whole.Extended {
		if seen.Extended == nil {
			seen.Extended = map[string]int64{}
		}
		seen.Extended[name] = max(seen.Extended[name], v)
	}
	return seen
}

// lack reports whether the newest witnesses lack a label of the template. Controllers add labels
// later, and people remove some: a node that has the label now or had it when it was first seen
// has it. One with another value will not get it.
func (r *readyNodes) lack(key, value string) bool {
	seen := 0
	for _, n := range r.nodes {
		has, set := n.Labels[key]
		switch {
		case set && has == value, r.registered(n).Labels[key] == value:
			return false
		case !set && r.young(n):
			continue
		}
		if seen++; seen == witnesses {
			return true
		}
	}
	return seen > 0 || slices.Contains(r.known.MissingLabels, key)
}

// taintsSeen are the taints of the newest witnesses that keep pods off a node, and those that are known.
func (r *readyNodes) taintsSeen() []cluster.Taint {
	out := slices.Clone(r.known.Taints)
	seen := 0
	for _, n := range r.nodes {
		for _, x := range n.Taints {
			if x.Effect != "PreferNoSchedule" && !slices.Contains(out, x) {
				out = append(out, x)
			}
		}
		if seen++; seen == witnesses {
			break
		}
	}
	return out
}

// share reports whether the newest witnesses have a taint that they registered with. Any controller
// or person may have set a taint of a node that was not seen young, unless it is known from others.
func (r *readyNodes) share(x cluster.Taint) bool {
	known, seen := slices.Contains(r.known.Taints, x), 0
	for _, n := range r.nodes {
		switch {
		case !slices.Contains(n.Taints, x):
			return false
		case r.young(n):
			continue
		case slices.Contains(n.OperatorTaints, x) || !known && !slices.Contains(r.registered(n).Taints, x):
			return false
		}
		if seen++; seen == witnesses {
			return true
		}
	}
	return seen > 0 || known
}

// registered is a node as it was first seen; nothing where that was too late.
func (r *readyNodes) registered(n *cluster.Node) FirstSeen {
	if b := r.firstSeen[n.Name]; b.UID == n.UID {
		return b
	}
	return FirstSeen{}
}

// sharedLabels are the labels that every node of a template has and the template does
// not promise. One node alone may have labels of its own: of it those count that it
// registered with, but for own, which another node of the template was seen without. The
// place and the name of a machine are never the group's. A young node may still get a
// label that it lacks.
func (r *readyNodes) sharedLabels() (out map[string]string, own []string) {
	own = slices.Clone(r.known.OwnLabels)
	shared := func(k, v string) bool {
		has, registered := 0, slices.ContainsFunc(r.nodes, func(n *cluster.Node) bool { was, at := r.registered(n).Labels[k]; return at && was == v })
		for _, n := range r.nodes {
			switch now, set := n.Labels[k]; {
			case set && now == v:
				has++
			case set || !r.young(n):
				if registered && !slices.Contains(own, k) {
					own = append(own, k)
				}
				return false
			}
		}
		return has > 1 || !slices.Contains(own, k) && (registered || r.known.ExtraLabels[k] == v)
	}
	add := func(labels map[string]string) {
		for k, v := range labels {
			_, promised := r.template.Labels[k]
			place := k == "kubernetes.io/hostname" || strings.HasPrefix(k, "topology.") || strings.HasPrefix(k, "failure-domain.") || strings.HasSuffix(k, "/instance-type") && !r.template.ByNodes
			if _, has := out[k]; has || promised || place || !shared(k, v) {
				continue
			}
			if out == nil {
				out = make(map[string]string)
			}
			out[k] = v
		}
	}
	add(r.known.ExtraLabels)
	if len(r.nodes) > 0 {
		add(r.nodes[len(r.nodes)-1].Labels) // the oldest has the most
	}
	slices.Sort(own)
	return out, own
}

// leastLimits are the volume limits that hold on every node of a template. While all nodes are
// young, limits of drivers that none shows yet are kept: a driver registers some time after its
// node is Ready. full has the limits of nodes whose VolumeLimits show less.
func (r *readyNodes) leastLimits(full map[cluster.NodeName]map[string]int64) map[string]int64 {
	var out map[string]int64
	show := func(driver string, limit int64) {
		if out == nil {
			out = map[string]int64{}
		}
		if old, seen := out[driver]; !seen || limit < old {
			out[driver] = limit
		}
	}
	for _, n := range r.nodes {
		limits, has := full[n.Name]
		if !has {
			limits = n.VolumeLimits
		}
		for driver, limit := range limits {
			show(driver, limit)
		}
	}
	if slices.ContainsFunc(r.nodes, func(n *cluster.Node) bool { return !r.young(n) }) {
		return out
	}
	for driver, limit := range r.known.VolumeLimits {
		if _, shown := out[driver]; !shown {
			show(driver, limit)
		}
	}
	return out
}
