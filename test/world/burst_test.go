package world

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/internal/testing/drawn"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/cloud/aws"
)

// withBursts is a world with an empty group, an agent and a workload of which seven pods fill a machine.
func withBursts(t *testing.T, seed uint64, do func(herd)) {
	inBubble(t, Options{Seed: seed, Groups: []Group{{"workers", "m5.xlarge", 0, 30}}}, func(h herd) {
		if err := h.PutWorkload(Workload{Name: "web", MilliCPU: 500, Memory: 512 << 20}); err != nil {
			h.Fatal(err)
		}
		h.Start()
		time.Sleep(time.Minute)
		do(h)
	})
}

// serves waits until the pods run, and demands that no more machines were bought than they need.
func (h herd) serves(pods, machines int, within time.Duration) {
	h.Helper()
	h.until(fmt.Sprint(pods, " pods run"), within, func() bool { return h.running() == pods })
	if g, _ := h.Cloud.Group("workers"); g.Desired != machines {
		h.Errorf("target %d, want %d for %d pods", g.Desired, machines, pods)
	}
}

// empties takes the pods away, and waits for the machines and their Nodes to go.
func (h herd) empties() {
	h.Helper()
	h.Scale("web", 0)
	h.until("no machine and no Node is left", 40*time.Minute, func() bool { return len(h.fleet.list())+len(h.workers()) == 0 })
}

// told tells whether one line of the story has all words, whatever their case.
func (h herd) told(words ...string) bool {
	for line := range strings.Lines(strings.ToLower(h.Story(20000))) {
		all := true
		for _, w := range words {
			all = all && strings.Contains(line, strings.ToLower(w))
		}
		if all {
			return true
		}
	}
	return false
}

// TestKillAtAnyMoment: the agent is killed at 20 drawn moments of a scale-up and comes back, and the group ends at the size that an
// undisturbed agent would have given it: right after a change of the cloud whose answer is lost, with reads that lag, or without its files.
func TestKillAtAnyMoment(t *testing.T) {
	withBursts(t, drawn.Seed(t), func(h herd) {
		for i := range 20 {
			h.mu.Lock()
			wait, kill := time.Duration(h.random.Int64N(int64(8*time.Second))), Fault{Kind: "kill", For: time.Second, N: []int{0, 0, 2}[i%3]}
			if i%3 == 0 {
				h.faults.arm(Fault{Kind: "kill-at-buy", Agent: -1, For: 2 * time.Second, N: 3*(i%2) + 6*h.random.IntN(40)}) // it has arrived, or is on its way
			}
			h.mu.Unlock()
			if i%3 == 1 {
				h.Cloud.StaleReads(5 * time.Second)
			}
			h.Scale("web", 20)
			if i%3 > 0 {
				time.Sleep(wait)
				h.mu.Lock()
				h.killFor(h.agents[0], kill)
				h.mu.Unlock()
			}
			h.serves(20, 3, 15*time.Minute)
			h.Cloud.StaleReads(0)
			h.empties()
		}
	})
}

// TestCloudFaults: AWS misbehaves for five minutes around a burst. The journal says what is wrong in the cloud's own words or with a
// remedy, nothing is bought twice, and a fault while machines run costs none of them.
func TestCloudFaults(t *testing.T) {
	for name, c := range map[string]struct {
		fault aws.Fault
		words []string // nil: the fault may pass unnoticed
	}{
		"throttled":           {aws.Fault{Kind: aws.Throttle}, []string{"transient", "rate exceeded"}},
		"5xx":                 {aws.Fault{Kind: aws.ServerError500}, []string{"transient"}},
		"expired credentials": {aws.Fault{Kind: aws.ExpiredCredentials}, []string{"denied", "credential"}},
		"forbidden resize":    {aws.Fault{Action: "SetDesiredCapacity", Kind: aws.Forbidden}, []string{"denied", "autoscaling:SetDesiredCapacity"}},
		"empty lists":         {aws.Fault{Action: "Describe*", Kind: aws.EmptyList}, nil},
		"short lists":         {aws.Fault{Action: "Describe*", Kind: aws.ShortList}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			withBursts(t, 1, func(h herd) {
				stop := h.Cloud.Inject(c.fault)
				h.Scale("web", 14)
				time.Sleep(5 * time.Minute)
				stop()
				if c.words != nil && !h.told(c.words...) {
					t.Errorf("no line has the words %q", c.words)
				}
				h.serves(14, 2, 15*time.Minute)
				stop = h.Cloud.Inject(c.fault)
				time.Sleep(5 * time.Minute)
				stop()
				time.Sleep(5 * time.Minute)
				if n := len(h.workers()); n != 2 || h.running() != 14 {
					t.Errorf("after the fault %d pods run on %d nodes", h.running(), n)
				}
				h.empties()
			})
		})
	}
}

// TestHalfNeverJoin: two of four machines boot and never become Nodes. They are ended by name after the time that a machine has to
// join, the group is backed off with its cause, and they are replaced until all pods run.
func TestHalfNeverJoin(t *testing.T) {
	withBursts(t, 1, func(h herd) {
		h.mu.Lock()
		h.faults.never = 2
		h.mu.Unlock()
		h.Scale("web", 28)
		h.serves(28, 4, time.Hour)
		if !h.told("terminate", "rule=i1", "has not become a node") || !h.told("held group workers", "backed off", "no-join") {
			t.Error("no line tells why the two machines went, or why the group waits")
		}
	})
}

// TestAPIServerDown: the API server cannot be reached for a minute with machines running. Nothing is ended, and new pods run afterwards.
func TestAPIServerDown(t *testing.T) {
	withBursts(t, 1, func(h herd) {
		h.Scale("web", 14)
		h.serves(14, 2, 10*time.Minute)
		h.mu.Lock()
		h.begin(Fault{Kind: "api-cut", N: 1, For: time.Minute, Agent: -1})
		h.mu.Unlock()
		time.Sleep(time.Minute)
		h.Scale("web", 21)
		h.serves(21, 3, 10*time.Minute)
		if !h.told("api server") {
			t.Error("no line tells of the API server")
		}
	})
}
