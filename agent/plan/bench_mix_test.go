package plan

import (
	"fmt"
	"testing"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/plantest"
)

// spent is the price of what a plan buys.
func spent(s *cluster.Snapshot, plan decision.Plan) float64 {
	price := map[cluster.GroupID]float64{}
	for i := range s.Groups {
		price[s.Groups[i].ID] = s.Groups[i].Price
	}
	sum := 0.0
	for _, a := range plan.Actions {
		if g, ok := a.(decision.Grow); ok {
			sum += price[g.Group] * float64(g.To-g.From)
		}
	}
	return sum
}

// mixDemand is what the pods ask for, at the price of the machines' cpu and memory, with
// what the kubelet keeps of so many machines: no answer costs less.
func mixDemand(s *cluster.Snapshot, machines int) float64 {
	cpu, memory := 0.1*float64(machines), 10.0*(1<<20)*float64(machines)
	for i := range s.Pods {
		q := &s.Classes[s.Pods[i].Class].Requests
		cpu += float64(q.MilliCPU) / 1000
		memory += float64(q.Memory)
	}
	return 0.1*cpu + 0.1*memory/1e9
}

// BenchmarkKarpenterMix measures whole rounds on Karpenter's own workload: 400 groups.
func BenchmarkKarpenterMix(b *testing.B) {
	for _, pods := range []int{1000, 10000, 20000} {
		b.Run(fmt.Sprint(pods), func(b *testing.B) {
			s, p := plantest.KarpenterMix(t0, pods, 400), packPolicy()
			plan, _ := Decide(s, decision.Memory{}, p)
			machines, placed := bought(plan)
			b.ReportAllocs()
			before := cpuTime()
			for b.Loop() {
				Decide(s, decision.Memory{}, p)
			}
			used := float64(cpuTime()-before) / float64(b.N)
			b.ReportMetric(used, "cpu-ns/op")
			b.ReportMetric(float64(pods)*1e9/used, "pods/cpu-s")
			b.ReportMetric(float64(machines), "nodes")
			b.ReportMetric(float64(placed), "pods")
			b.ReportMetric(spent(&s, plan), "price")
			b.ReportMetric(spent(&s, plan)/mixDemand(&s, pods/5), "price/bound")
		})
	}
}

func TestKarpenterMix(t *testing.T) {
	for _, n := range []int{1000, 10000, 20000} {
		s := plantest.KarpenterMix(t0, n, 400)
		plan, _ := Decide(s, decision.Memory{}, packPolicy())
		machines, pods := bought(plan)
		t.Logf("%d classes, %d machines for %d pods, price %.1f, bound %.1f", len(s.Classes), machines, pods, spent(&s, plan), mixDemand(&s, n/5))
		if pods != n || machines > n/5 {
			t.Errorf("%d machines for %d of %d pods; Karpenter buys %d\n%.3000s", machines, pods, n, n/5, plan)
		}
	}
}
