// Package rules judges one certificate request of a kubelet: Decide answers what becomes of
// it, by which rule and why, from a Request and the Facts beside it. Trace answers with
// every check on the way.
//
// Every name and address of a request is compared with what the cloud's inventory
// says about the very machine behind the requesting Node; a Node's own words are
// never the witness. The rules carry the IDs R and, for joins, J. They stand in
// two ordered lists, in decide.go and joinrules.go.
//
// The package is pure: it does no I/O, reads no clock and knows no API object. It refuses to
// approve anything that the inventory does not vouch for (the agent's own machine vouches
// for itself, the operator's list for the other machines of the control plane), to deny what may still become right (a slow or broken cloud leaves a request
// pending), to approve the endpoint of the control plane for one of its machines, to let one instance join twice
// with two keys or under two names, and to choose between two that ask for one machine.
package rules
