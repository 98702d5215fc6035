// Package reaper judges which Node objects of a cluster may be deleted because their
// instance exists no more. Decide is its entry: a function of one moment of the world
// (Input), the settings (Policy) and what earlier decisions left behind (Memory). It
// answers with a Plan: the Nodes to delete with the proof, the Nodes that are held with the
// rule that holds them, and the questions and reads before the next decision. Learn keeps the ledger without a decision, Recheck looks at a Node again right
// before its deletion, and Explain shows every rule that was asked about one Node.
//
// The rules carry the IDs E (eligible), L (looks dead), G (witnessed gone), B (breakers),
// C and M (deletion is not this agent's business, or not yet), S (same name) and N (the
// Node and its deletion). They stand in rules.go in the order in which they are asked;
// docs/security-rules.md lists them.
//
// The package refuses to do I/O, to read a clock and to write: package nodecleaner does
// that. It refuses to take silence for proof: an error, a partial or an empty answer, a
// stale group or one that is not listed is "unknown", and so is an instance that the cloud
// was not asked for by its ID, or by credentials that find nothing else that is known to
// live. A stopped, detached or departing instance is alive.
package reaper
