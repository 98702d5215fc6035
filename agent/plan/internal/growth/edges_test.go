package growth

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
)

// TestUnhealthyEdges: a group is held when more nodes are not Ready than both thresholds allow, and not when as many are.
func TestUnhealthyEdges(t *testing.T) {
	for name, c := range map[string]struct {
		ok, percent int
		held        bool
	}{
		"above both":           {0, 49, true},
		"as many as allowed":   {1, 0, false},
		"as many per cent":     {0, 50, false},
		"above the number":     {0, 51, false},
		"above the percentage": {1, 1, false},
	} {
		w := oneGroup(func(s *cluster.Snapshot, _ *decision.Memory, p *decision.Policy) {
			p.OKTotalUnready, p.MaxTotalUnreadyPercent = c.ok, c.percent
			s.Nodes[0].Ready = cluster.StatusFalse
			for i := range 9 { // the cluster as a whole is well
				s.Nodes = append(s.Nodes, &cluster.Node{Name: cluster.NodeName(fmt.Sprint("other-", i)), Ready: cluster.StatusTrue, Created: now.Add(-time.Hour)})
			}
		})
		if w.Unhealthy != "" && c.held {
			t.Fatalf("%s: the cluster is not well: %s", name, w.Unhealthy)
		}
		if why := unhealthy(w, &w.Groups[0]); (why != "") != c.held {
			t.Errorf("%s: %q", name, why)
		}
	}
}

// backoffOf is a backoff for a quota that ends in so many minutes.
func backoffOf(g cluster.GroupID, minutes int) decision.Backoff {
	return decision.Backoff{Group: g, Cause: cluster.CauseQuota, Step: time.Minute, Last: now, Until: now.Add(time.Duration(minutes) * time.Minute), Text: string(g)}
}

// TestSharedQuota: a backoff for a quota holds the groups that may count against the same quota.
func TestSharedQuota(t *testing.T) {
	for name, c := range map[string]struct {
		provider, quota, otherProvider, otherQuota string
		cause                                      cluster.Cause
		unlisted, held                             bool // the cloud no longer lists the group that was refused
	}{
		"no names":             {"aws", "", "aws", "", cluster.CauseQuota, false, true},
		"the same quota":       {"aws", "L-1", "aws", "L-1", cluster.CauseQuota, false, true},
		"other quotas":         {"aws", "L-1", "aws", "L-2", cluster.CauseQuota, false, false},
		"one has no name":      {"aws", "L-1", "aws", "", cluster.CauseQuota, false, true},
		"own has no name":      {"aws", "", "aws", "L-2", cluster.CauseQuota, false, true},
		"another cloud":        {"aws", "", "nova", "", cluster.CauseQuota, false, false},
		"another cloud, same":  {"aws", "L-1", "nova", "L-1", cluster.CauseQuota, false, false},
		"no machines to have":  {"aws", "", "aws", "", cluster.CauseCapacity, false, false},
		"a group that is gone": {"aws", "L-1", "nova", "", cluster.CauseQuota, true, true},
	} {
		w := oneGroup(func(s *cluster.Snapshot, m *decision.Memory, _ *decision.Policy) {
			s.Groups[0].Provider, s.Groups[0].Quota = c.provider, c.quota
			s.Groups = append([]cluster.NodeGroup{{ID: "another", Provider: c.otherProvider, Quota: c.otherQuota, Max: 9, ReadAt: now, Template: s.Groups[0].Template}}, s.Groups...)
			b := backoffOf("another", 5)
			if b.Cause = c.cause; c.unlisted {
				b.Group = "gone"
			}
			m.Backoff = []decision.Backoff{b}
		})
		if g := &w.Groups[w.ByID["g"]]; (g.Growth.Rule == decision.RuleQuota) != c.held {
			t.Errorf("%s: %+v", name, g.Growth)
		}
	}
}

