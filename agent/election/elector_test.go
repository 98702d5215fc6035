package election

import (
	"context"
	"io"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sirupsen/logrus"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/wrap"
	"github.com/autoscaler-agent/autoscaler-agent/internal/testing/kubetest"
)

// elect starts the campaign of one agent on the store, until the returned function is
// called.
func elect(name string, store *leaseStore, cut func() bool, change ...func(*Deps)) (*Leadership, func()) {
	log := logrus.New()
	log.SetOutput(io.Discard)
	deps := Deps{Identity: name, Client: kubetest.Client(store.client(cut)), Log: log.WithField("service", "lease"), Heard: func() {}, Writes: wrap.NewWriteAhead(nil, nil)}
	for _, c := range change {
		c(&deps)
	}
	g := New(Config{Namespace: "kube-system", Name: "autoscaler-agent", Duration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 2 * time.Second}, deps)
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); _ = g.Run(ctx, func() {}) }()
	return g, func() { stop(); <-done }
}

func never() bool { return false }

func may(g *Leadership) bool { ok, _ := g.MayAct(); return ok }

// heldBy puts a Lease into the store that another agent renewed at a time by its own clock.
func heldBy(store *leaseStore, holder string, stamp time.Time) {
	store.mu.Lock()
	defer store.mu.Unlock()
	lasts, at := int32(15), metav1.NewMicroTime(stamp)
	store.lease = &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "autoscaler-agent", ResourceVersion: "0"},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: &lasts, RenewTime: &at, AcquireTime: &at, LeaseTransitions: new(int32(4))}}
}

// TestTwoAgentsOfOneName: of two leaders with one name (a copied agent.env) one acts, and the other says why it does not; the process
// that is started again takes its own Lease back at once; and when it has gone the other acts.
func TestTwoAgentsOfOneName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &leaseStore{}
		is := func(instance string) func(*Deps) { return func(d *Deps) { d.Instance = instance } }
		var killed atomic.Bool
		first, stop := elect("cp", store, killed.Load, is("1a"))
		time.Sleep(time.Second)
		second, stopSecond := elect("cp", store, never, is("2b"))
		defer stopSecond()
		for at := range 300 {
			time.Sleep(time.Second)
			if !may(first) || may(second) {
				t.Fatalf("after %d s: the first may %v, the second %v", at, may(first), may(second))
			}
		}
		if standing, why := second.Standing(); standing != Hindered || !strings.Contains(why, "has this one's name: cp_1a") || !strings.Contains(why, "AUTOSCALER_NODE_NAME") {
			t.Errorf("the second: %v, %s", standing, why)
		}
		killed.Store(true) // it gives nothing back
		stop()
		again, stopAgain := elect("cp", store, never, is("1a"))
		time.Sleep(100 * time.Millisecond)
		if !may(again) || may(second) {
			t.Errorf("the first process again may %v, the second %v", may(again), may(second))
		}
		stopAgain()
		time.Sleep(5 * time.Second)
		if !may(second) {
			_, why := second.MayAct()
			t.Errorf("the second does not act when the first has gone: %s", why)
		}
	})
}

// now is the Lease as it stands; nil: there is none.
func (s *leaseStore) now() *coordinationv1.Lease {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lease.DeepCopy()
}

// written is how many writes were accepted.
func (s *leaseStore) written() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.updates
}

// TestFirstLease: without a Lease it is made, with what client-go's election reads of it.
func TestFirstLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &leaseStore{}
		g, end := elect("a", store, never)
		time.Sleep(time.Second)
		s := store.now().Spec
		if !may(g) || *s.HolderIdentity != "a" || *s.LeaseDurationSeconds != 15 || *s.LeaseTransitions != 0 || !s.AcquireTime.Equal(s.RenewTime) {
			t.Errorf("%s", s.String())
		}
		time.Sleep(time.Minute)
		if s := store.now().Spec; !may(g) || *s.LeaseTransitions != 0 || time.Since(s.RenewTime.Time) > 2*time.Second || time.Since(s.AcquireTime.Time) < time.Minute {
			t.Errorf("a minute later: %s", s.String())
		}
		end()
		if s := store.now().Spec; may(g) || *s.HolderIdentity != "" || *s.LeaseDurationSeconds != 1 {
			t.Errorf("not given back: %s", s.String())
		}
	})
}

