package plan

import (
	"fmt"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
)

// BenchmarkDaemonSets is a round of 5,000 nodes in 100 groups with the pods of 10 DaemonSets
// each, after a change of one node.
func BenchmarkDaemonSets(b *testing.B) {
	const nodes, groups, sets = 5000, 100, 10
	s := busy(nodes, 3*nodes, 50)
	all := s.Groups[0]
	s.Groups = nil
	for g := range groups {
		of := all
		of.ID, of.Target = cluster.GroupID(fmt.Sprintf("g%03d", g)), nodes/groups
		of.Instances = all.Instances[g*nodes/groups : (g+1)*nodes/groups]
		s.Groups = append(s.Groups, of)
	}
	for d := range sets {
		name := cluster.UID(fmt.Sprintf("0c6f1a9e-agent-%02d", d))
		s.Classes = append(s.Classes, cluster.PodClass{Namespace: "kube-system", Labels: map[string]string{"app": string(name)}, Requests: cluster.Resources{MilliCPU: 10, Pods: 1}},
			cluster.PodClass{Namespace: "kube-system", Labels: map[string]string{"app": string(name), "pod-template-generation": "1"}, Requests: cluster.Resources{MilliCPU: 20, Pods: 1}})
		class := len(s.Classes) - 2
		s.DaemonSets = append(s.DaemonSets, cluster.DaemonSet{Key: cluster.PodKey("kube-system/" + name), UID: name, Class: class})
		owner := &cluster.Owner{Kind: "DaemonSet", Name: string(name), UID: name}
		for i, n := range s.Nodes {
			s.Pods = append(s.Pods, cluster.Pod{Key: cluster.PodKey(fmt.Sprintf("kube-system/%s-%05d", name, i)), UID: cluster.UID(fmt.Sprint(d, "-", i)), Class: class + 1, Owner: owner, Node: n.Name, Created: cluster.At(t0)})
		}
	}
	s = s.Seated()
	e, m := new(Engine), decision.Memory{}
	_, m = e.Decide(s, m, policy())
	i := 0
	b.ReportAllocs()
	for b.Loop() {
		s.Nodes = append([]*cluster.Node(nil), s.Nodes...)
		n := *s.Nodes[i%nodes]
		s.Nodes[i%nodes] = &n
		s.Now = s.Now.Add(time.Millisecond)
		_, m = e.Decide(s, m, policy())
		i += 7
	}
}
