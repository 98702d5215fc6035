package fit

import "github.com/autoscaler-agent/autoscaler-agent/agent/cluster"

// Scores and filters share this file: how labels, terms and taints match.

// Selects tells whether a label selector selects labels: nil nothing, an empty one
// everything.
func Selects(sel *cluster.Selector, labels map[string]string) bool { return selects(sel, labels) }

// MatchesTerm tells whether all requirements of a node term hold; an empty term matches
// nothing.
func MatchesTerm(t *cluster.NodeTerm, s *NodeInfo) bool { return term(t, s) }

// Selected tells whether a node has what nodeSelector and required node affinity ask for.
func Selected(c *cluster.PodClass, s *NodeInfo) bool { return selected(c, s) }

// ToleratesAll tells whether no taint keeps the class away.
func ToleratesAll(c *cluster.PodClass, s *NodeInfo) bool { return toleratesAll(c, s) }

// Unpreferred is how many taints with the effect PreferNoSchedule the class does not
// tolerate.
func Unpreferred(c *cluster.PodClass, s *NodeInfo) int {
	n := 0
	for _, t := range s.Taints {
		if t.Effect == "PreferNoSchedule" && !tolerated(c.Tolerations, t) {
			n++
		}
	}
	return n
}

// TermMatcher tells which classes a pod term selects.
type TermMatcher struct {
	m     matcher
	known namespaceSet
}

// NewTermMatcher compiles a pod term. namespaces are the known ones by name, with their
// labels.
func NewTermMatcher(t *cluster.PodTerm, namespaces map[string]map[string]string) TermMatcher {
	return TermMatcher{matcher{t.Selector, t.Namespaces, t.NamespaceSelector}, namespaces}
}

// Takes tells whether the term selects the class. existing: the term is that of a pod that
// is placed, and the class is that of the pod that is being placed.
func (m *TermMatcher) Takes(c *cluster.PodClass, existing bool) bool {
	return m.m.takes(c, m.known, existing)
}

// Key is equal for terms that select alike.
func (m *TermMatcher) Key() string { return string(m.m.appendKey(nil)) }

// SelectorKey is equal for selectors that select alike.
func SelectorKey(sel *cluster.Selector) string { return string(cluster.AppendSelector(nil, sel)) }

// EligibilityKey is equal for classes whose node selector and required node affinity, and
// where taints tell their tolerations, are the same.
func EligibilityKey(c *cluster.PodClass, affinity, taints bool) string {
	var b []byte
	if affinity && (len(c.NodeSelector) > 0 || c.Affinity != nil) {
		b = cluster.AppendNodeTerms(cluster.AppendLabels(append(b, 'a'), c.NodeSelector), c.Affinity)
	}
	if taints {
		b = cluster.AppendTolerations(append(b, 't'), c.Tolerations)
	}
	return string(b)
}
