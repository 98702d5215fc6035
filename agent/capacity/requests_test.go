package capacity

import (
	"errors"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
)

var created = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)

func newRequest(class string, parameters map[string]string, conditions ...metav1.Condition) *request {
	r := &request{Metadata: metav1.ObjectMeta{Namespace: "jobs", Name: "train", UID: "u1", CreationTimestamp: metav1.NewTime(created)}}
	r.Spec.ProvisioningClassName, r.Spec.Parameters, r.Status.Conditions = class, parameters, conditions
	return r
}

// TestRequestSteps has a row for each condition that a request comes to have.
func TestRequestSteps(t *testing.T) {
	done := metav1.Condition{Type: provisioned, Status: metav1.ConditionTrue, LastTransitionTime: metav1.NewTime(created)}
	limited := map[string]string{"ValidUntilSeconds": "60"}
	for _, c := range []struct {
		name    string
		r       *request
		ask     Ask
		err     error
		after   time.Duration
		decided bool
		want    map[string]string // condition: status and reason; "": it is not there
	}{
		{"not judged", newRequest(checkCapacity, nil), Ask{}, nil, 0, true, map[string]string{accepted: "True Accepted", provisioned: ""}},
		{"no template", newRequest(checkCapacity, nil), Ask{}, errors.New("there is none"), 0, true, map[string]string{provisioned: "False FailedToCheckCapacity"}},
		{"room on nodes", newRequest(checkCapacity, nil), Ask{found: true, judged: created}, nil, 0, false, map[string]string{provisioned: "True CapacityIsFound"}},
		{"no room", newRequest(checkCapacity, nil), Ask{judged: created}, nil, 0, true, map[string]string{provisioned: "False CapacityIsNotFound", failed: ""}},
		{"no room and no retry", newRequest(checkCapacity, map[string]string{"noRetry": "true"}), Ask{judged: created}, nil, 0, true, map[string]string{failed: "True CapacityIsNotFound"}},
		{"found, before the round that buys", newRequest(atomicScaleUp, nil), Ask{found: true, Grows: true, judged: created}, nil, 0, false, map[string]string{provisioned: ""}},
		{"bought", newRequest(atomicScaleUp, nil), Ask{found: true, Grows: true, judged: created}, nil, 0, true, map[string]string{provisioned: "True CapacityIsProvisioned"}},
		{"in its time", newRequest(atomicScaleUp, limited), Ask{Grows: true, judged: created}, nil, 59 * time.Second, true, map[string]string{failed: ""}},
		{"out of its time", newRequest(atomicScaleUp, limited), Ask{Grows: true, judged: created}, nil, 61 * time.Second, true, map[string]string{failed: "True Expired"}},
		{"kept", newRequest(atomicScaleUp, limited, done), Ask{}, nil, 9 * time.Minute, true, map[string]string{expired: "", failed: ""}},
		{"kept long enough", newRequest(atomicScaleUp, nil, done), Ask{}, nil, 10 * time.Minute, true, map[string]string{expired: "True CapacityReservationTimeExpired"}},
	} {
		list := append([]metav1.Condition(nil), c.r.Status.Conditions...)
		c.r.step(&list, &c.ask, c.err, created.Add(c.after), c.decided)
		for kind, want := range c.want {
			got := ""
			if x := meta.FindStatusCondition(list, kind); x != nil {
				got = string(x.Status) + " " + x.Reason
			}
			if got != want {
				t.Errorf("%s: %s is %q, want %q", c.name, kind, got, want)
			}
		}
	}
}

// TestOrder: requests that have ended, and those of a class of somebody else, are not read.
func TestOrder(t *testing.T) {
	yes := metav1.ConditionTrue
	for _, c := range []struct {
		r    *request
		want bool
	}{
		{newRequest(checkCapacity, nil), true},
		{newRequest(atomicScaleUp, nil, metav1.Condition{Type: provisioned, Status: yes}), true},
		{newRequest("queued-provisioning.gke.io", nil), false},
		{newRequest(checkCapacity, nil, metav1.Condition{Type: failed, Status: yes}), false},
		{newRequest(checkCapacity, nil, metav1.Condition{Type: expired, Status: yes}), false},
		{newRequest(checkCapacity, nil, metav1.Condition{Type: revoked, Status: yes}), false},
	} {
		if _, got := c.r.order(); got != c.want {
			t.Errorf("%s %v: %v", c.r.Spec.ProvisioningClassName, c.r.Status.Conditions, got)
		}
	}
}

// TestRequestsKeepRoom: a request has no room before it is found whole, and less by each pod that has come; one that is lacking again is judged again.
func TestRequestsKeepRoom(t *testing.T) {
	w := NewRequests(Deps{Wake: func() {}})
	name := namePrefix + "jobs/train"
	rooms := []cluster.Headroom{{Name: name, Count: 3}, {Name: name, Count: 2}}
	w.set([]*Ask{{Name: name, Rooms: rooms, Grows: true, id: "u1"}}, nil)
	count := func() (n int) {
		for _, h := range w.Headroom() {
			n += h.Count
		}
		return n
	}
	if count() != 0 {
		t.Error("room before the request was judged")
	}
	ask, open := w.Open(created)
	if !open {
		t.Fatal("nothing to judge")
	}
	w.Judged(ask, created, []decision.Held{{Kind: "headroom", Name: name, Why: "1 of 5 pieces have no room"}})
	if _, open := w.Open(created.Add(judgeAgain - 1)); open || count() != 0 {
		t.Error("judged again at once, or room without a whole request")
	}
	ask, _ = w.Open(created.Add(judgeAgain))
	w.Judged(ask, created.Add(judgeAgain), nil)
	if count() != 5 {
		t.Errorf("room for %d, want 5", count())
	}
	w.Look(&cluster.Snapshot{Pods: []cluster.Pod{
		{Key: "jobs/a", Wishes: &cluster.PodWishes{Request: "train"}}, {Key: "jobs/b", Wishes: &cluster.PodWishes{Request: "train"}}, {Key: "jobs/c", Wishes: &cluster.PodWishes{Request: "train"}},
		{Key: "jobs/d", Wishes: &cluster.PodWishes{Request: "train"}}, {Key: "other/a", Wishes: &cluster.PodWishes{Request: "train"}}, {Key: "jobs/e"},
	}})
	if count() != 1 {
		t.Errorf("room for %d after four pods have come, want 1", count())
	}
	w.Decided([]decision.Held{{Kind: "headroom", Name: name, Why: "max size"}})
	if count() != 0 {
		t.Error("room is kept for a request that is not whole any more")
	}
}
