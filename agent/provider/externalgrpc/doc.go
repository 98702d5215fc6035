// Package externalgrpc speaks to a plug-in: any server of Cluster Autoscaler's protocol
// clusterautoscaler.cloudprovider.v1.externalgrpc, so that a cloud that nobody here
// knows can have its node groups scaled. externalgrpc.proto says what is on the wire.
//
// The protocol has no compare-and-set and no word for names and addresses: targets are
// re-read right before a write, and the witness of CSRs is what the operator lists in
// groups.yaml or what the plug-in adds in an optional field (MachineFacts).
//
// It refuses to send anything over an unprotected connection that leaves this machine,
// to lower a target below the instances there are, to take an instance that the plug-in
// does not list for gone when it never listed it, and to call Cleanup: the end of an
// agent is not the end of a plug-in, which may serve the next one.
package externalgrpc
