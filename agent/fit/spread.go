package fit

import "github.com/autoscaler-agent/autoscaler-agent/agent/cluster"

const (
	wordsSpread        = "node(s) didn't match pod topology spread constraints"
	wordsSpreadLabel   = wordsSpread + " (missing required label)"
	wordsAffinity      = "node(s) didn't match pod affinity rules"
	wordsAntiAffinity  = "node(s) didn't match pod anti-affinity rules"
	wordsExistingRules = "node(s) didn't satisfy existing pods anti-affinity rules"
)

// spreadHolds follows PodTopologySpread.Filter, constraint by constraint.
func (s *State) spreadHolds(a *constraints, node int) string {
	row := s.domains[node*len(s.keys):]
	for i := range a.spread {
		ask := &a.spread[i]
		c := &s.counters[ask.counter]
		domain := row[c.key]
		if domain < 0 {
			return wordsSpreadLabel
		}
		if c.count.at(domain)+ask.self-s.fewest(c, ask.minDomains) > ask.maxSkew {
			return wordsSpread
		}
	}
	return ""
}

// fewest is the global minimum: 0 where there are fewer domains than minDomains.
func (s *State) fewest(c *counter, minDomains int32) int32 {
	if s.eligibleNodes[c.eligible].domains < minDomains {
		return 0
	}
	return s.least(c)
}

// interPod follows InterPodAffinity.Filter.
func (s *State) interPod(a *constraints, node int) string {
	row := s.domains[node*len(s.keys):]
	switch {
	case !s.affinityHolds(a, row):
		return wordsAffinity
	case s.excluded(a.anti, row):
		return wordsAntiAffinity
	case s.excluded(a.existing, row):
		return wordsExistingRules
	}
	return ""
}

// affinityHolds: the pod wants company in each domain; where no pod anywhere is company and
// the pod would be its own, it may be the first (satisfyPodAffinity).
func (s *State) affinityHolds(a *constraints, row []int32) bool {
	company, sum := true, int64(0)
	for _, id := range a.affinity {
		c := &s.counters[id]
		domain := row[c.key]
		if domain < 0 {
			return false
		}
		company = company && c.count.at(domain) > 0
		sum += c.sum
	}
	return company || sum == 0 && a.selfAll
}

// excluded tells whether a pod in one of the node's domains keeps the class out. A node
// without the label keeps nobody out.
func (s *State) excluded(list []antiAffinityConstraint, row []int32) bool {
	for i := range list {
		c := &s.counters[list[i].counter]
		if domain := row[c.key]; domain >= 0 && c.sum > 0 && c.count.at(domain) > 0 {
			return true
		}
	}
	return false
}

// Counted tells whether kube-scheduler counts the pods of a node of this shape for a spread of a class: the node has the
// topology key, and the node inclusion policies take it.
func Counted(c *cluster.PodClass, t *cluster.Spread, s *NodeInfo) bool {
	_, has := s.Labels[t.TopologyKey]
	return has && (t.IgnoreNodeAffinity || selected(c, s)) && (!t.HonorTaints || toleratesAll(c, s))
}
