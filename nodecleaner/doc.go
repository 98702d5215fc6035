// Package nodecleaner deletes the Node objects of instances that exist no more.
//
// Kubernetes leaves this to a cloud controller manager; without one, dead Nodes stay for
// ever. Package reaper decides, as a pure function. This package watches Nodes,
// reads the cloud's list and the kubelets' Leases, asks the cloud for instances by their
// IDs, keeps the state file and the manifests of deleted Nodes, and carries out the plan.
//
// The package refuses to delete a Ready Node, a Node of the control plane, a Node of an
// instance that was never seen alive in a managed group, a Node whose provider ID may be
// another machine's, a Node on one reading alone, and more than a few Nodes at once unless a
// scale-down removed them. It deletes only the very object that was decided on, by its UID
// and resource version, and only while this agent may act. It never removes a finalizer.
package nodecleaner
