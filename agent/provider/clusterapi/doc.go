// Package clusterapi lets the scaler work with Cluster API: MachineDeployments,
// MachineSets that no MachineDeployment owns, and MachinePools.
//
// It finds groups by namespace, cluster and label. Bounds and options come from Cluster
// Autoscaler's annotations; the template comes from capacity annotations, from the status of
// the infrastructure template, or from a node of the group. It writes replicas through the
// scale subresource under the object's resource version, and selects the machines to delete
// by the delete-machine annotation, which it checks before it lowers replicas. Package capi
// has the objects of both contracts of Cluster API, v1beta1 and v1beta2.
//
// Every read lists the objects again, page by page; no copy is kept between reads, and a
// failed read is an error. The package refuses to watch, to delete a Machine before replicas
// were lowered for it, to lower replicas during a rollout, and to change a paused group.
package clusterapi
