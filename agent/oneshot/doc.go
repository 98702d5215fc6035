// Package oneshot answers a command without the running agent: it looks at the cluster and
// the clouds once, with clients of its own, and returns what a round would do (Plan), which machines
// there are (Nodes), how one thing is judged (Explain, ExplainCSR), which version the API server has (ServerVersion), or
// what became of bringing a deleted Node back (RestoreNode). The files of the running agent are
// used where they can be read.
//
// It refuses to take the Lease, and with it every right to scale, to approve and to delete.
// RestoreNode alone writes, with the rights of the person who types the command.
package oneshot
