package template_test

import (
	"fmt"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/observe/template"
)

// The launch template promises 16 GiB and the label disk=ssd; the node that came reports
// 15 GiB and no such label. The correction stays when the node is gone.
func ExampleCorrect() {
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	group := cluster.NodeGroup{ID: "workers", Instances: []cluster.Instance{{ID: "i-1", Member: true}}, Template: cluster.Template{
		Spec: "lt-1:7", Labels: map[string]string{"disk": "ssd", "node.kubernetes.io/instance-type": "m5.xlarge"},
		Allocatable: cluster.Resources{MilliCPU: 4000, Memory: 16 << 30, Pods: 110},
	}}
	node := &cluster.Node{Name: "n", ProviderID: "i-1", Ready: cluster.StatusTrue, ReadySince: now.Add(-time.Hour),
		Allocatable: cluster.Resources{MilliCPU: 4000, Memory: 15 << 30, Pods: 110}}
	node.Labels = map[string]string{"node.kubernetes.io/instance-type": "m5.xlarge"}
	known := map[string]template.Correction{}
	show := func(nodes ...*cluster.Node) {
		seen := template.Evidence{Nodes: nodes, Specs: map[cluster.InstanceID]string{"i-1": "lt-1:7"}}
		groups, advice := template.Correct([]cluster.NodeGroup{group}, seen, known, now)
		t := groups[0].Template
		_, ssd := t.Labels["disk"]
		fmt.Println(t.Allocatable.Memory>>30, "GiB, disk label:", ssd, "advice:", advice["workers"] != "")
	}
	show(node)
	show()
	// Output:
	// 15 GiB, disk label: false advice: true
	// 15 GiB, disk label: false advice: true
}
