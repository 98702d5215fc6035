package plan

import (
	"strings"
	"testing"

	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
)

// TestClusterAutoscalersAnnotations holds what Cluster Autoscaler 1.30 to 1.37 reads of Pods and Nodes, one row for each name and value
// that it tells apart, and those that it does not know. Conversion has a table of its own (agent/observe/convert).
func TestClusterAutoscalersAnnotations(t *testing.T) {
	const world = "policy DelayAfterAdd=0s\ngroup w 0..9 target=2 cpu=4000 mem=14Gi\nnode n1 group=w age=2h\nnode n2 group=w age=2h\nnote n1 autoscaler-agent/scale-down-requested=true\n"
	for _, c := range []struct{ name, lines, want, never string }{
		{"safe-to-evict: true", "pods p 1 cpu=100 on=n1 owner=none safe=true volume=data ns=kube-system", "cordon n1", "D6"},
		{"no annotation, no controller", "pods p 1 cpu=100 on=n1 owner=none", "[D6] pod default/p-000 has no controller", "cordon n1"},
		{"safe-to-evict: false", "pods p 1 cpu=100 on=n1 safe=false", "[D6] pod default/p-000 annotated safe-to-evict=false", "cordon n1"},
		{"safe-to-evict: on-completion, with all that else keeps a pod", "pods p 1 cpu=100 on=n1 owner=none safe=on-completion volume=data ns=kube-system pdb=a,b\npass 0s\naccept\nround\naccept\npass 1h\nround", "[D24] marked, and waits: pod kube-system/p-000 runs to its end", "evict kube-system"},
		{"safe-to-evict: on-completion, terminating", "pods p 1 cpu=100 on=n1 safe=on-completion deleting=30s\nround\naccept\npass 6s\nround", "0 to evict, 0 wait for a budget, 1 terminating", "D24"},
		{"safe-to-evict: a value that says nothing", "pods p 1 cpu=100 on=n1 safe=TRUE", `[D6] pod default/p-000 annotated cluster-autoscaler.kubernetes.io/safe-to-evict="TRUE", which is none of`, "cordon n1"},
		{"safe-to-evict-local-volumes does not list the volume", "pods p 1 cpu=100 on=n1 volume=data", "[D6] pod default/p-000 keeps data on the node in volume data", "cordon n1"},
		{"pod-scale-up-delay", "pods p 1 cpu=100000 pending=1 delay=1m", "[U15]", "grow"},
		{"enable-ds-eviction: true", "pods ds 1 on=n1 owner=DaemonSet evictds=true age=1h\nround\naccept\npass 6s\nround", "evict default/ds-000 from n1", "D6"},
		{"enable-ds-eviction: false", "pods p 1 cpu=100 on=n1\npods ds 1 on=n1 owner=DaemonSet evictds=false age=1h\npolicy EvictDaemons=true\nround\naccept\npass 6s\nround", "evict default/p-000", "evict default/ds-000"},
		{"enable-ds-eviction: a value that says nothing", "pods p 1 cpu=100 on=n1\npods ds 1 on=n1 owner=DaemonSet evictds=yes age=1h\npolicy EvictDaemons=true\nround\naccept\npass 6s\nround", "evict default/p-000", "evict default/ds-000"},
		{"no enable-ds-eviction, on an occupied node", "policy EvictDaemons=true\npods p 1 cpu=100 on=n1\npods ds 1 on=n1 owner=DaemonSet age=1h\nround\naccept\npass 6s\nround", "evict default/ds-000", "D6"},
		{"daemonset-pod: true, on a node", "pods p 1 cpu=3900 on=n1 owner=CloneSet daemon=1\npods q 1 cpu=3900 on=n2", "cordon n1 [D20] utilisation 98%, 0 pods to move", "D7"},
		{"daemonset-pod: true, pending", "pods p 1 cpu=3900 pending=1 owner=CloneSet daemon=1\npods q 2 cpu=3900 on=n2", "", "grow"},
		{"daemonset-pod: true, without a controller", "pods p 1 cpu=100 on=n1 owner=none daemon=1", "cordon n1", "D6"},
		{"scale-down-disabled of a Node", "note n1 cluster-autoscaler.kubernetes.io/scale-down-disabled=true", "[D5]", "cordon n1"},
		{"scale-down-disabled: false", "note n1 cluster-autoscaler.kubernetes.io/scale-down-disabled=false", "cordon n1", "n1 [D5]"},
		{"delay-deletion of a Node", "policy NodeDeletionDelayTimeout=2m\nnote n1 delay-deletion.cluster-autoscaler.kubernetes.io/x=y\nround\naccept\npass 6s\nround", "[D14] drained; waits until", "terminate"},
		{"ToBeDeletedByClusterAutoscaler of somebody else", "node n3 group=w age=2h mark=1m ours=no", "held node n3 [D10] marked for deletion by somebody else", "terminate"},
		{"DeletionCandidateOfClusterAutoscaler", "policy SoftTaints=10\nround\npass 1m\nround", "soften n2 [D19]", ""},
		{"scale-down-unready-enabled=false", "node n3 group=w age=2h ready=False since=1h\npolicy ScaleDownUnready=false", "held node n3 [D2] it is not Ready, and such nodes are kept", "cordon n3"},
		{"scale-down-unready-enabled=false, and somebody asks", "node n3 group=w age=2h ready=False since=1h\nnote n3 autoscaler-agent/scale-down-requested=true\npolicy ScaleDownUnready=false", "cordon n3", "n3 [D2]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := &teller{t: t, p: policy()}
			w.s.Now = t0
			var got string
			round := func() {
				var m decision.Memory
				w.last, m = Decide(w.s, w.m, w.p)
				w.m, w.s.Outcomes = m, nil
				got = w.last.String()
			}
			for line := range strings.Lines(world + c.lines) {
				if line = strings.TrimSpace(line); line == "round" {
					round()
				} else {
					w.line(line)
				}
			}
			round()
			if !strings.Contains(got, c.want) || c.never != "" && strings.Contains(got, c.never) {
				t.Errorf("want %q and never %q:\n%s", c.want, c.never, got)
			}
		})
	}
}
