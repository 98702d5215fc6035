// Package store holds the Kubernetes half of a Snapshot between two watch events, as the
// cache of kube-scheduler does (pkg/scheduler/backend/cache).
//
// There is one Put and one Delete per kind of object. Each converts the object once
// (package convert), stores the value, and returns an Urgency: how soon the change
// deserves a round. Snapshot returns all values. Nodes are copied on write: a Node that
// did not change since the last Snapshot is the same pointer, and no value in a Snapshot
// is written to again.
//
// Pods of equal scheduling demand share one cluster.PodClass, which is counted and
// interned, so that 30,000 replicas cost what one does.
//
// The package refuses clients, and refuses to know the cloud. It reads the clock for two
// facts that the API tells in whole seconds only: when a pod was first seen
// unschedulable, and whether a Node was seen soon after it registered.
package store
