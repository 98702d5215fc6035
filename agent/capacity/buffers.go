package capacity

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/internal/resourcelist"
)

// Buffers follows the CapacityBuffers of all namespaces.
type Buffers struct {
	follower
	mu       sync.Mutex
	headroom []cluster.Headroom
	lacks    map[string]string // what the last round could not keep free, by the name of the headroom
	decided  bool
}

// NewBuffers makes the follower of buffers; Run starts it.
func NewBuffers(d Deps) *Buffers {
	w := &Buffers{follower: newFollower(d, "capacitybuffers")}
	w.read, w.forget = w.readAll, func() { w.set(nil) }
	return w
}

// Headroom is the room that the buffers ask for now.
func (w *Buffers) Headroom() []cluster.Headroom {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.headroom
}

// Decided hands over what the last round could not keep free.
func (w *Buffers) Decided(held []decision.Held) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.headroom) == 0 && !w.decided {
		return
	}
	if lacks := lacking(held); !w.decided || !maps.Equal(lacks, w.lacks) {
		w.lacks, w.decided = lacks, true
		w.look()
	}
}

// lacking is what a round could not keep free, by the name of the headroom.
func lacking(held []decision.Held) map[string]string {
	out := map[string]string{}
	for i := range held {
		if h := &held[i]; h.Kind == "headroom" {
			out[h.Name] = h.Why
		}
	}
	return out
}

func (w *Buffers) set(list []cluster.Headroom) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !reflect.DeepEqual(list, w.headroom) {
		w.headroom, w.decided = list, false
		w.Wake()
	}
}

// readAll makes the headroom of the buffers, and writes what became of each.
func (w *Buffers) readAll(ctx context.Context, kind schema.GroupVersionResource, objects []any) {
	list := ordered(objects, func(b *buffer) (string, bool) { return b.key(), b.ours() })
	var rooms []cluster.Headroom
	states := make([]state, len(list))
	for i, b := range list {
		if i >= most {
			states[i].err = fmt.Errorf("the agent reads %d CapacityBuffers, the first by namespace and name: delete some", most)
			continue
		}
		states[i] = w.state(ctx, b)
		if states[i].err == nil {
			rooms = append(rooms, states[i].room)
		}
	}
	w.set(rooms)
	w.write(ctx, kind, list, states)
}

// state is what a buffer asks for, and what it is made of; err says why that is not known.
type state struct {
	room       cluster.Headroom
	template   string // name of the PodTemplate
	generation int64  // of the PodTemplate
	err        error
}

func (w *Buffers) state(ctx context.Context, b *buffer) (s state) {
	object, replicas, err := w.source(ctx, b.Metadata.Namespace, b.Spec.PodTemplateRef, b.Spec.ScalableRef)
	if err != nil {
		return state{err: err}
	}
	if b.Spec.PodTemplateRef != nil {
		s.template, s.generation = b.Spec.PodTemplateRef.Name, object.generation
	}
	if s.room, s.err = w.room(b.key(), b.Metadata.Namespace, object.template, 0); s.err != nil {
		return s
	}
	count, err := b.Spec.count(s.room.Piece.Requests, replicas)
	s.room.Count, s.err = int(count), err
	return s
}

// The conditions of Cluster Autoscaler and Karpenter, with Cluster Autoscaler's reasons.
const (
	readyForProvisioning = "ReadyForProvisioning"
	provisioning         = "Provisioning"
)

// active is the one strategy that is understood, and the default.
const active = "buffer.x-k8s.io/active-capacity"

// buffer is a CapacityBuffer; its versions v1alpha1, v1beta1 and v1 have these fields in common.
type buffer struct {
	Metadata metav1.ObjectMeta `json:"metadata"`
	Spec     spec              `json:"spec"`
	Status   status            `json:"status"`
}

type spec struct {
	ProvisioningStrategy string              `json:"provisioningStrategy"`
	PodTemplateRef       *localRef           `json:"podTemplateRef"`
	ScalableRef          *scalable           `json:"scalableRef"`
	Replicas             *int32              `json:"replicas"`
	Percentage           *int32              `json:"percentage"`
	Limits               corev1.ResourceList `json:"limits"`
}

type scalable struct{ APIGroup, Kind, Name string }

type status struct {
	PodTemplateRef        *localRef          `json:"podTemplateRef,omitempty"`
	Replicas              *int32             `json:"replicas,omitempty"`
	PodTemplateGeneration *int64             `json:"podTemplateGeneration,omitempty"`
	ProvisioningStrategy  string             `json:"provisioningStrategy,omitempty"`
	Conditions            []metav1.Condition `json:"conditions,omitempty"`
}

