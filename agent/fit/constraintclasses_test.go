package fit

import (
	"reflect"
	"testing"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// TestTie changes one thing of a class after the other: what F7 to F12 read gives the
// class a constraint class of its own, and nothing else does.
func TestTie(t *testing.T) {
	is := func(value string) *cluster.Selector {
		return &cluster.Selector{Requirements: []cluster.Requirement{{Key: "app", Operator: "In", Values: []string{value}}}}
	}
	base := func() cluster.PodClass {
		term := cluster.PodTerm{TopologyKey: "zone", Selector: is("a"), Namespaces: []string{"n1"}, NamespaceSelector: is("b")}
		return cluster.PodClass{
			Namespace: "n1", Labels: map[string]string{"app": "a"}, NodeSelector: map[string]string{"rack": "1"},
			Affinity:    []cluster.NodeTerm{{Labels: is("a").Requirements, Fields: is("b").Requirements}},
			Tolerations: []cluster.Toleration{{Key: "team", Operator: "Exists"}},
			PodAffinity: []cluster.PodTerm{term}, PodAntiAffinity: []cluster.PodTerm{term},
			Spread: []cluster.Spread{{TopologyKey: "zone", MaxSkew: 1, MinDomains: 2, Selector: is("a")}},
		}
	}
	own := map[string][]func(c *cluster.PodClass){
		"Namespace":    {func(c *cluster.PodClass) { c.Namespace = "n2" }},
		"Labels":       {func(c *cluster.PodClass) { c.Labels["app"] = "b" }, func(c *cluster.PodClass) { c.Labels["tier"] = "a" }},
		"NodeSelector": {func(c *cluster.PodClass) { c.NodeSelector["rack"] = "2" }},
		"Affinity": {
			func(c *cluster.PodClass) { c.Affinity = nil },
			func(c *cluster.PodClass) { c.Affinity = []cluster.NodeTerm{} },
			func(c *cluster.PodClass) { c.Affinity[0].Labels = is("b").Requirements },
			func(c *cluster.PodClass) { c.Affinity[0].Fields = nil },
		},
		"Tolerations": {func(c *cluster.PodClass) { c.Tolerations[0].Effect = "NoExecute" }, func(c *cluster.PodClass) { c.Tolerations = nil }},
		"PodAffinity": {
			func(c *cluster.PodClass) { c.PodAffinity = nil },
			func(c *cluster.PodClass) { c.PodAffinity[0].TopologyKey = "rack" },
			func(c *cluster.PodClass) { c.PodAffinity[0].Selector = is("b") },
			func(c *cluster.PodClass) { c.PodAffinity[0].Namespaces = []string{"n1", "n2"} },
			func(c *cluster.PodClass) { c.PodAffinity[0].NamespaceSelector = nil },
			func(c *cluster.PodClass) { c.PodAffinity[0].NamespaceSelector = &cluster.Selector{} },
		},
		"PodAntiAffinity": {
			func(c *cluster.PodClass) { c.PodAntiAffinity = nil },
			func(c *cluster.PodClass) { c.PodAntiAffinity[0].Selector = nil },
		},
		"Spread": {
			func(c *cluster.PodClass) { c.Spread = nil },
			func(c *cluster.PodClass) { c.Spread = append(c.Spread, c.Spread[0]) },
			func(c *cluster.PodClass) { c.Spread[0].TopologyKey = "rack" },
			func(c *cluster.PodClass) { c.Spread[0].MaxSkew = 2 },
			func(c *cluster.PodClass) { c.Spread[0].MinDomains = 3 },
			func(c *cluster.PodClass) { c.Spread[0].Selector = is("b") },
			func(c *cluster.PodClass) { c.Spread[0].IgnoreNodeAffinity = true },
			func(c *cluster.PodClass) { c.Spread[0].HonorTaints = true },
		},
		"Claims":  {func(c *cluster.PodClass) { c.Claims = []cluster.DeviceClaim{{}} }},
		"Volumes": {func(c *cluster.PodClass) { c.Volumes = []cluster.Volume{{Claim: "n1/data"}} }},
	}
	shared := map[string]func(c *cluster.PodClass){
		"Requests":      func(c *cluster.PodClass) { c.Requests.MilliCPU = 100 },
		"HostPorts":     func(c *cluster.PodClass) { c.HostPorts = []cluster.HostPort{{Port: 80}} },
		"Priority":      func(c *cluster.PodClass) { c.Priority = 1 },
		"NodeName":      func(c *cluster.PodClass) { c.NodeName = "node-1" },
		"NotUnderstood": func(c *cluster.PodClass) { c.NotUnderstood = []string{"a resource claim"} },
		"TooLarge":      func(c *cluster.PodClass) { c.TooLarge = true },
		"Prefers":       func(c *cluster.PodClass) { c.Prefers = &cluster.Preferences{MilliCPU: 100} },
	}
	classes, names := []cluster.PodClass{base()}, []string{""}
	add := func(name string, change func(c *cluster.PodClass)) {
		c := base()
		change(&c)
		classes, names = append(classes, c), append(names, name)
	}
	for field := range reflect.TypeFor[cluster.PodClass]().Fields() {
		if own[field.Name] == nil && shared[field.Name] == nil {
			t.Errorf("does State read %s of a class? Say so here, and in appendTie", field.Name)
		}
		for _, change := range own[field.Name] {
			add(field.Name, change)
		}
	}
	differ := len(classes)
	for name, change := range shared {
		add(name, change)
	}
	s := NewState(classes, nil)
	for name, c := range map[string]struct {
		class func(rack string) cluster.PodClass
		same  bool
	}{
		"what a class without a spread asks of nodes": {func(rack string) cluster.PodClass {
			return with(avoids(near(hostKey, in("app", "me"))), func(c *cluster.PodClass) { c.NodeSelector = map[string]string{"rack": rack} })
		}, true},
		"what one with a spread asks of nodes": {func(rack string) cluster.PodClass {
			return with(evenly(cluster.Spread{TopologyKey: zoneKey, MaxSkew: 1, Selector: in("app", "me")}), func(c *cluster.PodClass) { c.NodeSelector = map[string]string{"rack": rack} })
		}, false},
	} {
		two := NewState([]cluster.PodClass{c.class("1"), c.class("2")}, nil)
		if same := two.ConstraintClass(0) == two.ConstraintClass(1); same != c.same {
			t.Errorf("%s: one constraint class %v", name, same)
		}
	}
	seen := map[int]int{}
	for i := range differ {
		if j, has := seen[s.ConstraintClass(i)]; has {
			t.Errorf("class %d (%s) has the tie of class %d (%s): %+v", i, names[i], j, names[j], classes[i])
		}
		seen[s.ConstraintClass(i)] = i
	}
	for i := differ; i < len(classes); i++ {
		if s.ConstraintClass(i) != s.ConstraintClass(0) {
			t.Errorf("%s gives a class a tie of its own", names[i])
		}
	}
}
