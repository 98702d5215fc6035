// Package worker boots a real worker: a systemd container that starts from a bare Debian
// with cloud-init, gets the generated user data whole, installs from a mirror on this
// machine and joins a real control plane with real kubeadm, kubelet, containerd, runc and
// crictl.
//
// It runs only where AUTOSCALER_TEST_WORKER is set (make e2e-worker), as root, in a network
// namespace of its own. It refuses to change the host: what it builds lies in the cache, a
// container's files are an overlay that goes with the test, and the kernel settings that a
// kubelet writes are files of the container.
//
// What is not real: the kernel is the host's; the cloud is emulated; images are none, so no
// pod runs and the Node stays NotReady for want of a network plug-in.
package worker
