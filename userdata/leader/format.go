package leader

import (
	"fmt"
	"strings"
)

// Formats are what can be printed of a machine; "values" is of a join alone.
var Formats = []string{"script", "kubeadm", "downloads", "values"}

// OfTheCluster are the flags of what a cluster has once, from the kubeadm init of its first machine.
var OfTheCluster = []string{"cert-san", "cluster-name", "pod-subnet", "service-subnet", "dns-domain", "key-algorithm", "network", "without-metrics-server"}

// Format renders s in one of Formats, for the first machine or one that joins.
func Format(s Spec, format string, join bool) ([]byte, error) {
	switch {
	case format == "script" && join:
		return renderJoin(s)
	case format == "script":
		return Render(s)
	case format == "kubeadm" && join:
		return joinConfiguration(s)
	case format == "kubeadm":
		return configuration(s)
	case format == "values" && join:
		return makeJoinValues(s.Machine.KubernetesVersion)
	case format == "downloads":
		return downloadList(s, join)
	}
	return nil, fmt.Errorf("--format is %q: use script, kubeadm or downloads, with --join also values", format)
}

// downloadList is one line for each file of a mirror: checksum and path.
func downloadList(s Spec, join bool) ([]byte, error) {
	if join { // what runs on the cluster was applied by its first machine
		s.Network, s.CloudController = "none", ""
	}
	list, err := Downloads(s)
	var b strings.Builder
	for _, d := range list {
		fmt.Fprintf(&b, "%s  %s\n", d.SHA256, d.Path)
	}
	return []byte(b.String()), err
}
