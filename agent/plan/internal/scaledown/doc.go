// Package scaledown finds the nodes whose pods have room elsewhere, keeps their timers,
// drains and terminates them, and tells package consolidation which pods have room:
// New(round.State, Cache).Decide() and the steps around it.
//
// Relocation is first fit with a cursor for every class of pods (next fit with restarts;
// Johnson, "Fast algorithms for bin packing", 1974): room only shrinks within a round, so
// that no node is looked at twice for one class. Layer 1. It refuses to evict against a
// PodDisruptionBudget, to drain a node on stale facts, and to touch a node that somebody
// else cordoned.
//
// What keeps a node stands in one list (checks.go), which Decide and explain walk.
//
// Not done yet: a move is asked for room in three ways (cursors of first fit, a fit.State for constrained pods, package certain). One schedsim.Sim
// with Mark and Rollback is to answer all three; it lacks taking pods off a node, a cordoned and a removed shape, and shut places in its log.
//
// Costs in doc comments have these letters: N nodes, U machines that are upcoming, C classes of
// pods, P pods that wait, M machines that are bought, G node groups, T terms of affinity and
// spread. agent/plan's BenchmarkGrowth doubles one of them at a time.
package scaledown
