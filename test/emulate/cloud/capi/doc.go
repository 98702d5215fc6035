// Package capi emulates the controllers of Cluster API beside a real API server with
// Cluster API's real CustomResourceDefinitions: MachineDeployments make MachineSets and
// roll them out, MachineSets make Machines and end them in Cluster API's order (going
// ones first, then those marked with delete-machine, then those without a Node, then
// by chance), Machines get an instance of an emulated cloud, MachinePools get theirs.
// Both contracts are spoken, v1beta1 and v1beta2.
//
// It refuses to help the agent: it reads nothing that the agent writes but what
// Cluster API's controllers read.
package capi
