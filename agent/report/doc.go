// Package report tells people and programs what the agent decided and did: log lines
// (journald fields), Kubernetes Events, Cluster Autoscaler's status ConfigMap, and
// Prometheus metrics under Cluster Autoscaler's names.
//
// Each reporter is given values (the Snapshot, the Plan, the Memory, the outcomes) and
// says a thing once: when it begins, when it changes, when it ends.
//
// It refuses to decide anything, to read the cloud, and to write to the cluster anything
// but Events and its own ConfigMap. It never holds up a round: slow writes are made by
// a goroutine of its own (StatusPage.Run).
package report
