// Package capacity follows two kinds of autoscaling.x-k8s.io, the API group of Cluster Autoscaler, Karpenter and Kueue, and makes them headroom for
// the engine, the same as the list headroom of groups.yaml. No placeholder pod is created.
//
//	CapacityBuffer, ProvisioningRequest ─┐
//	                                      ├─▶ Headroom ─▶ decision.Policy ─▶ plan ─▶ Decided, Judged ─▶ status
//	PodTemplate, Deployment, ...         ─┘
//
// The custom resources are the operator's to install. Where the API server does not serve one, one request every five minutes
// asks whether it does by now, and nothing is watched. A referenced object has a watch of its own, by its name, as long as it
// is named; a buffer may name any kind with a pod template in spec.template and a count in spec.replicas or spec.parallelism.
//
// The count of a buffer is the least of its replicas, its percentage of the referenced object and what its limits allow, as Cluster
// Autoscaler 1.35 counts it. (The text of the API says the larger of replicas and percentage; neither peer does that.) A percentage is
// rounded up, as the text says.
//
// A request is judged by one more decision of the engine, which is not carried out, with all its pods as headroom and, for check-capacity,
// with no group that may grow: only where all of it has room does its headroom count in the rounds, so that nothing is bought where it
// cannot be whole. It is provisioned once a round has asked for its machines, as with Cluster Autoscaler, and its room is kept for ten minutes, less the
// pods that name it.
//
// Layer 4. It refuses other strategies and classes, to create pod templates, to write anything but a status, and to read quotas.
package capacity
