package disruption_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
)

// TestExpiryIsSpread: machines of one burst reach their age at moments that are spread over a tenth of it, the same in
// each round.
func TestExpiryIsSpread(t *testing.T) {
	const age = 100 * time.Hour
	s, p := fleet(200)
	p.MaxNodeAge = age
	made := s.Nodes[0].Created
	last := -1
	for _, percent := range []int{89, 91, 93, 95, 97, 99, 100} {
		s.Now = made.Add(age * time.Duration(percent) / 100)
		d := begun(&s, &decision.Memory{}, &p)
		n := 0
		for i := range s.Nodes {
			if d.Reason(i).Rule == decision.RuleExpired {
				n++
			}
		}
		if want := max(percent-90, 0) * 20; n < last || n < want-25 || n > want+25 {
			t.Errorf("at %d%% of the age %d of 200 are expired, want about %d", percent, n, want)
		}
		last = n
	}
	if last != 200 {
		t.Errorf("at their age %d of 200 are expired", last)
	}
}

// TestBreaker: a node is sick, and so many others are.
func TestBreaker(t *testing.T) {
	for _, x := range []struct{ nodes, sick, percent int }{{1, 1, 20}, {3, 1, 20}, {3, 2, 20}, {10, 2, 20}, {10, 3, 20}, {10, 3, 30}, {100, 1, 0}, {100, 2, 0}, {100, 20, 20}, {100, 21, 20}} {
		s, p := fleet(x.nodes)
		p.RepairAfter, p.RepairMaxSick, p.OKTotalUnready = time.Minute, x.percent, 1000
		s.Groups[0].Template.Source = nil
		s.Groups[0].Options.Budgets = &cluster.DisruptionBudgets{{Nodes: 100, Percent: true}}
		for _, n := range s.Nodes[:x.sick] {
			n.Ready, n.ReadySince = cluster.StatusUnknown, s.Now.Add(-time.Hour)
		}
		d := begun(&s, &decision.Memory{}, &p)
		rule, words := d.Hold(0, d.Reason(0))
		if open := x.sick > 1 && x.sick*100 > x.percent*x.nodes; open != (rule == decision.RuleBreaker) || !open && rule != "" {
			t.Errorf("%+v: [%s] %s", x, rule, words)
		}
	}
}

// TestBudgets asks for nodes one after the other, as often as the budgets let them go.
func TestBudgets(t *testing.T) {
	for _, x := range []struct {
		nodes        int
		group, all   string
		reason       string
		unready      int
		want         int
		held, nextAt string
	}{
		{5, "", "", cluster.ReasonDrifted, 0, 1, "10%", ""},
		{20, "", "", cluster.ReasonDrifted, 0, 2, "10%", ""},
		{29, "", "", cluster.ReasonDrifted, 0, 2, "10%", ""},
		{20, "", "", cluster.ReasonDrifted, 1, 1, "10%", ""},
		{20, "", "", cluster.ReasonIdle, 0, 20, "", ""},
		{20, "", "", cluster.ReasonRequested, 0, 20, "", ""},
		{20, "5", "", cluster.ReasonDrifted, 0, 5, "is 5", ""},
		{20, "5 of expired", "", cluster.ReasonDrifted, 0, 2, "10%", ""},
		{20, "100%", "3", cluster.ReasonDrifted, 0, 3, "the cluster", ""},
		{20, "", "3", cluster.ReasonIdle, 0, 3, "the cluster", ""},
		{20, "", "3", cluster.ReasonRequested, 0, 20, "", ""},
		{20, "", "0 of requested", cluster.ReasonRequested, 0, 0, "is 0 of requested", ""},
		{20, "0%", "", cluster.ReasonDrifted, 0, 0, "0%", ""},
		{20, "7; 4 at 0 7 * * * for 2h", "", cluster.ReasonDrifted, 0, 4, "is 4", ""},
		{20, "7; 4 at 0 9 * * * for 2h", "", cluster.ReasonDrifted, 0, 7, "is 7", ""},
		{20, "4 at 0 9 * * * for 2h", "", cluster.ReasonDrifted, 0, 0, "the next one does at 2026-01-05T09:00:00Z", ""},
		{20, "4 at 0 9 31 2 * for 2h", "", cluster.ReasonDrifted, 0, 0, "none ever will", ""},
	} {
		s, p := fleet(x.nodes)
		var err error
		if x.group != "" {
			list := cluster.DisruptionBudgets{}
			s.Groups[0].Options.Budgets, err = &list, list.Decode(x.group)
		}
		if p.DisruptionBudgets.Decode(x.all) != nil || err != nil {
			t.Fatalf("%+v: %v", x, err)
		}
		for _, n := range s.Nodes[:x.unready] {
			n.Ready = cluster.StatusFalse
		}
		d := begun(&s, &decision.Memory{}, &p)
		went, held := 0, ""
		for i := x.unready; i < x.nodes; i++ {
			if held = d.Full(i, x.reason); held != "" {
				break
			}
			d.Add(i)
			d.Add(i) // it counts once
			went++
		}
		if went != x.want || !strings.Contains(held, x.held) {
			t.Errorf("%+v: %d go, then %q", x, went, held)
		}
	}
}

