// Package requests compares what the agent expects of the pods of a DaemonSet's template with
// what a real API server and controller manager make of it. It has tests only.
package requests
