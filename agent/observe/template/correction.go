package template

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/internal/bounded"
)

const labelInstanceType = "node.kubernetes.io/instance-type"

// lifetime is how long a correction outlives its nodes. The template is believed again
// afterwards: the cause may have been fixed without a trace in the template (firmware,
// an image behind a name).
const lifetime = 24 * time.Hour

// timeStep is the granularity of Correction.At: a finer one would write the state file
// in every round.
const timeStep = time.Hour

// settleTime is how long a Ready node may take to gain its last labels and to lose its
// first taints.
const settleTime = 2 * time.Minute

// Correction is what real nodes of one template reported. It outlives them: a group that
// is empty again would otherwise promise more than its machines had, and a machine would
// be bought and deleted for the same pod without end.
type Correction struct {
	Capacity      cluster.Resources `json:"capacity"`
	Allocatable   cluster.Resources `json:"allocatable"`
	MissingLabels []string          `json:"lacks,omitempty"`  // labels of the template that no node has, sorted
	ExtraLabels   map[string]string `json:"extra,omitempty"`  // labels that nodes share and the template does not promise
	OwnLabels     []string          `json:"own,omitempty"`    // labels that one node registered with and another has not, sorted
	Taints        []cluster.Taint   `json:"taints,omitempty"` // of every node since it was first seen
	// VolumeLimits is how many volumes of each CSI driver a node attaches at most.
	VolumeLimits map[string]int64 `json:"volumeLimits,omitempty"`
	// Static is what static pods take of each machine.
	Static cluster.Resources `json:"static,omitzero"`
	// Devices are those of a node, all of them free; nil: no node has shown any.
	Devices *cluster.Devices `json:"devices,omitempty"`
	At      time.Time        `json:"at"` // when nodes last reported it, truncated to timeStep
}

// FirstSeen is a node as it was first seen, soon after it registered; of an older one the labels that its kubelet wrote.
type FirstSeen struct {
	UID    cluster.UID
	Labels map[string]string
	Taints []cluster.Taint
}

// Evidence is what is known of the nodes of all groups.
type Evidence struct {
	Nodes   []*cluster.Node    // with their pods
	Classes []cluster.PodClass // of these pods
	// Specs is, by instance, the Template.Spec under which the instance appeared.
	Specs     map[cluster.InstanceID]string
	FirstSeen map[cluster.NodeName]FirstSeen
	// FullLimits are the volume limits of nodes of which Node.VolumeLimits shows less.
	FullLimits map[cluster.NodeName]map[string]int64
	// NoDevices tells that nodes do not show their devices: ResourceSlices are not read.
	NoDevices bool
	// ProvisionTime is how long a machine may take to become what its group's machines are, where
	// its group does not say.
	ProvisionTime time.Duration
}

// ValidUntil is when time alone may change what Correct returns for these groups and nodes. It
// costs the nodes, times the different provision times.
func ValidUntil(groups []cluster.NodeGroup, seen Evidence, now time.Time) time.Time {
	until := now.Truncate(timeStep).Add(timeStep)
	soon := func(due time.Time) {
		if due.After(now) && due.Before(until) {
			until = due
		}
	}
	limits := []time.Duration{seen.ProvisionTime}
	for i := range groups {
		if own := groups[i].Options.MaxNodeProvisionTime; own != nil && !slices.Contains(limits, *own) {
			limits = append(limits, *own)
		}
	}
	for _, n := range seen.Nodes {
		soon(n.ReadySince.Add(settleTime))
		for _, d := range limits {
			soon(n.Created.Add(d))
		}
	}
	return until
}

// provisionTime is how long a machine of a group may take to become what its group's machines are.
func (e *Evidence) provisionTime(g *cluster.NodeGroup) time.Duration {
	if own := g.Options.MaxNodeProvisionTime; own != nil {
		return *own
	}
	return e.ProvisionTime
}

