// Package scaleup finds room for the pending pods and buys what is missing:
// New(round.State).Decide().
//
// A purchase is judged as the cluster that it makes (judge.go): a model of kube-scheduler
// (package schedsim) binds all pods, the pods that it leaves are a second purchase, and the
// cheapest of a few candidates by the price of both is taken. Rounds that are too large for
// that, in which it is not known whom upcoming machines are for, or whose expander does not
// go by prices, are packed (Planner.judgeable); the packing is judged where that can be done.
// Before a round of either kind buys, pods are put on the machines that earlier rounds chose
// for them (contents.go).
//
// Packing tries groups as Cluster Autoscaler's expanders would choose them (greedy set cover),
// each filled by agent/binpack together with the nodes that are there; the result is verified
// pod by pod by kube-scheduler's rules. Layer 4. It refuses to remove anything, to buy beyond
// a limit, and to buy for pods that may fit upcoming nodes once the scheduler has used them.
//
// Costs in doc comments have these letters: N nodes, U machines that are upcoming, C classes of
// pods, P pods that wait, M machines that are bought, G node groups, T terms of affinity and
// spread. agent/plan's BenchmarkGrowth doubles one of them at a time.
package scaleup
