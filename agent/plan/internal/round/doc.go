// Package round is the indexed state of one round: the Snapshot with its instances, nodes
// and pods matched, the room that is left, the groups' health, backoff and limits, the
// demands of the pending pods, and what the round has decided so far.
//
// New begins a round; its steps are called by agent/plan in the order of agent/plan's
// list. Cache is what one round worked out for the next one (indexes by pointer identity,
// so that a round costs what changed). Layer 2. It refuses to choose: which group grows is
// for scaleup, which node goes is for scaledown, and it never writes to the Snapshot.
package round
