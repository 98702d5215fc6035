package plan

import (
	"strings"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
)

// twoClouds has a group in each of two providers, a pod for each, and a machine that is
// known of the first.
func twoClouds() cluster.Snapshot {
	s := cluster.Snapshot{Now: t0}
	for _, name := range []string{"aws", "nova"} {
		s.Groups = append(s.Groups, cluster.NodeGroup{ID: cluster.GroupID(name), Provider: name, Max: 9, ReadAt: t0, Template: cluster.Template{
			Spec: "x", Labels: map[string]string{"cloud": name}, Allocatable: cluster.Resources{MilliCPU: 2000, Memory: 4 << 30, Pods: 110}}})
		s.Pods = append(s.Pods, cluster.Pod{Key: cluster.PodKey("default/" + name), UID: cluster.UID(name), Class: len(s.Classes), Created: cluster.At(t0), Unschedulable: cluster.At(t0)})
		s.Classes = append(s.Classes, cluster.PodClass{Namespace: "default", NodeSelector: map[string]string{"cloud": name}, Requests: cluster.Resources{MilliCPU: 1500, Pods: 1}})
	}
	s.Groups[0].Target = 1
	s.Groups[0].Instances = []cluster.Instance{{ID: "aws:///z/i-1", Phase: cluster.PhaseRunning, Member: true, Created: t0.Add(-time.Hour)}}
	s.Nodes = []*cluster.Node{{Name: "old", ProviderID: "aws:///z/i-1", Created: t0.Add(-time.Hour), Ready: cluster.StatusTrue,
		Allocatable: cluster.Resources{MilliCPU: 100, Memory: 1 << 30, Pods: 110}}}
	return s
}

func grown(p decision.Plan) string {
	var out []string
	for _, a := range p.Actions {
		if g, ok := a.(decision.Grow); ok {
			out = append(out, string(g.Group))
		}
	}
	return strings.Join(out, " ")
}

// TestAYoungNodeOfOneCloudHoldsNoOther: a Node that is ahead of the reads of a cloud says
// nothing about another cloud whose machines have other provider IDs.
func TestAYoungNodeOfOneCloudHoldsNoOther(t *testing.T) {
	s := twoClouds()
	if p, _ := Decide(s, decision.Memory{}, policy()); grown(p) != "aws nova" {
		t.Fatal(p)
	}
	young := &cluster.Node{Name: "young", ProviderID: "openstack:///uuid", Created: t0.Add(-time.Second), Ready: cluster.StatusTrue}
	s.Nodes = append(s.Nodes, young)
	if p, _ := Decide(s, decision.Memory{}, policy()); grown(p) != "aws" {
		t.Errorf("nova has shown no machine yet, so the Node may be of it, and of aws it is not:\n%s", p)
	}
	young.ProviderID = "aws:///z/i-2"
	s.Groups[1].Instances = []cluster.Instance{{ID: "openstack:///a", Phase: cluster.PhaseDeleting, Created: t0.Add(-time.Hour)}}
	if p, _ := Decide(s, decision.Memory{}, policy()); grown(p) != "nova" {
		t.Errorf("a Node of aws holds back nova, or not aws:\n%s", p)
	}
	s.Groups[0].Provider, s.Groups[1].Provider = "", ""
	if p, _ := Decide(s, decision.Memory{}, policy()); grown(p) != "" {
		t.Errorf("one provider may have machines of all kinds:\n%s", p)
	}
}

// TestAQuotaIsOfOneCloud: a refusal for quota pauses all groups of that cloud, where it
// does not name its quotas, and none of another.
func TestAQuotaIsOfOneCloud(t *testing.T) {
	s := twoClouds()
	s.Groups[0].Failures = []cluster.Failure{{Cause: cluster.CauseQuota, Text: "no more", At: t0.Add(-time.Second)}}
	if p, _ := Decide(s, decision.Memory{}, policy()); grown(p) != "nova" {
		t.Errorf("%s", p)
	}
	s.Groups[1].Provider = "aws"
	if p, _ := Decide(s, decision.Memory{}, policy()); grown(p) != "" {
		t.Errorf("%s", p)
	}
}

// TestExplainNamesTheProvider: an operator of several clouds sees which one a group is of.
func TestExplainNamesTheProvider(t *testing.T) {
	s := twoClouds()
	for _, g := range s.Groups {
		x := Explain(s, decision.Memory{}, policy(), decision.Query{Kind: "group", Name: string(g.ID)})
		if x.Group == nil || x.Group.Provider != g.Provider {
			t.Errorf("group %s: %+v", g.ID, x.Group)
		}
	}
}
