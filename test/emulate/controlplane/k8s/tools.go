//go:build tools

// Package k8s pins the control-plane programs that package controlplane builds.
// It holds no code of its own and refuses to be imported: the module exists so
// that k8s.io/kubernetes and etcd never enter another go.mod.
package k8s

import (
	_ "k8s.io/kubernetes/cmd/kube-apiserver"
	_ "k8s.io/kubernetes/cmd/kube-controller-manager"
	_ "k8s.io/kubernetes/cmd/kube-scheduler"
	_ "k8s.io/kubernetes/cmd/kubeadm"
	_ "k8s.io/kubernetes/cmd/kubectl"
)
