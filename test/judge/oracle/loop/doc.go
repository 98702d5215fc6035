// Package loop closes the circle with the real kube-scheduler: a mix of pods with
// spread, affinity and volumes waits in a real API server, agent/plan decides on a
// Snapshot that agent/observe makes of it, Node objects are created for the machines
// that it buys, and then kube-scheduler has the last word.
//
// It holds the plan to its promises: every pod that a machine was bought for is bound,
// no pod that the plan sees room for stays pending, and what it holds as impossible
// kube-scheduler leaves pending too. No kubelet runs and no container: it refuses to
// say anything about what happens after a pod is bound.
package loop
