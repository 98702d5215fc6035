package devices

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// slice is what is kept of a ResourceSlice.
type slice struct {
	name       string
	id         poolID
	node       cluster.NodeName // empty: several nodes share it
	generation int64
	count      int64
	devices    []*device
	counters   []cluster.CounterSet
	why        string // it is not judged; empty: it is
	binds      bool   // a device has conditions for its binding: its pool comes last
}

// device is one device, with what selectors say of it.
type device struct {
	cluster.Device
	raw    *resourcev1.Device
	why    string // it is not judged; empty: it is
	judged map[string]verdict
}

func newSlice(s *resourcev1.ResourceSlice) *slice {
	out := &slice{name: s.Name, id: poolID{s.Spec.Driver, s.Spec.Pool.Name}, generation: s.Spec.Pool.Generation, count: s.Spec.Pool.ResourceSliceCount}
	if s.Spec.NodeName != nil {
		out.node = cluster.NodeName(*s.Spec.NodeName)
	}
	if out.node == "" && len(s.Spec.Devices) > 0 {
		out.why = "devices of " + s.Spec.Driver + " that several nodes share"
	}
	for _, c := range s.Spec.SharedCounters {
		out.counters = append(out.counters, out.counterSet(c.Name, c.Counters, false))
	}
	for i := range s.Spec.Devices {
		d := out.device(&s.Spec.Devices[i])
		out.devices, out.binds = append(out.devices, d), out.binds || d.raw.BindingConditions != nil
	}
	return out
}

func (s *slice) counterSet(name string, of map[string]resourcev1.Counter, up bool) cluster.CounterSet {
	out := cluster.CounterSet{Pool: s.id.driver + "/" + s.id.pool, Name: name, Counters: map[string]int64{}}
	for k, c := range of {
		out.Counters[k] = units(c.Value, up)
	}
	return out
}

// units rounds a part of a unit so that no device is taken for one that fits and does not.
func units(q resource.Quantity, up bool) int64 {
	n := q.Value() // rounds up
	if exact := resource.NewQuantity(n, q.Format); !up && exact.Cmp(q) > 0 {
		n--
	}
	return n
}

func (s *slice) device(raw *resourcev1.Device) *device {
	d := &device{raw: raw, why: s.why, judged: map[string]verdict{}}
	d.Driver, d.Pool, d.Name = s.id.driver, s.id.pool, raw.Name
	if raw.AllowMultipleAllocations != nil && *raw.AllowMultipleAllocations {
		d.why = cmp.Or(d.why, "devices of "+s.id.driver+" that several claims may share")
	}
	for name, v := range raw.Attributes {
		if text := attribute(&v); text != "" {
			if d.Attributes == nil {
				d.Attributes = map[string]string{}
			}
			d.Attributes[qualified(s.id.driver, string(name))] = text
		}
	}
	for name, v := range raw.Capacity {
		if d.Capacity == nil {
			d.Capacity = map[string]string{}
		}
		d.Capacity[qualified(s.id.driver, string(name))] = v.Value.String()
	}
	for _, c := range raw.ConsumesCounters {
		d.Consumes = append(d.Consumes, s.counterSet(c.CounterSet, c.Counters, true))
	}
	for _, t := range raw.Taints {
		d.Taints = appendTaint(d.Taints, t.Key, t.Value, string(t.Effect))
	}
	return d
}

// appendTaint appends a taint that keeps requests off.
func appendTaint(to []cluster.Taint, key, value, effect string) []cluster.Taint {
	if effect == string(resourcev1.DeviceTaintEffectNoSchedule) || effect == string(resourcev1.DeviceTaintEffectNoExecute) {
		to = append(to, cluster.Taint{Key: key, Value: value, Effect: effect})
	}
	return to
}

// ruled are the taints of the rules that are about a device; so is one without a selector. The next machine of a group has no pool yet.
func (x *Index) ruled(d *cluster.Device) (out []cluster.Taint) {
	is := func(asked *string, has string) bool { return asked == nil || *asked == has }
	for _, name := range slices.Sorted(maps.Keys(x.rules)) {
		r := x.rules[name]
		if s := r.DeviceSelector; s == nil || is(s.Driver, d.Driver) && is(s.Pool, d.Pool) && is(s.Device, d.Name) {
			out = appendTaint(out, r.Taint.Key, r.Taint.Value, string(r.Taint.Effect))
		}
	}
	return out
}

func qualified(driver, name string) string {
	if strings.Contains(name, "/") {
		return name
	}
	return driver + "/" + name
}

// attribute is a value with its type; empty: of a type that is not known.
func attribute(v *resourcev1.DeviceAttribute) string {
	switch {
	case v.StringValue != nil:
		return "string:" + *v.StringValue
	case v.IntValue != nil:
		return "int:" + strconv.FormatInt(*v.IntValue, 10)
	case v.BoolValue != nil:
		return "bool:" + strconv.FormatBool(*v.BoolValue)
	case v.VersionValue != nil:
		return "version:" + *v.VersionValue
	}
	return ""
}

