package plan

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
)

// BenchmarkUpcoming decides the round after a large purchase, with all its machines upcoming and
// 100 pods more, where ten groups sell the same machine.
func BenchmarkUpcoming(b *testing.B) {
	for _, c := range []struct{ classes, pods int }{{4, 600}, {10, 2000}, {7, 2500}} {
		s, m, policy := boughtFor(c.classes, c.pods)
		coming := 0
		for _, g := range s.Groups {
			coming += g.Target
		}
		b.Run(fmt.Sprintf("groups=10/classes=%d/upcoming=%d", c.classes, coming), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				Decide(s, m, policy)
			}
		})
	}
}

// boughtFor is the world after the purchase for a burst, and what the engine remembers of it.
func boughtFor(classes, pods int) (cluster.Snapshot, decision.Memory, decision.Policy) {
	r := rand.New(rand.NewPCG(1, 2))
	now := time.Date(2026, 1, 5, 8, 0, 0, 0, time.UTC)
	s := cluster.Snapshot{Now: now}
	size := cluster.Resources{MilliCPU: 15890, Memory: 60 << 30, Pods: 110}
	for g := range 10 {
		s.Groups = append(s.Groups, cluster.NodeGroup{ID: cluster.GroupID(fmt.Sprintf("g%02d", g)), Max: 1000, ReadAt: now, Price: 0.768, Template: cluster.Template{Spec: "lt", Capacity: size, Allocatable: size}})
	}
	for c := range classes {
		s.Classes = append(s.Classes, cluster.PodClass{Namespace: "default", Labels: map[string]string{"app": fmt.Sprint(c)}, Requests: cluster.Resources{MilliCPU: 300 + 10*r.Int64N(200), Memory: (640 + 16*r.Int64N(520)) << 20, Pods: 1}})
	}
	arrive := func(name string, n int) {
		for i := range n {
			s.Pods = append(s.Pods, cluster.Pod{Key: cluster.PodKey(fmt.Sprintf("default/%s-%05d", name, i)), UID: cluster.UID(fmt.Sprint(name, i)), Class: i % classes, Created: cluster.At(s.Now), Unschedulable: cluster.At(s.Now)})
		}
	}
	policy := decision.Policy{Expander: "least-waste", FreshFor: time.Minute, OKTotalUnready: 3, MaxTotalUnreadyPercent: 45, MaxNodeProvisionTime: 15 * time.Minute, MaxNodeStartupTime: 15 * time.Minute}
	arrive("early", pods)
	got, m := Decide(s, decision.Memory{}, policy)
	s.Now = now.Add(10 * time.Second)
	for g := range s.Groups {
		s.Groups[g].ReadAt = s.Now
		for _, a := range got.Actions {
			if grow, ok := a.(decision.Grow); ok && grow.Group == s.Groups[g].ID {
				s.Groups[g].Target = grow.To
			}
		}
	}
	arrive("late", 100)
	return s, m, policy
}
