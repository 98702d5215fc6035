package election

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sirupsen/logrus"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/wrap"
	"github.com/autoscaler-agent/autoscaler-agent/internal/testing/kubetest"
)

func testLeadership(client *fake.Clientset) *Leadership {
	log := logrus.New()
	log.SetOutput(io.Discard)
	return New(Config{Namespace: "kube-system", Name: "autoscaler-agent", Duration: 1200 * time.Millisecond, RenewDeadline: 300 * time.Millisecond, RetryPeriod: 50 * time.Millisecond},
		Deps{Identity: "me", Client: kubetest.Client(client), Log: log.WithField("service", "test"), Heard: func() {}, Writes: wrap.NewWriteAhead(nil, nil)})
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if ok() {
			return
		}
	}
	t.Fatalf("%s did not come about within 10s", what)
}

func TestLosingTheLeaseStopsActingAndComesBack(t *testing.T) {
	client := fake.NewClientset()
	var down atomic.Bool
	client.PrependReactor("*", "leases", func(clienttesting.Action) (bool, runtime.Object, error) {
		return down.Load(), nil, errors.New("connection refused")
	})
	g := testLeadership(client)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- g.Run(ctx, func() {}) }()
	may := func() bool { ok, _ := g.MayAct(); return ok }
	eventually(t, "acting", may)
	down.Store(true)
	eventually(t, "not acting", func() bool { return !may() })
	down.Store(false)
	eventually(t, "acting again", may)
	cancel()
	if err := <-done; err != nil {
		t.Errorf("a stop is no error: %v", err)
	}
}

func TestAnotherAutoscalersLease(t *testing.T) {
	g := testLeadership(fake.NewClientset())
	g.leading, g.renewed = true, time.Now().Add(time.Hour)
	holder, lasts := "cluster-autoscaler-7f", int32(15)
	lease := func(renewed time.Time) *coordinationv1.Lease {
		at := metav1.NewMicroTime(renewed)
		return &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: &lasts, RenewTime: &at}}
	}
	g.saw(lease(time.Now().Add(-time.Hour)), true)
	if ok, why := g.MayAct(); !ok {
		t.Errorf("a Lease that nobody renews stops the agent: %s", why)
	}
	g.saw(lease(time.Now()), false)
	if ok, why := g.MayAct(); ok || !strings.Contains(why, holder) || !strings.Contains(why, "stop") {
		t.Errorf("acting beside %s: %v %q", holder, ok, why)
	}
	g.saw(nil, false)
	if ok, _ := g.MayAct(); !ok {
		t.Error("the other's Lease is gone and the agent does not act")
	}
}

// TestAFrozenProcessDoesNotBelieveInItsLease: a process that was stopped for longer
// than the Lease lasts wakes up still "leading"; it must not act before it has renewed.
func TestAFrozenProcessDoesNotBelieveInItsLease(t *testing.T) {
	g := testLeadership(fake.NewClientset())
	g.started(newLeaseLock(g, func() {}))
	g.kept(time.Now())
	if ok, why := g.MayAct(); !ok {
		t.Fatalf("just renewed and not acting: %s", why)
	}
	g.kept(time.Now().Add(-g.cfg.RenewDeadline))
	if ok, why := g.MayAct(); ok || !strings.Contains(why, "last renewed") {
		t.Errorf("acting on an old Lease: %v %q", ok, why)
	}
}

// TestAStandbyThatShouldLead: an agent stands by while another one renews its Lease, and does not say
// so of a Lease that has run out and that it does not get.
func TestAStandbyThatShouldLead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &leaseStore{}
		heldBy(store, "b", time.Now())
		g, end := elect("a", store, never, func(d *Deps) { d.Loaded = make(chan struct{}) }) // it never asks
		defer end()
		time.Sleep(5 * time.Second)
		if _, why := g.MayAct(); why != "standing by: b holds Lease kube-system/autoscaler-agent" {
			t.Errorf("beside a living leader: %q", why)
		}
		time.Sleep(time.Minute)
		if _, why := g.MayAct(); !strings.HasPrefix(why, "reading the cluster; then Lease") {
			t.Errorf("beside a dead leader, and not loaded: %q", why)
		}
	})
	// An agent that may read the Lease and not write it.
	client := fake.NewClientset()
	holder, lasts, renewed := "b", int32(1), metav1.NewMicroTime(time.Now())
	if _, err := client.CoordinationV1().Leases("kube-system").Create(t.Context(), &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "autoscaler-agent"},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: &lasts, RenewTime: &renewed}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	client.PrependReactor("update", "leases", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, errors.New("rbac: not allowed")
	})
	g := testLeadership(client)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- g.Run(ctx, func() {}) }()
	eventually(t, "standing by", func() bool { _, why := g.MayAct(); return strings.HasPrefix(why, "standing by: b holds Lease") })
	eventually(t, "waiting", func() bool {
		_, why := g.MayAct()
		return strings.Contains(why, "b has not renewed it, and its time ended at ") && strings.Contains(why, "not allowed")
	})
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestStanding: a standby is hindered by nothing while another agent holds a Lease that runs, and an agent that reads the
// cluster begins; one that nobody keeps from acting and that does not act is hindered.
func TestStanding(t *testing.T) {
	loaded := make(chan struct{})
	for name, c := range map[string]struct {
		edit func(g *Leadership)
		want Standing
	}{
		"acts":                           {func(g *Leadership) { g.leading, g.renewed = true, time.Now() }, Acts},
		"a Lease that was not renewed":   {func(g *Leadership) { g.leading, g.renewed = true, time.Now().Add(-time.Hour) }, Hindered},
		"the Lease is given back":        {func(g *Leadership) { g.leading, g.renewed = true, time.Time{} }, Hindered},
		"another holds the Lease":        {func(g *Leadership) { g.holder, g.heldUntil = "b", time.Now().Add(time.Hour) }, StandsBy},
		"another's Lease has run out":    {func(g *Leadership) { g.holder, g.heldUntil = "b", time.Now().Add(-time.Hour) }, Hindered},
		"no Lease yet":                   {func(*Leadership) {}, Hindered},
		"reading the cluster":            {func(g *Leadership) { g.deps.Loaded = loaded }, Begins},
		"reading it, and it may not":     {func(g *Leadership) { g.deps.Loaded, g.err = loaded, errors.New("leases is forbidden") }, Hindered},
		"another autoscaler is at work":  {func(g *Leadership) { g.other, g.otherSeen, g.otherLasts = "ca", time.Now(), time.Hour }, Hindered},
		"and stands by beside this, too": {func(g *Leadership) { g.holder, g.heldUntil, g.deps.Loaded = "b", time.Now().Add(time.Hour), loaded }, StandsBy},
	} {
		g := testLeadership(fake.NewClientset())
		c.edit(g)
		standing, why := g.Standing()
		if may, said := g.MayAct(); standing != c.want || may != (standing == Acts) || said != why || (why == "") != may || strings.Contains(why, "0001-01-01") {
			t.Errorf("%s: standing %d, want %d; may act %t: %q and %q", name, standing, c.want, may, said, why)
		}
	}
}
