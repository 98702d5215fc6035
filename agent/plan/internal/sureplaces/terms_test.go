package sureplaces

import (
	"fmt"
	"strings"
	"testing"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/fit"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/certain"
)

// of is a class of an app with such terms.
func of(app string, terms ...func(*cluster.PodClass)) cluster.PodClass {
	c := cluster.PodClass{Namespace: "default", Labels: map[string]string{"app": app}}
	for _, t := range terms {
		t(&c)
	}
	return c
}

func near(key, app string) func(*cluster.PodClass) {
	return func(c *cluster.PodClass) {
		c.PodAffinity = append(c.PodAffinity, cluster.PodTerm{Selector: selector(app), TopologyKey: key})
	}
}

func apart(key, app string) func(*cluster.PodClass) {
	return func(c *cluster.PodClass) {
		c.PodAntiAffinity = append(c.PodAntiAffinity, cluster.PodTerm{Selector: selector(app), TopologyKey: key})
	}
}

func spread(key, app string, minDomains int) func(*cluster.PodClass) {
	return func(c *cluster.PodClass) {
		c.Spread = append(c.Spread, cluster.Spread{MaxSkew: 1, TopologyKey: key, Selector: selector(app), MinDomains: minDomains, HonorTaints: true})
	}
}

func volumeIn(zone string) func(*cluster.PodClass) {
	return func(c *cluster.PodClass) {
		c.Volumes = []cluster.Volume{{Claim: "default/c", Affinity: []cluster.NodeTerm{{Labels: []cluster.Requirement{{Key: keyZone, Operator: "In", Values: []string{zone}}}}}}}
	}
}

// written is a world of nodes, each in words: its zone (- for none), for how many pods it has room, and the classes of its pods.
// Those of which a > is in front go. A ! in front is a taint.
func written(classes []cluster.PodClass, nodes ...string) *world {
	w := &world{classes: classes, ends: make([]bool, len(classes)), limits: make([]map[string]int64, len(nodes))}
	for range classes {
		w.sizes = append(w.sizes, []int64{1, 1})
	}
	for i, text := range nodes {
		words := strings.Fields(strings.TrimLeft(text, ">!"))
		name := fmt.Sprint("n", i)
		shape := &fit.NodeInfo{Name: cluster.NodeName(name), Labels: map[string]string{keyHostname: name, keyZone: words[0]}}
		switch {
		case words[0] == "-":
			delete(shape.Labels, keyZone)
		case text[0] == '!':
			shape.Taints = []cluster.Taint{{Key: "k", Effect: "NoSchedule"}}
		case text[0] == '>':
			w.going = append(w.going, i)
		}
		var room int64
		_, _ = fmt.Sscan(words[1], &room)
		var pods []int
		for _, word := range words[2:] {
			pods = append(pods, int(word[0]-'0'))
		}
		w.shapes, w.rooms, w.pods = append(w.shapes, shape), append(w.rooms, []int64{room, 99}), append(w.pods, pods)
	}
	return w
}

// zones are so many zones with a node each, and one more node in the first that goes with some pods of class 0.
func zones(n, pods int) []string {
	out := []string{">z0 9" + strings.Repeat(" 0", pods)}
	for i := range n {
		out = append(out, fmt.Sprintf("z%d 20", i))
	}
	return out
}

