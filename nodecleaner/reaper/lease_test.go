package reaper

import (
	"slices"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// TestFeel (L2): the first read of a Lease and each change of its stamp begin the wait
// anew; a read that failed forgets what was seen.
func TestFeel(t *testing.T) {
	now, was := noon.Add(time.Minute), leaseWatch{Stamp: noon, Still: noon, Moved: noon}
	for name, c := range map[string]struct {
		pulse leaseWatch
		lease Lease
		want  leaseWatch
	}{
		"the first read":   {leaseWatch{}, Lease{Renewed: noon}, leaseWatch{Stamp: noon, Still: now}},
		"no Lease":         {leaseWatch{}, Lease{}, leaseWatch{Still: now}},
		"it stands still":  {was, Lease{Renewed: noon}, was},
		"it moves":         {was, Lease{Renewed: now}, leaseWatch{Stamp: now, Still: now, Moved: now}},
		"it goes backward": {was, Lease{Renewed: noon.Add(-time.Hour)}, leaseWatch{Stamp: noon.Add(-time.Hour), Still: now, Moved: now}},
		"it is not read":   {was, Lease{Renewed: noon, Problem: "403"}, leaseWatch{}},
		"it fails at once": {leaseWatch{}, Lease{Renewed: noon, Problem: "403"}, leaseWatch{}},
	} {
		got := c.pulse
		if got.feel(c.lease, now); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

// TestRenewsLease (L2): the time for which a Lease has to stand still, and the words.
func TestRenewsLease(t *testing.T) {
	still := func(d time.Duration) leaseWatch { return leaseWatch{Still: noon.Add(-d)} }
	for name, c := range map[string]struct {
		pulse    leaseWatch
		positive bool
		sent     bool
		problem  string
		want     string
	}{
		"not read yet":          {want: "has not been read yet"},
		"cannot be read":        {problem: "403", want: "cannot be read: 403"},
		"absent, for the grace": {pulse: still(10 * time.Minute)},
		"absent, for less":      {pulse: still(10*time.Minute - 1), want: "has been watched since 2026-11-21T11:50:00Z, for less than 10m0s"},
		"absent, renewed":       {pulse: leaseWatch{Still: noon, Moved: noon}, want: "renewed its Lease at 2026-11-21T12:00:00Z"},
		"removed by a scale-down, for its shorter grace": {pulse: still(30 * time.Second), sent: true},
		"terminated, for the interval":                   {pulse: still(time.Minute), positive: true},
		"terminated, for less":                           {pulse: still(time.Minute - 1), positive: true, want: "for less than 1m0s"},
		"terminated, renewed before":                     {pulse: leaseWatch{Still: noon.Add(-time.Minute), Moved: noon.Add(-time.Minute)}, positive: true},
		"terminated, renewed since":                      {pulse: leaseWatch{Still: noon.Add(-2 * time.Minute), Moved: noon.Add(1 - time.Minute)}, positive: true, want: "renewed its Lease at"},
		"terminated, renewed since, long ago":            {pulse: leaseWatch{Still: noon.Add(-3 * time.Minute), Moved: noon.Add(1 - time.Minute)}, positive: true},
	} {
		w := newWorld()
		w.policy.SentGrace = 30 * time.Second
		if c.positive {
			w.policy.SentGrace = 3 * time.Minute
		}
		w.in.Leases = map[cluster.NodeName]Lease{"n00": {Problem: c.problem}}
		dead := &candidate{node: *w.node(0), sent: c.sent, watch: Watch{Positive: c.positive, First: noon.Add(-time.Minute), Pulse: c.pulse}}
		why := renewsLease(dead, w.moment())
		agree(t, name, why, c.want)
		if due := !dead.due.IsZero(); due != (why != "" && !c.pulse.Still.IsZero()) {
			t.Errorf("%s: looked at again %s", name, dead.due)
		}
	}
}

// TestWantLeases (L2): the Lease is read unless the list shows that the instance exists.
func TestWantLeases(t *testing.T) {
	var plan Plan
	wantLeases([]*candidate{{node: cluster.Node{Name: "lives"}, sight: observation{state: alive}}, {node: cluster.Node{Name: "gone"}, sight: observation{state: gone}},
		{node: cluster.Node{Name: "unknown"}}}, &plan)
	if !slices.Equal(plan.Leases, []cluster.NodeName{"gone", "unknown"}) {
		t.Errorf("read: %v", plan.Leases)
	}
}
