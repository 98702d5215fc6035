// Package bootstrap keeps one join token alive and publishes what a new worker
// needs to join: token, CA hashes, endpoint, expiry and version.
//
// It refuses to mint a token that never expires or that a person chose, to publish
// anything before a joining machine could really use it (the token's signature is in
// cluster-info and verifies, the endpoint is one of the API server's own names), to
// write the file world-readable, to put the token into a log, an event or an
// argument list, to read any Secret but its own few names, and to cache Secrets.
package bootstrap
