// Package world is one simulated world: the whole agent, as agent.Run starts it, as one to three leaders, in one process and in the
// simulated time of a testing/synctest bubble. The agents talk HTTP (package wire) to an API server in memory (package
// apiserver) and to the emulated AWS of test/emulate/cloud/aws, which has the same clock; beneath HTTP nothing of them is
// replaced. Their files are files.
//
// What is a model: kube-scheduler (the filters of package fit; scores by what is left free), the controllers of workloads,
// Nodes, budgets, certificates and bootstrap tokens, the garbage collector, kubelets (they join with certificate requests,
// report Nodes, run and end pods; their Leases are written when somebody reads them). TestCases holds them against the real
// ones: each file of test/cases ends here as it does on the real control plane.
//
// It refuses what it does not play: the local socket and the metrics' listener (real sockets keep a bubble's clock from going on), HTTP/2 and
// broken connections below HTTP, clouds other than AWS, admission policies, quotas, claims of volumes, priority and fairness. A seed
// draws the same faults again; which goroutine runs first at one moment is Go's own choice, so that two runs of a
// seed may differ.
package world
