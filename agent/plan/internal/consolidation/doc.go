// Package consolidation finds nodes that fewer or cheaper machines can replace, and orders these machines:
// New(round.State, disruption.Round, Mover).Decide().
//
// It looks once a minute, while nothing else is going on, for the replacement that saves most beside what moving pods counts for
// (rank). One that is not worth its moves within the hour is taken when it has been real for as long as it takes to be worth them (ski
// rental: whatever demand does then, that costs at most twice what the best decision would have), at most four hours. Else a machine
// twice too large, or one of a type that costs half as much again, would stay for ever.
// A saving that stays real for long enough becomes orders of package disruption, as for drifted nodes: the nodes have
// the reason dear from then on, and go the way of all others. One consolidation is under way at a time.
//
// It also finds the nodes whose pods all have room on the others: package softtaint lets new pods keep away from these (avoid).
//
// It moves no pod that has run for less than an hour: such a pod may be one that the agent has moved, which a restart cannot
// hide. One of a Job leaves the saving known, and the order waits for its end: else a node with a cron job would stay for ever. Layer 4. It refuses to judge whether pods have room (Mover does), and to mark or drain a node.
//
// Costs in doc comments have the letters of package scaledown: N nodes, G node groups, C classes of pods.
package consolidation
