package plan

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
)

// member is a machine of the group, and machineNode its Node.
func member(id string, phase cluster.Phase) cluster.Instance {
	return cluster.Instance{ID: cluster.InstanceID("aws:///z/" + id), Phase: phase, Member: phase != cluster.PhaseGone, Created: t0.Add(-time.Hour)}
}

func machineNode(id string, ready cluster.Status, pods ...cluster.Pod) *cluster.Node {
	for i := range pods {
		pods[i].Node = cluster.NodeName(id)
	}
	return &cluster.Node{Name: cluster.NodeName(id), UID: cluster.UID("uid-" + id), ProviderID: "aws:///z/" + id, Created: t0.Add(-time.Hour), Ready: ready, ReadySince: t0.Add(-time.Hour),
		Capacity: machine, Allocatable: machine, Pods: pods}
}

var machine = cluster.Resources{MilliCPU: 2000, Memory: 4 << 30, Pods: 110}

// oneGroup is a group whose machines hold one pod of 1500m each, and n pods of them.
func oneGroup(instances ...cluster.Instance) (s cluster.Snapshot, pods []cluster.Pod) {
	s = cluster.Snapshot{Now: t0, Classes: []cluster.PodClass{{Namespace: "default", Requests: cluster.Resources{MilliCPU: 1500, Pods: 1}}}}
	s.Groups = []cluster.NodeGroup{{ID: "g", Max: 9, ReadAt: t0, Instances: instances, Template: cluster.Template{Spec: "x", Capacity: machine, Allocatable: machine}}}
	for _, in := range instances {
		if in.Member {
			s.Groups[0].Target++
		}
	}
	owner := &cluster.Owner{Kind: "ReplicaSet", UID: "rs"}
	for i := range len(instances) {
		pods = append(pods, cluster.Pod{Key: cluster.PodKey(fmt.Sprintf("default/p%d", i)), UID: cluster.UID(fmt.Sprint("p", i)), Created: cluster.At(t0.Add(-time.Hour)), Owner: owner})
	}
	return s, pods
}

// TestPodsOfAMachineThatIsGoneWantRoom: Auto Scaling has put a machine in its place while
// the Node and its pods are still listed. It was ended as idle, and bought again when the
// pods were.
func TestPodsOfAMachineThatIsGoneWantRoom(t *testing.T) {
	s, pods := oneGroup(member("old", cluster.PhaseGone), member("new", cluster.PhaseRunning))
	s.Nodes = []*cluster.Node{machineNode("old", cluster.StatusUnknown, pods[0]), machineNode("new", cluster.StatusTrue)}
	var m decision.Memory
	for minute := range 15 {
		s.Now = t0.Add(time.Duration(minute) * time.Minute)
		s.Groups[0].ReadAt = s.Now
		var p decision.Plan
		p, m = Decide(s, m, policy())
		if len(p.Actions) > 0 {
			t.Fatalf("after %d minutes:\n%s", minute, p)
		}
	}
	// Without a machine in its place one is bought for them, once.
	s.Groups[0].Instances, s.Groups[0].Target, s.Nodes = s.Groups[0].Instances[:1], 0, s.Nodes[:1]
	p, _ := Decide(s, decision.Memory{}, policy())
	if grown(p) != "g" || len(p.Actions) != 1 || !strings.Contains(p.String(), "0->1 for 1 pods") {
		t.Errorf("want one machine for the pod:\n%s", p)
	}
	// Facts of Kubernetes that may be old prove nothing about where the pods are.
	s.Stale = "the API server does not answer"
	if p, _ := Decide(s, decision.Memory{}, policy()); len(p.Actions) > 0 {
		t.Errorf("on stale facts:\n%s", p)
	}
}

// TestAMemberThatIsNeverListedEndsOnce: Auto Scaling counts a machine that EC2 does not
// know, so nobody can tell when it was launched.
func TestAMemberThatIsNeverListedEndsOnce(t *testing.T) {
	ghost := member("ghost", cluster.PhasePending)
	ghost.Created = time.Time{}
	s, _ := oneGroup(ghost)
	var m decision.Memory
	var p decision.Plan
	for minute := range 16 {
		s.Now = t0.Add(time.Duration(minute) * time.Minute)
		s.Groups[0].ReadAt = s.Now
		p, m = Decide(s, m, policy())
		if ended := strings.Contains(p.String(), "terminate g aws:///z/ghost"); ended != (minute == 15) {
			t.Fatalf("after %d minutes:\n%s", minute, p)
		}
	}
}

// TestATemplateThatCannotBeReadHoldsGrowthOnly: machines that are there and coming are
// counted, and what nothing needs goes.
func TestATemplateThatCannotBeReadHoldsGrowthOnly(t *testing.T) {
	s, pods := oneGroup(member("a", cluster.PhaseRunning), member("b", cluster.PhasePending))
	s.Groups[0].Instances[1].Created = t0
	s.Groups[0].TemplateStale = "throttled"
	s.Nodes = []*cluster.Node{machineNode("a", cluster.StatusTrue, pods[0])}
	pods[1].Unschedulable = cluster.At(t0)
	s.Pods = pods[1:2]
	p, _ := Decide(s, decision.Memory{}, policy())
	if len(p.Actions) > 0 || !strings.Contains(p.String(), "held pod default/p1 [U2]") {
		t.Errorf("the coming machine is for the pod:\n%s", p)
	}
	if !strings.Contains(p.String(), "held group g [U11] what its next machine would be is old: throttled") {
		t.Errorf("growth is not held, or not said to be:\n%s", p)
	}
	s, _ = oneGroup(member("a", cluster.PhaseRunning))
	s.Groups[0].TemplateStale = "throttled"
	s.Nodes = []*cluster.Node{machineNode("a", cluster.StatusTrue)}
	var m decision.Memory
	for minute := range 11 {
		s.Now = t0.Add(time.Duration(minute) * time.Minute)
		s.Groups[0].ReadAt = s.Now
		p, m = Decide(s, m, policy())
	}
	if !strings.Contains(p.String(), "cordon a [D1]") {
		t.Errorf("an idle node stays:\n%s", p)
	}
}
