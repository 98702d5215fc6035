package capacity

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
)

// The classes, conditions and reasons of Cluster Autoscaler, as Kueue reads them.
const (
	checkCapacity = "check-capacity.autoscaling.x-k8s.io"
	atomicScaleUp = "best-effort-atomic-scale-up.autoscaling.x-k8s.io"

	accepted    = "Accepted"
	provisioned = "Provisioned"
	failed      = "Failed"
	expired     = "BookingExpired"
	revoked     = "CapacityRevoked"
)

const (
	// booked is how long room is kept for a request that is provisioned (Cluster Autoscaler's time).
	booked = 10 * time.Minute
	// judgeAgain is the time between two judgements of a request that has found no room.
	judgeAgain = 10 * time.Second
)

// request is a ProvisioningRequest.
type request struct {
	Metadata metav1.ObjectMeta `json:"metadata"`
	Spec     struct {
		PodSets []struct {
			PodTemplateRef localRef `json:"podTemplateRef"`
			Count          int32    `json:"count"`
		} `json:"podSets"`
		ProvisioningClassName string            `json:"provisioningClassName"`
		Parameters            map[string]string `json:"parameters"`
	} `json:"spec"`
	Status struct {
		Conditions []metav1.Condition `json:"conditions"`
	} `json:"status"`
}

func (r *request) key() string { return r.Metadata.Namespace + "/" + r.Metadata.Name }

// order is by age, and by name among equals.
func (r *request) order() (string, bool) {
	known := r.Spec.ProvisioningClassName == checkCapacity || r.Spec.ProvisioningClassName == atomicScaleUp
	return r.Metadata.CreationTimestamp.UTC().Format(time.RFC3339) + " " + r.key(), known && !r.is(failed) && !r.is(expired) && !r.is(revoked)
}

func (r *request) is(condition string) bool {
	return meta.IsStatusConditionTrue(r.Status.Conditions, condition)
}

// validUntil is when an open request fails; zero: never.
func (r *request) validUntil() time.Time {
	seconds, err := strconv.ParseUint(r.Spec.Parameters["ValidUntilSeconds"], 10, 31)
	if err != nil || r.is(provisioned) {
		return time.Time{}
	}
	return r.Metadata.CreationTimestamp.Add(time.Duration(seconds) * time.Second)
}

// Ask is a request that is to be judged: whether the cluster has room for all its pieces, with machines that may be bought where it Grows.
type Ask struct {
	Name   string // of its headroom: "provisioningrequest NAMESPACE/NAME"
	Rooms  []cluster.Headroom
	Grows  bool
	id     types.UID
	unread bool // the answer of the API server is on its way
	judged time.Time
	found  bool
	why    string
}

// Requests follows the ProvisioningRequests of all namespaces. A request is judged whole by a decision of its own, which is not carried out; only where all
// of it has room is its room asked for.
type Requests struct {
	follower
	mu       sync.Mutex
	asks     []*Ask                           // that are open, the oldest first
	kept     map[types.UID][]cluster.Headroom // of requests that are provisioned, for their time
	consumed map[string]int                   // pods that say that they are of a request, by its key
	decided  map[string]string                // what the last round could not keep free; nil: none was since the last Ask was found
}

// NewRequests makes the follower of requests; Run starts it.
func NewRequests(d Deps) *Requests {
	w := &Requests{follower: newFollower(d, "provisioningrequests")}
	w.read, w.forget = w.readAll, func() { w.set(nil, nil) }
	return w
}

// set replaces the open requests by those that were read, and returns their judgements by UID. A request whose objects are not read yet stays as it was.
// decided tells that a round has decided since a request was found to have room. A round is asked for where requests came or went, or one is to be judged.
func (w *Requests) set(asks []*Ask, kept map[types.UID][]cluster.Headroom) (judged map[types.UID]Ask, decided bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	judged = map[types.UID]Ask{}
	changed, next := len(kept) != len(w.kept), []*Ask(nil)
	for _, a := range asks {
		old := w.find(a.id)
		switch {
		case old != nil && a.unread:
			a = old
		case old != nil:
			a.judged, a.found, a.why = old.judged, old.found, old.why
		case a.unread:
			continue
		}
		next, judged[a.id], changed = append(next, a), *a, changed || a.due(time.Now())
	}
	changed = changed || !slices.EqualFunc(next, w.asks, func(a, b *Ask) bool { return a.id == b.id })
	w.asks, w.kept = next, kept
	if changed {
		w.Wake()
	}
	return judged, w.decided != nil
}

