package devices

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
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

// patience is for how long kube-scheduler filters a node with claims by default.
const patience = 10 * time.Second

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

// draw draws a world.
func draw(r *rand.Rand) *world {
	w := &world{classes: Classes()}
	for i := range 1 + r.IntN(3) {
		w.slices = append(w.slices, Pool(r, node, fmt.Sprint("p", i), pick(r, "a.io", "b.io"))...)
	}
	for i := range 1 + r.IntN(6) {
		var claims []*resourcev1.ResourceClaim
		for k := range 1 + max(0, r.IntN(4)-2) {
			claims = append(claims, Claim(r, "ns", fmt.Sprint("claim", i, k)))
		}
		w.pods = append(w.pods, claims)
	}
	return w
}

// result counts what a world has shown.
type result struct{ judged, fits int }

// play lets the pods come; both sides know what the upstream allocator has given to those before.
func play(t *testing.T, w *world, programs *cel.Cache) (out result) {
	t.Helper()
	x := devices.NewIndex()
	x.SetUnread("")
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
		to := a.Take(a.Has(has, nil), demand)

		upstream, err := structured.NewAllocator(context.Background(), of1_36, structured.AllocatedState{AllocatedDevices: taken, AllocatedSharedDeviceIDs: sets.New[structured.SharedDeviceID](), AggregatedCapacity: structured.NewConsumedCapacityCollection()}, w, w.slices, programs)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		given, err := upstream.Allocate(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}, claims)
		cancel()
		if errors.Is(err, context.DeadlineExceeded) {
			return out // its search has no bound but time
		}
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
		if now := a.Has(x.OnNode(node), nil); now != to {
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
