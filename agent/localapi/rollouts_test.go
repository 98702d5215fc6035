package localapi_test

import (
	"testing"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/localapi"
)

// TestMachinesOfOneSource: machines that were started from one version of a launch template are of one source, in whichever of its subnets
// they are, and it has the name that it had while the group started it.
func TestMachinesOfOneSource(t *testing.T) {
	wanted := cluster.Spec{"image": "new", "subnet": "a|b|c"}
	former := cluster.Spec{"image": "old", "subnet": "a|b|c"}
	g := cluster.NodeGroup{ID: "workers", Template: cluster.Template{Source: wanted}}
	for _, m := range []cluster.Spec{{"image": "old", "subnet": "a"}, {"image": "old", "subnet": "b"}, {"image": "new", "subnet": "c"}, {"image": "old", "subnet": "gone"}} {
		g.Instances = append(g.Instances, cluster.Instance{ID: cluster.InstanceID(m["subnet"]), Member: true, Source: m})
	}
	list, found := localapi.Rollouts(cluster.Snapshot{Groups: []cluster.NodeGroup{g}}, decision.Plan{}, "workers")
	if !found || len(list.Rollouts) != 1 {
		t.Fatal(list)
	}
	want := map[string]int{wanted.Digest(): 1, former.Digest(): 2, cluster.Spec{"image": "old", "subnet": "gone"}.Digest(): 1}
	for _, s := range list.Rollouts[0].Sources {
		if s.Machines != want[s.Source] || s.Present != (s.Source == wanted.Digest()) {
			t.Errorf("%+v", s)
		}
		delete(want, s.Source)
	}
	if len(want) > 0 {
		t.Errorf("not told: %v", want)
	}
}
