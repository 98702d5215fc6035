// Package openstack starts a real OpenStack on this machine: Keystone, Placement, Glance,
// Nova (with its fake virtualisation driver), Neutron, Cinder (with a driver that makes
// nothing) and Magnum (with a driver that makes nodes without Heat, of Nova's servers),
// from Debian's packages, on loopback, without systemd. `make e2e-openstack` installs them
// and runs the tests of this package against them.
//
// AUTOSCALER_TEST_OPENSTACK_DIR names the directory of a stack that another process keeps
// running, so that a test can be run again without starting everything.
//
// Clients reach it through a Front, which plays what real clouds do to them and services on
// loopback never do by themselves: throttling, hanging, answers that are lost.
//
// It refuses to run where nobody asked for it (AUTOSCALER_TEST_OPENSTACK=1): it takes some
// minutes and 1.5 GB of memory. It boots no machine: what a Node would be, the tests make
// up from the server.
package openstack
