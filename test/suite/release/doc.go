// Package release tries what make release makes: signatures over the checksums, and a repository
// from which a Debian installs the agent by the commands of docs/install.md. It needs root, the
// packages of make dist and AUTOSCALER_TEST_RELEASE=1.
//
// It refuses keys of this machine: each run makes its own.
package release
