// Package worlds draws clusters as they are found and closes the loop with
// kube-scheduler's own framework: pods wait, somebody buys machines, all of them join,
// kube-scheduler binds pod by pod, and whoever is left asks again. The engine
// (agent/plan), Cluster Autoscaler's rule and Karpenter's (test/judge/yardstick) buy for
// the same worlds, and so do other programs (Peer), such as the other autoscalers' own code.
//
// It refuses to help: machines that join are what their group's template says, and the
// order of the pods, the types and the prices are the world's. The rules see the waiting
// pods and the groups alone, which is all they read for pods that nothing takes.
package worlds