// Correct replaces the computed sizes of a template by the sizes that real nodes of the
// same group and spec report (DESIGN 4.2). It adds labels that these nodes share,
// removes labels that they do not have, and adds taints that they register with (plan
// leaves out startup taints).
//
// Only nodes count whose instance appeared under the template's current spec, or was started from what it starts, as the cloud tells.
// Without any, other nodes of the group that have the template's instance type tell how much memory a machine of this type
// has: no template changes that. Where
// nodes differ, the smaller amount holds, so that nothing is promised that an upcoming
// node may not have. Sizes are read as soon as a node registers: otherwise a pod that does
// not fit the node buys a second one of the same size while the first starts.
//
// Labels, taints, extended resources and volume limits are read from Ready nodes. A node
// that is younger than its group's provision time is no witness of what it lacks, and of
// no taint that it has: that may be passing (plan counts on it until then). A taint or a
// missing label is the template's when the newest two witnesses show it, so that one bad
// machine does not close its group, and a change of all new machines is learned.
//
// What static pods take of the group's nodes is no room of its next machine: no object but these
// pods themselves tells of them (kOps' kube-proxy, a load balancer of the control plane).
//
// The corrections are kept in known, by spec. The texts returned tell an operator what
// to change in which group.
func Correct(groups []cluster.NodeGroup, seen Evidence, known map[string]Correction, now time.Time) ([]cluster.NodeGroup, map[cluster.GroupID]string) {
	byID := make(map[cluster.InstanceID]*cluster.Node, len(seen.Nodes))
	for _, n := range seen.Nodes {
		if n.ProviderID != "" {
			byID[cluster.InstanceID(n.ProviderID)] = n
		}
	}
	maps.DeleteFunc(known, func(_ string, c Correction) bool { return now.Sub(c.At) > lifetime })
	advice := make(map[cluster.GroupID]string)
	for i := range groups {
		g := &groups[i]
		g.Template = withToldLimits(g.Template)
		g.Template.Expected = cluster.Expected(g.Template.Labels, g.Template.Taints)
		t := &g.Template
		if t.Spec == "" || t.Unknown != "" && !t.ByNodes {
			continue
		}
		var ready, starting, older []*cluster.Node
		for _, in := range g.Instances {
			n := byID[in.ID]
			wrong := ""
			if n != nil {
				wrong = unlikely(g.Template.Capacity, n)
			}
			switch {
			case n == nil || !in.Member || !sameType(g.Template, *n):
			case wrong != "":
				advice[g.ID] = wrong
			case seen.Specs[in.ID] == "" && !t.ByNodes && n.Ready == cluster.StatusTrue:
				older = append(older, n)
			case seen.Specs[in.ID] != t.Spec && !t.ByNodes:
			case n.Ready == cluster.StatusTrue:
				ready = append(ready, n)
			case n.Ready == cluster.StatusFalse && n.Allocatable.MilliCPU > 0 && n.Allocatable.Memory > 0 && n.Allocatable.Pods > 0:
				starting = append(starting, n)
			}
		}
		old := known[g.Template.Spec]
		r := readyNodes{template: &g.Template, known: &old, firstSeen: seen.FirstSeen, nodes: ready, classes: seen.Classes, youngAfter: now.Add(-seen.provisionTime(g))}
		c, ok := r.correction()
		switch {
		case !ok && len(starting) == 0:
			c = known[g.Template.Spec]
		case !ok:
			c = known[g.Template.Spec].withStartingSizes(&g.Template, false, starting)
			c.At = now.UTC().Truncate(timeStep)
			known[g.Template.Spec] = c
		default:
			c = c.withStartingSizes(&g.Template, true, starting)
			c.ExtraLabels, c.OwnLabels = r.sharedLabels()
			c.VolumeLimits, c.Static, c.Devices = r.leastLimits(seen.FullLimits), r.static(), old.Devices
			if !seen.NoDevices {
				c.Devices = r.fewestDevices()
			}
			c.At = now.UTC().Truncate(timeStep)
			known[g.Template.Spec] = c.persistent(known[g.Template.Spec], &r, now)
		}
		if c.At.IsZero() {
			takeMemory(&g.Template, older)
			r.nodes = older
			g.Template.Allocatable = g.Template.Allocatable.Sub(r.static())
			continue
		}
		if w := c.advice(&g.Template); w != "" {
			advice[g.ID] = strings.TrimPrefix(advice[g.ID]+"; "+w, "; ")
		}
		c.apply(&g.Template)
	}
	return groups, advice
}

