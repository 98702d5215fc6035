// Package disruption says why a node is replaced, when it may go, how many spare machines come first, and how the rollout of each
// group stands: New(round.State), and scaledown asks it about each node.
//
// A node is sick, drifted or expired, or package consolidation has ordered machines in its place (Reason). It goes like every other
// node: scaledown finds room for its pods, cordons and drains it. What keeps it for now is asked in one place (Hold): the breaker,
// the rollout of its group's source, and budgets with their windows. Machines that come first are a count (Spare): nodes that have no
// room for their pods, less the machines of the group that are coming and those that have come and are empty.
//
// One judge halts a rollout (judge): each machine that was started from the group's present source is evidence, as long as the rollout
// lasts and for a while after. Its pods are compared with those of the same controllers on other machines, the machine with machines of
// other sources. States and what leads to them are one table, decision.RolloutStates.
//
// What is decided follows from the Snapshot. Memory has what was seen (SourceFacts) and the verdicts (Halts), and nothing that was only
// intended; Policy has the halts that an earlier leader wrote down, and what operators ordered (pause, resume, start). Layer 4.
//
// It refuses to judge whether pods have room, to end a machine, and to replace a node by what its group does not start.
//
// Costs in doc comments have the letters of package scaledown: N nodes, G node groups. Where nothing is replaced and no
// budget is set, a round costs N, for a look at each node.
package disruption
