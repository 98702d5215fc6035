package localapi

import (
	"net/http"
	"slices"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan"
)

// NodesPath is where the local API lists the machines.
const NodesPath = "/nodes"

// Nodes lists the machines of one group, or of all; found tells that there is such a group.
func Nodes(s cluster.Snapshot, m decision.Memory, p decision.Policy, group string) (out decision.Nodes, found bool) {
	out, found = plan.Nodes(s, m, p), group == ""
	if !found {
		out.Nodes = slices.DeleteFunc(out.Nodes, func(r decision.NodeRow) bool { return string(r.Group) != group })
		found = slices.ContainsFunc(s.Groups, func(g cluster.NodeGroup) bool { return string(g.ID) == group })
	}
	return out, found
}

// serveNodes answers GET /nodes?group=NAME; no group: all machines.
func (s *Server) serveNodes(w http.ResponseWriter, r *http.Request) {
	group := r.FormValue("group")
	out, found := Nodes(s.Observer.ReadOnlySnapshot(), s.Memory(), s.Policy(time.Now()), group)
	if !found {
		http.Error(w, NoGroup(group), http.StatusNotFound)
		return
	}
	writeJSON(w, out)
}

// NoGroup says that there is no group of a name.
func NoGroup(name string) string { return "there is no node group " + name }