// TestTerms has what each kind of term says of a place, where the random worlds of TestConstrain would let a no pass.
func TestTerms(t *testing.T) {
	plain, evenly := of("y"), of("x", spread(keyZone, "x", 0))
	for _, c := range []struct {
		what    string
		classes []cluster.PodClass
		nodes   []string
		want    bool
	}{
		{"anti-affinity, and a pod that it does not ask for", []cluster.PodClass{of("x", apart(keyZone, "x")), plain}, []string{">a 9 0 1", "b 9"}, true},
		{"anti-affinity, and two pods of one zone", []cluster.PodClass{of("x", apart(keyZone, "x"))}, []string{">a 9 0 0", "b 9"}, false},
		{"anti-affinity, and three pods of one zone", []cluster.PodClass{of("x", apart(keyZone, "x"))}, []string{">a 9 0 0 0", "a 9", "b 9"}, false},
		{"anti-affinity, and a node in no zone", []cluster.PodClass{of("x", apart(keyZone, "x"))}, []string{">a 9 0 0", "- 9"}, true},
		{"anti-affinity, and a pod is there", []cluster.PodClass{of("x", apart(keyZone, "x"))}, []string{">a 9 0", "b 9 0"}, false},
		{"anti-affinity on hosts, and a host each", []cluster.PodClass{of("x", apart(keyHostname, "x"))}, []string{">a 9 0", ">a 9 0", "a 9", "a 9"}, true},
		{"anti-affinity on hosts, and one host", []cluster.PodClass{of("x", apart(keyHostname, "x"))}, []string{">a 9 0", ">a 9 0", "a 9"}, false},
		{"anti-affinity on hosts, and a pod that it does not ask for", []cluster.PodClass{of("x", apart(keyHostname, "x")), plain}, []string{">a 9 0 1", ">a 9 0", "a 9", "a 9"}, true},
		{"affinity of the first", []cluster.PodClass{of("x", near(keyZone, "x"))}, []string{">a 9 0", "b 9"}, true},
		{"affinity of the first, which keeps off its like", []cluster.PodClass{of("x", near(keyZone, "x"), apart(keyHostname, "x"))}, []string{">a 9 0", "b 9"}, true},
		{"affinity of the first, which keeps off others", []cluster.PodClass{of("x", near(keyZone, "x"), apart(keyHostname, "y")), plain}, []string{">a 9 0", "b 9"}, true},
		{"affinity, one stays elsewhere, and others are kept off", []cluster.PodClass{of("x", near(keyZone, "x"), apart(keyHostname, "y")), plain}, []string{">a 9 0", "b 9", "c 0 0"}, false},
		{"affinity of the first, and a node in no zone", []cluster.PodClass{of("x", near(keyZone, "x"))}, []string{">a 9 0", "- 9"}, false},
		{"affinity on a host of the first, and another comes", []cluster.PodClass{of("x", near(keyHostname, "x"))}, []string{">a 9 0 0", "b 9", "c 9"}, false},
		{"affinity of the first, and another comes", []cluster.PodClass{of("x", near(keyZone, "x"))}, []string{">a 9 0 0", "b 9", "c 9"}, false},
		{"affinity to others of which there is none", []cluster.PodClass{of("x", near(keyZone, "y"))}, []string{">a 9 0", "b 9"}, false},
		{"affinity, and one stays in the first zone", []cluster.PodClass{of("x", near(keyZone, "x"))}, []string{">a 9 0", "a 9 0"}, true},
		{"affinity, and one stays in another zone", []cluster.PodClass{of("x", near(keyZone, "x"))}, []string{">a 9 0", "b 9 0"}, true},
		{"affinity, and one stays elsewhere", []cluster.PodClass{of("x", near(keyZone, "x"))}, []string{">a 9 0", "b 9", "c 0 0"}, false},
		{"affinity on a host and in a zone, and one stays in the zone", []cluster.PodClass{of("x", near(keyHostname, "x"), near(keyZone, "x"))}, []string{">a 9 0", "b 9", "b 0 0"}, false},
		{"affinity on a host and in a zone, and one stays on the host", []cluster.PodClass{of("x", near(keyHostname, "x"), near(keyZone, "x"))}, []string{">a 9 0", "b 9 0"}, true},
		{"spread of one, in the first zone", []cluster.PodClass{evenly}, []string{">a 9 0", "a 9", "b 0 0 0 0"}, true},
		{"spread of one, and a node in no zone", []cluster.PodClass{evenly}, []string{">a 9 0", "- 9"}, false},
		{"spread of one, a node in no zone, and three zones are asked for", []cluster.PodClass{of("x", spread(keyZone, "x", 3))}, []string{">a 9 0", "- 9"}, false},
		{"spread of one among many zones", []cluster.PodClass{evenly}, zones(13, 1), true},
		{"spread of two", []cluster.PodClass{evenly}, []string{">a 9 0 0", "a 9", "b 9"}, true},
		{"spread of two, one zone is enough", []cluster.PodClass{of("x", spread(keyZone, "x", 1))}, []string{">a 9 0 0", "a 9", "b 9"}, true},
		{"spread of two, and three zones are asked for", []cluster.PodClass{of("x", spread(keyZone, "x", 3))}, []string{">a 9 0 0", "a 9", "b 9"}, false},
		{"spread of two, and a zone has no room", []cluster.PodClass{evenly}, []string{">a 9 0 0", "a 9", "b 0"}, false},
		{"spread of two, and a fuller zone has no room", []cluster.PodClass{evenly}, []string{">a 9 0 0", "a 9", "b 9", "c 0 0 0 0 0 0"}, true},
		{"spread of two, and a zone with a pod more has no room", []cluster.PodClass{evenly}, []string{">a 9 0 0", "a 9", "b 0 0"}, true},
		{"spread of two, and a zone that does not count has no room", []cluster.PodClass{evenly}, []string{">a 9 0 0", "!c 0", "b 9", "a 9"}, true},
		{"spread over others", []cluster.PodClass{of("x", spread(keyZone, "y", 0)), plain}, []string{">a 9 0", "a 9 1", "b 0"}, true},
		{"spread over others that come", []cluster.PodClass{of("x", spread(keyZone, "y", 0)), plain}, []string{">a 9 0 1 1", "a 9", "b 0"}, false},
		{"a volume of the zone", []cluster.PodClass{of("x", volumeIn("b"))}, []string{">a 9 0", "b 9"}, true},
		{"a volume of another zone", []cluster.PodClass{of("x", volumeIn("a"))}, []string{">a 9 0", "b 9"}, false},
		{"spread of as many as are looked at", []cluster.PodClass{evenly}, zones(12, 12), true},
		{"spread of more than are looked at", []cluster.PodClass{evenly}, zones(13, 13), false},
	} {
		if _, got := written(c.classes, c.nodes...).sure(); got != c.want {
			t.Errorf("%s: %v, want %v", c.what, got, c.want)
		}
	}
	for zone, want := range map[string]bool{"b": true, "a": false, "": false} { // "": nobody knows it yet
		w := written([]cluster.PodClass{of("x", apart(keyZone, "x"))}, ">a 9 0", "a 0 0")
		w.machine, w.come = &fit.NodeInfo{Labels: map[string]string{keyZone: zone}}, 1
		if zone == "" {
			w.machine.Labels = nil
		}
		if _, got := w.sure(); got != want {
			t.Errorf("anti-affinity, and a machine comes in zone %q: %v, want %v", zone, got, want)
		}
	}
}