// TestKubelets: only a minor that is known to be older, and that the newest settled node shows to be out of date, is drift.
func TestKubelets(t *testing.T) {
	for _, x := range []struct {
		plane, old, young string
		want              bool
	}{
		{"v1.33.4", "v1.32.9", "v1.33.1", true}, {"v1.33.4", "v1.33.0", "v1.33.4", false}, {"v1.33.4", "v1.32.9", "v1.32.9", false},
		{"v1.33.4", "v1.31.0", "v1.32.9", true}, {"", "v1.32.9", "v1.33.1", false}, {"v1.33.4", "", "v1.33.1", false},
		{"v1.33.4-eks-1", "v1.32.9+k3s1", "v1.33.1", true}, {"v1.32.4", "v1.32.9", "v1.33.1", false}, {"v1.10.0", "v1.9.0", "v1.10.1", true},
	} {
		s, p := fleet(2)
		p.Drift, s.ControlPlaneVersion = true, x.plane
		s.Groups[0].Template.Source = s.Groups[0].Instances[0].Source
		s.Groups[0].Instances[1].Created = s.Groups[0].Instances[1].Created.Add(time.Hour)
		s.Nodes[0].KubeletVersion, s.Nodes[1].KubeletVersion = x.old, x.young
		s.Nodes[1].Created = s.Nodes[1].Created.Add(time.Hour)
		d := begun(&s, &decision.Memory{}, &p)
		if got := d.Reason(0).Rule == decision.RuleDrifted; got != x.want || d.Reason(1).Rule != "" {
			t.Errorf("%+v: %v, %v", x, d.Reason(0), d.Reason(1))
		}
	}
}

// TestBudgetsOfSeveralWindows: of budgets that hold the smallest counts; the earliest window is told that changes that.
func TestBudgetsOfSeveralWindows(t *testing.T) {
	for name, c := range map[string]struct{ list, want string }{ // it is 08:00
		"one that never holds":                {"4 at 0 9 * * * for 1h; 4 at 0 9 31 2 * for 1h", "the next one does at 2026-01-05T09:00:00Z"},
		"one that never holds, told first":    {"4 at 0 9 31 2 * for 1h; 4 at 0 9 * * * for 1h", "the next one does at 2026-01-05T09:00:00Z"},
		"none holds: the earliest window":     {"4 at 0 11 * * * for 1h; 4 at 0 9 * * * for 1h; 4 at 0 10 * * * for 1h", "the next one does at 2026-01-05T09:00:00Z"},
		"one holds, and no other is asked":    {"0; 4 at 0 9 * * * for 1h", "its budget is 0"},
		"one of none holds for an hour more":  {"0 at 0 7 * * * for 2h; 4 at 0 12 * * * for 1h", "its budget is 0 at 0 7 * * * for 2h"},
		"the smallest of two, whatever first": {"2; 0", "its budget is 0"},
		"of equal ones the first":             {"0%; 0", "its budget is 0%"},
		"one that cannot be read":             {"4 at 0 25 * * * for 1h", "a disruption budget of group workers cannot be read: "},
		"a fault beside one that holds":       {"9; 4 at 0 25 * * * for 1h", "a disruption budget of group workers cannot be read: "},
		"one for other reasons":               {"9; 0 of expired", ""},
	} {
		s, p := fleet(20)
		list := cluster.DisruptionBudgets{}
		if err := list.Decode(strings.Replace(c.list, " 25 ", " 9 ", 1)); err != nil { // it refuses what cannot be read
			t.Fatal(name, err)
		}
		if last := &list[len(list)-1]; strings.Contains(c.list, " 25 ") {
			last.Cron = "0 25 * * *"
		}
		s.Groups[0].Options.Budgets = &list
		for range 2 { // a schedule is read once
			d := begun(&s, &decision.Memory{}, &p)
			if got := d.Full(0, cluster.ReasonDrifted); !strings.Contains(got, c.want) || c.want == "" && got != "" {
				t.Errorf("%s: %q", name, got)
			}
		}
	}
}