func (w *Requests) find(id types.UID) *Ask {
	if i := slices.IndexFunc(w.asks, func(a *Ask) bool { return a.id == id }); i >= 0 {
		return w.asks[i]
	}
	return nil
}

// due tells a request that is to be judged at now.
func (a *Ask) due(now time.Time) bool { return !a.found && now.Sub(a.judged) >= judgeAgain }

// Headroom is the room of the requests that are found whole, less the pods that have come for it.
func (w *Requests) Headroom() (out []cluster.Headroom) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, a := range w.asks {
		if a.found {
			out = append(out, remaining(a.Rooms, w.consumed)...)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(w.kept)) {
		out = append(out, remaining(w.kept[id], w.consumed)...)
	}
	return out
}

// remaining takes the pods that have come off the pieces, in their order.
func remaining(rooms []cluster.Headroom, consumed map[string]int) (out []cluster.Headroom) {
	come := 0
	if len(rooms) > 0 {
		come = consumed[rooms[0].Name[len(namePrefix):]]
	}
	for _, h := range rooms {
		n := min(come, h.Count)
		come, h.Rank = come-n, rankFound
		if h.Count -= n; h.Count > 0 {
			out = append(out, h)
		}
	}
	return out
}

const namePrefix = "provisioningrequest "

// Room that buffers and operators want kept free is for what comes: a request has it before them, and one that is found before one that is judged.
const (
	rankJudged = 1
	rankFound  = 2
)

// Look counts the pods that have come for a request. It costs all pods where a request keeps room, and nothing elsewhere.
func (w *Requests) Look(s *cluster.Snapshot) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.consumed = nil
	if len(w.asks)+len(w.kept) == 0 {
		return
	}
	w.consumed = map[string]int{}
	for p := range s.AllPods() {
		if p.Wishes != nil && p.Wishes.Request != "" {
			namespace, _, _ := strings.Cut(string(p.Key), "/")
			w.consumed[namespace+"/"+p.Wishes.Request]++
		}
	}
}

// Open is the oldest request that is to be judged at now; false: none is.
func (w *Requests) Open(now time.Time) (Ask, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, a := range w.asks {
		if a.due(now) {
			return *a, true
		}
	}
	return Ask{}, false
}

// Judged hands over whether a request has room, by what a decision held.
func (w *Requests) Judged(a Ask, now time.Time, held []decision.Held) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if mine := w.find(a.id); mine != nil {
		why, lacks := lacking(held)[a.Name]
		mine.judged, mine.found, mine.why = now, !lacks, why
		w.decided = nil
		w.look()
		w.Wake()
	}
}

// Decided hands over what the last round could not keep free. A request that was found and is lacking now is judged anew.
func (w *Requests) Decided(held []decision.Held) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.asks) == 0 {
		return
	}
	lacks := lacking(held)
	if w.decided != nil && maps.Equal(lacks, w.decided) {
		return
	}
	w.decided = lacks
	for _, a := range w.asks {
		if why, lacking := lacks[a.Name]; lacking {
			a.found, a.why = false, why
		}
	}
	w.look()
}

