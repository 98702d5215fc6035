// Package nodecleaner deletes the Node objects of instances that exist no more.
//
// Kubernetes leaves that to a cloud controller manager; where none runs, dead Nodes
// stay for ever. The rules carry the IDs E (eligible), L (looks dead), G (witnessed
// gone), B (breakers) and N (the Node and its deletion) and stand in decide.go, which is pure.
//
// The package refuses to take silence for proof: an error, a partial or an empty
// answer, a stale group or one that is not listed is "unknown", and so is an instance
// that the cloud was not asked for by its ID, or by credentials that find nothing else
// that is known to live. A stopped, detached or departing instance is alive. It refuses
// to delete a Ready Node, a Node of the control plane, a Node of an instance that was
// never seen alive in a managed group, a Node whose provider ID may be another machine's,
// a Node on one sight, and more than a few at once unless the scaler itself sent them
// away. It never removes a finalizer.
package nodecleaner