// TestWhatCountsAsDisrupted: what a budget of two counts beside the node that is asked for.
func TestWhatCountsAsDisrupted(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*cluster.Snapshot, *decision.Memory)
		gone   string
	}{
		"nothing":                  {func(*cluster.Snapshot, *decision.Memory) {}, "0 of 20"},
		"a node that is not Ready": {func(s *cluster.Snapshot, _ *decision.Memory) { s.Nodes[1].Ready = cluster.StatusFalse }, "1 of 20"},
		"a node that is drained": {func(s *cluster.Snapshot, m *decision.Memory) {
			mark(s.Nodes[1])
			m.Sizes = map[cluster.GroupID]int{"workers": 20}
		}, "1 of 20"},
		"a leader that is not Ready": {func(s *cluster.Snapshot, _ *decision.Memory) {
			s.Nodes[1].Ready, s.Nodes[1].ControlPlane = cluster.StatusFalse, true
		}, "0 of 19"},
		"a node of no group that is not Ready": {func(s *cluster.Snapshot, _ *decision.Memory) {
			s.Nodes = append(s.Nodes, &cluster.Node{Name: "z-foreign", Ready: cluster.StatusFalse, Created: s.Now.Add(-time.Hour)})
		}, "0 of 20"},
	} {
		s, p := fleet(20)
		p.Drift = true
		s.Groups[0].Options.Budgets = &cluster.DisruptionBudgets{{Nodes: 0}}
		p.DisruptionBudgets = cluster.DisruptionBudgets{{Nodes: 1}}
		m := decision.Memory{}
		c.change(&s, &m)
		d := begun(&s, &m, &p)
		if got := d.Full(0, cluster.ReasonDrifted); !strings.HasPrefix(got, c.gone+" nodes of group workers ") {
			t.Errorf("%s: %q", name, got)
		}
		if again := d.Full(1, cluster.ReasonDrifted); !strings.HasPrefix(again, "0 of ") {
			t.Errorf("%s: it counts against itself: %s", name, again)
		}
	}
}

