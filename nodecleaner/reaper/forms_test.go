package reaper

import (
	"fmt"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// TestFormsOfOneMachine: kubelets and clouds write OpenStack's provider IDs with the
// region and without, in either case of letters. A machine that lives does not look
// absent for that, removed by a scale-down or not, and one that is gone goes all the same.
func TestFormsOfOneMachine(t *testing.T) {
	const upper, lower = "4FD96FF2-5C76-4A49-8A71-2BC0FB6FC8%02d", "4fd96ff2-5c76-4a49-8a71-2bc0fb6fc8%02d"
	w := newWorld()
	w.memory = Memory{}
	for i := range w.in.Groups[0].Instances {
		w.in.Groups[0].Instances[i].ID = cluster.InstanceID("openstack:///" + fmt.Sprintf(lower, i))
		w.in.Nodes[i].ProviderID = "openstack://RegionOne/" + fmt.Sprintf(upper, i)
	}
	w.step()
	for _, n := range []int{1, 2} {
		w.lose(n)
	}
	w.node(1).Taints = append(w.node(1).Taints, cluster.Taint{Key: cluster.TaintToBeDeleted, Effect: "NoSchedule"})
	w.pass(2 * time.Hour)
	if len(w.all) > 0 || w.held(1) != "G1" || w.held(2) != "G1" {
		t.Errorf("deleted %v, held by %s and %s", w.all, w.held(1), w.held(2))
	}
	w.in.Groups[0].Instances = append(w.in.Groups[0].Instances[:1], w.in.Groups[0].Instances[2:]...)
	w.in.Groups[0].Target--
	w.pass(2 * time.Hour)
	if len(w.all) != 1 || w.all[0].Node != "n01" {
		t.Errorf("deleted %v, held %v", w.all, w.plan.Held)
	}
}

// TestMachine: the forms of one machine are one, those of two are two, and what names no
// machine stays what it is.
func TestMachine(t *testing.T) {
	for id, want := range map[string]cluster.InstanceID{
		"openstack:///4FD96FF2": "openstack:///4fd96ff2", "openstack://RegionOne/4fd96ff2": "openstack:///4fd96ff2", "openstack://4fd96ff2": "openstack:///4fd96ff2",
		"openstack://": "openstack://", "openstack:///": "openstack:///", "openstack://RegionOne/": "openstack://RegionOne/",
		"aws:///z/I-1": "aws:///z/I-1", "openstack:4fd96ff2": "openstack:4fd96ff2", "": "",
	} {
		if got := machine(id); got != want {
			t.Errorf("%s is known by %s, want %s", id, got, want)
		}
	}
}
