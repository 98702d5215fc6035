// Package groups reads groups.yaml: an operator's settings of node groups, beside
// the facts of the cloud, and the headroom to keep free.
//
// A file is read whole or not at all: every mistake is reported with its place in the
// file and a remedy, and the last good one stays in force. It refuses to guess at a
// field that it does not know, to change a group's bounds where the cloud keeps them,
// and to decide anything: its settings become part of the groups' facts and of the
// policy.
package groups
