package store

import (
	"slices"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// classes interns pod classes: equal classes share an index. Not safe for concurrent
// use.
type classes struct {
	rows         []cluster.PodClass
	refs         []int
	keys         []string
	index        map[string]int
	free         []int
	buf          []byte
	lastSnapshot []cluster.PodClass
	// selectingNamespaces counts the classes with a term that selects namespaces by labels.
	selectingNamespaces int
}

// intern returns the index of a class and counts one more user of it.
func (c *classes) intern(p cluster.PodClass) (index int, fresh bool) {
	c.buf = cluster.AppendClass(c.buf[:0], &p)
	if i, ok := c.index[string(c.buf)]; ok {
		c.refs[i]++
		return i, false
	}
	if c.index == nil {
		c.index = map[string]int{}
	}
	key := string(c.buf)
	c.lastSnapshot = nil
	if selectsNamespaces(&p) {
		c.selectingNamespaces++
	}
	if n := len(c.free); n > 0 {
		i := c.free[n-1]
		c.free = c.free[:n-1]
		c.rows[i], c.refs[i], c.keys[i] = p, 1, key
		c.index[key] = i
		return i, true
	}
	c.rows, c.refs, c.keys = append(c.rows, p), append(c.refs, 1), append(c.keys, key)
	c.index[key] = len(c.rows) - 1
	return len(c.rows) - 1, true
}

// release removes one user of a class. A class without users leaves a zero row, which
// the next new class takes.
func (c *classes) release(i int) {
	c.refs[i]--
	if c.refs[i] > 0 {
		return
	}
	delete(c.index, c.keys[i])
	if selectsNamespaces(&c.rows[i]) {
		c.selectingNamespaces--
	}
	c.rows[i], c.keys[i] = cluster.PodClass{}, ""
	c.free = append(c.free, i)
	c.lastSnapshot = nil
}

// snapshot returns the classes as a slice that no later change touches.
func (c *classes) snapshot() []cluster.PodClass {
	if c.lastSnapshot == nil && len(c.rows) > 0 {
		c.lastSnapshot = slices.Clone(c.rows)
	}
	return c.lastSnapshot
}

// selectsNamespaces reports whether a term of a class selects namespaces by labels.
func selectsNamespaces(c *cluster.PodClass) bool {
	asks := func(t cluster.PodTerm) bool { return t.NamespaceSelector != nil }
	return slices.ContainsFunc(c.PodAffinity, asks) || slices.ContainsFunc(c.PodAntiAffinity, asks) ||
		c.Prefers != nil && slices.ContainsFunc(c.Prefers.Pods, func(p cluster.PreferredPods) bool { return asks(p.Term) })
}
