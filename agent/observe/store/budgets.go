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

func (w *Store) PutBudget(b *policyv1.PodDisruptionBudget) Urgency {
	key := b.Namespace + "/" + b.Name
	row := cluster.Budget{Key: key}
	if b.Status.ObservedGeneration >= b.Generation {
		row.Allowed = int(b.Status.DisruptionsAllowed)
	}
	selector, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
	if err != nil {
		selector = labels.Everything() // an unreadable budget protects its whole namespace
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	old, had := w.budgets.get(key)
	if was, ok := w.selectors[key]; !ok || was.selector.String() != selector.String() {
		w.selectors[key] = budgetSelector{namespace: b.Namespace, selector: selector}
		w.applyBudgets()
	}
	if had && old == row {
		return Never
	}
	w.budgets.put(key, row)
	return Later
}

func (w *Store) DeleteBudget(key string) Urgency {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.budgets.delete(key)
	delete(w.selectors, key)
	w.applyBudgets()
	return Later
}

// matchingBudgets names the PodDisruptionBudgets that select pods of class c, sorted.
func (w *Store) matchingBudgets(c cluster.PodClass) []string {
	var out []string
	for _, key := range sortedKeys(w.selectors) {
		b := w.selectors[key]
		if b.namespace == c.Namespace && b.selector.Matches(labels.Set(c.Labels)) {
			out = append(out, key)
		}
	}
	return out
}

// applyBudgets matches every class again after a change of the set of budgets, and
// updates the pods whose budgets changed.
func (w *Store) applyBudgets() {
	changed := false
	for i, c := range w.classes.rows {
		now := w.matchingBudgets(c)
		if !reflect.DeepEqual(now, w.budgetsOfClass[i]) {
			w.budgetsOfClass[i], changed = now, true
		}
	}
	if !changed {
		return
	}
	w.pods.lastSnapshot = nil
	for i := range w.pods.rows {
		w.pods.rows[i].Budgets = w.budgetsOfClass[w.pods.rows[i].Class]
	}
	w.nodes.updatePods(func(p *cluster.Pod) bool {
		now := w.budgetsOfClass[p.Class]
		changed := !slices.Equal(p.Budgets, now)
		p.Budgets = now
		return changed
	})
}
