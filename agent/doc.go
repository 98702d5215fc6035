// Package agent is the loop and the wiring: it puts configuration, clients, the provider
// stack, the services and their supervision together. It decides nothing about machines.
//
//	informers ┐                                                        ┌ provider.Resize / Delete
//	          ├─ observe ──▶ cluster.Snapshot ──▶ plan.Decide ──▶ Plan ─┤                          act
//	provider  ┘   (stamps Now)   (a value)       (+ Memory)   (a value) └ kube: taint, evict, delete
//	.Groups                           outcomes are observations of the next Snapshot ◀──┘
//
// One writer each: the scaler writes targets, instances, its taints and evictions;
// csrsigner approvals; nodecleaner Node objects; bootstrap token Secrets and
// published files. All of them write only while this agent holds its Lease and no
// other autoscaler holds its own.
//
// It refuses to start with a configuration that it does not understand whole, and
// to act while it cannot say that it alone may.
package agent
