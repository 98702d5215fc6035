// Package scaledown finds the nodes whose pods have room elsewhere, keeps their timers,
// drains and terminates them, and tells package consolidation which pods have room; ends instances that never
// became Nodes; and tells kube-scheduler which nodes may go:
// New(round.State, Cache).Decide() and the steps around it.
//
// Room is asked for on one board (board.go): a node is closed and emptied, its pods go to the first nodes that take them, and what was
// taken stays for the candidates after it. Layer 1. It refuses to evict against a
// PodDisruptionBudget, to drain a node on stale facts, and to touch a node that somebody
// else cordoned.
//
// What keeps a node stands in one list (checks.go), which Decide and explain walk.
//
// A placement of the board is one of those that kube-scheduler may choose. Before nodes go to save money, two more are drawn by its scores
// (Drawn). Without these drains are taken back for pods that find no room (34 in 30 days of TestConsolidationLoop, seeds 7101 to 7110; 11 with
// them). A proof that pods have room wherever kube-scheduler puts each of them (307 lines; 2 drains) had 1.011 times the bill of the draws, 0.95
// times the evictions and 0.98 times the machines; of idle nodes, which it was asked for too, it kept none.
//
// Costs in doc comments have these letters: N nodes, U machines that are upcoming, C classes of
// pods, P pods that wait, M machines that are bought, G node groups, T terms of affinity and
// spread. agent/plan's BenchmarkGrowth doubles one of them at a time.
package scaledown
