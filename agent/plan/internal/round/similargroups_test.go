package round

import (
	"testing"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
)

// TestLabelsOfPlacesAreIgnored plays every label that Cluster Autoscaler's documents for
// Cluster API advise to ignore, --balancing-ignore-label and --balancing-label.
func TestLabelsOfPlacesAreIgnored(t *testing.T) {
	w := &State{Policy: &decision.Policy{}}
	with := func(k, v string) map[string]string { return map[string]string{"pool": "a", k: v} }
	for _, label := range []string{
		"topology.diskplugin.csi.alibabacloud.com/zone", "alpha.eksctl.io/instance-id", "alpha.eksctl.io/nodegroup-name",
		"eks.amazonaws.com/nodegroup", "k8s.amazonaws.com/eniConfig", "lifecycle", "topology.ebs.csi.aws.com/zone",
		"topology.disk.csi.azure.com/zone", "agentpool", "kubernetes.azure.com/agentpool", "topology.gke.io/zone",
		"ibm-cloud.kubernetes.io/worker-id", "vpc-block-csi-driver-labels", "ibm-cloud.kubernetes.io/vpc-instance-id",
	} {
		if !w.sameLabels(with(label, "1"), with(label, "2")) {
			t.Errorf("groups that differ in %s are not similar", label)
		}
	}
	if w.sameLabels(with("example.com/rack", "1"), with("example.com/rack", "2")) {
		t.Error("groups that differ in a label of their own are similar")
	}
	w.Policy.BalanceIgnoreLabels = []string{"example.com/rack"}
	if !w.sameLabels(with("example.com/rack", "1"), with("example.com/rack", "2")) {
		t.Error("--balancing-ignore-label does not hold")
	}
	w.Policy.BalanceLabels = []string{"example.com/rack"}
	if w.sameLabels(with("example.com/rack", "1"), with("example.com/rack", "2")) || !w.sameLabels(map[string]string{"a": "1"}, map[string]string{"a": "2"}) {
		t.Error("--balancing-label does not hold")
	}
}

