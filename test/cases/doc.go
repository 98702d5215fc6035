// Package cases plays a case: a YAML file with node groups, Nodes and Kubernetes objects, mostly
// written after a public bug report. It plays the file on a real API server, controller manager
// and kube-scheduler beside an emulated AWS, prints what the built agent decides (plan, explain)
// and what kube-scheduler makes of it, and compares that with the file's own expectation.
// README.md beside it describes the format and lists the reports.
//
// It refuses to reach into the agent: it runs the binary, as an operator does. It refuses to boot
// machines: a Node is an object that the player makes, and its kubelet is a loop that reports
// bound pods as running.
package cases