type localRef struct {
	Name string `json:"name"`
}

// ours says whether the buffer is of the strategy that is understood.
func (b *buffer) ours() bool { return cmp.Or(b.Spec.ProvisioningStrategy, active) == active }

func (b *buffer) key() string { return b.Metadata.Namespace + "/" + b.Metadata.Name }

// count is how many pods the buffer keeps room for, each with these requests; replicas is the size of the referenced controller.
func (s *spec) count(requests cluster.Resources, replicas *int32) (int64, error) {
	least := int64(math.MaxInt64)
	if s.Replicas != nil {
		least = min(least, int64(*s.Replicas))
	}
	if s.Percentage != nil && replicas != nil {
		least = min(least, (int64(*s.Percentage)*int64(*replicas)+99)/100)
	}
	if s.Limits != nil {
		n, ok := within(s.Limits, requests)
		if !ok {
			return 0, fmt.Errorf("spec.limits names no resource that the pod template requests: name one, or set spec.replicas")
		}
		least = min(least, n)
	}
	if least == math.MaxInt64 {
		return 0, fmt.Errorf("nothing says how many pods the buffer is for: set spec.replicas, spec.limits, or spec.percentage with scalableRef")
	}
	return max(least, 0), nil
}

// within is how many pods the limits have room for; false: they limit nothing that a pod requests.
func within(limits corev1.ResourceList, requests cluster.Resources) (least int64, ok bool) {
	most := resourcelist.Resources(limits)
	least = math.MaxInt64
	take := func(most, one int64) {
		if one > 0 {
			least, ok = min(least, max(most, 0)/one), true
		}
	}
	for name := range limits {
		switch name {
		case corev1.ResourceCPU:
			take(most.MilliCPU, requests.MilliCPU)
		case corev1.ResourceMemory:
			take(most.Memory, requests.Memory)
		case corev1.ResourceEphemeralStorage:
			take(most.EphemeralStorage, requests.EphemeralStorage)
		case corev1.ResourcePods:
			take(most.Pods, requests.Pods)
		default:
			take(most.Extended[string(name)], requests.Extended[string(name)])
		}
	}
	return least, ok
}

// write writes the status of each buffer whose status is another by now.
func (w *Buffers) write(ctx context.Context, kind schema.GroupVersionResource, list []*buffer, states []state) {
	w.mu.Lock()
	lacks, decided := w.lacks, w.decided
	w.mu.Unlock()
	for i, b := range list {
		if may, _ := w.MayAct(); !may || ctx.Err() != nil {
			return
		}
		if states[i].err == errNotRead {
			continue
		}
		lack, lacking := lacks[b.key()]
		next := b.next(&states[i], decided, lacking, lack)
		if reflect.DeepEqual(next, b.Status) {
			continue
		}
		w.patch(ctx, kind, &b.Metadata, map[string]any{"podTemplateRef": next.PodTemplateRef, "podTemplateGeneration": next.PodTemplateGeneration,
			"replicas": next.Replicas, "provisioningStrategy": next.ProvisioningStrategy, "conditions": next.Conditions}) // null takes a field away
	}
}

// next is the status that the buffer is to have. Conditions of others stay.
func (b *buffer) next(s *state, decided, lacking bool, lack string) status {
	out := status{ProvisioningStrategy: cmp.Or(b.Spec.ProvisioningStrategy, active), Conditions: slices.Clone(b.Status.Conditions)}
	set := func(kind, reason, message string, yes bool) {
		c := metav1.Condition{Type: kind, Status: metav1.ConditionFalse, Reason: reason, Message: message, ObservedGeneration: b.Metadata.Generation}
		if yes {
			c.Status = metav1.ConditionTrue
		}
		meta.SetStatusCondition(&out.Conditions, c)
	}
	if s.template != "" {
		out.PodTemplateRef, out.PodTemplateGeneration = &localRef{s.template}, &s.generation
	}
	if s.err != nil {
		set(readyForProvisioning, "error", s.err.Error(), false)
		meta.RemoveStatusCondition(&out.Conditions, provisioning)
		return out
	}
	count := int32(s.room.Count)
	out.Replicas = &count
	ready := "ready"
	if count == 0 {
		ready = "the buffer keeps room for no pod: spec.replicas, the percentage of the controller's size or what spec.limits have room for is 0"
	}
	set(readyForProvisioning, "AttributesSetSuccessfully", ready, true)
	switch {
	case decided && lacking:
		set(provisioning, "NoRoom", lack, false)
	case decided:
		set(provisioning, "RoomKeptFree", "the nodes have room for the pods of the buffer, or machines for them are coming", true)
	}
	return out
}
