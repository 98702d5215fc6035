// Package systemd tests the agent on a real systemd: a container boots systemd over this
// machine's own root, the deb of `make dist` is installed by dpkg, and the unit runs with its
// sandbox against a real control plane and an emulated cloud. It runs where
// AUTOSCALER_TEST_SYSTEMD=1 is set (make e2e-systemd), as root.
//
// It refuses to use anything of the product but its package and its command line.
package systemd