// OnNode returns what slices offer on a node alone; nil: nothing. It costs the devices, times the selectors the first time.
func (x *Index) OnNode(node cluster.NodeName) *cluster.Devices {
	if !x.Read() || len(x.onNode[node]) == 0 {
		return nil
	}
	pools := map[poolID][]*slice{}
	for _, s := range x.onNode[node] {
		pools[s.id] = append(pools[s.id], s)
	}
	binds := func(id poolID) int {
		if slices.ContainsFunc(pools[id], func(s *slice) bool { return s.binds }) {
			return 1
		}
		return 0
	}
	order := slices.SortedFunc(maps.Keys(pools), func(a, b poolID) int {
		return cmp.Or(binds(a)-binds(b), strings.Compare(a.driver, b.driver), strings.Compare(a.pool, b.pool))
	})
	out := &cluster.Devices{}
	for _, id := range order {
		x.addPool(out, id, pools[id])
	}
	if out.Unready == "" && len(x.partial) > 0 {
		out.Unready = slices.Min(slices.Collect(maps.Values(x.partial)))
	}
	return out
}

// addPool adds a pool as GatherPools does: of the newest generation, whole, and valid.
func (x *Index) addPool(out *cluster.Devices, id poolID, here []*slice) {
	all := x.newest(id)
	if here = slices.DeleteFunc(here, func(s *slice) bool { return s.generation < all[0].generation }); len(here) == 0 {
		return // what it was is not true any more, and what it is the node does not have
	}
	slices.SortFunc(here, func(a, b *slice) int { return strings.Compare(a.name, b.name) })
	if !whole(all) {
		out.Unready = cmp.Or(out.Unready, id.driver+"/"+id.pool)
		return
	}
	for _, s := range here {
		out.Counters = append(out.Counters, s.counters...)
		if len(s.counters) > 0 {
			continue // the devices of such a slice are none
		}
		for _, d := range s.devices {
			if d.why != "" {
				continue
			}
			of := d.Device
			of.Matches, of.Fails = x.judge(d)
			of.Ruled = x.ruled(&of)
			_, of.Taken = x.taken[deviceID{id.driver, id.pool, d.Name}]
			out.Devices = append(out.Devices, of)
		}
	}
}

// newest are the slices of a pool's newest generation; never none.
func (x *Index) newest(id poolID) (out []*slice) {
	for _, s := range x.pools[id] {
		if len(out) > 0 && s.generation > out[0].generation {
			out = out[:0]
		}
		if len(out) == 0 || s.generation == out[0].generation {
			out = append(out, s)
		}
	}
	return out
}

// whole tells whether all slices of a pool are there, and valid.
func whole(pool []*slice) bool {
	return valid(pool) && !slices.ContainsFunc(pool, func(s *slice) bool { return s.count != int64(len(pool)) })
}

// noteWhole notes whether a pool with shared counters is whole: kube-scheduler looks at these on every node.
func (x *Index) noteWhole(id poolID) {
	_, was := x.partial[id]
	all := x.pools[id]
	counts := slices.ContainsFunc(slices.Collect(maps.Values(all)), func(s *slice) bool { return len(s.counters) > 0 })
	is := counts && !whole(x.newest(id))
	if is == was {
		return
	}
	if delete(x.partial, id); is {
		x.partial[id] = id.driver + "/" + id.pool
	}
	for node := range x.onNode {
		x.changed.nodes[node] = true
	}
}

// valid: device names and counter sets are there once, and what devices count against is there.
func valid(pool []*slice) bool {
	names, sets := map[string]bool{}, map[string]cluster.CounterSet{}
	for _, s := range pool {
		for _, c := range s.counters {
			if _, twice := sets[c.Name]; twice {
				return false
			}
			sets[c.Name] = c
		}
	}
	for _, s := range pool {
		for _, d := range s.devices {
			if names[d.Name] && len(s.counters) == 0 {
				return false
			}
			names[d.Name] = true
			for _, c := range d.Consumes {
				for name := range c.Counters {
					if _, has := sets[c.Name].Counters[name]; !has {
						return false
					}
				}
				if _, has := sets[c.Name]; !has {
					return false
				}
			}
		}
	}
	return true
}

// Judge returns devices of a template with what the selectors of today say of them, all of them free.
func (x *Index) Judge(of *cluster.Devices) *cluster.Devices {
	if of == nil || !x.Read() {
		return of
	}
	out := *of
	out.Devices = slices.Clone(of.Devices)
	for i := range out.Devices {
		d := &out.Devices[i]
		t := &device{Device: *d, raw: rawDevice(d), judged: map[string]verdict{}}
		d.Matches, d.Fails = x.judge(t)
		d.Ruled, d.Taken = x.ruled(d), false
	}
	return &out
}

// rawDevice is a device as a driver would publish it.
func rawDevice(d *cluster.Device) *resourcev1.Device {
	out := &resourcev1.Device{Name: d.Name, Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{}, Capacity: map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{}}
	for name, text := range d.Attributes {
		kind, value, _ := strings.Cut(text, ":")
		var a resourcev1.DeviceAttribute
		switch kind {
		case "int":
			n, _ := strconv.ParseInt(value, 10, 64)
			a.IntValue = &n
		case "bool":
			b := value == "true"
			a.BoolValue = &b
		case "version":
			a.VersionValue = &value
		default:
			a.StringValue = &value
		}
		out.Attributes[resourcev1.QualifiedName(name)] = a
	}
	for name, text := range d.Capacity {
		if q, err := resource.ParseQuantity(text); err == nil {
			out.Capacity[resourcev1.QualifiedName(name)] = resourcev1.DeviceCapacity{Value: q}
		}
	}
	return out
}
