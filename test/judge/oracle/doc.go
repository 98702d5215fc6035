// Package oracle asks kube-scheduler itself whether agent/fit is right.
//
// A generator makes small clusters from a seed, with every feature that fit
// understands mixed freely. kube-scheduler's own framework, run by the judge of
// test/emulate/controlplane/k8s, and agent/fit, fed by agent/observe's conversion, decide for
// each waiting pod and each node whether the filters pass. Where the two differ, the
// world is shrunk to the least that still shows it, and printed as a story that
// testdata/ keeps for good.
//
// It refuses to excuse: what fit holds by name is counted and shown, and everything
// else is a disagreement. It judges filters only; scores and preemption are not fit's.
package oracle
