package localapi

import (
	"cmp"
	"maps"
	"net/http"
	"slices"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
)

// RolloutsPath is where the local API tells how the rollouts stand.
const RolloutsPath = "/rollouts"

// Rollouts tells of each node group how its rollout stands by the plan of a round, and what its machines were started from. An
// empty group: of all; found tells that there is such a group.
func Rollouts(s cluster.Snapshot, p decision.Plan, group string) (out decision.Rollouts, found bool) {
	out, found = decision.Rollouts{At: s.Now, Rollouts: []decision.Rollout{}}, group == ""
	for i := range s.Groups {
		g := &s.Groups[i]
		if group != "" && string(g.ID) != group {
			continue
		}
		found = true
		out.Rollouts = append(out.Rollouts, rolloutOf(&s, g, p))
	}
	slices.SortFunc(out.Rollouts, func(a, b decision.Rollout) int { return cmp.Compare(a.Group, b.Group) })
	return out, found
}

func rolloutOf(s *cluster.Snapshot, g *cluster.NodeGroup, p decision.Plan) decision.Rollout {
	out := decision.Rollout{Group: g.ID, State: decision.RolloutOff}
	if at := slices.IndexFunc(p.Rollouts, func(r decision.Rollout) bool { return r.Group == g.ID }); at >= 0 {
		out = p.Rollouts[at]
	} else if s.Stale != "" {
		out.State, out.Why = decision.RolloutUnknown, s.Stale
	}
	if len(g.Template.Source) > 0 {
		out.Source = g.Template.Source.Digest()
	}
	machines, by, example := 0, map[string]int{}, map[string]*cluster.Instance{}
	for i := range g.Instances {
		if in := &g.Instances[i]; in.Member {
			machines++
			digest := ""
			if len(in.Source) > 0 {
				digest = in.Source.Like(g.Template.Source).Digest()
			}
			if len(in.Source.Differences(g.Template.Source)) == 0 && digest != "" {
				digest = out.Source // a property that is told of one alone is no difference
			}
			by[digest]++
			example[digest] = in
		}
	}
	if out.By[cluster.ReasonDrifted] == 0 && out.Replaced == 0 && out.Source != "" {
		out.Replaced = by[out.Source]
	}
	out.Machines = machines
	for _, digest := range slices.Sorted(maps.Keys(by)) {
		in, present := example[digest], digest != "" && digest == out.Source
		source := decision.RolloutSource{Source: digest, Machines: by[digest], Present: present, Origin: in.Origin}
		if !present {
			source.Differences = in.Source.Differences(g.Template.Source)
		}
		out.Sources = append(out.Sources, source)
	}
	slices.SortStableFunc(out.Sources, func(a, b decision.RolloutSource) int {
		switch {
		case a.Present:
			return -1
		case b.Present:
			return 1
		}
		return cmp.Compare(b.Machines, a.Machines)
	})
	return out
}

// rollouts are those of the last round.
func (s *Server) rollouts(group string) (decision.Rollouts, bool) {
	last, _ := s.Last()
	return Rollouts(s.Observer.ReadOnlySnapshot(), last, group)
}

// serveRollouts answers GET /rollouts?group=NAME; no group: all of them.
func (s *Server) serveRollouts(w http.ResponseWriter, r *http.Request) {
	group := r.FormValue("group")
	out, found := s.rollouts(group)
	if !found {
		http.Error(w, NoGroup(group), http.StatusNotFound)
		return
	}
	writeJSON(w, out)
}