// TestHold: what keeps a node that is to be replaced depends on the reason. A pause holds drifted and expired nodes, and the
// breaker sick ones.
func TestHold(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*cluster.Snapshot, *decision.Memory, *decision.Policy)
		reason string // the rule of the reason of the last node
		want   string
	}{
		"drifted":         {func(_ *cluster.Snapshot, _ *decision.Memory, p *decision.Policy) { p.Drift = true }, decision.RuleDrifted, ""},
		"drifted, paused": {func(_ *cluster.Snapshot, _ *decision.Memory, p *decision.Policy) { p.Drift, p.Rollouts = true, paused }, decision.RuleDrifted, decision.RuleRolloutHeld},
		"expired":         {func(_ *cluster.Snapshot, _ *decision.Memory, p *decision.Policy) { p.MaxNodeAge = time.Hour }, decision.RuleExpired, ""},
		"expired, paused": {func(_ *cluster.Snapshot, _ *decision.Memory, p *decision.Policy) {
			p.MaxNodeAge, p.Rollouts = time.Hour, paused
		}, decision.RuleExpired, decision.RuleRolloutHeld},
		"sick":           {func(s *cluster.Snapshot, _ *decision.Memory, p *decision.Policy) { sick(s, p, 1) }, decision.RuleSick, ""},
		"sick, paused":   {func(s *cluster.Snapshot, _ *decision.Memory, p *decision.Policy) { sick(s, p, 1); p.Rollouts = paused }, decision.RuleSick, ""},
		"sick as others": {func(s *cluster.Snapshot, _ *decision.Memory, p *decision.Policy) { sick(s, p, 5) }, decision.RuleSick, decision.RuleBreaker},
		"drifted, five are sick": {func(s *cluster.Snapshot, _ *decision.Memory, p *decision.Policy) {
			sick(s, p, 5)
			n := s.Nodes[len(s.Nodes)-1]
			n.Ready, n.ReadySince, p.Drift = cluster.StatusTrue, s.Now.Add(-24*time.Hour), true
		}, decision.RuleDrifted, ""},
		"given up before": {func(s *cluster.Snapshot, m *decision.Memory, p *decision.Policy) {
			p.MaxNodeAge = time.Hour
			m.GivenUp = map[cluster.NodeName]time.Time{s.Nodes[len(s.Nodes)-1].Name: s.Now.Add(-time.Minute)}
		}, decision.RuleExpired, decision.RuleTookBack},
		"given up long ago": {func(s *cluster.Snapshot, m *decision.Memory, p *decision.Policy) {
			p.MaxNodeAge = time.Hour
			m.GivenUp = map[cluster.NodeName]time.Time{s.Nodes[len(s.Nodes)-1].Name: s.Now.Add(-2 * time.Hour)}
		}, decision.RuleExpired, ""},
	} {
		s, p := fleet(10)
		s.Groups[0].Options.Budgets = &cluster.DisruptionBudgets{{Nodes: 100, Percent: true}}
		p.OKTotalUnready = 1000
		m := decision.Memory{}
		c.change(&s, &m, &p)
		d := begun(&s, &m, &p)
		last := len(s.Nodes) - 1
		why := d.Reason(last)
		if told := held(d, "workers"); strings.Contains(told, decision.RuleRolloutHeld) != (p.Rollouts != nil) {
			t.Errorf("%s: %s", name, told)
		}
		if rule, words := d.Hold(last, why); why.Rule != c.reason || rule != c.want || (rule == "") != (words == "") {
			t.Errorf("%s: [%s] %s: held by [%s] %s", name, why.Rule, why.Why, rule, words)
		}
	}
}

var paused = cluster.RolloutOrders{"workers": {Paused: true}}

// sick makes the last nodes sick.
func sick(s *cluster.Snapshot, p *decision.Policy, n int) {
	p.RepairAfter = time.Minute
	for _, x := range s.Nodes[len(s.Nodes)-n:] {
		x.Ready, x.ReadySince = cluster.StatusUnknown, s.Now.Add(-time.Hour)
	}
}

// TestSickNodesDoNotHoldEachOther: nodes that are away use no budget up that another one needs for its repair; those that are repaired do.
func TestSickNodesDoNotHoldEachOther(t *testing.T) {
	s, p := fleet(12)
	p.OKTotalUnready = 1000
	sick(&s, &p, 2)
	d := begun(&s, &decision.Memory{}, &p)
	if got := d.Full(11, cluster.ReasonSick); got != "" {
		t.Errorf("the first: %s", got)
	}
	d.Add(11)
	if got := d.Full(10, cluster.ReasonSick); !strings.HasPrefix(got, "1 of 12 nodes") {
		t.Errorf("the second: %q", got)
	}
	if got := d.Full(0, cluster.ReasonDrifted); !strings.HasPrefix(got, "2 of 12 nodes") {
		t.Errorf("a drifted one: %q", got)
	}
}

// TestSizeIsForgotten: while nothing is to be replaced and nothing goes, a group has the size that it has.
func TestSizeIsForgotten(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*world)
		want   int
	}{
		"nothing":                     {func(*world) {}, 0},
		"a node is to be replaced":    {func(w *world) { w.g().Instances[0].Source = cluster.Spec{"image": "old"} }, 5},
		"a node goes":                 {func(w *world) { mark(w.s.Nodes[0]) }, 5},
		"all are young, known before": {func(w *world) { mark(w.s.Nodes[0]); w.young() }, 4},
		"all are young":               {func(w *world) { mark(w.s.Nodes[0]); w.young(); w.m.Sizes = nil }, 9},
	} {
		w := drifted(10)
		for i := range w.s.Nodes {
			w.g().Instances[i].Source = w.g().Template.Source
			put(w.s.Nodes[i], w.s.Now)
		}
		w.m.Sizes = map[cluster.GroupID]int{"workers": 4} // with a budget of 100 % four more may have come in their place, and of five five
		c.change(w)
		d := w.begin()
		d.Full(0, cluster.ReasonDrifted)
		if got := d.State.Next.Sizes["workers"]; got != c.want {
			t.Errorf("%s: %d", name, got)
		}
	}
}

