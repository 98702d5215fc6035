// Package devices draws worlds of devices and of claims that ask for them. Its tests hold the allocation of devices against
// Kubernetes' own allocator, pod after pod, from the API objects to which devices are taken; the oracle has kube-scheduler judge them.
// It refuses to draw what is not judged: devices that several nodes or claims share, and capacity.
package devices

import (
	"fmt"
	"math/rand/v2"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func pick[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }

func selector(text string) []resourcev1.DeviceSelector {
	return []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: text}}}
}

// Classes are four classes, c0 to c3: of driver a.io, of b.io, of one kind of a.io, and of everything.
func Classes() (out []*resourcev1.DeviceClass) {
	for i, text := range []string{`device.driver == "a.io"`, `device.driver == "b.io"`, `device.driver == "a.io" && device.attributes["a.io"].kind == "x"`, `true`} {
		out = append(out, &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("c", i)}, Spec: resourcev1.DeviceClassSpec{Selectors: selector(text)}})
	}
	return out
}

// Pool draws the slices of a pool of one node: in parts, with shared counters, one of them missing.
func Pool(r *rand.Rand, node, pool, driver string) (out []*resourcev1.ResourceSlice) {
	name := node
	spec := resourcev1.ResourceSliceSpec{Driver: driver, NodeName: &name, Pool: resourcev1.ResourcePool{Name: pool, Generation: 1, ResourceSliceCount: int64(1 + r.IntN(2))}}
	parts, shared := int(spec.Pool.ResourceSliceCount), r.IntN(3) == 0
	if r.IntN(20) == 0 {
		spec.Pool.ResourceSliceCount++ // one has not come yet
	}
	if shared {
		spec.Pool.ResourceSliceCount++
		s := &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: pool + "-counters"}, Spec: spec}
		s.Spec.SharedCounters = []resourcev1.CounterSet{{Name: "set", Counters: map[string]resourcev1.Counter{"mem": {Value: *resource.NewQuantity(int64(2+r.IntN(8)), resource.DecimalSI)}, "cores": {Value: *resource.NewQuantity(int64(2+r.IntN(8)), resource.DecimalSI)}}}}
		out = append(out, s)
	}
	for part := range parts {
		s := &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint(pool, "-", part)}, Spec: spec}
		for i := range 1 + r.IntN(5) {
			d := resourcev1.Device{Name: fmt.Sprint("d", part, i), Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{}, Capacity: map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{}}
			if r.IntN(30) > 0 { // without it a selector that reads it fails, and with it the search
				v := pick(r, "x", "x", "y")
				d.Attributes["kind"] = resourcev1.DeviceAttribute{StringValue: &v}
			}
			if r.IntN(6) > 0 {
				v := int64(r.IntN(3))
				d.Attributes[resourcev1.QualifiedName(pick(r, "numa", driver+"/numa"))] = resourcev1.DeviceAttribute{IntValue: &v}
			}
			if r.IntN(4) > 0 {
				v := pick(r, "r0", "r1")
				d.Attributes["k8s.io/root"] = resourcev1.DeviceAttribute{StringValue: &v}
			}
			d.Capacity["memory"] = resourcev1.DeviceCapacity{Value: resource.MustParse(pick(r, "10Gi", "40Gi", "80Gi"))}
			if r.IntN(6) == 0 {
				d.Taints = []resourcev1.DeviceTaint{{Key: pick(r, "k", "l"), Value: pick(r, "", "v"), Effect: pick(r, resourcev1.DeviceTaintEffectNoExecute, resourcev1.DeviceTaintEffectNoSchedule, resourcev1.DeviceTaintEffectNone)}}
			}
			if shared && r.IntN(4) > 0 {
				use := resourcev1.DeviceCounterConsumption{CounterSet: "set", Counters: map[string]resourcev1.Counter{}}
				for _, c := range []string{"mem", "cores"} {
					if r.IntN(2) == 0 {
						use.Counters[c] = resourcev1.Counter{Value: *resource.NewQuantity(int64(1+r.IntN(4)), resource.DecimalSI)}
					}
				}
				if len(use.Counters) > 0 {
					d.ConsumesCounters = []resourcev1.DeviceCounterConsumption{use}
				}
			}
			s.Spec.Devices = append(s.Spec.Devices, d)
		}
		out = append(out, s)
	}
	return out
}

// Claim draws a claim of the classes. What the API server's validation refuses is not drawn.
func Claim(r *rand.Rand, namespace, name string) *resourcev1.ResourceClaim {
	c := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	spec, names := &c.Spec.Devices, []string(nil)
	own := func() []resourcev1.DeviceSelector {
		if r.IntN(5) > 0 {
			return nil
		}
		return selector(pick(r, `device.capacity["a.io"].memory.compareTo(quantity("40Gi")) >= 0`, `device.attributes["a.io"].?kind.orValue("") == "y"`, `"numa" in device.attributes["b.io"]`, `device.attributes["k8s.io"].root == "r0"`, `!("kind" in device.attributes["a.io"])`))
	}
	mode := func() (resourcev1.DeviceAllocationMode, int64) {
		if r.IntN(6) == 0 {
			return resourcev1.DeviceAllocationModeAll, 0
		}
		return resourcev1.DeviceAllocationModeExactCount, int64(1 + max(0, r.IntN(4)-1))
	}
	tolerate := func() []resourcev1.DeviceToleration {
		if r.IntN(4) > 0 {
			return nil
		}
		return []resourcev1.DeviceToleration{{Key: pick(r, "", "k"), Operator: resourcev1.DeviceTolerationOpExists}, {Key: "l", Operator: resourcev1.DeviceTolerationOpEqual, Value: "v"}}
	}
	for i := range 1 + max(0, r.IntN(5)-2) {
		q := resourcev1.DeviceRequest{Name: fmt.Sprint("r", i)}
		names = append(names, q.Name)
		if r.IntN(4) > 0 {
			q.Exactly = &resourcev1.ExactDeviceRequest{DeviceClassName: pick(r, "c0", "c1", "c3", "c3", "c2"), Selectors: own(), Tolerations: tolerate()}
			q.Exactly.AllocationMode, q.Exactly.Count = mode()
			if r.IntN(8) == 0 {
				q.Exactly.AdminAccess = new(bool)
				*q.Exactly.AdminAccess = true
			}
		} else {
			for k := range 1 + r.IntN(3) {
				s := resourcev1.DeviceSubRequest{Name: fmt.Sprint("s", k), DeviceClassName: pick(r, "c0", "c1", "c3", "c3", "c2"), Selectors: own(), Tolerations: tolerate()}
				s.AllocationMode, s.Count = mode()
				q.FirstAvailable = append(q.FirstAvailable, s)
				names = append(names, q.Name+"/"+s.Name)
			}
		}
		spec.Requests = append(spec.Requests, q)
	}
	for range max(0, r.IntN(5)-2) {
		attribute := resourcev1.FullyQualifiedName(pick(r, "a.io/numa", "k8s.io/root", "a.io/kind", "b.io/numa"))
		x := resourcev1.DeviceConstraint{}
		if r.IntN(2) == 0 {
			x.Requests = []string{pick(r, names...)}
			if n := pick(r, names...); n != x.Requests[0] {
				x.Requests = append(x.Requests, n)
			}
		}
		if r.IntN(3) == 0 {
			x.DistinctAttribute = &attribute
		} else {
			x.MatchAttribute = &attribute
		}
		spec.Constraints = append(spec.Constraints, x)
	}
	return c
}
