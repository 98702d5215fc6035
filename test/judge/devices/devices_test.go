// Package devices holds the allocation of devices against Kubernetes' own allocator (k8s.io/dynamic-resource-allocation): in
// drawn worlds, pod after pod, from the API objects to which devices are taken.
package devices

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	alloc "github.com/autoscaler-agent/autoscaler-agent/agent/fit/devices"
	"github.com/autoscaler-agent/autoscaler-agent/agent/observe/devices"
	"github.com/autoscaler-agent/autoscaler-agent/internal/testing/drawn"
)

// of1_36 are the gates of kube-scheduler 1.36.
var of1_36 = structured.Features{AdminAccess: true, ConsumableCapacity: true, DeviceBindingAndStatus: true, DeviceTaints: true, PartitionableDevices: true, PrioritizedList: true}

const node = "n"

// world is one node's slices, the classes, and pods that come one after the other, each with its claims.
type world struct {
	classes []*resourcev1.DeviceClass
	slices  []*resourcev1.ResourceSlice
	pods    [][]*resourcev1.ResourceClaim
}

func (w *world) List() ([]*resourcev1.DeviceClass, error) { return w.classes, nil }

func (w *world) Get(name string) (*resourcev1.DeviceClass, error) {
	for _, c := range w.classes {
		if c.Name == name {
			return c, nil
		}
	}
	return nil, fmt.Errorf("no class %s", name)
}

func pick[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }

func selector(text string) []resourcev1.DeviceSelector {
	return []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: text}}}
}

// draw draws a world. What is refused by the API server's validation is not drawn.
func draw(r *rand.Rand) *world {
	w := &world{}
	for i, text := range []string{`device.driver == "a.io"`, `device.driver == "b.io"`, `device.driver == "a.io" && device.attributes["a.io"].kind == "x"`, `true`} {
		w.classes = append(w.classes, &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("c", i)}, Spec: resourcev1.DeviceClassSpec{Selectors: selector(text)}})
	}
	for i := range 1 + r.IntN(3) {
		w.pool(r, fmt.Sprint("p", i), pick(r, "a.io", "b.io"))
	}
	for i := range 1 + r.IntN(6) {
		var claims []*resourcev1.ResourceClaim
		for k := range 1 + max(0, r.IntN(4)-2) {
			claims = append(claims, drawClaim(r, fmt.Sprint("claim", i, k)))
		}
		w.pods = append(w.pods, claims)
	}
	return w
}

func (w *world) pool(r *rand.Rand, pool, driver string) {
	name := node
	spec := resourcev1.ResourceSliceSpec{Driver: driver, NodeName: &name, Pool: resourcev1.ResourcePool{Name: pool, Generation: 1, ResourceSliceCount: int64(1 + r.IntN(2))}}
	parts, shared := int(spec.Pool.ResourceSliceCount), r.IntN(3) == 0
	if shared {
		spec.Pool.ResourceSliceCount++
		s := &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: pool + "-counters"}, Spec: spec}
		s.Spec.SharedCounters = []resourcev1.CounterSet{{Name: "set", Counters: map[string]resourcev1.Counter{"mem": {Value: *resource.NewQuantity(int64(2+r.IntN(8)), resource.DecimalSI)}, "cores": {Value: *resource.NewQuantity(int64(2+r.IntN(8)), resource.DecimalSI)}}}}
		w.slices = append(w.slices, s)
	}
	if r.IntN(20) == 0 {
		spec.Pool.ResourceSliceCount++ // one has not come yet
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
		w.slices = append(w.slices, s)
	}
}

func drawClaim(r *rand.Rand, name string) *resourcev1.ResourceClaim {
	c := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}}
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

// result counts what a world has shown.
type result struct{ judged, fits int }