// young lets all machines have come a minute ago.
func (w *world) young() {
	for _, n := range w.s.Nodes {
		n.Created = w.s.Now.Add(-time.Minute)
	}
}

// TestSize: what percent of a group counts from, of ten nodes in a group of which some are on their way out, and some have come.
func TestSize(t *testing.T) {
	for name, c := range map[string]struct {
		out, empty, starting, filled int // empty and filled below 0: so many, and for an hour
		before                       int // 0: nothing is remembered
		want                         string
	}{
		"nothing goes":                          {0, 0, 0, 0, 0, "of 10 nodes"},
		"a spare machine starts":                {0, 0, 1, 0, 10, "of 10 nodes"},
		"it has come":                           {0, 1, 0, 0, 10, "of 10 nodes"},
		"it has the pods of a node that goes":   {1, 0, 0, 1, 10, "of 10 nodes"},
		"a node goes to room that was there":    {1, 0, 0, 0, 10, "of 10 nodes"},
		"the same after a restart":              {1, 0, 0, 0, 0, "of 9 nodes"},
		"many have come meanwhile":              {1, 0, 0, 10, 10, "of 10 nodes"},
		"the group had grown before":            {1, 0, 0, 0, 4, "of 9 nodes"},
		"three hold the pods of two, one stays": {0, 0, 0, 3, 10, "of 10 nodes"},
		"and all is forgotten":                  {0, 0, 0, 3, 0, "of 13 nodes"},
		"pods of three lie over four":           {3, 0, 0, 4, 10, "of 10 nodes"},
		"idle spares after a long standby":      {1, -2, 0, 0, 10, "of 10 nodes"},
		"a spare that has pods for an hour":     {0, 0, 0, -1, 10, "of 10 nodes"},
		"more than the budget lets come":        {0, 0, 0, -3, 10, "of 12 nodes"},
		"it has shrunk meanwhile":               {0, 1, 0, 0, 15, "of 10 nodes"},
		"two go, two come, after many machines": {2, 1, 1, 2, 10, "of 10 nodes"},
	} {
		w := drifted(10)
		w.p.OKTotalUnready = 1000
		w.g().Options.Budgets = &cluster.DisruptionBudgets{{Nodes: 0}}
		for i := range c.out {
			mark(w.s.Nodes[i])
		}
		for i := range max(c.empty, -c.empty) {
			n := w.join(w.g(), cluster.NodeName(fmt.Sprint("e", i)), time.Minute, "new")
			if c.empty < 0 {
				n.Created = w.s.Now.Add(-time.Hour)
			}
		}
		for i := range c.starting {
			w.join(w.g(), cluster.NodeName(fmt.Sprint("s", i)), time.Minute, "new").Ready = cluster.StatusFalse
		}
		for i := range max(c.filled, -c.filled) {
			n := w.join(w.g(), cluster.NodeName(fmt.Sprint("f", i)), time.Minute, "new")
			if put(n, w.s.Now); c.filled < 0 {
				n.Created = w.s.Now.Add(-time.Hour)
			}
		}
		if c.before > 0 {
			w.m.Sizes = map[cluster.GroupID]int{"workers": c.before}
		}
		d := w.begin()
		if got := d.Full(9, cluster.ReasonDrifted); !strings.Contains(got, c.want) {
			t.Errorf("%s: %s", name, got)
		}
		size := d.State.Next.Sizes["workers"] // one that has shrunk may be as large again
		if got := fmt.Sprintf("of %d nodes", size); size != max(c.before, 1) && got != c.want {
			t.Errorf("%s: remembered %s", name, got)
		}
	}
}