// likely is how many times more or less than its template a node may have. A tag may be wrong by less; a kubelet whose machine
// was taken reports what it likes, and the smallest amount counts for its whole group.
const likely = 16

// unlikely says what of a node's capacity cannot be true; empty: nothing.
func unlikely(promised cluster.Resources, n *cluster.Node) string {
	for _, r := range []struct {
		what           string
		has, of, spare int64
	}{{"CPU (in thousandths)", n.Capacity.MilliCPU, promised.MilliCPU, n.Allocatable.MilliCPU}, {"memory", n.Capacity.Memory, promised.Memory, n.Allocatable.Memory}} {
		if r.has == 0 || r.of <= 0 || r.of > math.MaxInt64/likely {
			continue // not reported yet, or nothing is promised
		}
		if _, wrong := bounded.In("the "+r.what+" of node "+string(n.Name), r.has, max(1, r.of/likely), r.of*likely, r.of); wrong != "" {
			return wrong
		}
		if _, wrong := bounded.In("the allocatable "+r.what+" of node "+string(n.Name), r.spare, 0, r.has, r.has); wrong != "" {
			return wrong
		}
	}
	return ""
}

// takeMemory takes the memory of a machine from nodes of the template's instance type that were there before the agent.
// A cloud's list of types says more or less than a kernel finds; what the kubelet keeps of it stays as the template says.
func takeMemory(t *cluster.Template, nodes []*cluster.Node) {
	kind, least := t.Labels[labelInstanceType], int64(0)
	for _, n := range nodes {
		if m := n.Capacity.Memory; kind != "" && n.Labels[labelInstanceType] == kind && m > 0 && (least == 0 || m < least) {
			least = m
		}
	}
	if less := t.Capacity.Memory - least; least > 0 && less < t.Allocatable.Memory {
		t.Capacity.Memory, t.Allocatable.Memory = least, t.Allocatable.Memory-less
	}
}

// persistent is the part of a correction that is kept when its nodes have gone. A label that may
// still come and a taint that may still pass are kept once a node has been Ready for settleTime, or
// its time to start is over: a node that fails during its start must not keep its group closed. A
// label that a node has with another value never comes.
func (c Correction) persistent(old Correction, r *readyNodes, now time.Time) Correction {
	if slices.ContainsFunc(r.nodes, func(n *cluster.Node) bool { return settled(n, now) || !r.young(n) }) {
		return c
	}
	missing := slices.Clone(old.MissingLabels)
	for _, key := range c.MissingLabels {
		if !slices.Contains(missing, key) && slices.ContainsFunc(r.nodes, func(n *cluster.Node) bool { _, set := n.Labels[key]; return set }) {
			missing = append(missing, key)
		}
	}
	slices.Sort(missing)
	c.MissingLabels, c.Taints = missing, old.Taints
	return c
}

// withStartingSizes adds the sizes that nodes report while they start. A kubelet knows
// its CPU, memory and pods when it registers; its disk and the resources of device
// plugins may come later, so those stay as Ready nodes or the template have them. ready
// reports that c is of nodes that are Ready now; the sizes of an older correction are
// replaced.
func (c Correction) withStartingSizes(t *cluster.Template, ready bool, starting []*cluster.Node) Correction {
	var capacity, allocatable *cluster.Resources
	if ready {
		capacity, allocatable = &c.Capacity, &c.Allocatable
	}
	early := func(seen, promised cluster.Resources) cluster.Resources {
		if seen.EphemeralStorage == 0 {
			seen.EphemeralStorage = promised.EphemeralStorage
		}
		seen.Extended = nil
		return seen
	}
	for _, n := range starting {
		capacity, allocatable = minimum(capacity, early(n.Capacity, t.Capacity)), minimum(allocatable, early(n.Allocatable, t.Allocatable))
	}
	if !ready { // the resources of device plugins are kept
		capacity.Extended, allocatable.Extended = c.Capacity.Extended, c.Allocatable.Extended
	}
	c.Capacity, c.Allocatable = *capacity, *allocatable
	return c
}

// settled reports whether a node has been Ready for settleTime.
func settled(n *cluster.Node, now time.Time) bool { return now.Sub(n.ReadySince) >= settleTime }

