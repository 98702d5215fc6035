// Package disruption says why a node is replaced, when it may go, and which machine is ordered in its place:
// New(round.State), and scaledown asks it about each node.
//
// A node is sick, drifted or expired, or package consolidation has ordered machines in its place (Reason). It goes like every other node: scaledown finds room for its pods, cordons and
// drains it. What keeps it for now is asked in one place (Hold): the breaker, the rollout of its group's source, of which the
// first machine has to prove itself, and budgets with their windows. Where its pods have no room, or its group is at its
// minimum, one machine of its group is ordered first (Order).
//
// What is decided follows from the Snapshot: a source is proven by a node that was started from it and whose pods are
// Ready, and a machine that is coming is waited for, whoever ordered it. Memory adds for which node a machine was ordered, and which
// rollouts were halted, so that a restart orders nothing twice; Policy has the halts that an earlier leader wrote down, and what operators
// ordered (pause, resume, start). Layer 4.
//
// It refuses to judge whether pods have room, to end a machine, and to replace a node by what its group does not start.
//
// Costs in doc comments have the letters of package scaledown: N nodes, G node groups. Where nothing is replaced and no
// budget is set, a round costs N, for a look at each node.
package disruption