// TestForeignLeaseRunsOut: a Lease of another holder is taken once it has not changed for
// its whole duration by this machine's clock, whatever the other's clock says; a change
// of its annotations is no sign of life. An agent that had it before takes it at once.
func TestForeignLeaseRunsOut(t *testing.T) {
	for name, c := range map[string]struct {
		holder       string
		stamp        time.Duration
		after, until time.Duration
	}{
		"clocks agree":      {"b", 0, 15 * time.Second, 20 * time.Second},
		"its clock is late": {"b", -time.Hour, 15 * time.Second, 20 * time.Second},
		"its clock is fast": {"b", time.Hour, 15 * time.Second, 20 * time.Second},
		"our own":           {"a", -5 * time.Second, 0, time.Millisecond},
		"given back":        {"", -5 * time.Second, 0, time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := &leaseStore{}
				heldBy(store, c.holder, time.Now().Add(c.stamp))
				began := time.Now()
				g, end := elect("a", store, never)
				for i := 0; !may(g) && time.Since(began) < time.Minute; i++ {
					synctest.Wait()
					if may(g) {
						break
					}
					store.mu.Lock() // somebody annotates it all the time
					store.lease.Annotations = map[string]string{"n": time.Now().String()}
					store.mu.Unlock()
					time.Sleep(100 * time.Millisecond)
				}
				if took := time.Since(began); took < c.after || took > c.until {
					t.Errorf("taken after %s, want %s to %s", took, c.after, c.until)
				}
				if changed := *store.now().Spec.LeaseTransitions - 4; (changed == 1) != (c.holder != "a") {
					t.Errorf("%d transitions more", changed)
				}
				end()
			})
		})
	}
}

// TestHoldEndsWithTheRight: an agent whose attempts fail may act until RenewDeadline after
// the last one that was accepted began, and not longer; a Lease that was deleted is made
// again without a break.
func TestHoldEndsWithTheRight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, cut := &leaseStore{}, false
		g, end := elect("a", store, func() bool { return cut })
		time.Sleep(5 * time.Second) // attempts at 0, 2 and 4 s
		store.mu.Lock()
		store.lease = nil
		store.mu.Unlock()
		time.Sleep(2 * time.Second) // and 6 s
		if !may(g) || store.now() == nil {
			t.Fatal("a deleted Lease ends the leadership")
		}
		store.mu.Lock()
		cut = true
		store.mu.Unlock()
		time.Sleep(8900 * time.Millisecond)
		if !may(g) {
			t.Error("it stops before RenewDeadline")
		}
		time.Sleep(200 * time.Millisecond)
		if may(g) {
			t.Error("it acts beyond RenewDeadline")
		}
		store.mu.Lock()
		cut = false
		store.mu.Unlock()
		time.Sleep(5 * time.Second)
		if !may(g) {
			t.Error("it does not come back")
		}
		end()
	})
}

// TestGivingBackSparesAnothersLease: an agent that lost the Lease and is heard again after
// another one took it leaves that one's Lease alone. client-go's election clears it.
func TestGivingBackSparesAnothersLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &leaseStore{}
		g, end := elect("a", store, never)
		time.Sleep(time.Second)
		heldBy(store, "b", time.Now())
		g.lock.giveBack(t.Context())
		if got := holderOf(store.now()); got != "b" {
			t.Errorf("the Lease of b is held by %q", got)
		}
		end()
		if got := holderOf(store.now()); got != "b" {
			t.Errorf("after the end the Lease of b is held by %q", got)
		}
	})
}

// TestHoldEndsWhenAnotherHolds: a person hands the Lease to another agent. This one stops
// with its next attempt, not at the end of its right.
func TestHoldEndsWhenAnotherHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &leaseStore{}
		g, end := elect("a", store, never)
		time.Sleep(time.Second)
		heldBy(store, "b", time.Now())
		store.mu.Lock()
		store.lease.ResourceVersion = "1000000" // newer than what a knows
		store.mu.Unlock()
		time.Sleep(2 * time.Second)
		if may(g) {
			t.Error("it acts although another agent holds the Lease")
		}
		end()
	})
}

// TestOneLeaderAtATime: of three agents that are cut off, stopped and started as a seed
// says no two may ever act at once, and somebody leads soon after the last fault.
func TestOneLeaderAtATime(t *testing.T) {
	handedOver := 0
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 5))
			store := &leaseStore{}
			names := []string{"a", "b", "c"}
			cut := make([]bool, 3)
			led := map[string]bool{}
			agents, ends := make([]*Leadership, 3), make([]func(), 3)
			run := func(i int) { agents[i], ends[i] = elect(names[i], store, func() bool { return cut[i] }) }
			for i := range names {
				run(i)
			}
			for step := range 6000 { // ten minutes
				if step < 5000 && rng.IntN(100) == 0 {
					i := rng.IntN(3)
					switch rng.IntN(3) {
					case 0, 1:
						store.mu.Lock()
						cut[i] = !cut[i]
						store.mu.Unlock()
					default:
						ends[i]()
						run(i)
					}
				}
				if step == 5000 {
					store.mu.Lock()
					clear(cut)
					store.mu.Unlock()
				}
				leaders := ""
				for i, g := range agents {
					if may(g) {
						leaders += names[i]
						led[names[i]] = true
					}
				}
				if len(leaders) > 1 {
					t.Fatalf("seed %d, step %d: %s lead at once", seed, step, leaders)
				}
				if leaders == "" && step > 5400 {
					t.Fatalf("seed %d, step %d: nobody leads", seed, step)
				}
				time.Sleep(100 * time.Millisecond)
			}
			for _, end := range ends {
				end()
			}
			if len(led) > 1 {
				handedOver++
			}
		})
	}
	// Who wins a race for the Lease no seed decides, so that in one of them all faults may
	// meet the agents that stand by.
	if handedOver < 15 {
		t.Errorf("in %d of 20 runs more than one agent led: too little was handed over", handedOver)
	}
}

