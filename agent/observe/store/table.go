package store

import (
	"slices"
)

// table keeps rows in a dense slice, so that a Snapshot is one copy of it, and none
// while nothing changed. Not safe for concurrent use.
type table[K comparable, V any] struct {
	rows         []V
	keys         []K
	index        map[K]int
	lastSnapshot []V // the last copy handed out; nil when rows changed since
}

func (t *table[K, V]) get(k K) (V, bool) {
	i, ok := t.index[k]
	if !ok {
		var zero V
		return zero, false
	}
	return t.rows[i], true
}

func (t *table[K, V]) put(k K, v V) {
	if t.index == nil {
		t.index = map[K]int{}
	}
	t.lastSnapshot = nil
	if i, ok := t.index[k]; ok {
		t.rows[i] = v
		return
	}
	t.index[k] = len(t.rows)
	t.rows = append(t.rows, v)
	t.keys = append(t.keys, k)
}

func (t *table[K, V]) delete(k K) {
	i, ok := t.index[k]
	if !ok {
		return
	}
	last := len(t.rows) - 1
	t.rows[i], t.keys[i] = t.rows[last], t.keys[last]
	t.index[t.keys[i]] = i
	var zero V
	t.rows[last] = zero
	t.rows, t.keys = t.rows[:last], t.keys[:last]
	delete(t.index, k)
	t.lastSnapshot = nil
}

// snapshot returns the rows as a slice that no later put or drop touches. Callers
// share it and must not change it.
func (t *table[K, V]) snapshot() []V {
	if t.lastSnapshot == nil && len(t.rows) > 0 {
		t.lastSnapshot = slices.Clone(t.rows)
	}
	return t.lastSnapshot
}
