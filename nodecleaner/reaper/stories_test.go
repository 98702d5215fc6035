package reaper

import (
	"slices"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// story is a course of events and how it ends: the Nodes deleted, by rule ("n00:G3
// n01:G4"), and the rule that holds Node n00.
type story struct {
	name string // begins with the ID of the rule that it is about
	play func(*world)
	want string
	held string
}

var sentAway = cluster.Taint{Key: cluster.TaintToBeDeleted, Effect: "NoSchedule"}

var stories = []story{
	{"E1 control plane", func(w *world) {
		w.node(0).ControlPlane = true
		w.lose(0)
		w.phase(0, cluster.PhaseGone)
		w.pass(time.Hour)
	}, "", "E1"},
	{"E2 own node", func(w *world) {
		w.in.Own = []cluster.NodeName{"n00"}
		w.lose(0)
		w.phase(0, cluster.PhaseGone)
		w.pass(time.Hour)
	}, "", "E2"},
	{"E3 annotation", func(w *world) {
		w.node(0).Annotations = map[string]string{cluster.AnnotationKeep: "true"}
		w.lose(0)
		w.phase(0, cluster.PhaseGone)
		w.pass(time.Hour)
	}, "", "E3"},
	{"E4 no provider ID", func(w *world) { w.node(0).ProviderID = ""; w.lose(0); w.vanish(0); w.pass(time.Hour) }, "", "E4"},
	{"E5 never seen", func(w *world) { w.node(0).ProviderID = "aws:///z/i-foreign"; w.lose(0); w.vanish(0); w.pass(time.Hour) }, "", "E5"},
	{"G0 stale group", func(w *world) { w.lose(0); w.vanish(0); w.in.Groups[0].Stale = "throttled"; w.pass(time.Hour) }, "", "G0"},
	{"G0 stale group lists it as terminated", func(w *world) {
		w.lose(0)
		w.phase(0, cluster.PhaseGone)
		w.in.Groups[0].Stale = "throttled"
		w.pass(time.Hour)
	}, "", "G0"},
	{"G0 error", func(w *world) { w.lose(0); w.vanish(0); w.in.ReadProblem = "403"; w.pass(time.Hour) }, "", "G0"},
	{"G0 nothing listed", func(w *world) { w.lose(0); w.in.Groups = nil; w.pass(time.Hour) }, "", "G0"},
	{"G0 no state", func(w *world) { w.lose(0); w.phase(0, cluster.PhaseUnknown); w.pass(time.Hour) }, "", "G0"},
	{"G0 its group is not listed", func(w *world) {
		w.lose(0)
		w.in.Groups = []cluster.NodeGroup{{ID: "other", Target: 1, ReadAt: noon, Instances: []cluster.Instance{{ID: "aws:///z/i-x", Phase: cluster.PhaseRunning, Member: true, NodeNames: []string{"x"}}}}}
		w.pass(time.Hour)
	}, "", "G0"},
	{"B1 wrong account with a group of the same name", func(w *world) {
		w.lose(0)
		w.in.Groups[0].Instances, w.in.Groups[0].Target = []cluster.Instance{{ID: "aws:///z/i-x", Phase: cluster.PhaseRunning, Member: true, NodeNames: []string{"x"}}}, 1
		w.pass(time.Hour)
	}, "", "B1"},
	{"B1 empty group with a target", func(w *world) {
		for n := range 10 {
			w.lose(n)
		}
		w.in.Groups[0].Instances = nil
		w.pass(time.Hour)
	}, "", "B1"},
	{"E5 a taint alone makes nothing ours", func(w *world) {
		w.memory = Memory{}
		w.lose(0)
		w.vanish(0)
		w.node(0).Taints = append(w.node(0).Taints, sentAway)
		w.pass(time.Hour)
	}, "", "E5"},
	{"E5 it had ended when it was first seen", func(w *world) {
		w.memory = Memory{}
		w.lose(0)
		w.phase(0, cluster.PhaseGone)
		w.pass(time.Hour)
	}, "", "E5"},
	{"E5 an earlier leader wrote its group on it", func(w *world) {
		w.memory = Memory{}
		w.lose(0)
		w.phase(0, cluster.PhaseGone)
		w.claimed(0, "workers")
		w.pass(10 * time.Minute)
	}, "n00:G3", ""},
	{"E5 an earlier leader wrote its group on it, absent", func(w *world) {
		w.memory = Memory{}
		w.lose(0)
		w.vanish(0)
		w.claimed(0, "workers")
		w.pass(12 * time.Minute)
	}, "n00:G4", ""},
	{"E5 the group that an earlier leader wrote is not listed", func(w *world) {
		w.memory = Memory{}
		w.lose(0)
		w.vanish(0)
		w.claimed(0, "past")
		w.pass(time.Hour)
	}, "", "E5"},
	{"G1 stopped", func(w *world) { w.lose(0); w.phase(0, cluster.PhaseStopped); w.pass(time.Hour) }, "", "G1"},
	{"G1 on its way out", func(w *world) { w.lose(0); w.phase(0, cluster.PhaseDeleting); w.pass(time.Hour) }, "", "G1"},
	{"G1 running", func(w *world) { w.lose(0); w.pass(time.Hour) }, "", "G1"},
	{"G2 one sight", func(w *world) { w.lose(0); w.phase(0, cluster.PhaseGone); w.pass(50 * time.Second) }, "", "G2"},
	{"G2 the same read twice", func(w *world) {
		w.lose(0)
		w.phase(0, cluster.PhaseGone)
		w.pass(10 * time.Second)
		for range 30 {
			w.in.Now = w.in.Now.Add(10 * time.Second)
			w.step()
		}
	}, "", "G2"},
	{"G3 terminated", func(w *world) { w.lose(0); w.phase(0, cluster.PhaseGone); w.pass(80 * time.Second) }, "n00:G3", ""},
	{"G3 the seed's case", func(w *world) {
		w.node(0).Taints = append(w.node(0).Taints, sentAway)
		w.lose(0)
		w.phase(0, cluster.PhaseGone)
		w.pass(80 * time.Second)
	}, "n00:G3", ""},
	{"G3 the taint stripped", func(w *world) {
		w.node(0).Taints = append(w.node(0).Taints, sentAway)
		w.pass(10 * time.Second)
		w.node(0).Taints = nil
		w.phase(0, cluster.PhaseGone)
		w.lose(0)
		w.pass(80 * time.Second)
	}, "n00:G3", ""},
	{"G3 group at zero", func(w *world) {
		for n := range 10 {
			w.node(n).Taints = append(w.node(n).Taints, sentAway)
			w.lose(n)
			w.phase(n, cluster.PhaseGone)
		}
		w.pass(80 * time.Second)
	}, "n00:G3 n01:G3 n02:G3 n03:G3 n04:G3 n05:G3 n06:G3 n07:G3 n08:G3 n09:G3", ""},
	{"G4 absent", func(w *world) { w.lose(0); w.vanish(0); w.pass(12 * time.Minute) }, "n00:G4", ""},
	{"G4 absent, removed by a scale-down", func(w *world) {
		w.node(0).Taints = append(w.node(0).Taints, sentAway)
		w.lose(0)
		w.vanish(0)
		w.pass(90 * time.Second)
	}, "n00:G4", ""},
	{"G4 group at zero, absent", func(w *world) {
		for n := range 10 {
			w.node(n).Taints = append(w.node(n).Taints, sentAway)
			w.lose(n)
			w.vanish(n)
		}
		w.pass(2 * time.Minute)
	}, "n00:G4 n01:G4 n02:G4 n03:G4 n04:G4 n05:G4 n06:G4 n07:G4 n08:G4 n09:G4", ""},
	{"G4 comes back between", func(w *world) {
		w.lose(0)
		saved := slices.Clone(w.in.Groups[0].Instances)
		w.vanish(0)
		w.pass(30 * time.Second)
		w.in.Groups[0].Instances, w.in.Groups[0].Target = saved, 10
		w.pass(time.Hour)
	}, "", "G1"},
	{"G2 another Node of the same name", func(w *world) {
		w.lose(0)
		w.phase(0, cluster.PhaseGone)
		w.pass(30 * time.Second)
		w.node(0).UID = "new"
		w.pass(40 * time.Second)
	}, "", "G2"},
	{"L1 not for long enough", func(w *world) { w.lose(0); w.vanish(0); w.pass(9 * time.Minute) }, "", "L1"},
	{"L2 its Lease is renewed", func(w *world) {
		w.lose(0)
		w.vanish(0)
		w.pass(5 * time.Minute)
		w.renewed["n00"] = w.in.Now
		w.pass(6 * time.Minute)
	}, "", "L2"},
	{"L3 no taint", func(w *world) { w.lose(0); w.node(0).Taints = nil; w.vanish(0); w.pass(time.Hour) }, "", "L3"},
	{"B2 three of ten vanish", func(w *world) {
		for n := range 3 {
			w.lose(n)
			w.vanish(n)
		}
		w.pass(time.Hour)
	}, "", "B2"},
	{"B2 three of ten are terminated", func(w *world) {
		for n := range 3 {
			w.lose(n)
			w.phase(n, cluster.PhaseGone)
		}
		w.pass(10 * time.Minute)
	}, "", "B2"},
	{"B2 goes by for the terminated", func(w *world) {
		for n := range 3 {
			w.lose(n)
			w.phase(n, cluster.PhaseGone)
		}
		w.pass(15 * time.Minute)
	}, "n00:G3 n01:G3 n02:G3", ""},
	{"B2 two of ten", func(w *world) {
		for n := range 2 {
			w.lose(n)
			w.phase(n, cluster.PhaseGone)
		}
		w.pass(2 * time.Minute)
	}, "n00:G3 n01:G3", ""},
	{"B3 outage", func(w *world) {
		w.lose(0)
		w.phase(0, cluster.PhaseGone)
		w.in.Outage = "the API server does not answer"
		w.pass(10 * time.Minute)
		w.in.Outage = ""
		w.pass(4 * time.Minute)
	}, "", "B3"},
	{"B3 spares a Node that a scale-down removed and that is terminated", func(w *world) {
		w.lose(0)
		w.in.Sent = []cluster.InstanceID{cluster.InstanceID(w.in.Nodes[0].ProviderID)}
		w.phase(0, cluster.PhaseGone)
		w.in.Outage = "the API server does not answer"
		w.pass(10 * time.Minute)
		w.in.Outage = ""
		w.pass(3 * time.Minute)
	}, "n00:G3", ""},
	{"B3 holds a Node that a scale-down removed and that is only absent", func(w *world) {
		w.lose(0)
		w.in.Sent = []cluster.InstanceID{cluster.InstanceID(w.in.Nodes[0].ProviderID)}
		w.vanish(0)
		w.in.Outage = "the API server does not answer"
		w.pass(10 * time.Minute)
		w.in.Outage = ""
		w.pass(4 * time.Minute)
	}, "", "B3"},
	{"B3 ends", func(w *world) {
		w.lose(0)
		w.phase(0, cluster.PhaseGone)
		w.in.Outage = "the API server does not answer"
		w.pass(10 * time.Minute)
		w.in.Outage = ""
		w.pass(6 * time.Minute)
	}, "n00:G3", ""},
	{"B3 the clock jumps", func(w *world) {
		w.lose(0)
		w.vanish(0)
		w.pass(30 * time.Second)
		w.in.Now = w.in.Now.Add(3 * time.Hour)
		w.pass(4 * time.Minute)
	}, "", "L1"},
	{"B4 most of a group is not Ready", func(w *world) {
		for n := range 6 {
			w.lose(n)
		}
		w.phase(0, cluster.PhaseGone)
		w.pass(5 * time.Minute)
	}, "", "B4"},
	{"B5 one after the other", func(w *world) {
		w.policy.UnledgeredEvery = time.Hour
		w.lose(0)
		w.phase(0, cluster.PhaseGone)
		w.pass(2 * time.Minute)
		w.lose(1)
		w.phase(1, cluster.PhaseGone)
		w.pass(30 * time.Minute)
	}, "n00:G3", ""},
	{"L0 Ready", func(w *world) { w.phase(0, cluster.PhaseGone); w.pass(time.Hour) }, "", ""},
	{"E2 own by provider ID", func(w *world) {
		w.in.Own = []cluster.NodeName{"n01"}
		w.node(1).ProviderID = string(id(0)) // the agent's own machine under a second name
		w.lose(0)
		w.phase(0, cluster.PhaseGone)
		w.pass(time.Hour)
	}, "", "E2"},
	{"E6 young", func(w *world) {
		w.node(0).Created = noon.Add(12 * time.Minute)
		w.pass(13 * time.Minute)
		w.lose(0) // its condition says an older time than its creation
		w.vanish(0)
		w.pass(7 * time.Minute)
	}, "", "E6"},
	{"E6 is no matter of the terminated", func(w *world) {
		w.node(0).Created = noon
		w.lose(0)
		w.phase(0, cluster.PhaseGone)
		w.pass(2 * time.Minute)
	}, "n00:G3", ""},
	{"N5 its finalizers", func(w *world) {
		w.node(0).Deleting = true
		w.lose(0)
		w.phase(0, cluster.PhaseGone)
		w.pass(time.Hour)
	}, "", "N5"},
	{"G0 launched lately and not listed", func(w *world) {
		w.launched(0, noon.Add(-10*time.Minute))
		w.lose(0)
		w.vanish(0)
		w.pass(40 * time.Minute)
	}, "", "G0"},
	{"G0 launched lately, an hour later", func(w *world) {
		w.launched(0, noon.Add(-10*time.Minute))
		w.lose(0)
		w.vanish(0)
		w.pass(53 * time.Minute)
	}, "n00:G4", ""},
	{"G0 launched lately does not apply to a Node that a scale-down removed", func(w *world) {
		w.launched(0, noon.Add(-10*time.Minute))
		w.in.Sent = []cluster.InstanceID{id(0)}
		w.lose(0)
		w.vanish(0)
		w.pass(3 * time.Minute)
	}, "n00:G4", ""},
	{"G0 launched lately is no matter of a cloud that forgets at once", func(w *world) {
		for n := range 10 {
			w.node(n).ProviderID = "openstack:///" + string(w.node(n).Name)
			w.in.Groups[0].Instances[n].ID = cluster.InstanceID(w.node(n).ProviderID)
		}
		w.in.Groups[0].Instances[0].Created = noon.Add(-10 * time.Minute)
		w.node(0).Created = noon.Add(-10 * time.Minute)
		w.pass(10 * time.Second)
		w.lose(0)
		w.in.Groups[0].Instances = w.in.Groups[0].Instances[1:]
		w.in.Groups[0].Target--
		w.pass(12 * time.Minute)
	}, "n00:G4", ""},
	{"G0 later than two sights", func(w *world) {
		w.lose(0)
		w.vanish(0)
		w.pass(9 * time.Minute)
		w.in.ReadProblem = "throttled"
		w.pass(time.Hour)
	}, "", "G0"},
	{"B1 most Ready Nodes are not found either", func(w *world) {
		w.lose(0)
		for n := range 5 {
			w.vanish(n)
		}
		w.in.Groups[0].Target = 10
		w.pass(time.Hour)
	}, "", "B1"},
	{"G1 a list cut short", func(w *world) {
		w.lose(0)
		for n := range 5 {
			w.vanish(n)
			w.byID[id(n)] = cluster.InstanceExists
		}
		w.in.Groups[0].Target = 10
		w.pass(time.Hour)
	}, "", "G1"},
	{"B1 a Ready Node that was detached is no matter of others", func(w *world) {
		w.vanish(9)
		w.byID[id(9)] = cluster.InstanceExists
		w.lose(0)
		w.vanish(0)
		w.pass(12 * time.Minute)
	}, "n00:G4", ""},
	{"B1 a Ready Node with a false provider ID is no matter of others", func(w *world) {
		w.vanish(1)
		w.lose(0)
		w.vanish(0)
		w.pass(12 * time.Minute)
	}, "n00:G4", ""},
	{"B1 another cloud's Ready Nodes prove nothing", func(w *world) {
		w.node(1).ProviderID = "openstack:///one"
		w.in.Groups = append(w.in.Groups, cluster.NodeGroup{ID: "nova", Target: 1, ReadAt: noon, Instances: []cluster.Instance{
			{ID: "openstack:///one", Phase: cluster.PhaseRunning, Member: true}}})
		w.in.Nodes = w.in.Nodes[:2]
		w.in.Groups[0].Instances = w.in.Groups[0].Instances[:1]
		w.in.Groups[0].Target = 1
		w.pass(10 * time.Second)
		w.lose(0)
		w.vanish(0)
		w.pass(time.Hour)
	}, "", "B1"},
	{"B1 no Ready Node, and no scale-down removed the Node", func(w *world) {
		for n := range 10 {
			w.lose(n)
		}
		w.vanish(0)
		w.pass(time.Hour)
	}, "", "B1"},
	{"B1 no Ready Node, group of the same name incomplete", func(w *world) {
		for n := range 10 {
			w.node(n).Taints = append(w.node(n).Taints, sentAway)
			w.lose(n)
			w.vanish(n)
		}
		w.in.Groups[0].Target = 3
		w.pass(time.Hour)
	}, "", "B1"},
	{"B2 a mass that dies one by one", func(w *world) {
		for n := range 6 {
			w.lose(n)
			w.vanish(n)
			w.pass(2 * time.Minute)
		}
		w.pass(5 * time.Minute)
	}, "", "B2"},
	{"B2 does not apply to a Node that a scale-down removed", func(w *world) {
		for n := range 9 {
			w.node(n).Taints = append(w.node(n).Taints, sentAway)
			w.lose(n)
			w.phase(n, cluster.PhaseGone)
		}
		w.pass(2 * time.Minute)
	}, "n00:G3 n01:G3 n02:G3 n03:G3 n04:G3 n05:G3 n06:G3 n07:G3 n08:G3", ""},
	{"B3 after a longer absence of the agent", func(w *world) {
		w.lose(0)
		w.phase(0, cluster.PhaseGone)
		w.in.Now = w.in.Now.Add(20 * time.Minute)
		w.pass(4 * time.Minute)
	}, "", "B3"},
	{"B4 a zone", func(w *world) {
		for _, n := range []int{0, 2, 4} { // three of the five of zone a, three of ten of all
			w.lose(n)
		}
		w.phase(0, cluster.PhaseGone)
		w.pass(5 * time.Minute)
	}, "", "B4"},
	{"B4 the other zone goes on", func(w *world) {
		for _, n := range []int{0, 2, 4} {
			w.lose(n)
		}
		w.lose(1)
		w.phase(1, cluster.PhaseGone)
		w.pass(2 * time.Minute)
	}, "n01:G3", "G1"},
	{"B6 reads that fail", func(w *world) {
		w.lose(0)
		w.phase(0, cluster.PhaseGone)
		w.in.ReadProblem = "throttled"
		w.in.Groups[0].Stale = "throttled"
		w.pass(2 * time.Minute)
		w.in.ReadProblem, w.in.Groups[0].Stale = "", ""
		w.pass(4 * time.Minute)
	}, "", "B6"},
	{"B6 ends", func(w *world) {
		w.lose(0)
		w.phase(0, cluster.PhaseGone)
		w.in.ReadProblem = "throttled"
		w.in.Groups[0].Stale = "throttled"
		w.pass(2 * time.Minute)
		w.in.ReadProblem, w.in.Groups[0].Stale = "", ""
		w.pass(6 * time.Minute)
	}, "n00:G3", ""},
	{"B6 a few failures are no storm", func(w *world) {
		w.lose(0)
		w.phase(0, cluster.PhaseGone)
		w.in.ReadProblem = "throttled"
		w.in.Groups[0].Stale = "throttled"
		w.pass(40 * time.Second)
		w.in.ReadProblem, w.in.Groups[0].Stale = "", ""
		w.pass(90 * time.Second)
	}, "n00:G3", ""},
	{"B6 spares a Node that a scale-down removed and that is terminated", func(w *world) {
		w.lose(0)
		w.in.Sent = []cluster.InstanceID{id(0)}
		w.phase(0, cluster.PhaseGone)
		w.in.ReadProblem = "throttled"
		w.in.Groups[0].Stale = "throttled"
		w.pass(2 * time.Minute)
		w.in.ReadProblem, w.in.Groups[0].Stale = "", ""
		w.pass(2 * time.Minute)
	}, "n00:G3", ""},
	{"C1 a cloud controller manager", func(w *world) {
		w.in.Coexist = "one is at work"
		w.lose(0)
		w.phase(0, cluster.PhaseGone)
		w.pass(time.Hour)
	}, "", "C1"},
	{"M1 mode observe", func(w *world) {
		w.policy.Observe = true
		w.lose(0)
		w.phase(0, cluster.PhaseGone)
		w.pass(time.Hour)
	}, "", "M1"},
	{"N4 volumes are attached", func(w *world) {
		w.in.Attached = map[cluster.NodeName]int{"n00": 2}
		w.lose(0)
		w.phase(0, cluster.PhaseGone)
		w.pass(7 * time.Minute)
	}, "", "N4"},
	{"N4 the volumes are detached", func(w *world) {
		w.in.Attached = map[cluster.NodeName]int{"n00": 2}
		w.lose(0)
		w.phase(0, cluster.PhaseGone)
		w.pass(3 * time.Minute)
		w.in.Attached = nil
		w.pass(10 * time.Second)
	}, "n00:G3", ""},
	{"N4 detaching takes too long", func(w *world) {
		w.in.Attached = map[cluster.NodeName]int{"n00": 2}
		w.lose(0)
		w.phase(0, cluster.PhaseGone)
		w.pass(9 * time.Minute)
	}, "n00:G3", ""},
	{"N4 an absent machine is not fenced", func(w *world) {
		w.in.Attached = map[cluster.NodeName]int{"n00": 2}
		w.lose(0)
		w.vanish(0)
		w.pass(12 * time.Minute)
	}, "n00:G4", ""},
	{"S1 a new instance has its name", func(w *world) {
		w.lose(0)
		w.vanish(0)
		w.join(cluster.Instance{ID: "aws:///z/i-new", Phase: cluster.PhaseRunning, Member: true, Created: noon, NodeNames: []string{"n00"}})
		w.pass(2 * time.Minute)
	}, "n00:S1", ""},
	{"S1 somebody waits for its name", func(w *world) {
		w.in.Wanted = []cluster.NodeName{"n00"}
		w.lose(0)
		w.vanish(0)
		w.pass(2 * time.Minute)
	}, "n00:S1", ""},
	{"S1 proves nothing", func(w *world) {
		w.lose(0)
		w.join(cluster.Instance{ID: "aws:///z/i-new", Phase: cluster.PhaseRunning, Member: true, Created: noon, NodeNames: []string{"n00"}})
		w.pass(time.Hour)
	}, "", "G1"},
	{"S1 the instance of another Node is no new one", func(w *world) {
		w.in.Groups[0].Instances[1].NodeNames = []string{"n00", "n01"}
		w.lose(0)
		w.vanish(0)
		w.pass(2 * time.Minute)
	}, "", "L1"},
	{"L2 the Lease is renewed after its machine was terminated", func(w *world) {
		w.lose(0)
		w.phase(0, cluster.PhaseGone)
		for range 30 { // another machine uses the Node under its old provider ID
			w.pass(10 * time.Second)
			w.renewed["n00"] = w.in.Now
		}
	}, "", "L2"},
	{"E2 own without provider ID", func(w *world) {
		w.in.Own = []cluster.NodeName{"n00"}
		w.node(0).ProviderID = ""
		w.lose(0)
		w.pass(time.Hour)
	}, "", "E2"},
	{"E2 is no matter of others without provider ID", func(w *world) {
		w.in.Own = []cluster.NodeName{"n01"}
		w.node(1).ProviderID = ""
		w.node(0).ProviderID = ""
		w.lose(0)
		w.pass(time.Hour)
	}, "", "E4"},
	{"E5 a stale group lists what was never seen", func(w *world) {
		w.memory = Memory{}
		w.in.Groups[0].Stale = "throttled"
		w.lose(0)
		w.pass(time.Hour)
	}, "", "G0"},
	{"E6 does not apply to a Node that a scale-down removed", func(w *world) {
		w.in.Sent = []cluster.InstanceID{id(0)}
		w.node(0).Created = noon
		w.lose(0)
		w.vanish(0)
		w.pass(3 * time.Minute)
	}, "n00:G4", ""},
	{"L2 the Lease is older than the absence and younger than the grace", func(w *world) {
		w.lose(0)
		w.pass(9 * time.Minute)
		w.renewed["n00"] = w.in.Now
		w.vanish(0)
		w.pass(5 * time.Minute)
	}, "", "L2"},
	{"L2 the Lease ended with the machine", func(w *world) {
		w.policy.SentGrace = 5 * time.Minute
		w.lose(0)
		w.renewed["n00"] = noon.Add(5 * time.Second)
		w.phase(0, cluster.PhaseGone)
		w.pass(80 * time.Second)
	}, "n00:G3", ""},
	{"B2 lets go a Node that a scale-down removed meanwhile", func(w *world) {
		w.in.Sent = []cluster.InstanceID{id(0)}
		for n := range 4 {
			w.lose(n)
			w.phase(n, cluster.PhaseGone)
		}
		w.pass(5 * time.Minute)
	}, "n00:G3", ""},
	{"B4 lets go a Node that a scale-down removed meanwhile", func(w *world) {
		w.in.Sent = []cluster.InstanceID{id(0)}
		for _, n := range []int{0, 2, 4, 6} {
			w.lose(n)
		}
		w.phase(0, cluster.PhaseGone)
		w.pass(5 * time.Minute)
	}, "n00:G3", ""},
	{"B4 goes by for the terminated", func(w *world) {
		for _, n := range []int{0, 2, 4} {
			w.lose(n)
		}
		w.phase(0, cluster.PhaseGone)
		w.pass(15 * time.Minute)
	}, "n00:G3", ""},
	{"B4 by the Node's own zone", func(w *world) {
		for n := range 10 {
			w.in.Groups[0].Instances[n].Zone = ""
			w.node(n).Labels = map[string]string{"topology.kubernetes.io/zone": []string{"a", "b"}[n%2]}
		}
		w.memory = Memory{}
		w.pass(10 * time.Second)
		for _, n := range []int{0, 2, 4} {
			w.lose(n)
		}
		w.phase(0, cluster.PhaseGone)
		w.pass(5 * time.Minute)
	}, "", "B4"},
	{"B5 does not apply to a Node that a scale-down removed", func(w *world) {
		w.policy.UnledgeredEvery = time.Hour
		w.lose(1)
		w.phase(1, cluster.PhaseGone)
		w.pass(2 * time.Minute)
		w.in.Sent = []cluster.InstanceID{id(0)}
		w.lose(0)
		w.phase(0, cluster.PhaseGone)
		w.pass(2 * time.Minute)
	}, "n00:G3 n01:G3", ""},
	{"B5 does not count a Node that a scale-down removed", func(w *world) {
		w.policy.UnledgeredEvery = time.Hour
		w.in.Sent = []cluster.InstanceID{id(1)}
		w.lose(1)
		w.phase(1, cluster.PhaseGone)
		w.pass(2 * time.Minute)
		w.lose(0)
		w.phase(0, cluster.PhaseGone)
		w.pass(2 * time.Minute)
	}, "n00:G3 n01:G3", ""},
	{"G2 another provider ID", func(w *world) {
		w.lose(0)
		w.phase(0, cluster.PhaseGone)
		w.phase(9, cluster.PhaseGone)
		w.pass(50 * time.Second)
		w.in.Nodes = slices.DeleteFunc(w.in.Nodes, func(n cluster.Node) bool { return n.Name == "n09" })
		w.node(0).ProviderID = string(id(9))
		w.pass(40 * time.Second)
	}, "", "G2"},
	{"L1 a Node that never reported", func(w *world) {
		w.policy.SentGrace = 10 * time.Minute
		w.in.Sent = []cluster.InstanceID{id(0)}
		w.lose(0)
		w.node(0).ReadySince, w.node(0).Created = time.Time{}, noon
		w.vanish(0)
		w.pass(5 * time.Minute)
	}, "", "L1"},
	{"L1 begins again after an outage", func(w *world) {
		w.lose(0)
		w.vanish(0)
		w.pass(5 * time.Minute)
		w.in.Outage = "the API server does not answer"
		w.pass(time.Minute)
		w.in.Outage = ""
		w.pass(7 * time.Minute)
	}, "", "L1"},
	{"G2 absent once and terminated once is not twice the same", func(w *world) {
		w.lose(0)
		saved := w.in.Groups[0].Instances[0]
		w.vanish(0)
		w.pass(50 * time.Second)
		saved.Phase, saved.Member = cluster.PhaseGone, false
		w.in.Groups[0].Instances = append(w.in.Groups[0].Instances, saved)
		w.pass(30 * time.Second)
	}, "", "G2"},
	{"S1 a new instance that is still coming", func(w *world) {
		w.lose(0)
		w.vanish(0)
		w.join(cluster.Instance{ID: "aws:///z/i-new", Phase: cluster.PhasePending, Member: true, Created: noon, NodeNames: []string{"n00"}})
		w.pass(2 * time.Minute)
	}, "n00:S1", ""},
	{"S1 a new instance that goes already", func(w *world) {
		w.lose(0)
		w.vanish(0)
		w.join(cluster.Instance{ID: "aws:///z/i-new", Phase: cluster.PhaseDeleting, Member: true, Created: noon, NodeNames: []string{"n00"}})
		w.pass(2 * time.Minute)
	}, "", "L1"},
	{"G1 running and no member any more", func(w *world) {
		w.lose(0)
		w.in.Groups[0].Instances[0].Member = false
		w.in.Groups[0].Target--
		w.pass(time.Hour)
	}, "", "G1"},
	{"G0 first seen lately and not listed, by a cloud that tells no launch time", func(w *world) {
		w.launched(0, time.Time{})
		w.lose(0)
		w.vanish(0)
		w.pass(40 * time.Minute)
	}, "", "G0"},
	{"G0 launched exactly long enough ago", func(w *world) {
		w.launched(0, noon.Add(-50*time.Minute))
		w.lose(0)
		w.vanish(0)
		w.pass(11 * time.Minute) // the second sight is a minute after the hour is full
	}, "n00:G4", ""},
	{"B1 a Ready Node that was removed by a scale-down may be missing", func(w *world) {
		w.in.Sent = []cluster.InstanceID{id(0), id(9)}
		w.vanish(9)
		w.lose(0)
		w.vanish(0)
		w.pass(2 * time.Minute)
	}, "n00:G4", ""},
	{"B1 a Ready Node of a scale-down proves nothing", func(w *world) {
		for n := 1; n < 9; n++ {
			w.lose(n)
		}
		w.in.Sent = []cluster.InstanceID{id(9)}
		w.phase(9, cluster.PhaseDeleting)
		w.lose(0)
		w.vanish(0)
		w.pass(20 * time.Minute)
	}, "", "B1"},
	{"E5 known by its taint alone", func(w *world) { // another account's groups may be complete
		w.only("aws:///z/i-before-us")
		w.pass(2 * time.Minute)
	}, "", "E5"},
	{"B1 another group is incomplete", func(w *world) {
		w.only(string(id(0)))
		w.in.Groups = append(w.in.Groups, cluster.NodeGroup{ID: "other", Target: 3, ReadAt: noon})
		w.pass(2 * time.Minute)
	}, "n00:G4", ""},
	{"G0 its group is not there", func(w *world) {
		w.only(string(id(0)))
		w.in.Groups = []cluster.NodeGroup{{ID: "other", ReadAt: noon}}
		w.pass(2 * time.Minute)
	}, "", "G0"},
	{"B1 complete counts the members that exist", func(w *world) {
		w.only(string(id(0)))
		w.in.Groups[0].Target = 1
		w.in.Groups[0].Instances = []cluster.Instance{{ID: "aws:///z/i-new", Phase: cluster.PhaseRunning, Member: true},
			{ID: "aws:///z/i-left", Phase: cluster.PhaseRunning, NodeNames: []string{"left"}}, {ID: "aws:///z/i-dead", Phase: cluster.PhaseGone, Member: true}}
		w.pass(2 * time.Minute)
	}, "n00:G4", ""},
}

// only leaves one Node, of a scale-down and dead, and no instance.
func (w *world) only(providerID string) {
	w.in.Nodes = w.in.Nodes[:1]
	w.node(0).ProviderID = providerID
	w.node(0).Taints = append(w.node(0).Taints, sentAway)
	w.lose(0)
	w.in.Groups[0].Instances, w.in.Groups[0].Target = nil, 0
}

// claimed is what an agent that saw the Node's instance live wrote on the Node.
func (w *world) claimed(n int, group string) {
	w.node(n).Annotations = map[string]string{cluster.AnnotationGroup: group}
}

// answers: what the cloud says by ID of what its group does not list any more.
func init() {
	stories = append(stories, []story{
		{"G5 not asked yet", func(w *world) { w.lose(0); w.vanish(0); w.byID[id(0)] = cluster.ExistenceUnknown; w.pass(time.Hour) }, "", "G5"},
		{"G5 asked once", func(w *world) {
			w.lose(0)
			w.phase(0, cluster.PhaseGone)
			w.byID[id(0)] = cluster.ExistenceUnknown
			w.pass(time.Minute)
			delete(w.byID, id(0))
			w.pass(time.Minute)
		}, "", "G5"},
		{"G5 answers at last", func(w *world) {
			w.lose(0)
			w.phase(0, cluster.PhaseGone)
			w.byID[id(0)] = cluster.ExistenceUnknown
			w.pass(time.Minute)
			delete(w.byID, id(0))
			w.pass(3 * time.Minute)
		}, "n00:G3", ""},
		{"G1 taken out of its group", func(w *world) {
			w.lose(0)
			w.vanish(0)
			w.byID[id(0)] = cluster.InstanceExists
			w.pass(2 * time.Hour)
		}, "", "G1"},
		{"G1 taken out of its group, its end is noticed", func(w *world) {
			w.lose(0)
			w.vanish(0)
			w.byID[id(0)] = cluster.InstanceExists
			w.pass(time.Hour)
			delete(w.byID, id(0))
			w.pass(6 * time.Minute)
		}, "n00:G4", ""},
		{"G1 listed as terminated, and it exists", func(w *world) {
			w.lose(0)
			w.phase(0, cluster.PhaseGone)
			w.byID[id(0)] = cluster.InstanceExists
			w.pass(time.Hour)
		}, "", "G1"},
		{"G0 its group left the configuration", func(w *world) {
			w.lose(0)
			w.in.Groups = append(w.in.Groups, cluster.NodeGroup{ID: "rest", Target: 9, ReadAt: noon, Instances: w.in.Groups[0].Instances[1:]})
			w.in.Groups = w.in.Groups[1:]
			w.pass(2 * time.Hour)
		}, "", "G0"},
		{"E7 a new machine of the reused name reports the dead machine's ID", func(w *world) {
			w.lose(0)
			w.vanish(0)
			w.join(cluster.Instance{ID: "aws:///z/i-new", Phase: cluster.PhaseRunning, Member: true, Created: noon, NodeNames: []string{"n00"}})
			w.node(0).Created = noon.Add(time.Minute)
			w.pass(2 * time.Hour)
		}, "", "E7"},
		{"E7 made after its instance was terminated, never Ready", func(w *world) {
			w.phase(0, cluster.PhaseGone)
			w.madeAgain(0)
		}, "", "E7"},
		{"E7 made after its instance was listed no more", func(w *world) {
			w.vanish(0)
			w.madeAgain(0)
		}, "", "E7"},
		{"E7 another machine's system UUID", func(w *world) {
			w.node(0).SystemUUID = "11111111-2222-3333-4444-555555555555"
			w.pass(time.Minute)
			w.node(0).SystemUUID = "66666666-2222-3333-4444-555555555555"
			w.lose(0)
			w.vanish(0)
			w.pass(2 * time.Hour)
		}, "", "E7"},
		{"E7 two Nodes of one instance", func(w *world) {
			w.node(1).ProviderID = string(id(0))
			w.lose(0)
			w.phase(0, cluster.PhaseGone)
			w.pass(time.Hour)
		}, "", "E7"},
		{"E7 two Nodes of one instance, once", func(w *world) {
			w.node(1).ProviderID = string(id(0))
			w.pass(10 * time.Second)
			w.in.Nodes = slices.DeleteFunc(w.in.Nodes, func(n cluster.Node) bool { return n.Name == "n01" })
			w.lose(0)
			w.phase(0, cluster.PhaseGone)
			w.pass(time.Hour)
		}, "", "E7"},
		{"E7 Ready long after its instance has ended", func(w *world) {
			w.phase(0, cluster.PhaseGone)
			w.pass(6 * time.Minute)
			w.lose(0)
			w.pass(time.Hour)
		}, "", "E7"},
		{"E7 Ready for a moment after its instance has ended", func(w *world) {
			w.phase(0, cluster.PhaseGone)
			w.pass(time.Minute)
			w.lose(0)
			w.pass(10 * time.Minute)
		}, "n00:G3", ""},
		{"E7 Ready, and the cloud knows no such instance", func(w *world) {
			w.vanish(0)
			w.pass(12 * time.Minute)
			w.lose(0)
			w.pass(time.Hour)
		}, "", "E7"},
		{"M2 the first day", func(w *world) {
			w.policy.ObserveFirst = 2 * time.Hour
			w.lose(0)
			w.phase(0, cluster.PhaseGone)
			w.pass(time.Hour)
		}, "", "M2"},
		{"M2 the second day", func(w *world) {
			w.policy.ObserveFirst = 2 * time.Hour
			w.lose(0)
			w.phase(0, cluster.PhaseGone)
			w.pass(2 * time.Hour)
		}, "n00:G3", ""},
		{"L2 the stamp is of the future and stands still", func(w *world) {
			w.lose(0)
			w.renewed["n00"] = noon.Add(1000 * time.Hour)
			w.vanish(0)
			w.pass(12 * time.Minute)
		}, "n00:G4", ""},
		{"L2 the stamp is of the past and moves", func(w *world) {
			w.lose(0)
			w.vanish(0)
			for n := range 360 {
				w.renewed["n00"] = noon.Add(time.Duration(n)*10*time.Second - 1000*time.Hour)
				w.pass(10 * time.Second)
			}
		}, "", "L2"},
	}...)
}

// alone: no Node is Ready, and another account answers whose group has our group's name.
func init() {
	stories = append(stories, story{"B1 a lost ledger, begun anew in the wrong account", func(w *world) {
		w.memory = Memory{}
		for n := range 10 {
			w.lose(n)
			w.claimed(n, "workers")
			w.node(n).Taints = append(w.node(n).Taints, sentAway)
		}
		w.in.Groups[0].Instances, w.in.Groups[0].Target = []cluster.Instance{{ID: "aws:///z/i-x", Phase: cluster.PhaseRunning, Member: true, NodeNames: []string{"x"}}}, 1
		for n := range w.in.Nodes {
			w.in.Nodes[n].Created = noon.Add(-24 * time.Hour)
		}
		w.pass(time.Hour)
	}, "", "B1"})
}
