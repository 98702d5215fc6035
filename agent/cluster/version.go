package cluster

import (
	"strconv"
	"strings"
)

// KubeletSkew is how many minors older than the API server a kubelet may be
// (kubernetes.io/releases/version-skew-policy). The kubeadm of the kubelet's version reads what a
// newer kubeadm keeps in the cluster: make e2e-versions tries it.
const KubeletSkew = 3

// MinorOf is the minor number of a version of Kubernetes 1 in any form that an API server or a
// package has: v1.36.3, 1.36, v1.36.0-rc.1, v1.33.4+rke2r1.
func MinorOf(version string) (minor int, ok bool) {
	rest, ok := strings.CutPrefix(strings.TrimPrefix(version, "v"), "1.")
	if !ok {
		return 0, false
	}
	digits := len(rest) - len(strings.TrimLeft(rest, "0123456789"))
	n, err := strconv.ParseUint(rest[:digits], 10, 16)
	if err != nil || digits < len(rest) && !strings.ContainsRune(".-+", rune(rest[digits])) {
		return 0, false
	}
	return int(n), true
}

// MinorsBehind is how many minor versions a version of Kubernetes is older than another, negative
// if it is newer; 0 where one of them is not understood.
func MinorsBehind(version, than string) int {
	minor, ok := MinorOf(version)
	newer, known := MinorOf(than)
	if !ok || !known {
		return 0
	}
	return newer - minor
}
