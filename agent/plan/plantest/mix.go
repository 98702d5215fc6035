// Package plantest makes Snapshots that benchmarks of agent/plan and tests elsewhere
// share.
//
// It refuses chance: equal arguments give equal Snapshots, drawn from fixed seeds. No code
// of the product imports it.
package plantest

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

const (
	zone     = "topology.kubernetes.io/zone"
	hostname = "kubernetes.io/hostname"
)

// shopGroups are Karpenter's fake instance types as node groups: type i has i+1 CPU,
// 2(i+1) GiB and 10(i+1) pods, of which 100m and 10 MiB are the kubelet's, at a price
// that is linear in cpu and memory. Zones take turns.
func shopGroups(now time.Time, n int) []cluster.NodeGroup {
	var out []cluster.NodeGroup
	for i := range n {
		k := int64(i + 1)
		c := cluster.Resources{MilliCPU: 1000 * k, Memory: 2 * k << 30, Pods: 10 * k}
		a := c
		a.MilliCPU -= 100
		a.Memory -= 10 << 20
		out = append(out, cluster.NodeGroup{ID: cluster.GroupID(fmt.Sprintf("type-%03d", i+1)), Max: 100000, ReadAt: now, Price: 0.1*float64(k) + 0.1*float64(c.Memory)/1e9,
			Template: cluster.Template{Spec: "lt", Capacity: c, Allocatable: a, Labels: map[string]string{zone: fmt.Sprint("test-zone-", i%3+1), "node.kubernetes.io/instance-type": fmt.Sprint("type-", i+1)}}})
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
		c.Spread = []cluster.Spread{{TopologyKey: []string{zone, hostname}[kind-1], MaxSkew: 1, Selector: is("my-label", value())}}
	case 3:
		c.PodAffinity = []cluster.PodTerm{{TopologyKey: zone, Selector: label("my-affinity", value()), Namespaces: []string{"default"}}}
	case 4:
		c.PodAntiAffinity = []cluster.PodTerm{{TopologyKey: hostname, Selector: label("app", "nginx"), Namespaces: []string{"default"}}}
	}
	c.Requests.MilliCPU = pick(r, int64(100), 250, 500, 1000, 1500)
	c.Requests.Memory = pick(r, int64(100), 256, 512, 1024, 2048, 4096) << 20
	return c
}

// KarpenterMix is the first round of Karpenter's own scheduling benchmark, as of August
// 2026: pods of five cpu sizes, six memory sizes and seven labels, drawn with seed 42, for
// so many node groups of which nothing is there yet.
func KarpenterMix(now time.Time, pods, groups int) cluster.Snapshot {
	r := rand.New(rand.NewPCG(42, 42))
	s := cluster.Snapshot{Now: now, Groups: shopGroups(now, groups)}
	ids := map[string]int{}
	for i := range pods {
		c := mixClass(r, min(i/(pods/5), 4))
		key, err := json.Marshal(c)
		if err != nil {
			panic(err) // a PodClass is plain data
		}
		id, ok := ids[string(key)]
		if !ok {
			id = len(s.Classes)
			ids[string(key)] = id
			s.Classes = append(s.Classes, c)
		}
		s.Pods = append(s.Pods, cluster.Pod{Key: cluster.PodKey(fmt.Sprintf("default/pod-%05d", i)), UID: cluster.UID(fmt.Sprint(i)), Class: id, Created: cluster.At(now), Unschedulable: cluster.At(now)})
	}
	return s
}

func pick[T any](r *rand.Rand, from ...T) T { return from[r.IntN(len(from))] }
