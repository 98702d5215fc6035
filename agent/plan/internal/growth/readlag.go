package growth

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/round"
)

// nodeLag is how long a young Node may be ahead of the reads that list its instance.
const nodeLag = 20 * time.Second

// readLag are the Nodes that have just registered and whose instance no group lists as its own
// yet. The reads lag behind the cluster then, and a target computed from them could be below
// what was asked for already: seen after a kill -9, where the memory of the resize was lost,
// half of the machines had registered, and the target read was still 0.
type readLag struct {
	nodes   []*cluster.Node
	schemes map[string]map[string]bool
}

func newReadLag(w *round.State) *readLag {
	l := &readLag{}
	for i := range w.Nodes {
		n := &w.Nodes[i]
		if n.ControlPlane || n.Deleting || n.ProviderID == "" || n.Instance != nil && (n.Instance.Member || n.Instance.Phase == cluster.PhaseGone) {
			continue
		}
		if _, told := w.Next.Deleted[cluster.InstanceID(n.ProviderID)]; told {
			continue // young, and told to go already
		}
		if until := n.Created.Add(nodeLag); !w.Reached(until) {
			w.WakeAt(until)
			l.nodes = append(l.nodes, n.Node)
		}
	}
	if len(l.nodes) > 0 {
		l.schemes = schemes(w)
	}
	return l
}

// why says that the reads of a group's cloud lag; empty: they do not.
func (l *readLag) why(g *round.Group) string {
	own := l.schemes[g.Provider]
	at := slices.IndexFunc(l.nodes, func(n *cluster.Node) bool { return len(own) == 0 || own[scheme(n.ProviderID)] })
	if at < 0 {
		return ""
	}
	return fmt.Sprintf("node %s has registered and no group lists its instance yet: growth waits for the cloud's reads to catch up", l.nodes[at].Name)
}

// schemes are how the provider IDs of each of several providers begin, as their instances
// show: a Node of one cloud says nothing about how another one is read.
func schemes(w *round.State) map[string]map[string]bool {
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
