// Package round is the indexed state of one round: the Snapshot with its instances, nodes and pods matched, the room that
// is left, what every group has and what is upcoming, its backoff after failures, the demands of the pending pods, and what
// the round has decided so far. So it knows which nodes are starting (nodestart.go), what DaemonSets take of a machine (daemonshares.go),
// and how many steps each searching part may take (budget.go).
//
// New begins a round; its steps are called by agent/plan in the order of agent/plan's
// list. Cache keeps the results of one round that the next one can use (indexes by pointer identity,
// so that a round costs what changed). Layer 1. It refuses to decide: whether a group may grow is
// for growth, which group grows for scaleup, which node or instance goes for scaledown. It
// never writes to the Snapshot.
package round