// TestLeaves: a pod that has finished counts nowhere, one that terminates is not counted by spread, and End puts all back.
func TestLeaves(t *testing.T) {
	w := written([]cluster.PodClass{of("x", spread(keyZone, "x", 0), apart(keyZone, "x"))}, "a 9 0", "a 9 0")
	st := w.state()
	st.PutTerminating(0, 0, 1)
	terms := st.Terms(0)
	counts := func() (out []int) {
		for _, term := range terms[:2] {
			out = append(out, st.Count(term, st.DomainOf(term, 0)))
		}
		return out
	}
	m := Begin(st, w.classes, 2)
	m.Leaves(0, []cluster.Pod{{}, {Finished: true}, {Deleting: 1}}, w.shapes[0].Cordoned())
	if got := fmt.Sprint(counts(), m.leaving); got != "[1 1] map[0:2]" {
		t.Errorf("spread and anti-affinity count %s, want one pod that stays, and two that leave", got)
	}
	m.End()
	if got := fmt.Sprint(counts()); got != "[2 3]" {
		t.Errorf("spread and anti-affinity count %s again, want [2 3]", got)
	}
}

// TestLooks: a class without constraints costs no look, and one with constraints has no places when none is left.
func TestLooks(t *testing.T) {
	w := written([]cluster.PodClass{of("x"), of("y", apart(keyZone, "y"))}, ">a 9 0 1", "b 9")
	for class, want := range []bool{true, false} {
		st := w.state()
		loads := []certain.Load{{N: 1, Size: w.sizes[class]}}
		if got := Begin(st, w.classes, 2).Constrain(loads, []int{class}, []int{1}, func(int) bool { return false }); got != want || loads[0].Sure != nil {
			t.Errorf("class %d without looks: %v, want %v", class, got, want)
		}
	}
}
