package fit

import (
	"slices"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// selects tells whether a label selector selects these labels: nil nothing, an empty
// one everything.
func selects(sel *cluster.Selector, labels map[string]string) bool {
	if sel == nil {
		return false
	}
	for i := range sel.Requirements {
		if !label(&sel.Requirements[i], labels) {
			return false
		}
	}
	return true
}

// matcher is whom a pod term selects: labels within namespaces. Terms of many classes
// and of several topology keys share one.
type matcher struct {
	selector   *cluster.Selector
	namespaces []string
	wide       *cluster.Selector // namespaceSelector
}

// namespaceSet are the namespaces by name.
type namespaceSet map[string]map[string]string

// takes follows fwk.AffinityTerm.Matches. A term of an existing pod is held against
// the labels of the incoming pod's namespace, none where the lister does not have it.
// A term of the incoming pod is told its namespaces by the lister beforehand, but
// keeps its namespaceSelector, which is then held against no labels at all: one that
// takes a namespace without labels takes every namespace. (Since 1.35
// mergeAffinityTermNamespacesIfNotEmpty empties the selector of a copy. The oracle
// found it.)
func (m *matcher) takes(c *cluster.PodClass, known namespaceSet, existing bool) bool {
	if !slices.Contains(m.namespaces, c.Namespace) && !selects(m.wide, known[c.Namespace]) && (existing || !selects(m.wide, nil)) {
		return false
	}
	return selects(m.selector, c.Labels)
}

// appendKey appends the key of a matcher: equal matchers have equal keys.
func (m *matcher) appendKey(b []byte) []byte {
	return cluster.AppendSelector(cluster.AppendStrings(cluster.AppendSelector(b, m.selector), m.namespaces), m.wide)
}
