package groups

import (
	"cmp"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// File is groups.yaml. The zero value says nothing.
type File struct {
	// Groups are by name, or by a pattern such as "workers-*" (path.Match). Where
	// several find a group, the longer one holds, and the plain name before all.
	Groups   map[string]Group
	Headroom []Headroom
	// Clouds are the sections of the providers, by the provider's name ("nova"), as
	// JSON. The provider has read its section and found it valid.
	Clouds map[string]json.RawMessage
	// Prices is the value of AUTOSCALER_PRICES, which is no part of the file.
	Prices string
}

// Section reads one provider's section of the file: its error joins every mistake,
// each with its place below the section ("groups[0].flavor: ...").
type Section = func(section json.RawMessage) error

// Group is what an operator says about one group.
type Group struct {
	Price    *float64
	Priority *int
	Balance  *string
	Pause    *cluster.Pause
	Options  cluster.Options
	Template Template
}

// Template is laid over what the cloud tells of a group's next machine.
type Template struct {
	Labels   map[string]string `json:",omitempty"`
	Taints   []cluster.Taint   `json:",omitempty"`
	Capacity map[string]int64  `json:",omitempty"` // cpu in thousandths, all others in whole units
	Devices  []Devices         `json:",omitempty"`
}

func (t Template) empty() bool {
	return len(t.Labels)+len(t.Taints)+len(t.Capacity)+len(t.Devices) == 0
}

// find returns what the file says about a group, the most general first.
func (f *File) find(id cluster.GroupID) []*Group {
	var keys []string
	for key := range f.Groups {
		if ok, _ := path.Match(key, string(id)); ok || key == string(id) { // patterns were checked when read
			keys = append(keys, key)
		}
	}
	slices.SortFunc(keys, func(a, b string) int {
		return cmp.Or(cmp.Compare(exact(a, id), exact(b, id)), cmp.Compare(len(a), len(b)), strings.Compare(a, b))
	})
	out := make([]*Group, len(keys))
	for i, key := range keys {
		g := f.Groups[key]
		out[i] = &g
	}
	return out
}

func exact(key string, id cluster.GroupID) int {
	if key == string(id) {
		return 1
	}
	return 0
}

// Unknown are the names and patterns of the file that find none of the groups, sorted.
func (f *File) Unknown(list []cluster.NodeGroup) []string {
	var out []string
	for key := range f.Groups {
		if !slices.ContainsFunc(list, func(g cluster.NodeGroup) bool {
			ok, _ := path.Match(key, string(g.ID))
			return ok || key == string(g.ID)
		}) {
			out = append(out, key)
		}
	}
	for _, h := range f.Headroom {
		if h.Group != "" && !slices.ContainsFunc(list, func(g cluster.NodeGroup) bool { return g.ID == h.Group }) {
			out = append(out, string(h.Group))
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Apply lays the file over the facts of all groups, and prices those that have no price. The
// elements of the slices are replaced, not changed.
func (f *File) Apply(list []cluster.NodeGroup, r cluster.Reservation) {
	f.lay(list, r)
	setPrices(list, f.Prices, scale(list))
}

func (f *File) lay(list []cluster.NodeGroup, r cluster.Reservation) {
	for i := range list {
		for _, g := range f.find(list[i].ID) {
			g.apply(&list[i], r)
		}
	}
}

func (g *Group) apply(to *cluster.NodeGroup, r cluster.Reservation) {
	if g.Price != nil {
		to.Price, to.PriceSource, to.PriceComputed = *g.Price, typedSource, false
	}
	if g.Priority != nil {
		to.Priority = g.Priority
	}
	if g.Balance != nil {
		to.Balance = *g.Balance
	}
	if g.Pause != nil {
		to.Pause = g.Pause
	}
	o := &to.Options
	lay(&o.ScaleDownUtilization, g.Options.ScaleDownUtilization)
	lay(&o.ScaleDownGPUUtilization, g.Options.ScaleDownGPUUtilization)
	lay(&o.ScaleDownUnneededTime, g.Options.ScaleDownUnneededTime)
	lay(&o.ScaleDownUnreadyTime, g.Options.ScaleDownUnreadyTime)
	lay(&o.MaxNodeProvisionTime, g.Options.MaxNodeProvisionTime)
	lay(&o.MaxNodeStartupTime, g.Options.MaxNodeStartupTime)
	lay(&o.IgnoreDaemonSetsUtilization, g.Options.IgnoreDaemonSetsUtilization)
	lay(&o.Drift, g.Options.Drift)
	lay(&o.MaxNodeAge, g.Options.MaxNodeAge)
	lay(&o.RepairAfter, g.Options.RepairAfter)
	lay(&o.ReplaceDrainTime, g.Options.ReplaceDrainTime)
	lay(&o.Budgets, g.Options.Budgets)
	if !g.Template.empty() {
		g.Template.apply(&to.Template, r)
	}
}

func lay[T any](to **T, from *T) {
	if from != nil {
		*to = from
	}
}

// apply lays t over a template. One that the cloud could not describe is complete when
// the file names its cpu and memory.
func (t *Template) apply(to *cluster.Template, r cluster.Reservation) {
	if len(t.Labels) > 0 {
		labels := maps.Clone(to.Labels)
		if labels == nil {
			labels = map[string]string{}
		}
		maps.Copy(labels, t.Labels)
		to.Labels = labels
	}
	if len(t.Taints) > 0 {
		taints := slices.Clone(to.Taints)
		for _, x := range t.Taints {
			taints = slices.DeleteFunc(taints, func(o cluster.Taint) bool { return o.Key == x.Key && o.Effect == x.Effect })
			taints = append(taints, x)
		}
		to.Taints = taints
	}
	if len(t.Capacity) > 0 {
		t.applyCapacity(to, r)
	}
	if len(t.Devices) > 0 {
		applyDevices(to, t.Devices)
	}
	h := fnv.New64a()
	if err := json.NewEncoder(h).Encode(t); err == nil { // maps and strings always encode
		to.Spec = fmt.Sprintf("%s+%x", to.Spec, h.Sum64())
	}
}

func (t *Template) applyCapacity(to *cluster.Template, r cluster.Reservation) {
	before := to.Capacity
	c, a := &to.Capacity, &to.Allocatable
	c.Extended, a.Extended = maps.Clone(c.Extended), maps.Clone(a.Extended)
	for name, n := range t.Capacity {
		switch name {
		case "cpu":
			c.MilliCPU = n
		case "memory":
			c.Memory = n
		case "ephemeral-storage":
			c.EphemeralStorage = n
		case "pods":
			c.Pods = n
		default:
			if c.Extended == nil {
				c.Extended = map[string]int64{}
			}
			c.Extended[name] = n
		}
	}
	_, cpu := t.Capacity["cpu"]
	_, memory := t.Capacity["memory"]
	if to.Unknown != "" && cpu && memory {
		to.Unknown, to.ByNodes = "", false
		*a = r.Allocatable(*c)
		if n, ok := t.Capacity["pods"]; ok {
			a.Pods = n
		}
		return
	}
	// What a kubelet keeps back does not depend on how much there is.
	a.MilliCPU = max(a.MilliCPU+c.MilliCPU-before.MilliCPU, 0)
	a.Memory = max(a.Memory+c.Memory-before.Memory-c.HugePages()+before.HugePages(), 0)
	a.EphemeralStorage = max(a.EphemeralStorage+c.EphemeralStorage-before.EphemeralStorage, 0)
	for name, n := range t.Capacity {
		if _, extended := c.Extended[name]; extended {
			if a.Extended == nil {
				a.Extended = map[string]int64{}
			}
			a.Extended[name] = n
		} else if name == "pods" {
			a.Pods = n
		}
	}
}
