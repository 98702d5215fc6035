package store

import (
	"slices"
	"strings"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// budgetSelectors are the selectors of the budgets of one namespace.
type budgetSelectors map[string]labels.Selector // by "namespace/name"

// mostBudgets is how many budgets a pod names. The API server evicts no pod that has two, so that the
// third one decides nothing; thousands of budgets of thousands of pods would take gigabytes.
const mostBudgets = 2

func (s *Store) PutBudget(b *policyv1.PodDisruptionBudget) Urgency {
	key := b.Namespace + "/" + b.Name
	row := cluster.Budget{Key: key}
	if b.Status.ObservedGeneration >= b.Generation {
		row.Allowed = int(b.Status.DisruptionsAllowed)
		always := b.Spec.UnhealthyPodEvictionPolicy != nil && *b.Spec.UnhealthyPodEvictionPolicy == policyv1.AlwaysAllow
		row.Unready = always || b.Status.CurrentHealthy >= b.Status.DesiredHealthy && b.Status.DesiredHealthy > 0
	}
	selector, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
	if err != nil {
		selector = labels.Everything() // an unreadable budget protects its whole namespace
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	old, had := s.budgets.get(key)
	if s.selectors[b.Namespace] == nil {
		s.selectors[b.Namespace] = budgetSelectors{}
	}
	if was, ok := s.selectors[b.Namespace][key]; !ok || was.String() != selector.String() {
		s.selectors[b.Namespace][key] = selector
		s.applyBudget(b.Namespace, key)
	}
	if had && old == row {
		return Never
	}
	s.budgets.put(key, row)
	return Later
}

func (s *Store) DeleteBudget(key string) Urgency {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.budgets.delete(key)
	namespace, _, _ := strings.Cut(key, "/")
	if delete(s.selectors[namespace], key); len(s.selectors[namespace]) == 0 {
		delete(s.selectors, namespace)
	}
	s.applyBudget(namespace, key)
	return Later
}

// matchingBudgets names the PodDisruptionBudgets that select pods of class c, sorted: the first two. It
// costs the budgets of the namespace.
func (s *Store) matchingBudgets(c *cluster.PodClass) []string {
	var out []string
	for key, selector := range s.selectors[c.Namespace] {
		if (len(out) < mostBudgets || key < out[mostBudgets-1]) && selector.Matches(labels.Set(c.Labels)) {
			out = withBudget(out, key)
		}
	}
	return out
}

// withBudget returns the first of the budgets and of one more, sorted.
func withBudget(budgets []string, key string) []string {
	out := append(slices.Clone(budgets), key)
	slices.Sort(out)
	return out[:min(len(out), mostBudgets)]
}

// applyBudget matches the classes of a namespace again after a change of one budget, and updates the
// pods whose budgets changed. It costs the classes of the namespace, and those that named the budget cost
// its budgets.
func (s *Store) applyBudget(namespace, key string) {
	selector, there := s.selectors[namespace][key]
	changed := false
	for i := range s.classes.rows {
		c := &s.classes.rows[i]
		if c.Namespace != namespace {
			continue
		}
		now := s.budgetsOfClass[i]
		switch named := slices.Contains(now, key); {
		case there && selector.Matches(labels.Set(c.Labels)) == named:
			continue
		case named:
			now = s.matchingBudgets(c)
		case there:
			now = withBudget(now, key)
		}
		if !slices.Equal(now, s.budgetsOfClass[i]) {
			s.budgetsOfClass[i], changed = now, true
		}
	}
	if !changed {
		return
	}
	s.pods.lastSnapshot = nil
	for i := range s.pods.rows {
		s.pods.rows[i].Budgets = s.budgetsOfClass[s.pods.rows[i].Class]
	}
	s.nodes.updatePods(func(p *cluster.Pod) bool {
		now := s.budgetsOfClass[p.Class]
		changed := !slices.Equal(p.Budgets, now)
		p.Budgets = now
		return changed
	})
}