// TestLongestBackoff: of several backoffs the one that ends last is named, and one that has ended is not.
func TestLongestBackoff(t *testing.T) {
	for name, c := range map[string]struct {
		all  []decision.Backoff
		want string
	}{
		"the last of two":                 {[]decision.Backoff{backoffOf("x", 3), backoffOf("y", 5)}, "y"},
		"whatever their order":            {[]decision.Backoff{backoffOf("y", 5), backoffOf("x", 3)}, "y"},
		"of equal ones the first by name": {[]decision.Backoff{backoffOf("y", 3), backoffOf("x", 3)}, "x"},
		"in any order":                    {[]decision.Backoff{backoffOf("x", 3), backoffOf("y", 3)}, "x"},
		"one has ended":                   {[]decision.Backoff{backoffOf("x", 0)}, ""},
	} {
		w := oneGroup(func(_ *cluster.Snapshot, m *decision.Memory, _ *decision.Policy) { m.Backoff = c.all })
		got := longest(w, func(*decision.Backoff) bool { return true })
		if got == nil && c.want != "" || got != nil && got.Text != c.want {
			t.Errorf("%s: %+v", name, got)
		}
	}
	w := oneGroup(func(_ *cluster.Snapshot, m *decision.Memory, _ *decision.Policy) {
		m.Backoff = []decision.Backoff{backoffOf("g", 3), {Group: "g", Cause: cluster.CauseCapacity, Step: time.Minute, Last: now, Until: now.Add(time.Minute), Text: "sold out"}, backoffOf("gone", 9)}
	})
	if got := Reasons(w, &w.Groups[0]); len(got) != 2 || got[1].Why != "backed off until 2026-01-05T08:01:00Z (capacity): sold out" {
		t.Errorf("the reasons are %+v: want both backoffs of the group, and none of another", got)
	}
}

// TestEnforceMin: a group is raised to its minimum where the policy says so, as far as its limits allow.
func TestEnforceMin(t *testing.T) {
	for name, c := range map[string]struct {
		enforce         bool
		min, cores      int64
		paused, raised  bool
		grow, heldLines int
	}{
		"off":               {false, 5, 0, false, false, 0, 0},
		"below":             {true, 5, 0, false, true, 3, 0},
		"at the minimum":    {true, 2, 0, false, false, 0, 0},
		"held":              {true, 5, 0, true, false, 0, 1},
		"limited":           {true, 5, 8, false, true, 2, 1},
		"limited to enough": {true, 4, 8, false, true, 2, 0},
	} {
		w := oneGroup(func(s *cluster.Snapshot, _ *decision.Memory, p *decision.Policy) {
			p.EnforceMin, p.MaxCoresTotal, s.Groups[0].Min = c.enforce, c.cores, int(c.min)
			if c.paused {
				s.Groups[0].Pause = &cluster.Pause{}
			}
		})
		EnforceMin(w)
		if g := &w.Groups[0]; g.Raise != c.raised || g.Grow != c.grow || len(w.Plan.Held) != c.heldLines {
			t.Errorf("%s: raised %v by %d, held %v", name, g.Raise, g.Grow, w.Plan.Held)
		}
	}
}

// TestPool: the groups of one pool have one maximum, which others do not use up.
func TestPool(t *testing.T) {
	w := oneGroup(func(s *cluster.Snapshot, _ *decision.Memory, _ *decision.Policy) {
		first := &s.Groups[0]
		first.Pool, first.PoolMax, first.Max = "general", 7, 100
		other := cluster.NodeGroup{ID: "h", Max: 100, Target: 3, ReadAt: now, Template: first.Template, Pool: "general", PoolMax: 7}
		foreign := cluster.NodeGroup{ID: "i", Max: 100, Target: 50, ReadAt: now, Template: first.Template}
		s.Groups = append(s.Groups, other, foreign)
	})
	have := w.Groups[0].Members + w.Groups[1].Upcoming
	limit := Of(w, &w.Groups[0], 99)
	if limit.Count != 7-have || limit.Rule != decision.RuleMax || limit.Why != "its pool is at its maximum of 7" {
		t.Errorf("with %d machines in the pool: %+v", have, limit)
	}
	purchase := []int{0, 2, 0}
	if n := Beside(w, purchase, 0); n != 7-have-2 {
		t.Errorf("beside a purchase of two: %d", n)
	}
	if purchase[0] = 7 - have - 2; !Allows(w, purchase) {
		t.Error("what the pool allows is refused")
	}
	if purchase[0]++; Allows(w, purchase) {
		t.Error("more than the pool allows is allowed")
	}
	if n := Count(w, &w.Groups[2], 9); n != 9 {
		t.Errorf("a group of no pool adds %d", n)
	}
}

// TestTotalsAreAskedTwice: asking for a limit of GPUs changes nothing of the cluster's capacity.
func TestTotalsAreAskedTwice(t *testing.T) {
	w := oneGroup(func(s *cluster.Snapshot, _ *decision.Memory, p *decision.Policy) {
		s.Groups[0].Target, p.GPUTotal = 4, decision.Bounds{{Resource: "nvidia.com/gpu", Max: 6}}
	})
	if a, b := Count(w, &w.Groups[0], 9), Count(w, &w.Groups[0], 9); a != 2 || b != 2 {
		t.Errorf("%d and then %d machines", a, b)
	}
}