// TestPeers: whether the second of two groups gets machines evenly with the first.
func TestPeers(t *testing.T) {
	for name, c := range map[string]struct {
		change func(l *ledger, b *cluster.NodeGroup)
		want   bool
	}{
		"equal":               {func(*ledger, *cluster.NodeGroup) {}, true},
		"nothing is balanced": {func(l *ledger, _ *cluster.NodeGroup) { l.p.BalanceSimilarNodeGroups = false }, false},
		"a set by name": {func(l *ledger, b *cluster.NodeGroup) {
			l.p.BalanceSimilarNodeGroups = false
			b.Balance, l.g().Balance = "s", "s"
		}, true},
		"two sets":                       {func(l *ledger, b *cluster.NodeGroup) { b.Balance, l.g().Balance = "s", "z" }, false},
		"one in a set":                   {func(l *ledger, b *cluster.NodeGroup) { b.Balance = "s" }, false},
		"the first template is unknown":  {func(l *ledger, _ *cluster.NodeGroup) { l.g().Template.Unknown = "x" }, false},
		"the second template is unknown": {func(_ *ledger, b *cluster.NodeGroup) { b.Template.Unknown = "x" }, false},
		"another label":                  {func(_ *ledger, b *cluster.NodeGroup) { b.Template.Labels = map[string]string{"a": "b"} }, false},
		"a label less":                   {func(l *ledger, _ *cluster.NodeGroup) { l.g().Template.Labels = map[string]string{"a": "b"} }, false},
		"a label of no value less":       {func(l *ledger, _ *cluster.NodeGroup) { l.g().Template.Labels = map[string]string{"a": ""} }, false},
		"a named label of no value less": {func(l *ledger, _ *cluster.NodeGroup) {
			l.g().Template.Labels = map[string]string{"a": ""}
			l.p.BalanceLabels = []string{"a"}
		}, false},
		"another label in a set": {func(l *ledger, b *cluster.NodeGroup) {
			b.Template.Labels = map[string]string{"a": "b"}
			b.Balance, l.g().Balance = "s", "s"
		}, true},
		"another taint":               {func(_ *ledger, b *cluster.NodeGroup) { b.Template.Taints = []cluster.Taint{{Key: "a"}} }, false},
		"a taint less":                {func(l *ledger, _ *cluster.NodeGroup) { l.g().Template.Taints = []cluster.Taint{{Key: "a"}} }, false},
		"one core more of a thousand": {func(_ *ledger, b *cluster.NodeGroup) { b.Template.Capacity.MilliCPU += 1000 }, false},
		"a core more in a set": {func(l *ledger, b *cluster.NodeGroup) {
			b.Template.Capacity.MilliCPU += 1000
			b.Balance, l.g().Balance = "s", "s"
		}, true},
		"a quarter more in a set": {func(l *ledger, b *cluster.NodeGroup) {
			b.Template.Capacity.MilliCPU = 1_250_000
			b.Balance, l.g().Balance = "s", "s"
		}, true},
		"more than that in a set": {func(l *ledger, b *cluster.NodeGroup) {
			b.Template.Capacity.MilliCPU = 1_250_001
			b.Balance, l.g().Balance = "s", "s"
		}, false},
		"memory":                    {func(_ *ledger, b *cluster.NodeGroup) { b.Template.Capacity.Memory -= 15 }, true},
		"more memory":               {func(_ *ledger, b *cluster.NodeGroup) { b.Template.Capacity.Memory -= 16 }, false},
		"accelerators":              {func(_ *ledger, b *cluster.NodeGroup) { b.Template.Capacity.Extended = map[string]int64{"gpu": 1} }, false},
		"allocatable cpu":           {func(_ *ledger, b *cluster.NodeGroup) { b.Template.Allocatable.MilliCPU -= 60_000 }, false},
		"allocatable memory":        {func(_ *ledger, b *cluster.NodeGroup) { b.Template.Allocatable.Memory -= 60 }, false},
		"allocatable storage":       {func(_ *ledger, b *cluster.NodeGroup) { b.Template.Allocatable.EphemeralStorage -= 60 }, false},
		"allocatable pods":          {func(_ *ledger, b *cluster.NodeGroup) { b.Template.Allocatable.Pods -= 6 }, false},
		"a little less allocatable": {func(_ *ledger, b *cluster.NodeGroup) { b.Template.Allocatable.MilliCPU -= 40_000 }, true},
		"what a DaemonSet leaves": {func(l *ledger, b *cluster.NodeGroup) {
			b.Template.Labels = map[string]string{"lifecycle": "spot"}
			l.s.Classes = []cluster.PodClass{{NodeSelector: b.Template.Labels, Requests: cluster.Resources{MilliCPU: 100_000}}}
			l.s.DaemonSets = []cluster.DaemonSet{{Key: "d", UID: "d"}}
		}, false},
	} {
		l := newLedger()
		l.p.BalanceSimilarNodeGroups = true
		machine := cluster.Resources{MilliCPU: 1_000_000, Memory: 1000, EphemeralStorage: 1000, Pods: 100}
		l.g().Template = cluster.Template{Capacity: machine, Allocatable: machine}
		l.s.Groups = append(l.s.Groups, cluster.NodeGroup{ID: "b", ReadAt: l.s.Now, Template: cluster.Template{Capacity: machine, Allocatable: machine}},
			cluster.NodeGroup{ID: "z", ReadAt: l.s.Now, Template: cluster.Template{Unknown: "x"}})
		c.change(l, &l.s.Groups[1])
		w := l.count()
		for range 2 {
			for _, g := range []int{w.ByID["b"], w.ByID["w"]} {
				got := w.Peers(g)
				if is := len(got) == 2 && got[0] == 0 && got[1] == 1; is != c.want || !is && (len(got) != 1 || got[0] != g) {
					t.Errorf("%s: the peers of group %d are %v", name, g, got)
				}
			}
		}
		unlike := w.Unlike(w.ByID["w"], w.ByID["b"])
		if l.g().Balance != "" && l.g().Balance == l.s.Groups[1].Balance && (unlike == "") != c.want {
			t.Errorf("%s: unlike: %s", name, unlike)
		}
	}
}

// TestUnequal says in what machines differ of which other things are the same.
func TestUnequal(t *testing.T) {
	for name, change := range map[string]func(*cluster.Resources){
		"cpu": func(r *cluster.Resources) { r.MilliCPU -= 60 }, "memory": func(r *cluster.Resources) { r.Memory -= 60 },
		"storage": func(r *cluster.Resources) { r.EphemeralStorage -= 60 }, "pods": func(r *cluster.Resources) { r.Pods -= 60 },
	} {
		l := newLedger()
		machine := cluster.Resources{MilliCPU: 1000, Memory: 1000, EphemeralStorage: 1000, Pods: 1000}
		less := machine
		change(&less)
		l.g().Template = cluster.Template{Capacity: machine, Allocatable: machine}
		l.s.Groups = append(l.s.Groups, cluster.NodeGroup{ID: "b", ReadAt: l.s.Now, Template: cluster.Template{Capacity: machine, Allocatable: less}})
		w := l.count()
		if got := w.unequal(&w.Groups[0], &w.Groups[1], memoryDifference, allocatedDifference); got != "another share of its machine is allocatable" {
			t.Errorf("%s: %q", name, got)
		}
	}
}
