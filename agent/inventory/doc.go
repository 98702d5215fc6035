// Package inventory reads the node groups of the cloud for all services. Groups(maxAge)
// answers with facts no older than maxAge; one read at a time serves every caller that
// waits for it.
//
// Run reads periodically: fast while instances come or go (SetWaiting), slowly
// otherwise. Changed receives after a read that told something new. A failed read keeps
// the last good facts of each group and marks them Stale with the reason, so that the
// failure of one group or of one cloud does not hide the others.
//
// The package refuses to change anything in the cloud, to retry before the next period,
// and to take a missing answer for an empty one: a group is absent only from a read
// without an error.
package inventory
