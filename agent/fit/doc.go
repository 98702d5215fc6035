// Package fit answers one question: would kube-scheduler's filters put a pod of
// this class on this node?
//
// Layer 1, pure. It judges with the semantics of kube-scheduler 1.36, and from F7 on
// in its very words:
//
//   - Refused and Passes, of a class and a NodeInfo: cordons, spec.nodeName, taints,
//     nodeSelector and required node affinity (F1 to F4);
//   - Dimensions, of vectors of room: host ports and every resource (F5, F6);
//   - State, of all nodes and the pods on them: ReadWriteOncePod, CSI attach limits,
//     node affinity of volumes, topologies of claims, zones of volumes, topology
//     spread, pod affinity and anti-affinity both ways (F7 to F12).
//
// State is for computing with many pods: a Put changes and a judgement
// reads a few counters, whatever the size of the cluster. Mark and Rollback make
// a what-if cost what is tried in it, and Constrained, Component, MaxFit and Terms tell a
// packer where it may reckon with counts instead of single pods.
//
// It refuses to guess: a class that lists anything in NotUnderstood fits nowhere, by
// rule F0. That is so for dynamic resource allocation, and for whatever else observe
// cannot say in a PodClass. Operators of tolerations that kube-scheduler keeps behind
// a gate that is off (Gt, Lt) tolerate nothing. It neither scores nor preempts: a
// node that would be free once somebody is evicted is not free. And it knows nothing
// of time.
package fit
