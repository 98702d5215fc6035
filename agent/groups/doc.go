// Package groups reads groups.yaml: what an operator says about node groups beside
// what the cloud says, and the room that is to be kept free.
//
// A file is read whole or not at all: every mistake is reported with its place in the
// file and a remedy, and the last good one stays in force. It refuses to guess at a
// field that it does not know, to change a group's bounds where the cloud keeps them,
// and to decide anything: what it says becomes part of the groups' facts and of the
// policy.
package groups
