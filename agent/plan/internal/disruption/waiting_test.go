package disruption_test

import (
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
)

// TestSinceWhenNodesAreToBeReplaced: the time of the node that has waited longest is remembered while it is to be replaced, whatever
// the reason becomes; a round that cannot tell forgets it not, and a node that is as it should be again does.
func TestSinceWhenNodesAreToBeReplaced(t *testing.T) {
	s, p := fleet(10)
	p.Drift = true
	began := s.Now
	m := decision.Memory{}
	tell := func(change func(*cluster.Snapshot)) (time.Time, int) {
		t.Helper()
		s.Now = s.Now.Add(time.Hour)
		s.Groups[0].ReadAt = s.Now
		look := s
		look.Groups = []cluster.NodeGroup{s.Groups[0]}
		change(&look)
		d := begun(&look, &m, &p)
		d.Tell()
		m = d.Next
		for _, r := range d.Plan.Rollouts {
			return r.Oldest, len(m.ToReplace)
		}
		return time.Time{}, len(m.ToReplace)
	}
	same := func(*cluster.Snapshot) {}
	check := func(what string, change func(*cluster.Snapshot), want time.Time, nodes int) {
		t.Helper()
		if at, n := tell(change); !at.Equal(want) || n != nodes {
			t.Errorf("%s: since %s, %d nodes; want %s, %d", what, at.Sub(began), n, want.Sub(began), nodes)
		}
	}
	check("another source", same, began.Add(time.Hour), 10)
	check("an hour later", same, began.Add(time.Hour), 10)
	check("old facts", func(s *cluster.Snapshot) { s.Stale = "the API server is not heard" }, time.Time{}, 10)
	check("the cloud does not tell the instances", func(s *cluster.Snapshot) { s.Groups[0].Instances = nil }, time.Time{}, 10)
	check("the cloud does not tell the source", func(s *cluster.Snapshot) { s.Groups[0].TemplateStale = "throttled" }, time.Time{}, 10)
	check("all is told again", same, began.Add(time.Hour), 10)
	s.Groups[0].Template.Source = cluster.Spec{"image": "newer"}
	check("a source after the next", same, began.Add(time.Hour), 10)
	s.Groups[0].Template.Source = cluster.Spec{"image": "old"}
	check("the old source is back", same, time.Time{}, 0)
	p.MaxNodeAge = 20 * time.Hour // they are a day and more old
	at, n := tell(same)
	if due := s.Nodes[0].Created.Add(p.MaxNodeAge); n != 10 || at.After(due) || at.Before(due.Add(-2*time.Hour)) {
		t.Errorf("expired: since %s, %d nodes, and their time was over at %s at the latest", at.Sub(began), n, due.Sub(began))
	}
	s.Nodes, s.Groups[0].Instances = s.Nodes[1:], s.Groups[0].Instances[1:]
	if _, n := tell(same); n != 9 {
		t.Errorf("a node that is gone is remembered: %d", n)
	}
}
