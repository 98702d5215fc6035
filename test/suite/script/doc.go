// Package script plays the whole script of rendered user data, its install half included, on
// this host: as root in a mount namespace whose only writable directories are those of one
// test, with a mirror and a metadata service of the test's own. What the script downloads and
// the system's own tools are stand-ins that note their calls; the shell, curl, tar and
// sha256sum are real. A play takes a fraction of a second, so that faults, hostile answers and
// kills can be many; the real programs are those of test/suite/worker.
package script
