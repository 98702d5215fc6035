// Package csrsigner decides the certificate requests of kubelets: those for serving
// certificates, and, in a closed join, those for the client certificates of machines that
// join with the agent's tokens. It approves; the controller manager signs. (The name is
// older than this code.)
//
// Every name and address of a request is compared with what the cloud's inventory
// says about the very machine behind the requesting Node; a Node's own words are
// never the witness. The rules carry the IDs R0-R19 and, for joins, J0-J16. They stand in
// two ordered lists, in decide.go and joinrules.go, which are pure.
//
// The package refuses to approve anything that the inventory does not vouch for (the
// agent's own machine vouches for itself), to deny what may still become right (a slow or
// broken cloud leaves a request pending), to look names up in DNS, to approve for any other
// control-plane Node, to let one instance join twice with two keys or under two names,
// to choose between two that ask for one machine, and to touch client certificate
// requests that are not made with the agent's own tokens.
package csrsigner
