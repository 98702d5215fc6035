package doctor

import (
	"fmt"
	"strings"
	"testing"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

func TestKubeletVersions(t *testing.T) {
	var nodes []*cluster.Node
	add := func(n int, version string) {
		for range n {
			nodes = append(nodes, &cluster.Node{Name: cluster.NodeName(fmt.Sprint("n-", len(nodes))), KubeletVersion: version})
		}
	}
	add(2, "v1.36.3")
	add(1, "v1.33.0")
	add(1, "")
	found := kubeletVersions(nodes, "v1.36.3")
	if len(found) != 1 || found[0].Level != LevelOK || found[0].Text != "unknown on 1, v1.33.0 on 1, v1.36.3 on 2; the API server has v1.36.3" {
		t.Errorf("%+v", found)
	}
	add(7, "v1.32.9")
	add(1, "v1.37.0")
	found = kubeletVersions(nodes, "v1.36.3")
	if len(found) != 3 || found[1].Level != LevelError || !strings.Contains(found[1].Text, "n-11") || found[2].Level != LevelWarning || !strings.Contains(found[2].Text, "7 of them") || !strings.Contains(found[2].Text, "and 2 more") {
		t.Errorf("%+v", found)
	}
	if found := kubeletVersions(nil, "v1.36.3"); found != nil {
		t.Errorf("%+v", found)
	}
}

// TestDriftedMachines: check counts the machines of a group that differ, by what differs.
func TestDriftedMachines(t *testing.T) {
	g := cluster.NodeGroup{ID: "workers", Max: 9, Template: cluster.Template{Source: cluster.Spec{"image": "ami-2", "user data": "sha256:1"}}}
	for i, source := range []cluster.Spec{{"image": "ami-1"}, {"image": "ami-1", "user data": "sha256:0"}, {"image": "ami-2"}, nil, {"image": "ami-0"}} {
		g.Instances = append(g.Instances, cluster.Instance{ID: cluster.InstanceID(fmt.Sprint("i-", i)), Member: i != 4, Source: source})
	}
	var text string
	for _, f := range Group(g) {
		if strings.Contains(f.Text, "differ") {
			text = f.Text
			if f.Level != LevelOK || !strings.Contains(f.Remedy, "nodes --group workers") {
				t.Errorf("%+v", f)
			}
		}
	}
	if text != "2 of its 4 machines differ from what it starts today: in image 2, in user data 1" {
		t.Errorf("%q", text)
	}
	g.Template.Source = nil
	if found := Group(g); len(found) != 1 {
		t.Errorf("a provider that tells none: %+v", found)
	}
}

func TestBehind(t *testing.T) {
	groups := []cluster.NodeGroup{
		{ID: "same", Template: cluster.Template{Source: cluster.Spec{cluster.PropertyKubernetes: "v1.36.0"}}},
		{ID: "old", Template: cluster.Template{Source: cluster.Spec{cluster.PropertyKubernetes: "v1.36.0|v1.34.2"}}},
		{ID: "unknown"},
	}
	found := behind(groups, "v1.36.3")
	if len(found) != 1 || found[0].About != "group old" || !strings.Contains(found[0].Text, "v1.34.2, 2 minor versions older") {
		t.Errorf("%v", found)
	}
	if found = behind(groups, ""); len(found) != 0 {
		t.Errorf("without the API server's version: %v", found)
	}
}
