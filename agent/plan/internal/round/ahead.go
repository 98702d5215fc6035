package round

import (
	"strings"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// ahead are the Nodes that have just registered and whose instance no group lists as
// its own yet. The reads then lag behind the cluster, and a target computed from them
// could be below what was asked for already: seen after a kill -9, where the memory
// of the resize was lost, half of the machines had registered, and the target read
// was still 0.
func (w *State) ahead() (out []*cluster.Node) {
	for i := range w.Nodes {
		n := &w.Nodes[i]
		if n.ControlPlane || n.Deleting || n.ProviderID == "" || n.Instance != nil && (n.Instance.Member || n.Instance.Phase == cluster.PhaseGone) {
			continue
		}
		if _, told := w.Next.Deleted[cluster.InstanceID(n.ProviderID)]; told {
			continue // young, and sent away already
		}
		if until := n.Created.Add(nodeLag); !w.Reached(until) {
			w.WakeAt(until)
			out = append(out, n.Node)
		}
	}
	return out
}

// schemes are how the provider IDs of each of several providers begin, as their
// instances show: a Node of one cloud says nothing about how another one is read.
func (w *State) schemes() map[string]map[string]bool {
	out := map[string]map[string]bool{}
	for i := range w.Groups {
		g := &w.Groups[i]
		for _, in := range g.Instances {
			if g.Provider == "" {
				break
			}
			if out[g.Provider] == nil {
				out[g.Provider] = map[string]bool{}
			}
			out[g.Provider][scheme(string(in.ID))] = true
		}
	}
	return out
}

func scheme(providerID string) string {
	before, _, _ := strings.Cut(providerID, "://")
	return before
}
