// Package clusterapi lets the scaler work with Cluster API: MachineDeployments,
// MachineSets that no MachineDeployment owns, and MachinePools.
//
// It finds groups by namespace, cluster and label, reads them whole (bounds and
// options from Cluster Autoscaler's annotations, the machines of every MachineSet of
// a rollout, the next node from capacity annotations, from the infrastructure
// template's status, or from a node of the group), sets replicas by the scale
// subresource under the object's resource version, and ends named machines by the
// delete-machine annotation that is proven written before the count falls. Both
// contracts of Cluster API, v1beta1 and v1beta2, are understood.
//
// It reads by plain lists, page by page, into structs that hold what is used, and
// keeps no copy of the cluster between reads: what a read tells is true at that
// moment, and a read that fails is an error. It refuses to import Cluster API's own
// module, to watch, to delete a Machine whose place in the count has not fallen, to
// lower replicas while a rollout decides which machines go, and to act for a group that
// Cluster API itself leaves alone (paused).
package clusterapi
