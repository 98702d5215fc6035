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

// TestFirstMachine says what a first machine has to show, and what ends the rollout.
func TestFirstMachine(t *testing.T) {
	owner := func(n int) *cluster.Owner {
		return &cluster.Owner{Kind: "ReplicaSet", Name: fmt.Sprint("rs-", n), UID: cluster.UID(fmt.Sprint("rs-", n))}
	}
	for _, x := range []struct {
		name         string
		pods         []cluster.Pod // on the first machine
		others       []cluster.Pod // on an old one
		age          time.Duration // of the pods
		proven, halt bool
	}{
		{"no pod", nil, nil, 0, false, false},
		{"Ready for long enough", []cluster.Pod{{Owner: owner(1)}}, nil, 2 * time.Minute, true, false},
		{"Ready for a minute", []cluster.Pod{{Owner: owner(1)}}, nil, time.Minute, false, false},
		{"not Ready yet", []cluster.Pod{{Owner: owner(1), Unready: true}, {Owner: owner(2)}}, []cluster.Pod{{Owner: owner(1)}}, 14 * time.Minute, false, false},
		{"not Ready in its time", []cluster.Pod{{Owner: owner(1), Unready: true}}, []cluster.Pod{{Owner: owner(1)}}, 15 * time.Minute, false, true},
		{"nor are its siblings", []cluster.Pod{{Owner: owner(1), Unready: true}}, []cluster.Pod{{Owner: owner(1), Unready: true}}, 15 * time.Minute, false, false},
		{"crashes, and its sibling does not", []cluster.Pod{{Owner: owner(1), Unready: true, Crashing: true}}, []cluster.Pod{{Owner: owner(1)}}, time.Minute, false, true},
		{"crashes, as its sibling does", []cluster.Pod{{Owner: owner(1), Unready: true, Crashing: true}}, []cluster.Pod{{Owner: owner(1), Unready: true, Crashing: true}, {Owner: owner(1)}}, time.Minute, false, false},
		{"one program without siblings crashes", []cluster.Pod{{Owner: owner(1), Unready: true, Crashing: true}}, nil, time.Minute, false, false},
		{"two programs without siblings crash", []cluster.Pod{{Owner: owner(1), Unready: true, Crashing: true}, {Owner: owner(2), Unready: true, Crashing: true}}, nil, time.Minute, false, true},
		{"a DaemonSet's pod crashes", []cluster.Pod{{Owner: &cluster.Owner{Kind: "DaemonSet", UID: "ds"}, Unready: true, Crashing: true}}, []cluster.Pod{{Owner: &cluster.Owner{Kind: "DaemonSet", UID: "ds"}}}, time.Minute, false, true},
		{"only DaemonSets run there", []cluster.Pod{{Owner: &cluster.Owner{Kind: "DaemonSet", UID: "ds"}}}, nil, time.Hour, false, false},
	} {
		s, p := fleet(3)
		p.Drift = true
		s.Groups[0].Instances[0].Source = cluster.Spec{"image": "new"}
		s.Classes = []cluster.PodClass{{Namespace: "default", Requests: cluster.Resources{Pods: 1}}}
		put := func(n *cluster.Node, pods []cluster.Pod) {
			for i, pod := range pods {
				pod.Key, pod.Node, pod.Created = cluster.PodKey(fmt.Sprintf("default/%s-%d", n.Name, i)), n.Name, cluster.At(s.Now.Add(-x.age))
				n.Pods = append(n.Pods, pod)
			}
		}
		put(s.Nodes[0], x.pods)
		put(s.Nodes[1], x.others)
		d := begun(&s, &decision.Memory{}, &p)
		rule, words := d.Hold(2, d.Reason(2))
		if halted := d.Halted(0) != ""; halted != x.halt || x.proven != (rule == "") && len(x.pods) > 0 && x.name != "only DaemonSets run there" {
			t.Errorf("%s: halted %q; [%s] %s", x.name, d.Halted(0), rule, words)
		}
		if x.halt { // and an operator goes on with it
			p.Rollouts = cluster.RolloutOrders{s.Groups[0].ID: {Resumed: d.State.Next.Halts[0].Source}}
			if d := begun(&s, &d.State.Next, &p); d.Halted(0) != "" || len(d.State.Next.Halts) > 0 {
				t.Errorf("%s: resumed, and %q", x.name, d.Halted(0))
			}
		}
	}
}
