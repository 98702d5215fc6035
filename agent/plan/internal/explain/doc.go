// Package explain says why a pod waits, why a node stays or goes, and why a group can or
// cannot change.
//
// Explain reads one round at three moments and asks the engine's own functions, so that it
// never says anything else than the plan. There is no algorithm of its own. Layer 1. It
// refuses to decide and to guess: it judges nothing that the round did not judge.
package explain
