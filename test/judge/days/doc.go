// Package days plays whole days of a cluster in simulated time: workloads grow, shrink, roll
// out and run jobs by drawn curves, kube-scheduler's own framework binds (package oracle),
// machines boot in 60 to 105 seconds, and a scaler buys and removes machines. The engine
// (agent/plan), a model of Cluster Autoscaler's rules and other programs (Program) play the
// same days, and pay for what they ran.
//
// It refuses to help a scaler: demand does not depend on who scales, the same delays hold for
// all of them, and the first hour, in which the cluster fills, is not counted for anybody.
//
// The model of Cluster Autoscaler is written anew from reading its code of 21 August 2026
// (package core and below); it is no copy, and where the original goes on beyond resources of
// pods (affinity, storage, priorities, quotas), days have nothing that it would decide on.
package days
