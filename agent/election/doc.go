// Package election answers one question: may this agent change anything now, and until
// when? It may while it holds the Lease kube-system/autoscaler-agent and no in-cluster
// Cluster Autoscaler renews a Lease of its own.
//
// The election is the protocol of client-go's, with three additions. A write has to end a few
// seconds before another agent may take the Lease, by the monotonic and by the wall clock,
// so that a process that was suspended does not act on an old Lease. Each change of a cloud
// is on the Lease before the cloud is asked (AnnotationWrites), so that the next leader
// knows what is still under way. A holder is a name and an instance: the boot of the machine
// and the state directory, so that an agent that was killed takes its own Lease back at once,
// and two machines with one name (a copied agent.env) do not both hold it. After a reboot the
// Lease runs out first (15 s).
//
// It refuses to say yes while it cannot see the Lease of the other autoscaler, and it never
// ends the process: an agent that loses the Lease waits for it.
package election
