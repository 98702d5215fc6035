// Package topology turns the inter-pod constraints of the pending pods (affinity,
// anti-affinity, topology spread, volumes) into what a packer understands: the domains
// that a demand is assigned to, and capacity dimensions of a machine.
//
// Compile is the entry; it returns nil where no pending pod is constrained. Zones are
// assigned greedily, pod by pod, by kube-scheduler's own rules (agent/fit), like the
// balancing heuristics for makespan scheduling (Graham, "Bounds on Multiprocessing Timing
// Anomalies", 1969). Layer 1. It refuses to have the last word: a solution that was packed
// with it is verified pod by pod by package packing. It buys nothing.
//
// Stranding tells which groups would open a zone that keeps spread pods out of the others.
package topology
