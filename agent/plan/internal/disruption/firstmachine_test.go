package disruption_test

import (
	"strings"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
)

// TestPodsThatWaitedForTheFirstMachine: what a pod shows counts from the moment at which the first machine was Ready, and not from the
// hours that the pod was pending before: neither does it halt the rollout at once, nor prove the source at once.
func TestPodsThatWaitedForTheFirstMachine(t *testing.T) {
	for _, x := range []struct {
		pending, ready time.Duration // how long ago the pod was made, and the node was Ready
		unready        bool
		halt, proven   bool
	}{
		{5 * time.Hour, time.Minute, true, false, false},
		{5 * time.Hour, 14 * time.Minute, true, false, false},
		{5 * time.Hour, 15 * time.Minute, true, true, false},
		{14 * time.Minute, 5 * time.Hour, true, false, false},
		{5 * time.Hour, time.Minute, false, false, false},
		{5 * time.Hour, 2 * time.Minute, false, false, true},
		{2 * time.Minute, 5 * time.Hour, false, false, true},
	} {
		s, p := fleet(3)
		p.Drift = true
		s.Groups[0].Instances[0].Source = cluster.Spec{"image": "new"}
		s.Nodes[0].ReadySince = s.Now.Add(-x.ready)
		s.Classes = []cluster.PodClass{{Namespace: "default", Requests: cluster.Resources{Pods: 1}}}
		owner := &cluster.Owner{Kind: "ReplicaSet", Name: "rs", UID: "rs"}
		for i, n := range s.Nodes[:2] {
			n.Pods = []cluster.Pod{{Key: cluster.PodKey("default/" + string(n.Name)), Node: n.Name, Owner: owner, Created: cluster.At(s.Now.Add(-x.pending)), Unready: i == 0 && x.unready}}
		}
		d := begun(&s, &decision.Memory{}, &p)
		rule, words := d.Hold(2, d.Reason(2))
		if halted := d.Halted(0); (halted != "") != x.halt || (rule == "") != x.proven {
			t.Errorf("%+v: halted %q; [%s] %s", x, halted, rule, words)
		}
	}
}

// TestAMachineThatNobodyOrderedNeverJoins: it halts the rollout of its source as one does that was ordered in place of a node, while no
// machine of this source is Ready.
func TestAMachineThatNobodyOrderedNeverJoins(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*cluster.Snapshot, *cluster.Instance)
		halt   bool
	}{
		"it did not join":              {func(*cluster.Snapshot, *cluster.Instance) {}, true},
		"it has still time":            {func(s *cluster.Snapshot, in *cluster.Instance) { in.Created = s.Now.Add(-14 * time.Minute) }, false},
		"it is of the old source":      {func(_ *cluster.Snapshot, in *cluster.Instance) { in.Source = cluster.Spec{"image": "old"} }, false},
		"its source is not told":       {func(_ *cluster.Snapshot, in *cluster.Instance) { in.Source = nil }, false},
		"the cloud could not start it": {func(_ *cluster.Snapshot, in *cluster.Instance) { in.Phase = cluster.PhaseFailed }, false},
		"it is on its way out":         {func(_ *cluster.Snapshot, in *cluster.Instance) { in.Phase = cluster.PhaseDeleting }, false},
		"another one of its source came": {func(s *cluster.Snapshot, _ *cluster.Instance) {
			s.Groups[0].Instances[0].Source = cluster.Spec{"image": "new"}
		}, false},
	} {
		s, p := fleet(3)
		p.Drift = true
		in := cluster.Instance{ID: "i-late", Member: true, Phase: cluster.PhaseRunning, Created: s.Now.Add(-16 * time.Minute), Source: cluster.Spec{"image": "new"}}
		c.change(&s, &in)
		s.Groups[0].Instances, s.Groups[0].Target = append(s.Groups[0].Instances, in), 4
		d := begun(&s, &decision.Memory{Unregistered: map[cluster.InstanceID]time.Time{in.ID: in.Created}}, &p)
		if halted := d.Halted(0); (halted != "") != c.halt || c.halt && !strings.Contains(halted, "i-late") {
			t.Errorf("%s: halted %q", name, halted)
		}
	}
}
