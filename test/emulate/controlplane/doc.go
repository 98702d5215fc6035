// Package controlplane starts a real Kubernetes control plane on the loopback of
// this machine: etcd, kube-apiserver, kube-controller-manager and kube-scheduler,
// built once from pinned Go modules, with the PKI, kubeconfigs, cluster-info and
// RBAC that the real kubeadm writes. Each part can be stopped, started, killed and
// paused by name, because the agent must live through all of that.
//
// It refuses to fake anything: no envtest shortcut, no anonymous administrator, no
// authorization mode that kubeadm does not use. It refuses to listen on anything
// but 127.0.0.1, to download anything but Go modules, to write anything outside
// its cache and the directory of one control plane, and to leave a process behind:
// its children die with it, even when it is killed. It does not start kubelets or
// Nodes.
package controlplane
