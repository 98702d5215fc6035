package userdata

import (
	"fmt"
	"strconv"
	"strings"
)

// oldKubelets is how many minors older than the API server a kubelet may be
// (kubernetes.io/releases/version-skew-policy). The kubeadm of the kubelet's version reads what a
// newer kubeadm keeps in the cluster: make e2e-versions tries it.
const oldKubelets = 3

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

// Skew tells why machines with a kubelet of Kubernetes 1.KUBELET must not join a
// cluster whose API server has 1.SERVER, and which versions may: "" where they may.
func Skew(kubelet, server int) string {
	why := ""
	switch {
	case kubelet > server:
		why = fmt.Sprintf("a kubelet of 1.%d is newer than the API server, which has 1.%d: Kubernetes allows no newer one", kubelet, server)
	case server-kubelet > oldKubelets:
		why = fmt.Sprintf("a kubelet of 1.%d is %d minors older than the API server, which has 1.%d: Kubernetes allows %d", kubelet, server-kubelet, server, oldKubelets)
	default:
		return ""
	}
	oldest, newest := max(server-oldKubelets, OldestMinor), min(server, NewestMinor)
	switch {
	case oldest > newest:
		return fmt.Sprintf("%s; this agent makes user data for 1.%d to 1.%d, none of which fits: use a release of the agent that knows 1.%d", why, OldestMinor, NewestMinor, server)
	case oldest == newest:
		return fmt.Sprintf("%s; install 1.%d", why, newest)
	}
	return fmt.Sprintf("%s; install one of 1.%d to 1.%d", why, oldest, newest)
}

// skew judges the version to install against the API server's, where that is known.
func (s Spec) skew(bad report) {
	if s.APIServerVersion == "" {
		return
	}
	server, ok := MinorOf(s.APIServerVersion)
	if !ok {
		bad("apiServerVersion", "%q is not a version of Kubernetes 1: give it as v1.36.3", s.APIServerVersion)
		return
	}
	kubelet, err := minor(s.KubernetesVersion)
	if err != nil {
		return // told for itself
	}
	if why := Skew(kubelet, server); why != "" {
		bad("kubernetesVersion", "%s for the API server's %s: %s (--kubernetes-version)", s.KubernetesVersion, s.APIServerVersion, why)
	}
}
