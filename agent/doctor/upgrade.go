package doctor

import (
	"context"
	"fmt"
	"strings"

	"github.com/autoscaler-agent/autoscaler-agent/agent/clients"
	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/config"
)

// seeCluster lets the clouds judge their groups' user data by the versions of the control plane. Where these cannot be
// read, checkKubernetes has said why.
func seeCluster(ctx context.Context, cfg config.Config) config.Config {
	_, client, err := clients.Typed(ctx, cfg)
	if err != nil {
		return cfg
	}
	seen, err := clients.WithUpgrades(ctx, cfg, client)
	if err != nil {
		return cfg
	}
	return seen
}

// behind tells which groups start machines with an older minor version than the API server's. What Kubernetes does not
// allow, and what keeps user data that should follow, the groups' own warnings tell.
func behind(groups []cluster.NodeGroup, server string) []Finding {
	var out []Finding
	for i := range groups {
		for version := range strings.SplitSeq(groups[i].Template.Source[cluster.PropertyKubernetes], "|") {
			if n := cluster.MinorsBehind(version, server); n > 0 {
				out = append(out, Finding{Level: LevelOK, About: "group " + string(groups[i].ID),
					Text:   fmt.Sprintf("its new machines install Kubernetes %s, %d minor version%s older than the API server (%s)", version, n, strings.Repeat("s", min(n-1, 1)), server),
					Remedy: "docs/upgrade.md has the way, and AUTOSCALER_BOOTSTRAP_UPGRADE=minor takes it by itself"})
				break
			}
		}
	}
	return out
}
