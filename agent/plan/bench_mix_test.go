package plan

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

const keyZone = "topology.kubernetes.io/zone"

// shopGroups are Karpenter's fake instance types as node groups: type i has i+1 CPU,
// 2(i+1) GiB and 10(i+1) pods, of which 100m and 10 MiB are the kubelet's, at a price
// that is linear in cpu and memory. Zones take turns.
func shopGroups(n int) []cluster.NodeGroup {
	var out []cluster.NodeGroup
	for i := range n {
		k := int64(i + 1)
		c := cluster.Resources{MilliCPU: 1000 * k, Memory: 2 * k << 30, Pods: 10 * k}
		a := c
		a.MilliCPU -= 100
		a.Memory -= 10 << 20
		out = append(out, cluster.NodeGroup{ID: cluster.GroupID(fmt.Sprintf("type-%03d", i+1)), Max: 100000, ReadAt: t0, Price: 0.1*float64(k) + 0.1*float64(c.Memory)/1e9,
			Template: cluster.Template{Spec: "lt", Capacity: c, Allocatable: a, Labels: map[string]string{keyZone: fmt.Sprint("test-zone-", i%3+1), "node.kubernetes.io/instance-type": fmt.Sprint("type-", i+1)}}})
	}
	return out
}

// mixClass draws one pod of Karpenter's diverse pods: in equal fifths generic, spread
// over zones, spread over hosts, with affinity to its like in a zone, and with
// anti-affinity to its like on a host.
func mixClass(r *rand.Rand, kind int) cluster.PodClass {
	value := func() string { return pick(r, "a", "b", "c", "d", "e", "f", "g") }
	is := func(k, v string) *cluster.Selector {
		return &cluster.Selector{Requirements: []cluster.Requirement{{Key: k, Operator: "In", Values: []string{v}}}}
	}
	c := cluster.PodClass{Namespace: "default", Requests: cluster.Resources{Pods: 1}}
	label := func(k, v string) *cluster.Selector { c.Labels = map[string]string{k: v}; return is(k, v) }
	switch kind {
	case 0:
		label("my-label", value())
	case 1, 2:
		label("my-label", value())
		c.Spread = []cluster.Spread{{TopologyKey: []string{keyZone, keyHostname}[kind-1], MaxSkew: 1, Selector: is("my-label", value())}}
	case 3:
		c.PodAffinity = []cluster.PodTerm{{TopologyKey: keyZone, Selector: label("my-affinity", value()), Namespaces: []string{"default"}}}
	case 4:
		c.PodAntiAffinity = []cluster.PodTerm{{TopologyKey: keyHostname, Selector: label("app", "nginx"), Namespaces: []string{"default"}}}
	}
	c.Requests.MilliCPU = pick(r, int64(100), 250, 500, 1000, 1500)
	c.Requests.Memory = pick(r, int64(100), 256, 512, 1024, 2048, 4096) << 20
	return c
}

func mixWorld(pods, groups int) cluster.Snapshot {
	r := rand.New(rand.NewPCG(42, 42))
	s := cluster.Snapshot{Now: t0, Groups: shopGroups(groups)}
	ids := map[string]int{}
	for i := range pods {
		c := mixClass(r, min(i/(pods/5), 4))
		key := fmt.Sprint(c)
		for _, sp := range c.Spread {
			key += fmt.Sprint(sp.Selector.Requirements)
		}
		for _, t := range slices.Concat(c.PodAffinity, c.PodAntiAffinity) {
			key += fmt.Sprint(t.TopologyKey, t.Selector.Requirements)
		}
		key = stripAddresses(key)
		id, ok := ids[key]
		if !ok {
			id = len(s.Classes)
			ids[key] = id
			s.Classes = append(s.Classes, c)
		}
		s.Pods = append(s.Pods, cluster.Pod{Key: cluster.PodKey(fmt.Sprintf("default/pod-%05d", i)), UID: cluster.UID(fmt.Sprint(i)), Class: id, Created: cluster.At(t0), Unschedulable: cluster.At(t0)})
	}
	return s
}

// stripAddresses takes pointers out of a printed value.
func stripAddresses(s string) string {
	out := []byte(s)
	for i := 0; i+1 < len(out); i++ {
		if out[i] == '0' && out[i+1] == 'x' {
			for j := i; j < len(out) && (out[j] >= '0' && out[j] <= '9' || out[j] >= 'a' && out[j] <= 'f' || out[j] == 'x'); j++ {
				out[j] = '_'
			}
		}
	}
	return string(out)
}

// spent is the price of what a plan buys.
func spent(s *cluster.Snapshot, plan Plan) float64 {
	price := map[cluster.GroupID]float64{}
	for i := range s.Groups {
		price[s.Groups[i].ID] = s.Groups[i].Price
	}
	sum := 0.0
	for _, a := range plan.Actions {
		if g, ok := a.(Grow); ok {
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
			s, p := mixWorld(pods, 400), packPolicy()
			plan, _ := Decide(s, Memory{}, p)
			machines, placed := bought(plan)
			b.ReportAllocs()
			before := cpuTime()
			for b.Loop() {
				Decide(s, Memory{}, p)
			}
			used := float64(cpuTime()-before) / float64(b.N)
			b.ReportMetric(used, "cpu-ns/op")
			b.ReportMetric(float64(pods)*1e9/used, "pods/cpu-s")
			b.ReportMetric(float64(machines), "nodes")
			b.ReportMetric(float64(placed), "pods")
			b.ReportMetric(spent(&s, plan)/mixDemand(&s, pods/5), "price/bound")
		})
	}
}

func TestKarpenterMix(t *testing.T) {
	s := mixWorld(1000, 400)
	plan, _ := Decide(s, Memory{}, packPolicy())
	machines, pods := bought(plan)
	t.Logf("%d classes, %d machines for %d pods, price %.1f, bound %.1f", len(s.Classes), machines, pods, spent(&s, plan), mixDemand(&s, 200))
	if pods != 1000 || machines > 200 {
		t.Errorf("%d machines for %d of 1000 pods; Karpenter buys 200\n%.3000s", machines, pods, plan)
	}
}
