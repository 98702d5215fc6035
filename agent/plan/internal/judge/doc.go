// Package judge finds the purchase of a round that is not too large: New(packing.Packer).Judged().
//
// A purchase is judged as the cluster that it makes: a model of kube-scheduler (package schedsim) binds all pods, the
// pods that it leaves are a second purchase, and the cheapest of a few candidates by the price of both is taken
// (search.go). Pods are put on the machines that earlier rounds chose for them before a round buys (contents.go).
// JudgePacked holds a packing against the model. Layer 1, pure. It refuses to go beyond the round's budget by more
// than one trial, to claim a place for a pod that the model refuses, and to change the Plan: a Solution is a value.
//
// Costs in doc comments have the letters of package scaleup.
package judge