// play lets the pods come; both sides know what the upstream allocator has given to those before.
func play(t *testing.T, w *world, programs *cel.Cache) (out result) {
	t.Helper()
	x := devices.NewIndex()
	x.SetRead(true)
	for _, c := range w.classes {
		x.PutClass(c)
	}
	for _, s := range w.slices {
		x.PutSlice(s)
	}
	taken := sets.New[structured.DeviceID]()
	for i, claims := range w.pods {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: fmt.Sprint("pod", i)}}
		for _, c := range claims {
			x.PutClaim(c)
			p.Spec.ResourceClaims = append(p.Spec.ResourceClaims, corev1.PodResourceClaim{Name: c.Name, ResourceClaimName: &c.Name})
		}
		var class cluster.PodClass
		x.SetPod(cluster.PodKey("ns/"+p.Name), devices.PodUse(p), &class)
		if len(class.NotUnderstood) > 0 {
			t.Fatalf("not understood: %v", class.NotUnderstood)
		}
		a, has := alloc.New(), x.OnNode(node)
		demand := a.Demand(class.Claims)
		from := a.Has(has)
		to := a.Take(from, demand)

		upstream, err := structured.NewAllocator(context.Background(), of1_36, structured.AllocatedState{AllocatedDevices: taken, AllocatedSharedDeviceIDs: sets.New[structured.SharedDeviceID](), AggregatedCapacity: structured.NewConsumedCapacityCollection()}, w, w.slices, programs)
		if err != nil {
			t.Fatal(err)
		}
		given, err := upstream.Allocate(context.Background(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}, claims)
		fits := err == nil && len(given) == len(claims)
		out.judged++
		if fits != (to >= 0) {
			t.Fatalf("pod %d: upstream fits %v (%v), here %v\n%s", i, fits, err, to >= 0, describe(has, class.Claims))
		}
		if !fits {
			continue
		}
		out.fits++
		want := map[string]bool{}
		for k := range given {
			claims[k] = claims[k].DeepCopy()
			claims[k].Status.Allocation = &given[k]
			x.PutClaim(claims[k])
			for _, d := range given[k].Devices.Results {
				if d.AdminAccess == nil {
					taken.Insert(structured.MakeDeviceID(d.Driver, d.Pool, d.Device))
					want[d.Pool+"/"+d.Device] = true
				}
			}
		}
		before, _ := a.Free(from)
		after, _ := a.Free(to)
		if before-after != len(want) {
			t.Fatalf("pod %d: upstream takes %v, here %d devices\n%s", i, want, before-after, describe(has, class.Claims))
		}
		if now := a.Has(x.OnNode(node)); now != to {
			t.Fatalf("pod %d: upstream takes other devices: %v\n%s", i, want, describe(has, class.Claims))
		}
	}
	return out
}

func describe(d *cluster.Devices, claims []cluster.DeviceClaim) string {
	text := fmt.Sprintf("unready %q, counters %v\n", d.Unready, d.Counters)
	for _, x := range d.Devices {
		text += fmt.Sprintf("%+v\n", x)
	}
	return text + fmt.Sprintf("claims %+v", claims)
}

// TestAllocatesAsUpstream: the same fit or no fit, and the same devices, in drawn worlds.
func TestAllocatesAsUpstream(t *testing.T) {
	seed, programs := drawn.Seed(t), cel.NewCache(100, cel.Features{EnableConsumableCapacity: true})
	sum := result{}
	for i := range 300 * drawn.Times(t) {
		r := rand.New(rand.NewPCG(seed, uint64(i)))
		w := draw(r)
		ok := t.Run(fmt.Sprint("world ", i), func(t *testing.T) {
			got := play(t, w, programs)
			sum.judged, sum.fits = sum.judged+got.judged, sum.fits+got.fits
		})
		if !ok {
			break
		}
	}
	t.Logf("%d judgements, %d fit", sum.judged, sum.fits)
	if sum.fits < sum.judged/10 || sum.fits > sum.judged*9/10 {
		t.Errorf("the worlds show nothing: %d of %d fit", sum.fits, sum.judged)
	}
}

// FuzzAllocate draws the world from what the fuzzer finds.
func FuzzAllocate(f *testing.F) {
	programs := cel.NewCache(100, cel.Features{EnableConsumableCapacity: true})
	f.Add([]byte("seed"))
	f.Fuzz(func(t *testing.T, in []byte) {
		var key [32]byte
		copy(key[:], in)
		w := draw(rand.New(rand.NewChaCha8(key)))
		if len(in) > 40 { // the order of slices means nothing
			n := int(binary.LittleEndian.Uint32(in[36:]))
			slices.SortFunc(w.slices, func(a, b *resourcev1.ResourceSlice) int { return (len(a.Name)*7+n)%5 - (len(b.Name)*7+n)%5 })
		}
		play(t, w, programs)
	})
}
