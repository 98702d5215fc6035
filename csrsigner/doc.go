// Package csrsigner decides the serving-certificate requests of kubelets. It
// approves; the controller manager signs. (The name is older than this code.)
//
// Every name and address of a request is compared with what the cloud's inventory
// says about the very machine behind the requesting Node; a Node's own words are
// never the witness. The rules carry the IDs R0-R18 and stand in one ordered list
// in decide.go, which is pure.
//
// The package refuses to approve anything that the inventory does not vouch for,
// to deny what may still become right (a slow or broken cloud leaves a request
// pending), to look names up in DNS, to touch client certificate requests (those
// are kubeadm's own auto-approval), and to approve for a control-plane Node.
package csrsigner
