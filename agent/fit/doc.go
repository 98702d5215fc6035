// Package fit answers one question: would kube-scheduler's filters put a pod of
// this class on a node of this shape?
//
// Floor 1, pure. It judges requests, host ports, nodeSelector, required node
// affinity, taints, cordons and spec.nodeName, with the scheduler's own semantics
// and words. It refuses to guess: a class that lists anything in NotUnderstood fits
// nowhere, by rule F0. It neither scores nor preempts, and it knows nothing of time.
package fit
