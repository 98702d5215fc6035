package userdata

import (
	"fmt"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// Skew tells why machines with a kubelet of Kubernetes 1.KUBELET must not join a
// cluster whose API server has 1.SERVER, and which versions may: "" where they may.
func Skew(kubelet, server int) string {
	why := ""
	switch {
	case kubelet > server:
		why = fmt.Sprintf("a kubelet of 1.%d is newer than the API server, which has 1.%d: Kubernetes allows no newer one", kubelet, server)
	case server-kubelet > cluster.KubeletSkew:
		why = fmt.Sprintf("a kubelet of 1.%d is %d minors older than the API server, which has 1.%d: Kubernetes allows %d", kubelet, server-kubelet, server, cluster.KubeletSkew)
	default:
		return ""
	}
	oldest, newest := max(server-cluster.KubeletSkew, OldestMinor), min(server, NewestMinor)
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
	server, ok := cluster.MinorOf(s.APIServerVersion)
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
