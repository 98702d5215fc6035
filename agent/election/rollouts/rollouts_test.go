package rollouts

import (
	"context"
	"errors"
	"io"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sirupsen/logrus"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/election"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/wrap"
	"github.com/autoscaler-agent/autoscaler-agent/internal/kube"
	"github.com/autoscaler-agent/autoscaler-agent/internal/testing/kubetest"
)

// oneLease is an API server with one Lease and resource versions.
func oneLease() *kube.Client {
	c, kind := fake.NewClientset(), schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}
	var mu sync.Mutex
	var lease *coordinationv1.Lease
	version := 0
	c.PrependReactor("*", "leases", func(a clienttesting.Action) (bool, runtime.Object, error) {
		mu.Lock()
		defer mu.Unlock()
		switch a := a.(type) {
		case clienttesting.GetAction:
			if lease == nil {
				return true, nil, apierrors.NewNotFound(kind, a.GetName())
			}
			return true, lease.DeepCopy(), nil
		case clienttesting.UpdateAction: // CreateAction has the same methods
			l := a.GetObject().(*coordinationv1.Lease).DeepCopy()
			if lease != nil && (a.GetVerb() == "create" || l.ResourceVersion != lease.ResourceVersion) {
				return true, nil, apierrors.NewConflict(kind, l.Name, errors.New("it was changed"))
			}
			version++
			l.ResourceVersion = strconv.Itoa(version)
			lease = l
			return true, l.DeepCopy(), nil
		}
		return false, nil, nil
	})
	return kubetest.Client(c)
}

type noWrites struct{}

func (noWrites) Open() []wrap.Intent   { return nil }
func (noWrites) Inherit([]wrap.Intent) {}

var config = election.Config{Namespace: "kube-system", Name: "autoscaler-agent", Duration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 2 * time.Second}

// agent campaigns for the Lease until stop.
func agent(t *testing.T, client *kube.Client, name string) (s *Store, lead *election.Leadership, stop func()) {
	s = &Store{}
	log := logrus.New()
	log.SetOutput(io.Discard)
	lead = election.New(config, election.Deps{Identity: name, Client: client, Log: logrus.NewEntry(log), Heard: func() {}, Writes: noWrites{}, Notes: s.Notes, Noted: s.Noted})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- lead.Run(ctx, func() {}) }()
	return s, lead, func() { cancel(); <-done }
}

func seen(s *Store) (p decision.Policy) {
	s.Fill(&p)
	return p
}

// TestTheNextLeaderKnows: an order reaches the leader and whoever stands by, a leader that renews all the time overwrites none, and the
// next leader knows the orders and the halts before its first renewal could take them away.
func TestTheNextLeaderKnows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := oneLease()
		first, lead, stop := agent(t, client, "cp-1")
		time.Sleep(5 * time.Second)
		if may, why := lead.MayAct(); !may {
			t.Fatal(why)
		}
		second, _, stopSecond := agent(t, client, "cp-2")
		defer stopSecond()
		halt := []decision.Halt{{Group: "w", Source: "c0ffee", Why: strings.Repeat("it did not join ", 100), At: time.Now()}}
		policy := seen(first)
		if policy.Rollouts == nil {
			t.Fatal("the Lease was not read")
		}
		first.Decided(&policy, halt)
		for i := range 20 { // beside the renewals
			if err := Order(t.Context(), client, config, func(o cluster.RolloutOrders) {
				o[cluster.GroupID(strconv.Itoa(i))] = cluster.RolloutOrder{Paused: true, Since: time.Now(), Reason: "a test"}
			}); err != nil {
				t.Fatal(err)
			}
			if err := lead.Announce(t.Context()); err != nil {
				t.Errorf("the order makes the leader fail: %v", err)
			}
			time.Sleep(700 * time.Millisecond)
		}
		time.Sleep(5 * time.Second)
		for name, s := range map[string]*Store{"leader": first, "standby": second} {
			if p := seen(s); len(p.Rollouts) != 20 || len(p.Halts) != 1 || len(p.Halts[0].Why) > maxWhy+3 {
				t.Errorf("%s: %d orders, halts %v", name, len(p.Rollouts), p.Halts)
			}
		}
		// It decides for the first time after it has led for a while.
		var early decision.Policy
		second.Decided(&early, nil) // a round before the Lease was read says nothing
		led := seen(second)
		second.Decided(&led, []decision.Halt{{Group: "w", Source: "f00d", Why: "when it led"}})
		second.Decided(nil, nil) // and what it left when it led is out of date
		stop()
		time.Sleep(30 * time.Second)
		after := seen(second)
		if len(after.Rollouts) != 20 || len(after.Halts) != 1 || after.Halts[0].Source != "c0ffee" {
			t.Errorf("after the change of leader: %d orders, halts %v", len(after.Rollouts), after.Halts)
		}
		second.Decided(&after, nil) // another source
		if err := Order(t.Context(), client, config, func(o cluster.RolloutOrders) { clear(o) }); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second)
		if orders, halts, err := Read(t.Context(), client, config); err != nil || len(orders)+len(halts) != 0 {
			t.Errorf("%v %v %v", orders, halts, err)
		}
	})
}

// TestUnreadable: an annotation that is no JSON pauses all rollouts, and says so; resuming writes it anew.
func TestUnreadable(t *testing.T) {
	for _, name := range []string{AnnotationOrders, AnnotationHalts} {
		for _, text := range []string{"{", "null", "[]", `"x"`, "7"} {
			orders, halts := Parse(map[string]string{name: text})
			if name == AnnotationHalts && (text == "null" || text == "[]") {
				if len(orders)+len(halts) != 0 {
					t.Errorf("%s=%s: %v %v", name, text, orders, halts)
				}
				continue
			}
			if o, _, paused := orders.Pause("w"); !paused || !strings.Contains(o.Reason, name) {
				t.Errorf("%s=%s: %v", name, text, orders)
			}
		}
	}
}

// TestTimesOfOthers: whoever may write the Lease can end neither a halt nor an order's age by a time that never comes.
func TestTimesOfOthers(t *testing.T) {
	orders, halts := Parse(map[string]string{
		AnnotationOrders: `{"far":{"paused":true,"since":"9999-12-31T23:59:59Z"},"past":{"paused":true,"since":"0001-01-02T00:00:00Z"}}`,
		AnnotationHalts:  `[{"group":"far","at":"9999-12-31T23:59:59Z"},{"group":"past","at":"2026-01-02T00:00:00Z"}]`,
	})
	soon := time.Now().Add(time.Second)
	if at := halts[0].At; len(halts) != 2 || at.After(soon) || !halts[1].At.Equal(time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)) {
		t.Errorf("halts %+v", halts)
	}
	if since := orders["far"].Since; len(orders) != 2 || !orders["far"].Paused || since.After(soon) || !orders["past"].Since.Equal(time.Date(1, 1, 2, 0, 0, 0, 0, time.UTC)) {
		t.Errorf("orders %+v", orders)
	}
}
