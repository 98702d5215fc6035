package doctor

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// kubeletVersions counts the Nodes by the version of their kubelets and finds those that the
// version skew policy does not allow beside the API server.
func kubeletVersions(nodes []*cluster.Node, server string) []Finding {
	if len(nodes) == 0 {
		return nil
	}
	counts := map[string]int{}
	var newer, old []string
	for _, n := range nodes {
		counts[cmp.Or(n.KubeletVersion, "unknown")]++
		switch behind := cluster.MinorsBehind(n.KubeletVersion, server); {
		case behind < 0:
			newer = append(newer, string(n.Name))
		case behind > cluster.KubeletSkew:
			old = append(old, string(n.Name))
		}
	}
	var texts []string
	for _, version := range slices.Sorted(maps.Keys(counts)) {
		texts = append(texts, fmt.Sprintf("%s on %d", version, counts[version]))
	}
	out := []Finding{{Level: LevelOK, About: "kubelets' versions", Text: strings.Join(texts, ", ") + "; the API server has " + server}}
	bad := func(level Level, names []string, text, remedy string) {
		if len(names) > 0 {
			slices.Sort(names)
			out = append(out, Finding{Level: level, About: "kubelets' versions", Text: fmt.Sprintf("%d of them %s: %s", len(names), text, few(names)), Remedy: remedy})
		}
	}
	bad(LevelError, newer, "are newer than the API server", "upgrade the control plane first: a kubelet must not be newer than the API server")
	bad(LevelWarning, old, fmt.Sprintf("are more than %d minor versions older than the API server", cluster.KubeletSkew), "replace them by machines with newer user data: Kubernetes supports no older kubelet")
	return out
}

// few names the first of many.
func few(names []string) string {
	if len(names) <= kubeletsNamed {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:kubeletsNamed], ", "), len(names)-kubeletsNamed)
}
