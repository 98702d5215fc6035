// Package externalgrpc uses a plug-in as a cloud: any server of Cluster Autoscaler's
// protocol clusterautoscaler.cloudprovider.v1.externalgrpc. externalgrpc.proto has the
// messages; package protos is generated from it.
//
// The protocol has no compare-and-set, and no field for names and addresses of machines.
// So a target is read again right before a write, and the facts for certificate requests
// come from groups.yaml or from an optional field of the plug-in (MachineFacts).
//
// The package refuses to send anything over an unprotected connection that leaves this
// machine, to lower a target below the number of instances, to report an instance as gone
// that the plug-in never listed, and to call Cleanup: a plug-in outlives the agent and
// may serve the next one.
package externalgrpc
