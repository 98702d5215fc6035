package consolidation

import (
	"strings"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
)

// TestWorth: what a replacement saves beside what moving its pods counts for, and which questions about room that costs.
func TestWorth(t *testing.T) {
	always := func(w *world) { w.p.Consolidate = decision.ConsolidateAlways }
	unpriced := func(w *world) {
		always(w)
		w.s.Groups[0].Price, w.s.Groups[1].Price = 0, 0
	}
	for _, c := range []struct {
		name   string
		change func(*world)
		what   string // nodes, machines
		most   float64
		want   float64
		asked  string // Fit
	}{
		{"room elsewhere", func(*world) {}, "b1", 0, 4, "b1"},
		{"a machine", func(*world) {}, "b1 by 1 of small", 0, 3, "b1 by 1 of small"},
		{"two machines for two nodes", func(*world) {}, "b1 b2 by 2 of small", 0, 6, "b1 b2 by 2 of small"},
		{"no room", func(w *world) { w.noRoom["b1"] = true }, "b1", 0, 0, "b1"},
		{"a pod is left where scores put them", func(w *world) { w.stranded["b1"] = true }, "b1", 0, 0, "b1"},
		{"a node that is gone", func(*world) {}, "gone", 0, 0, ""},
		{"a node that may not go", func(w *world) { w.kept["s1"] = true }, "s1", 0, 0, ""},
		{"a group that is gone", func(*world) {}, "b1 by 1 of gone", 0, 0, ""},
		{"a group that is gone, and the first is cheaper", func(w *world) { w.s.Groups[0].Price = 0.5 }, "s1 by 1 of gone", 0, 0, ""},
		{"the same price", func(*world) {}, "s1 by 1 of small", 0, 0, ""},
		{"dearer", func(*world) {}, "s1 by 1 of big", 0, 0, ""},
		{"just enough", func(w *world) { w.p.ConsolidateSaving = 0.75 }, "b1 by 1 of small", 0, 3, "b1 by 1 of small"},
		{"too little a share", func(w *world) { w.p.ConsolidateSaving = 0.8 }, "b1 by 1 of small", 0, 0, ""},
		{"pods count", func(w *world) { w.p.ConsolidatePodCost, w.moved["b1"] = 0.5, 2 }, "b1", 0, 2, "b1"}, // the cluster costs 10 with 5 pods
		{"pods count for as much", func(w *world) { w.p.ConsolidatePodCost, w.moved["b1"] = 1, 2 }, "b1", 0, 0, ""},
		{"pods count for more", func(w *world) { w.p.ConsolidatePodCost, w.moved["b1"] = 2, 2 }, "b1", never, -2, "b1"}, // it pays in two hours
		{"pods count for too much", func(w *world) { w.p.ConsolidatePodCost, w.moved["b1"] = 12, 2 }, "b1", never, 0, ""},
		{"no more than the best", func(*world) {}, "b1", 4, 0, ""},
		{"no more than the best, but for what sums lose", func(*world) {}, "b1", 4 / (1 + 1e-9), 0, ""},
		{"more than the best", func(*world) {}, "b1", 3.9, 4, "b1"},
		{"below the minimum", func(w *world) { w.s.Groups[0].Min = 2 }, "b1", 0, 0, ""},
		{"at the minimum", func(w *world) { w.s.Groups[0].Min = 1 }, "b1", 0, 4, "b1"},
		{"fewer of the same group", func(w *world) { w.s.Groups[0].Min = 1 }, "b1 b2 by 1 of big", 0, 4, "b1 b2 by 1 of big"},
		{"another group at its minimum", func(w *world) { w.s.Groups[0].Min = 1 }, "b1 b2 by 1 of small", 0, 0, ""},
		{"the group may not grow", func(w *world) { w.s.Groups[1].Max = 2 }, "b1 by 1 of small", 0, 0, ""},
		{"the group may grow by one", func(w *world) { w.s.Groups[1].Max = 3 }, "b1 b2 by 2 of small", 0, 0, ""},
		{"the group may grow by two", func(w *world) { w.s.Groups[1].Max = 4 }, "b1 b2 by 2 of small", 0, 6, "b1 b2 by 2 of small"},
		{"spot for spot", func(w *world) { w.s.Groups[0].SpotTypes, w.s.Groups[1].SpotTypes = 20, 14 }, "b1 by 1 of small", 0, 0, ""},
		{"spot for spot of many types", func(w *world) { w.s.Groups[0].SpotTypes, w.s.Groups[1].SpotTypes = 20, 15 }, "b1 by 1 of small", 0, 3, "b1 by 1 of small"},
		{"spot for on-demand", func(w *world) { w.s.Groups[1].SpotTypes = 1 }, "b1 by 1 of small", 0, 3, "b1 by 1 of small"},
		{"on-demand for spot", func(w *world) { w.s.Groups[0].SpotTypes = 1 }, "b1 by 1 of small", 0, 3, "b1 by 1 of small"},
		{"a node stays for it", func(w *world) { w.idle["b1"] = []string{"s1"} }, "b1", 0, 3, "b1"},
		{"a node of the same price stays for it", func(w *world) { w.idle["b1"] = []string{"b2"} }, "b1", 0, 0, "b1"},
		{"no price to compare", func(w *world) { w.s.Groups[1].Price = 0 }, "b1 by 1 of small", 0, 0, ""},
		{"no price, and another group", unpriced, "b1 b2 by 1 of small", 0, 0, ""},
		{"no price, and the same group", unpriced, "b1 b2 by 1 of big", 0, 1, "b1 b2 by 1 of big"},
		{"no price, and room elsewhere", unpriced, "b1 b2", 0, 2, "b1 b2"},
		{"no price of some, and room elsewhere", func(w *world) { always(w); w.s.Groups[0].Price = 0 }, "b1 s1", 0, 2, "b1 s1"},
		{"no price of some, and another group", func(w *world) {
			always(w)
			w.s.Groups[0].Price = 0
			w.group("tiny", 0.5)
		}, "b1 s1 by 1 of tiny", 0, 0, ""},
		{"a node without a price stays for it", func(w *world) { w.s.Groups[1].Price, w.idle["b1"] = 0, []string{"s1"} }, "b1", 0, 0, "b1"},
		{"a node without a price stays, of another group", func(w *world) {
			always(w)
			w.s.Groups[1].Price, w.idle["b1 b2"] = 0, []string{"s1"}
		}, "b1 b2", 0, 0, "b1 b2"},
		{"no price, and one of the same group stays", func(w *world) { unpriced(w); w.idle["b1 s1"] = []string{"b2"} }, "b1 s1", 0, 0, "b1 s1"},
		{"no price, and one of the only group stays", func(w *world) {
			unpriced(w)
			w.s.Groups = w.s.Groups[:0]
			w.s.Nodes = nil
			w.group("small", 0, "s1", "s2", "s3")
			w.idle["s1 s2"] = []string{"s3"}
		}, "s1 s2", 0, 1, "s1 s2"},
		{"no price: machines by pods", func(w *world) { unpriced(w); w.p.ConsolidatePodCost = 0.5 }, "b1 b2", 0, 1, "b1 b2"},
	} {
		w := fourNodes()
		c.change(w)
		w.begin()
		w.list = w.replaceable()
		w.perPod, w.perRun = w.meanPod()
		got := w.worthOf(c.what, c.most)
		asked := strings.Join(w.fits, ",")
		if got != c.want || asked != c.asked {
			t.Errorf("%s: worth %v, want %v; asked %s, want %s", c.name, got, c.want, asked, c.asked)
		}
	}
}

