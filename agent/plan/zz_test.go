package plan

import (
	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"testing"
	"time"
)

func TestZZ(t *testing.T) {
	for _, kind := range []string{"anti", "spreadhost", "spreadzone"} {
		for _, n := range []int{1000, 5000} {
			s := (rounds{nodes: n, use: 40}).snapshot()
			for i := range roundPodsPer {
				sel := &cluster.Selector{Requirements: []cluster.Requirement{{Key: "app", Operator: "In", Values: []string{s.Classes[i].Labels["app"]}}}}
				switch kind {
				case "anti":
					s.Classes[i].PodAntiAffinity = []cluster.PodTerm{{TopologyKey: "kubernetes.io/hostname", Selector: sel, Namespaces: []string{"default"}}}
				case "spreadhost":
					s.Classes[i].Spread = []cluster.Spread{{TopologyKey: "kubernetes.io/hostname", MaxSkew: 1, Selector: sel}}
				case "spreadzone":
					s.Classes[i].Spread = []cluster.Spread{{TopologyKey: "topology.kubernetes.io/zone", MaxSkew: 1, Selector: sel}}
				}
			}
			var e Engine
			var m Memory
			for range 2 {
				at := time.Now()
				var p Plan
				p, m = e.Decide(s, m, policy())
				rules := map[string]int{}
				for _, h := range p.Held {
					rules[h.Rule]++
				}
				t.Log(kind, n, time.Since(at), rules)
				s.Now = s.Now.Add(time.Second)
			}
		}
	}
}
