package observe

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// antiTerm is one required podAntiAffinity term, as far as it says which other pods
// it keeps away. The topology is not kept: a class that a term selects is held
// whole, because fit does not judge terms in this build.
type antiTerm struct {
	namespaces    []string // those that it looks at; nil with anyNamespace
	anyNamespace  bool     // a namespaceSelector is there: taken as all namespaces, which holds more, never less
	selector      labels.Selector
	selectorWords string
}

func antiTerms(p *corev1.Pod) []antiTerm {
	if p.Spec.Affinity == nil || p.Spec.Affinity.PodAntiAffinity == nil {
		return nil
	}
	var out []antiTerm
	for _, t := range p.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution {
		sel, err := metav1.LabelSelectorAsSelector(t.LabelSelector)
		if err != nil {
			sel = labels.Everything() // the API refuses such a selector; if it came through, hold
		}
		a := antiTerm{namespaces: t.Namespaces, anyNamespace: t.NamespaceSelector != nil, selector: sel, selectorWords: sel.String()}
		if len(a.namespaces) == 0 && !a.anyNamespace {
			a.namespaces = []string{p.Namespace}
		}
		out = append(out, a)
	}
	return out
}

func appendTerms(b []byte, terms []antiTerm) []byte {
	b = appendInt(b, int64(len(terms)))
	for _, t := range terms {
		b = appendString(appendStrings(b, t.namespaces), t.selectorWords)
		if t.anyNamespace {
			b = append(b, 'a')
		}
	}
	return b
}

func (t antiTerm) selects(c cluster.PodClass) bool {
	return (t.anyNamespace || slices.Contains(t.namespaces, c.Namespace)) && t.selector.Matches(labels.Set(c.Labels))
}

// snapshot returns the classes with what other classes' terms demand of them. The
// cost is terms times classes, once per change of the set of classes.
func (c *classes) snapshot() []cluster.PodClass {
	if c.taken != nil || len(c.rows) == 0 {
		return c.taken
	}
	const words = "required podAntiAffinity of another pod"
	c.taken = slices.Clone(c.rows)
	for from, terms := range c.terms {
		for _, t := range terms {
			for to := range c.taken {
				row := &c.taken[to]
				if to != from && c.refs[to] > 0 && t.selects(*row) && !slices.Contains(row.NotUnderstood, words) {
					row.NotUnderstood = append(slices.Clone(row.NotUnderstood), words)
				}
			}
		}
	}
	return c.taken
}
