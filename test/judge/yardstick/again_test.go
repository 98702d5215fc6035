package yardstick

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan"
)

// TestBoughtOnce asks again while what was bought for tied pods is coming, when half of
// it is there, and when all of it is there and kube-scheduler has not had its turn:
// nothing more is bought. Nor is it after a restart that forgets the promises.
func TestBoughtOnce(t *testing.T) {
	for seed := uint64(1); seed <= 60; seed++ {
		m := Generate(seed, 60)
		if !m.Tied() {
			continue
		}
		expander := "price"
		if m.Equal {
			expander = "least-nodes"
		}
		bought, memory := plan.Decide(m.Snapshot, decision.Memory{}, policy(expander))
		for _, c := range []struct {
			when   string
			share  int // of so many machines one is there; 0: none is
			memory decision.Memory
		}{{"while they are coming", 0, memory}, {"after a restart", 0, decision.Memory{}}, {"when half of them are there", 2, memory}, {"when they are there", 1, memory}} {
			again, _ := plan.Decide(m.later(bought, c.share), c.memory, policy(expander))
			if n := grown(again, ""); n > 0 {
				t.Errorf("%s: %d machines, and %d more %s", m, grown(bought, ""), n, c.when)
			}
		}
	}
}

// later is the mix ten seconds after a purchase, with one of so many machines a Node that
// has just become Ready.
func (m *Mix) later(bought decision.Plan, share int) cluster.Snapshot {
	s := m.Snapshot
	s.Now = s.Now.Add(10 * time.Second)
	s.Groups, s.Nodes = slices.Clone(s.Groups), slices.Clone(s.Nodes)
	count := 0
	for g := range s.Groups {
		group := &s.Groups[g]
		n := grown(bought, group.ID)
		group.ReadAt, group.Target, group.Instances = s.Now, group.Target+n, slices.Clone(group.Instances)
		for i := range n {
			if share == 0 {
				break
			}
			name := fmt.Sprintf("%s-%04d", group.ID, i)
			id := "aws:///z/" + name
			group.Instances = append(group.Instances, cluster.Instance{ID: cluster.InstanceID(id), Phase: cluster.PhaseRunning, Member: true, Created: s.Now})
			if count++; count%share > 0 {
				continue
			}
			labels := maps.Clone(group.Template.Labels)
			labels[hostLabel] = name
			s.Nodes = append(s.Nodes, &cluster.Node{Name: cluster.NodeName(name), UID: cluster.UID(name), ProviderID: id, Created: s.Now, Labels: labels, Taints: group.Template.Taints,
				Capacity: group.Template.Capacity, Allocatable: group.Template.Allocatable, Ready: cluster.StatusTrue, ReadySince: s.Now})
		}
	}
	return s
}

// grown is how many machines a plan buys of a group; of all where the ID is empty.
func grown(p decision.Plan, id cluster.GroupID) (n int) {
	for _, a := range p.Actions {
		if g, ok := a.(decision.Grow); ok && (id == "" || g.Group == id) {
			n += g.To - g.From
		}
	}
	return n
}