// TestReadLag: only a young Node whose instance the reads should list makes growth wait.
func TestReadLag(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*cluster.Snapshot, *cluster.Node)
		waits  bool
	}{
		"a young Node":    {func(*cluster.Snapshot, *cluster.Node) {}, true},
		"a control plane": {func(_ *cluster.Snapshot, n *cluster.Node) { n.ControlPlane = true }, false},
		"a deleted Node":  {func(_ *cluster.Snapshot, n *cluster.Node) { n.Deleting = true }, false},
		"no provider ID":  {func(_ *cluster.Snapshot, n *cluster.Node) { n.ProviderID = "" }, false},
		"an old Node":     {func(_ *cluster.Snapshot, n *cluster.Node) { n.Created = now.Add(-nodeLag) }, false},
		"a Node of a machine": {func(s *cluster.Snapshot, n *cluster.Node) {
			s.Groups[0].Instances = append(s.Groups[0].Instances, instance(cluster.PhaseRunning, true))
		}, false},
		"a machine of another list": {func(s *cluster.Snapshot, n *cluster.Node) {
			s.Groups[0].Instances = append(s.Groups[0].Instances, instance(cluster.PhaseRunning, false))
		}, true},
		"a machine that is gone": {func(s *cluster.Snapshot, n *cluster.Node) {
			s.Groups[0].Instances = append(s.Groups[0].Instances, instance(cluster.PhaseGone, false))
		}, false},
	} {
		w := oneGroup(func(s *cluster.Snapshot, _ *decision.Memory, _ *decision.Policy) {
			n := &cluster.Node{Name: "young", ProviderID: "x:///young", Created: now.Add(-time.Second)}
			c.change(s, n)
			s.Nodes = append(s.Nodes, n)
		})
		if got := w.Groups[0].Growth.Rule == decision.RuleAhead; got != c.waits {
			t.Errorf("%s: %+v", name, w.Groups[0].Growth)
		}
	}
}

// TestReadLagOfSeveralClouds: a young Node makes the groups of its own cloud wait, and all groups where no instance shows how
// the provider IDs of a cloud begin.
func TestReadLagOfSeveralClouds(t *testing.T) {
	for name, c := range map[string]struct {
		young, provider, otherProvider string
		waits, otherWaits              bool
	}{
		"the first cloud's":   {"x:///young", "x", "y", true, false},
		"the second cloud's":  {"y:///young", "x", "y", false, true},
		"providers unnamed":   {"y:///young", "", "", true, true},
		"one without a name":  {"y:///young", "x", "", false, true},
		"of neither":          {"z:///young", "x", "y", false, false},
		"told to go already":  {"x:///told", "x", "y", false, false},
		"no scheme in its ID": {"young", "x", "y", false, false},
	} {
		w := oneGroup(func(s *cluster.Snapshot, m *decision.Memory, _ *decision.Policy) {
			other := cluster.NodeGroup{ID: "other", Provider: c.otherProvider, Max: 9, Target: 1, ReadAt: now, Template: s.Groups[0].Template,
				Instances: []cluster.Instance{{ID: "y:///old", Phase: cluster.PhaseRunning, Member: true, Created: now.Add(-time.Hour)}}}
			s.Groups[0].Provider = c.provider
			s.Groups = append(s.Groups, other)
			s.Nodes = append(s.Nodes, &cluster.Node{Name: "young", ProviderID: c.young, Created: now.Add(-time.Second)})
			if c.young == "x:///told" { // it is listed still
				s.Groups[0].Instances = append(s.Groups[0].Instances, cluster.Instance{ID: "x:///told", Phase: cluster.PhaseDeleting, Created: now.Add(-time.Minute)})
			}
			m.Deleted = map[cluster.InstanceID]time.Time{"x:///told": now.Add(-time.Second)}
		})
		for id, want := range map[cluster.GroupID]bool{"g": c.waits, "other": c.otherWaits} {
			if g := &w.Groups[w.ByID[id]]; (g.Growth.Rule == decision.RuleAhead) != want {
				t.Errorf("%s: group %s: %+v", name, id, g.Growth)
			}
		}
	}
}