// TestLoadingAgentLeavesTheLease: an agent that still reads the cluster does not take the
// Lease, not its own either, so that a warm standby gets it; once it has read the cluster
// it asks at once, and knows by then that an abandoned Lease has run out.
func TestLoadingAgentLeavesTheLease(t *testing.T) {
	for name, c := range map[string]struct {
		holder  string
		standby bool
		leads   bool // the one that loads, once it has
	}{
		"its own of before a restart": {"a", false, true},
		"its own, and a warm standby": {"a", true, false},
		"of one that is dead":         {"b", false, true},
		"none":                        {"", false, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := &leaseStore{}
				if c.holder != "" {
					heldBy(store, c.holder, time.Now())
				}
				loaded, began := make(chan struct{}), new(atomic.Int32)
				g, end := elect("a", store, never, func(d *Deps) { d.Loaded, d.Leads = loaded, func() { began.Add(1) } })
				var other *Leadership
				endOther := func() {}
				if c.standby {
					other, endOther = elect("c", store, never)
				}
				time.Sleep(30 * time.Second)
				if may(g) || store.written() > 0 && !c.standby || c.standby && !may(other) {
					t.Errorf("while it loads: it leads %v, %d writes", may(g), store.written())
				}
				if _, why := g.MayAct(); !c.standby && c.holder != "b" && !strings.HasPrefix(why, "reading the cluster") {
					t.Errorf("says %q", why)
				}
				close(loaded)
				synctest.Wait()
				if may(g) != c.leads || (began.Load() == 1) != c.leads || c.standby && !may(other) {
					t.Errorf("once it has loaded: it leads %v, told %d times", may(g), began.Load())
				}
				end()
				endOther()
			})
		})
	}
}

// TestBoundedLeases: a Lease of 68 years, a count of changes that would become negative, and a renewal in the year 2094 stop no
// agent for longer than a Lease may hold; each is told once.
func TestBoundedLeases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, thief, most := fake.NewClientset(), "thief", int32(math.MaxInt32)
		far := metav1.NewMicroTime(time.Now().Add(68 * 365 * 24 * time.Hour))
		lease := func(name string) *coordinationv1.Lease {
			return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: name,
				Annotations: map[string]string{AnnotationWrites: `[{"group":"a","to":2147483647},{"group":"b","to":3}]`}},
				Spec: coordinationv1.LeaseSpec{HolderIdentity: &thief, LeaseDurationSeconds: &most, LeaseTransitions: &most, RenewTime: &far, AcquireTime: &far}}
		}
		if err := client.Tracker().Add(lease("autoscaler-agent")); err != nil {
			t.Fatal(err)
		}
		g := testLeadership(client)
		log, said := captured()
		writes := &inherited{}
		g.deps.Log, g.deps.Writes = log, writes
		g.saw(lease(OtherLease), true)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- g.Run(ctx, func() {}) }()
		time.Sleep(time.Minute)
		if may, why := g.MayAct(); !may {
			t.Errorf("after a minute: %s", why)
		}
		held, err := client.CoordinationV1().Leases("kube-system").Get(ctx, "autoscaler-agent", metav1.GetOptions{})
		if err != nil || *held.Spec.LeaseTransitions < 0 || *held.Spec.HolderIdentity != g.self {
			t.Errorf("%+v, %v", held.Spec, err)
		}
		if len(writes.list) != 1 || writes.list[0].Group != "b" {
			t.Errorf("inherited %v", writes.list)
		}
		for _, want := range []string{"the duration of Lease autoscaler-agent is ", "the duration of Lease cluster-autoscaler is ", "the age of the renewal of Lease cluster-autoscaler is ", "the target of group a in annotation"} {
			if n := strings.Count(said(), want); n != 1 {
				t.Errorf("%q is told %d times:\n%s", want, n, said())
			}
		}
		cancel()
		<-done
	})
}

// inherited keeps what a leader takes over.
type inherited struct{ list []wrap.Intent }

func (*inherited) Open() []wrap.Intent          { return nil }
func (i *inherited) Inherit(list []wrap.Intent) { i.list = list }

// captured is a log whose lines can be read.
func captured() (*logrus.Entry, func() string) {
	var mu sync.Mutex
	var text strings.Builder
	log := logrus.New()
	log.SetOutput(writer(func(p []byte) { mu.Lock(); defer mu.Unlock(); text.Write(p) }))
	return logrus.NewEntry(log), func() string { mu.Lock(); defer mu.Unlock(); return text.String() }
}

type writer func([]byte)

func (w writer) Write(p []byte) (int, error) { w(p); return len(p), nil }
