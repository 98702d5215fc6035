// Package schedsim binds pods as kube-scheduler's default profile binds them.
//
// A Sim is a cluster: nodes with their room, and the pods on them. Bind puts pods of one
// class on it one after the other, each on a node that the filters (agent/fit) pass and
// that has the highest total score: NodeResourcesFit by LeastAllocated,
// NodeResourcesBalancedAllocation, TaintToleration, preferred NodeAffinity,
// PodTopologySpread with the constraints of the system where a pod has none, and
// InterPodAffinity, with the weights, the integers and the normalisation of kube-scheduler
// 1.36. Among equal nodes it draws by a seed. test/judge/oracle holds it against the real
// framework, binding by binding.
//
// Pack puts them on the first nodes that take any in place of the best, for who asks only whether there is room. Stand closes a node,
// or lets it come last. Mark and Rollback give back what a what-if took.
//
// Pods of one class are bound by counts: the nodes are kept in sets that differ in nothing
// but what the node's own room scores, so that a binding costs the number of sets and not
// of nodes.
//
// Layer 1, pure. It refuses to preempt and to know time: all nodes are there from the
// beginning. It does not model ImageLocality, extenders, other profiles, and the sample of
// nodes that kube-scheduler takes of more than a hundred (percentageOfNodesToScore): it
// scores all. Of the workloads that select a pod it knows the ReplicaSet or StatefulSet
// alone, by the pod's own labels.
//
// Costs in doc comments have these letters: N nodes, U machines that are upcoming, C classes of
// pods, P pods that wait, M machines that are bought, G node groups, T terms of affinity and
// spread. agent/plan's BenchmarkGrowth doubles one of them at a time.
package schedsim
