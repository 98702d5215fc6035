// Package attest answers a new machine on AWS with a join token for this machine alone, so
// that its user data holds no secret. The machine proves its identity by a request to
// STS (GetCallerIdentity) that it signs with its instance role and does not send;
// the leader sends that request and reads the answer. docs/attested-join.md has the protocol.
//
// It refuses to send anything to STS that a client has composed (URL, method, body and the
// names of the headers are its own), a request that was signed for another cluster, another
// key or an older challenge, another account or role, an instance that no managed group
// lists, that is not new, that has joined, or that was attested with another key. It follows
// no redirect, and no answer of STS is believed beyond the caller's identity.
package attest