// TestKeepsTotals: a node stays that the least of the whole cluster needs, and goes where just the least is left.
func TestKeepsTotals(t *testing.T) {
	gpus := func(resource string, least int64) decision.Bounds {
		return decision.Bounds{{Resource: resource, Min: least}}
	}
	for name, c := range map[string]struct { // two nodes of two cores, four GiB and a GPU
		cores, memory int64
		gpus          decision.Bounds
		removing      bool
		want          string
	}{
		"no least":              {0, 0, nil, false, ""},
		"negative":              {-1, -1, nil, false, ""},
		"just enough cores":     {2, 0, nil, false, ""},
		"too few cores":         {3, 0, nil, false, "without it the cluster would have less than its least of 3 cores"},
		"the other one goes":    {2, 0, nil, true, "without it the cluster would have less than its least of 2 cores"},
		"just enough memory":    {0, 4, nil, false, ""},
		"too little memory":     {0, 5, nil, false, "without it the cluster would have less than its least of 5 GiB"},
		"memory, the other one": {0, 4, nil, true, "without it the cluster would have less than its least of 4 GiB"},
		"just enough GPUs":      {0, 0, gpus("nvidia.com/gpu", 1), false, ""},
		"too few GPUs":          {0, 0, gpus("nvidia.com/gpu", 2), false, "without it the cluster would have less than its least of 2 nvidia.com/gpu"},
		"GPUs, the other one":   {0, 0, gpus("nvidia.com/gpu", 1), true, "without it the cluster would have less than its least of 1 nvidia.com/gpu"},
		"none of these GPUs":    {0, 0, gpus("amd.com/gpu", 1), false, ""},
		"no least of GPUs":      {0, 0, gpus("nvidia.com/gpu", 0), false, ""},
	} {
		w := oneGroup(func(_ *cluster.Snapshot, _ *decision.Memory, p *decision.Policy) {
			p.MinCoresTotal, p.MinMemoryTotal, p.GPUTotal = c.cores, c.memory, c.gpus
		})
		if c.removing {
			w.CountRemoval(&w.Nodes[1])
		}
		if got := KeepsTotals(w, &w.Nodes[0]); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestJudgeBalance: of a set the groups are held whose machines differ from those of most; where no kind is the most frequent,
// each group is held.
func TestJudgeBalance(t *testing.T) {
	for name, c := range map[string]struct {
		cores []int64 // of the machines of each group
		held  int
		words string // the first held reason has them
	}{
		"alike":              {[]int64{2, 2, 2}, 0, ""},
		"the last is odd":    {[]int64{2, 2, 4}, 1, "not balanced with groups g0 and g1 of set s"},
		"the first is odd":   {[]int64{4, 2, 2}, 1, "not balanced with groups g1 and g2 of set s"},
		"two that differ":    {[]int64{2, 4}, 2, "not balanced with group g1 of set s"},
		"three that differ":  {[]int64{2, 4, 8}, 3, "not balanced with groups g1 and g2 of set s"},
		"two kinds of two":   {[]int64{2, 2, 4, 4}, 4, "not balanced with groups g2 and g3 of set s"},
		"two are odd":        {[]int64{2, 2, 4, 8}, 2, "not balanced with groups g0 and g1 of set s"},
		"eight are named":    {[]int64{2, 2, 2, 2, 2, 2, 2, 2, 4}, 1, "groups g0, g1, g2, g3, g4, g5, g6 and g7 of set s"},
		"nine are not named": {[]int64{2, 2, 2, 2, 2, 2, 2, 2, 2, 4}, 1, "groups g0, g1, g2, g3, g4, g5, g6, g7 and others of set s"},
	} {
		w := oneGroup(func(s *cluster.Snapshot, _ *decision.Memory, _ *decision.Policy) {
			s.Groups, s.Nodes = nil, nil
			for i, cores := range c.cores {
				machine := cluster.Resources{MilliCPU: 1000 * cores, Memory: 4 << 30, Pods: 110}
				s.Groups = append(s.Groups, cluster.NodeGroup{ID: cluster.GroupID(fmt.Sprint("g", i)), Balance: "s", Max: 9, ReadAt: now,
					Template: cluster.Template{Capacity: machine, Allocatable: machine}})
			}
		})
		JudgeBalance(w)
		if len(w.Plan.Held) != c.held || c.held > 0 && !strings.Contains(w.Plan.Held[0].Why, c.words) {
			t.Errorf("%s: held %v", name, w.Plan.Held)
		}
	}
}

func instance(phase cluster.Phase, member bool) cluster.Instance {
	return cluster.Instance{ID: "x:///young", Phase: phase, Member: member, Created: now.Add(-time.Minute)}
}
