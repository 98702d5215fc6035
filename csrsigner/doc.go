// Package csrsigner watches the certificate requests of kubelets and carries out the
// verdicts of package rules: requests for serving certificates, and, in a closed join,
// for the client certificates of machines that join with the agent's tokens. It approves;
// the controller manager signs. (The name is older than this code.)
//
// The service answers which requests wait, in which order they are judged, the facts
// about each (the request, the Node, the token, the cloud's inventory, this machine
// itself), and which instance already has a certificate (joined.json). Rules R18 and R19
// are its own: a conflict is judged again (judge.go), and every decision is told (report.go).
//
// The package refuses to judge by itself, to act while another agent leads, to approve a
// join that is not in its ledger before, to look names up in DNS, and to touch client
// certificate requests that are not made with the agent's own tokens.
package csrsigner