// worthOf is the rank of a replacement; 0: it has none.
func (w *world) worthOf(words string, most float64) float64 {
	s := saving(words)
	r, ok := w.known(&s)
	if !ok {
		return 0
	}
	if rank := w.worth(&r, most); rank > never {
		return rank
	}
	return 0
}

// saving reads what words say: nodes, and machines of a group.
func saving(words string) (s decision.Consolidation) {
	s.Wait = 5 * time.Minute
	nodes, machines, _ := strings.Cut(words, " by ")
	for name := range strings.FieldsSeq(nodes) {
		s.Nodes = append(s.Nodes, cluster.NodeName(name))
	}
	if n, group, with := strings.Cut(machines, " of "); with {
		s.Machines, s.Group = int(n[0]-'0'), cluster.GroupID(group)
	}
	return s
}

// TestMeanPod: nodes that go, that are of no group, or of the control plane, are not paid for the pods.
func TestMeanPod(t *testing.T) {
	w := fourNodes().begin()
	w.node("b1").Removing = true
	w.node("b2").ControlPlane = true
	if price, machines := w.meanPod(); price != 1 || machines != 1 {
		t.Errorf("two nodes of 1 with two pods: %v and %v machines by pod", price, machines)
	}
	w.node("s1").Group = -1
	w.moved["s2"] = 0
	if price, machines := w.meanPod(); price != 1 || machines != 1 {
		t.Errorf("one node of 1 without pods: %v and %v machines", price, machines)
	}
}
