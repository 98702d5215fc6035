// Package packing says which machines hold the pods that wait, by packing alone:
// New(round.State).BestSolution().
//
// It tries groups as Cluster Autoscaler's expanders would choose them (greedy set cover), each filled by
// agent/binpack together with the nodes that are there. Pods that constrain each other are packed by the zones and
// dimensions of package topology, and a Solution is verified pod by pod by kube-scheduler's rules (agent/fit).
// Layer 1, pure. It refuses to foresee where kube-scheduler binds a pod, which package purchase does, to buy beyond a
// limit, and to change the Plan: a Solution is a value.
//
// Costs in doc comments have the letters of package scaleup.
package packing
