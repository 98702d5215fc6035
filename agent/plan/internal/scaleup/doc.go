// Package scaleup finds room for the pending pods and buys what is missing:
// New(round.State).Decide().
//
// Package purchase finds where pods go and what is bought. The later pods of a burst wait for each other (burst.go), and those of a
// machine that would be little filled wait a moment (patience.go).
// Decide applies the Solution, remembers for which pods machines are upcoming, and writes the Plan.
// Layer 1. It refuses to remove anything, to buy beyond
// a limit, and to buy for pods that may fit upcoming nodes once the scheduler has used them.
//
// Costs in doc comments have these letters: N nodes, U machines that are upcoming, C classes of
// pods, P pods that wait, M machines that are bought, G node groups, T terms of affinity and
// spread. agent/plan's BenchmarkGrowth doubles one of them at a time.
package scaleup
