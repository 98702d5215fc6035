//go:build tools

// Package kubernetes pins the kubelet and kubeadm of a worker, which package worker
// builds. It holds no code of its own and refuses to be imported: the module exists so
// that the kubelet never enters another go.mod.
package kubernetes

import (
	_ "k8s.io/kubernetes/cmd/kubeadm"
	_ "k8s.io/kubernetes/cmd/kubelet"
)
