// Package nova lets the scaler work with servers of OpenStack Nova directly, without
// Magnum and without Heat.
//
// A node group is defined by the section "nova" of groups.yaml: flavor, image, networks,
// bounds, user data. Nova knows nothing of it. A server belongs to a group by its
// metadata (autoscaler-agent.cluster and autoscaler-agent.group), and the target of a
// group is how many such servers there are that are not on their way out: it is kept
// nowhere else, so that a restart, a second agent or an operator who deletes a server
// cannot make it wrong. Resize makes the servers that are missing at once, each under a
// name and with a token of its own (autoscaler-agent.request), and looks for them by
// that before an unanswered request counts as failed.
//
// It refuses to delete a server that does not carry its metadata, or by name; to put
// anything in place of a server that was deleted from outside (the next round decides); to
// create more than a quota has room for; to take a server that a list no longer shows
// for gone before Nova has answered 404 for it by ID; to guess a flavor, an image or a
// network that it cannot find; to give a server user data whose join token it could not
// mint; and to retry across rounds.
package nova
