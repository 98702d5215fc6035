// Package providertest is the one suite that every provider passes: each sentence
// of the contract (agent/provider) is a case of it. The fake passes it too, so what
// is tested with the fake is tested with the contract; and mutants of the fake fail
// it, each by its own case, so the suite is known to bite.
//
// To join, write a World, return it from Suite.New together with the provider, and
// call Run. A case that a cloud cannot play is named in Cannot, with the reason;
// with AUTOSCALER_TEST_NO_SKIP=1 any other skip fails. The suite refuses to sleep,
// to look into a provider, and to know what cloud it talks to.
package providertest

import (
	"os"
	"runtime"
	"slices"
	"sync"
	"testing"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
)

// The groups that New sets up, running and settled: Workers with bounds 0..10 and
// target 2, Others with bounds 1..3 and target 1. The machines of both are
// protected against the cloud's own scale-in, where the cloud knows such a thing.
const (
	Workers cluster.GroupID = "workers"
	Others  cluster.GroupID = "others"
)

// World is the cloud behind the provider, past the provider: how the suite makes
// it misbehave and how it sees what is really there. A method that the cloud
// cannot play calls t.Skip. It may have the abilities of abilities.go, too.
type World interface {
	// Target is the group's target, and Alive its instances that live and are not on
	// their way out, as the cloud itself knows them.
	Target(id cluster.GroupID) int
	Alive(id cluster.GroupID) []cluster.InstanceID
	// Foreign makes an instance that lives and is in no group of the provider;
	// ForeignAlive tells whether it still does.
	Foreign(t testing.TB) cluster.InstanceID
	ForeignAlive(id cluster.InstanceID) bool
	// Node is the Node that the instance's kubelet would register: its name, its
	// provider ID and its addresses.
	Node(id cluster.InstanceID) cluster.Node

	SetTarget(id cluster.GroupID, n int) // somebody else changes the target
	Kill(id cluster.InstanceID)          // somebody else ends the instance
	Vanish(id cluster.GroupID)           // somebody else removes the group
	Quota(t testing.TB, on bool)         // no more instances for this account
	Throttle(t testing.TB, on bool)      // every call is throttled
	Expire(t testing.TB, on bool)        // the credentials have expired
	RefuseDeletes(t testing.TB, on bool) // the provider may not delete
	// BreakRead makes part of the next reads fail so that Workers cannot be read
	// whole while Others can.
	BreakRead(t testing.TB, on bool)
}

// Suite is what one provider brings.
type Suite struct {
	// New makes a provider and its world, as described at Workers. It cleans up by
	// t.Cleanup.
	New func(t testing.TB) (provider.Provider, World)
	// Settle lets the cloud finish what it was asked for, and returns when nothing
	// more will change by itself.
	Settle func(t testing.TB, w World)
	// Cannot names the cases that this cloud cannot play, with the reason.
	Cannot map[string]string
}

// Run runs every case as a subtest.
func (s Suite) Run(t *testing.T) {
	for name, reason := range s.Cannot {
		if !slices.Contains(Cases(), name) {
			t.Errorf("Cannot names %q, which is no case", name)
		}
		if reason == "" {
			t.Errorf("Cannot names %q without a reason", name)
		}
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if reason, ok := s.Cannot[c.name]; ok {
				t.Skip("this cloud cannot: " + reason)
			}
			defer func() {
				if t.Skipped() && os.Getenv("AUTOSCALER_TEST_NO_SKIP") == "1" {
					t.Errorf("skipped without being named in Suite.Cannot")
				}
			}()
			s.play(t, c)
		})
	}
}

// Cases lists the names of all cases.
func Cases() []string {
	var out []string
	for _, c := range cases {
		out = append(out, c.name)
	}
	return out
}

// Fails plays one case against a recorder and returns what it complained about;
// nil when the case passes. It is how the suite itself is tested.
func (s Suite) Fails(t *testing.T, name string) []string {
	t.Helper()
	at := slices.IndexFunc(cases, func(c testCase) bool { return c.name == name })
	if at < 0 {
		t.Fatalf("%q is no case", name)
	}
	r := &recorder{TB: t}
	done := make(chan struct{})
	// A goroutine of its own, since a fatal complaint ends it.
	go func() {
		defer close(done)
		s.play(r, cases[at])
	}()
	<-done
	return r.complaints
}

func (s Suite) play(t testing.TB, c testCase) {
	p, w := s.New(t)
	c.run(&stage{TB: t, p: p, w: w, settle: func() { t.Helper(); s.Settle(t, w) }})
}

// recorder takes down failures instead of failing the test that it stands in for.
type recorder struct {
	testing.TB
	mu         sync.Mutex
	complaints []string
}

func (r *recorder) Errorf(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.complaints = append(r.complaints, sprintf(format, args...))
}
func (r *recorder) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	runtime.Goexit()
}
func (r *recorder) Error(args ...any) { r.Errorf("%v", args) }
func (r *recorder) Fatal(args ...any) { r.Fatalf("%v", args) }
func (r *recorder) Failed() bool      { return len(r.complaints) > 0 }
