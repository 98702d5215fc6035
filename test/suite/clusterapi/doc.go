// Package clusterapi starts Cluster API's own core manager beside a control plane: the
// real controllers of MachineDeployments, MachineSets, MachinePools and Machines, with
// their real CustomResourceDefinitions and webhooks, built from a pinned Go module
// (core/go.mod) into the cache of the control-plane programs. `make e2e-clusterapi`
// runs its tests.
//
// It refuses to run where nobody asked for it (AUTOSCALER_TEST_CLUSTERAPI=1): the build
// takes minutes once. It manages no cloud: the infrastructure provider is emulated
// (package cloud/capi with RealCore).
package clusterapi
