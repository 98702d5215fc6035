package consolidation

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/disruption"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/growth"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/round"
)

// world is a cluster of nodes without pods, and what a Mover would say of them. It counts the questions.
type world struct {
	s cluster.Snapshot
	p decision.Policy
	m decision.Memory

	kept     map[string]bool     // nodes that may not go
	moved    map[string]int      // pods that would be evicted; else 1
	noRoom   map[string]bool     // sets of nodes, and machines: see set
	idle     map[string][]string // nodes that stay for the pods of a set
	stranded map[string]bool     // sets of which a draw leaves a pod
	looks    int                 // that are left
	busy     bool                // not settled
	fits     []string            // what Fit was asked

	*Search
}

func newWorld() *world {
	w := &world{looks: 1000, kept: map[string]bool{}, moved: map[string]int{}, noRoom: map[string]bool{}, idle: map[string][]string{}, stranded: map[string]bool{}}
	w.p = decision.Policy{ScaleDown: true, Consolidate: decision.ConsolidatePriced, ConsolidateAfter: 5 * time.Minute, FreshFor: time.Minute,
		MaxNodeProvisionTime: 15 * time.Minute, MaxNodeStartupTime: 15 * time.Minute, OKTotalUnready: 1, MaxTotalUnreadyPercent: 45}
	w.s.Now = time.Date(2026, 1, 5, 8, 0, 0, 0, time.UTC)
	w.s.Classes = []cluster.PodClass{{Namespace: "default"}}
	return w
}

// group adds a group with a price and nodes that joined a day ago. Groups and nodes are to be added in the order of their names.
func (w *world) group(id string, price float64, nodes ...string) *cluster.NodeGroup {
	machine := cluster.Resources{MilliCPU: 4000, Memory: 8 << 30, Pods: 110}
	g := cluster.NodeGroup{ID: cluster.GroupID(id), Max: 20, Target: len(nodes), ReadAt: w.s.Now, Price: price, Template: cluster.Template{Spec: "m", Capacity: machine, Allocatable: machine}}
	born := w.s.Now.Add(-24 * time.Hour)
	for _, name := range nodes {
		g.Instances = append(g.Instances, cluster.Instance{ID: cluster.InstanceID("i-" + name), Member: true, Phase: cluster.PhaseRunning, Created: born})
		w.s.Nodes = append(w.s.Nodes, &cluster.Node{Name: cluster.NodeName(name), ProviderID: "i-" + name, Ready: cluster.StatusTrue, Created: born, Capacity: machine, Allocatable: machine})
	}
	w.s.Groups = append(w.s.Groups, g)
	return &w.s.Groups[len(w.s.Groups)-1]
}

// begin begins the round.
func (w *world) begin() *world {
	r := round.New(new(round.Cache), &w.s, &w.m, &w.p)
	r.Remember()
	r.Index()
	r.Account()
	r.Health()
	growth.Judge(r)
	d := disruption.New(r)
	d.Judge()
	w.Search = New(r, d, mover{w})
	w.fits = nil
	return w
}

func (w *world) node(name string) *round.Node { return &w.Nodes[w.ByName[cluster.NodeName(name)]] }

// names are nodes in the order of the round.
func (w *world) names(nodes []int) string {
	var out []string
	for _, i := range nodes {
		out = append(out, string(w.Nodes[i].Name))
	}
	return strings.Join(out, " ")
}

// set writes nodes, sorted, and the machines in their place.
func (w *world) set(nodes []int, to *round.Group, machines int) string {
	nodes = slices.Sorted(slices.Values(nodes))
	if to == nil {
		return w.names(nodes)
	}
	return fmt.Sprintf("%s by %d of %s", w.names(nodes), machines, to.ID)
}

// found is the saving that the memory has for the next round.
func (w *world) found() string {
	s := w.Next.Consolidation
	switch {
	case s == nil:
		return ""
	case len(s.Nodes) == 0:
		return "nothing"
	}
	return s.Words()
}

// mover is the world as a Mover.
type mover struct{ w *world }

func (m mover) Removable(node int) bool { return !m.w.kept[string(m.w.Nodes[node].Name)] }

func (m mover) Moved(node int) int {
	if n, told := m.w.moved[string(m.w.Nodes[node].Name)]; told {
		return n
	}
	return 1
}

func (m mover) Fit(from []int, to *round.Group, machines int) (idle []int, ok bool) {
	set := m.w.set(from, to, machines)
	m.w.fits = append(m.w.fits, set)
	for _, name := range m.w.idle[set] {
		idle = append(idle, m.w.ByName[cluster.NodeName(name)])
	}
	return idle, !m.w.noRoom[set]
}

func (m mover) Drawn(from []int, to *round.Group, machines int) bool {
	return !m.w.stranded[m.w.set(from, to, machines)]
}

func (m mover) Look(n int) bool { m.w.looks -= n + 1; return m.w.looks >= 0 }
func (m mover) Settled() bool   { return !m.w.busy }
