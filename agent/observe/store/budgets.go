package store

import (
	"reflect"
	"slices"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

type budgetSelector struct {
	namespace string
	selector  labels.Selector
}

func (s *Store) PutBudget(b *policyv1.PodDisruptionBudget) Urgency {
	key := b.Namespace + "/" + b.Name
	row := cluster.Budget{Key: key}
	if b.Status.ObservedGeneration >= b.Generation {
		row.Allowed = int(b.Status.DisruptionsAllowed)
	}
	selector, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
	if err != nil {
		selector = labels.Everything() // an unreadable budget protects its whole namespace
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	old, had := s.budgets.get(key)
	if was, ok := s.selectors[key]; !ok || was.selector.String() != selector.String() {
		s.selectors[key] = budgetSelector{namespace: b.Namespace, selector: selector}
		s.applyBudgets()
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
	delete(s.selectors, key)
	s.applyBudgets()
	return Later
}

// matchingBudgets names the PodDisruptionBudgets that select pods of class c, sorted.
func (s *Store) matchingBudgets(c cluster.PodClass) []string {
	var out []string
	for _, key := range sortedKeys(s.selectors) {
		b := s.selectors[key]
		if b.namespace == c.Namespace && b.selector.Matches(labels.Set(c.Labels)) {
			out = append(out, key)
		}
	}
	return out
}

// applyBudgets matches every class again after a change of the set of budgets, and
// updates the pods whose budgets changed.
func (s *Store) applyBudgets() {
	changed := false
	for i, c := range s.classes.rows {
		now := s.matchingBudgets(c)
		if !reflect.DeepEqual(now, s.budgetsOfClass[i]) {
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
