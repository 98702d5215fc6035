// Package convert turns objects of the Kubernetes API into values of agent/cluster: Node,
// Pod, PodClass (the part of a pod that scheduling depends on), DaemonSetClass and
// VolumeLimits. Strip is the informers' transform, which drops the fields that no
// service reads before an object enters a cache.
//
// Requests, host ports, selectors and constraints are read as kube-scheduler reads them;
// the comments name the function of kube-scheduler that each conversion follows. A
// feature that agent/fit does not judge is listed by name in PodClass.NotUnderstood.
//
// Each function depends on its arguments alone. The package refuses clients, clocks and
// state, and refuses to change an object; Strip is the exception, because the informer
// owns the object that it strips.
package convert