// advice says which promises of the template the nodes do not keep, and the remedy;
// empty without any.
func (c Correction) advice(promised *cluster.Template) string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(promised.Allocatable.Extended)) {
		has, shown := c.Allocatable.Extended[name]
		if of := promised.Allocatable.Extended[name]; shown && has == 0 && of > 0 {
			out = append(out, fmt.Sprintf("its template promises %s: %d and its nodes show none when their time to start is over: look at the device plug-in, or correct the tag or template.capacity of groups.yaml; no machine is bought for it until a node of the group shows it, or for a day", name, of))
		}
	}
	for _, k := range c.MissingLabels {
		if v, ok := promised.Labels[k]; ok && !driverLabel(k) {
			out = append(out, fmt.Sprintf("its template promises the label %s=%s and its nodes do not have it: add it to their user data (userdata render --label) or remove the tag", k, v))
		}
	}
	for _, t := range c.Taints {
		out = append(out, fmt.Sprintf("its nodes register with the taint %s=%s:%s and no tag says so: add the tag k8s.io/cluster-autoscaler/node-template/taint/%s=%s:%s", t.Key, t.Value, t.Effect, t.Key, t.Value, t.Effect))
	}
	return strings.Join(out, "; ")
}

// driverLabel tells a label that only a CSI driver sets: a provider promises it by itself, and a
// cluster without the driver lacks nothing.
func driverLabel(key string) bool {
	return strings.HasPrefix(key, "topology.") && !strings.HasPrefix(key, "topology.kubernetes.io/")
}

// apply corrects a template. Maps and slices of the template are shared with the
// inventory; they are replaced, not changed.
func (c Correction) apply(t *cluster.Template) {
	if _, one := t.Labels[labelInstanceType]; t.ByNodes {
		t.Unknown = ""
	} else if !one { // several types: the next machine may be of a type without a node
		c.Capacity, c.Allocatable = *minimum(&t.Capacity, c.Capacity), *minimum(&t.Allocatable, c.Allocatable)
	}
	t.Capacity = overlay(t.Capacity, c.Capacity)
	t.Allocatable = overlay(t.Allocatable, c.Allocatable)
	t.Allocatable = t.Allocatable.Sub(c.Static)
	if len(c.VolumeLimits) > 0 {
		t.VolumeLimits = c.VolumeLimits
	}
	if c.Devices != nil {
		t.Devices = c.Devices
	}
	if len(c.MissingLabels)+len(c.ExtraLabels) > 0 {
		labels := make(map[string]string, len(t.Labels)+len(c.ExtraLabels))
		maps.Copy(labels, t.Labels)
		for _, k := range c.MissingLabels {
			delete(labels, k)
		}
		maps.Copy(labels, c.ExtraLabels)
		t.Labels = labels
	}
	if len(c.Taints) > 0 {
		t.Taints = append(slices.Clone(t.Taints), c.Taints...)
	}
}

// sameType reports whether a node has the instance type of the template, as far as both
// name one.
func sameType(t cluster.Template, n cluster.Node) bool {
	want, has := t.Labels[labelInstanceType], n.Labels[labelInstanceType]
	return want == "" || has == "" || want == has
}

// minimum is the smaller amount of each resource; a resource that only one side names is
// kept.
func minimum(a *cluster.Resources, b cluster.Resources) *cluster.Resources {
	if a == nil {
		return &b
	}
	out := cluster.Resources{
		MilliCPU: min(a.MilliCPU, b.MilliCPU), Memory: min(a.Memory, b.Memory),
		EphemeralStorage: min(a.EphemeralStorage, b.EphemeralStorage), Pods: min(a.Pods, b.Pods),
		Extended: maps.Clone(a.Extended),
	}
	for k, v := range b.Extended {
		if old, ok := out.Extended[k]; ok {
			out.Extended[k] = min(old, v)
		} else if out.Extended == nil {
			out.Extended = map[string]int64{k: v}
		} else {
			out.Extended[k] = v
		}
	}
	return &out
}

// overlay is what nodes report, with the extended resources of computed that no node
// reports.
func overlay(computed, reported cluster.Resources) cluster.Resources {
	extended := maps.Clone(computed.Extended)
	for k, v := range reported.Extended {
		if extended == nil {
			extended = map[string]int64{}
		}
		extended[k] = v
	}
	reported.Extended = extended
	return reported
}
