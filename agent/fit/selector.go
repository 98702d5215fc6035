package fit

import (
	"slices"
	"strconv"

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
	if !slices.Contains(m.namespaces, c.Namespace) {
		labels, has := known[c.Namespace]
		wide := (existing || has) && selects(m.wide, labels)
		if !wide && (existing || !selects(m.wide, nil)) {
			return false
		}
	}
	return selects(m.selector, c.Labels)
}

// indexKey is a requirement In of the selector, by which the classes that it may select
// are found without asking each; nil: there is none.
func (m *matcher) indexKey() *cluster.Requirement {
	if m.selector == nil {
		return nil
	}
	for i := range m.selector.Requirements {
		if r := &m.selector.Requirements[i]; r.Operator == "In" {
			return r
		}
	}
	return nil
}

// The append functions write what equal things write equally. Lists and strings are
// counted, so that no two different things read the same.

func appendString(b []byte, s string) []byte {
	return append(append(strconv.AppendInt(b, int64(len(s)), 10), ':'), s...)
}

func appendStrings(b []byte, list []string) []byte {
	b = append(strconv.AppendInt(b, int64(len(list)), 10), ',')
	for _, s := range list {
		b = appendString(b, s)
	}
	return b
}

func appendRequirements(b []byte, rs []cluster.Requirement) []byte {
	b = append(strconv.AppendInt(b, int64(len(rs)), 10), ',')
	for i := range rs {
		b = appendString(b, rs[i].Key)
		b = appendString(b, rs[i].Operator)
		b = appendStrings(b, rs[i].Values)
	}
	return b
}

func appendSelector(b []byte, sel *cluster.Selector) []byte {
	if sel == nil {
		return append(b, '-')
	}
	return appendRequirements(b, sel.Requirements)
}

func (m *matcher) appendKey(b []byte) []byte {
	return appendSelector(appendStrings(appendSelector(b, m.selector), m.namespaces), m.wide)
}

func appendNodeTerms(b []byte, terms []cluster.NodeTerm) []byte {
	if terms == nil {
		return append(b, '-')
	}
	b = append(strconv.AppendInt(b, int64(len(terms)), 10), ',')
	for i := range terms {
		b = appendRequirements(appendRequirements(b, terms[i].Labels), terms[i].Fields)
	}
	return b
}

func appendLabels(b []byte, labels map[string]string) []byte {
	b = append(strconv.AppendInt(b, int64(len(labels)), 10), ',')
	keys := make([]string, 0, len(labels))
	for k := range labels {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	for _, k := range keys {
		b = appendString(appendString(b, k), labels[k])
	}
	return b
}

func appendTolerations(b []byte, ts []cluster.Toleration) []byte {
	b = append(strconv.AppendInt(b, int64(len(ts)), 10), ',')
	for i := range ts {
		b = appendStrings(b, []string{ts[i].Key, ts[i].Operator, ts[i].Value, ts[i].Effect})
	}
	return b
}