func (w *Requests) readAll(ctx context.Context, kind schema.GroupVersionResource, objects []any) {
	list := ordered(objects, (*request).order)
	list = list[:min(len(list), most)]
	now := time.Now()
	asks, kept, errs := []*Ask(nil), map[types.UID][]cluster.Headroom{}, make([]error, len(list))
	for i, r := range list {
		var a Ask
		a, errs[i] = w.ask(ctx, r)
		a.unread = errs[i] == errNotRead
		switch {
		case r.is(provisioned):
			if errs[i] == nil && r.bookedAt().Add(booked).After(now) {
				kept[a.id] = a.Rooms
			}
		case errs[i] == nil || a.unread:
			asks = append(asks, &a)
		}
	}
	judged, decided := w.set(asks, kept)
	for i, r := range list {
		if may, _ := w.MayAct(); !may || ctx.Err() != nil {
			return
		}
		next, a := slices.Clone(r.Status.Conditions), judged[r.Metadata.UID]
		if errs[i] != errNotRead {
			r.step(&next, &a, errs[i], now, decided)
		}
		if !sameConditions(next, r.Status.Conditions) {
			w.patch(ctx, kind, &r.Metadata, map[string]any{"conditions": next})
		}
	}
}

func (r *request) bookedAt() time.Time {
	if c := meta.FindStatusCondition(r.Status.Conditions, provisioned); c != nil {
		return c.LastTransitionTime.Time
	}
	return time.Time{}
}

// ask is what the request asks for.
func (w *Requests) ask(ctx context.Context, r *request) (Ask, error) {
	a := Ask{Name: namePrefix + r.key(), Grows: r.Spec.ProvisioningClassName == atomicScaleUp, id: r.Metadata.UID}
	for _, set := range r.Spec.PodSets {
		object, _, err := w.source(ctx, r.Metadata.Namespace, &set.PodTemplateRef, nil)
		if err != nil {
			return a, err
		}
		room, err := w.room(a.Name, r.Metadata.Namespace, object.template, int(set.Count))
		if err != nil {
			return a, fmt.Errorf("PodTemplate %s: %w", set.PodTemplateRef.Name, err)
		}
		if set.Count > cluster.MostPieces {
			return a, fmt.Errorf("PodTemplate %s: room for %d pods is not looked for: ask for up to %d in one entry of spec.podSets", set.PodTemplateRef.Name, set.Count, cluster.MostPieces)
		}
		room.Rank = rankJudged
		a.Rooms = append(a.Rooms, room)
	}
	return a, nil
}

// step changes the conditions by what is known. decided: a round has decided since the request was found to have room.
func (r *request) step(list *[]metav1.Condition, a *Ask, err error, now time.Time, decided bool) {
	set := func(kind string, yes bool, reason, message string) {
		c := metav1.Condition{Type: kind, Status: metav1.ConditionFalse, Reason: reason, Message: message, ObservedGeneration: r.Metadata.Generation, LastTransitionTime: metav1.NewTime(now)}
		if yes {
			c.Status = metav1.ConditionTrue
		}
		meta.SetStatusCondition(list, c)
	}
	if r.is(provisioned) {
		if !r.bookedAt().Add(booked).After(now) {
			set(expired, true, "CapacityReservationTimeExpired", "the room was kept for "+booked.String())
		}
		return
	}
	if until := r.validUntil(); !until.IsZero() && now.After(until) {
		set(failed, true, "Expired", strings.TrimSuffix("ValidUntilSeconds have passed: "+a.why, ": ")) // all that Kueue shows in the end
		return
	}
	set(accepted, true, "Accepted", "the agent looks for room")
	switch {
	case err != nil:
		set(provisioned, false, "FailedToCheckCapacity", err.Error())
	case a.found && !a.Grows:
		set(provisioned, true, "CapacityIsFound", "the nodes have room")
	case a.found && decided:
		set(provisioned, true, "CapacityIsProvisioned", "the nodes have room, or machines are on their way")
	case a.found || a.judged.IsZero():
	case r.Spec.Parameters["noRetry"] == "true":
		set(failed, true, "CapacityIsNotFound", a.why)
	default:
		set(provisioned, false, "CapacityIsNotFound", a.why)
	}
}

// sameConditions compares what is written: times have whole seconds there.
func sameConditions(a, b []metav1.Condition) bool {
	return slices.EqualFunc(a, b, func(x, y metav1.Condition) bool {
		x.LastTransitionTime, y.LastTransitionTime = metav1.Time{}, metav1.Time{}
		return x == y
	})
}
