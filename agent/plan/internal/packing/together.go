package packing

import (
	"slices"

	"github.com/autoscaler-agent/autoscaler-agent/agent/fit"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/round"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/topology"
)

// keepsToOneHost tells whether the pods of a class go where one of them is.
func (r *verifier) keepsToOneHost(class int) bool {
	return slices.ContainsFunc(r.st.Terms(class), func(t fit.Term) bool { return t.Kind == fit.Affinity && t.Key == topology.KeyHostname && t.Self })
}

// placeTogether puts pods that keep to one host on the place that holds most of them: on a node, or else on a machine, which
// is a new one where that holds more. The others find no place then, on this machine or later. It costs the places.
func (r *verifier) placeTogether(i int) bool {
	v := r.v
	best, most, ready := -1, 0, false
	for p := range v.Solution.Bins {
		is := v.Solution.Bins[p].Node >= 0 && v.w.Nodes[v.Solution.Bins[p].Node].State != round.StateUpcoming
		if n := r.roomOn(i, p); n > 0 && (is && !ready || n > most && is == ready) {
			best, most, ready = p, n, is
		}
	}
	if last := len(v.Solution.Bins); v.w.Demands[i].Buys && !ready && most < v.Solution.Left[i] && r.addBin(i) {
		if n := r.roomOn(i, last); n > most {
			best, most = last, n
		}
	}
	if best < 0 {
		return false
	}
	r.putOn(i, best, most)
	return true
}
