package plan

import (
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// BenchmarkConsolidationLook is one look for savings, which a cluster at rest costs once a minute.
func BenchmarkConsolidationLook(b *testing.B) {
	look := func(name string, s cluster.Snapshot) {
		b.Run(name, func(b *testing.B) {
			for g := range s.Groups {
				s.Groups[g].Price = 0.5 + 0.05*float64(g)
			}
			p := policy()
			p.Consolidate, p.ConsolidateSaving, p.ConsolidateAfter, p.ConsolidatePodCost = "priced", 0.1, 5*time.Minute, 1
			p.UnneededFor = time.Hour
			e := new(Engine)
			_, m := e.Decide(s, settled(e, &s), p)
			measure(b, func(int) {
				s.Now = s.Now.Add(time.Minute)
				for g := range s.Groups {
					s.Groups[g].ReadAt = s.Now
				}
				_, m = e.Decide(s, m, p)
			})
		})
	}
	for _, n := range []int{100, 1000, 5000} {
		for _, use := range []int{40, 60, 90} {
			look(fmt.Sprintf("N=%d/U=%d", n, use), rounds{nodes: n, use: use}.snapshot())
		}
		s := rounds{nodes: n, use: 60}.snapshot()
		spreadAll(&s)
		look(fmt.Sprintf("N=%d/U=60/spread", n), s)
	}
}

// spreadAll spreads the pods of each class over hosts, and those of each third class over three zones too.
func spreadAll(s *cluster.Snapshot) {
	for i := range s.Classes {
		c := &s.Classes[i]
		own := &cluster.Selector{Requirements: []cluster.Requirement{{Key: "app", Operator: "In", Values: []string{c.Labels["app"]}}}}
		c.Spread = append(c.Spread, cluster.Spread{TopologyKey: hostname, MaxSkew: 3, Selector: own})
		if i%3 == 0 {
			c.Spread = append(c.Spread, cluster.Spread{TopologyKey: "topology.kubernetes.io/zone", MaxSkew: 1, Selector: own})
		}
	}
	zone := func(labels map[string]string, name string) map[string]string {
		labels = maps.Clone(labels)
		labels["topology.kubernetes.io/zone"] = fmt.Sprintf("zone-%d", int(name[len(name)-1])%3)
		return labels
	}
	for g := range s.Groups {
		s.Groups[g].Template.Labels = zone(s.Groups[g].Template.Labels, string(s.Groups[g].ID))
	}
	for _, n := range s.Nodes {
		n.Labels = zone(n.Labels, n.Labels["pool"])
		n.Labels[hostname] = string(n.Name)
	}
}
