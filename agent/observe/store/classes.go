package store

import (
	"crypto/sha256"
	"slices"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// classKey stands for a class by its content. A key of the whole content would take as much memory as
// the class.
type classKey [sha256.Size]byte

// classes interns pod classes: equal classes share an index. Not safe for concurrent
// use.
type classes struct {
	rows         []cluster.PodClass
	refs         []int
	keys         []classKey
	sizes        []int
	index        map[classKey]int
	free         []int
	buf          []byte
	lastSnapshot []cluster.PodClass
	allowance    allowance
	// withheld counts the classes of which the constraints are not kept for want of room.
	withheld int
	// roomAgain tells that there is room again for some of them.
	roomAgain bool
	// selectingNamespaces counts the classes with a term that selects namespaces by labels.
	selectingNamespaces int
}

// intern returns the index of a class and counts one more user of it. A class for which there is no
// room is kept without its constraints.
func (c *classes) intern(p cluster.PodClass) (index int, fresh bool) {
	c.buf = cluster.AppendClass(c.buf[:0], &p)
	key, size := classKey(sha256.Sum256(c.buf)), len(c.buf)
	if i, ok := c.index[key]; ok {
		c.refs[i]++
		return i, false
	}
	if !c.allowance.take(p.Namespace, size) {
		return c.intern(withhold(&p))
	}
	if c.index == nil {
		c.index = map[classKey]int{}
	}
	c.lastSnapshot = nil
	c.count(&p, 1)
	if n := len(c.free); n > 0 {
		i := c.free[n-1]
		c.free = c.free[:n-1]
		c.rows[i], c.refs[i], c.keys[i], c.sizes[i] = p, 1, key, size
		c.index[key] = i
		return i, true
	}
	c.rows, c.refs, c.keys, c.sizes = append(c.rows, p), append(c.refs, 1), append(c.keys, key), append(c.sizes, size)
	c.index[key] = len(c.rows) - 1
	return len(c.rows) - 1, true
}

// count counts a class that is new (1) or gone (-1).
func (c *classes) count(p *cluster.PodClass, by int) {
	if selectsNamespaces(p) {
		c.selectingNamespaces += by
	}
	if withheld(p) {
		c.withheld += by
	}
}

// release removes one user of a class. A class without users leaves a zero row, which
// the next new class takes.
func (c *classes) release(i int) {
	c.refs[i]--
	if c.refs[i] > 0 {
		return
	}
	delete(c.index, c.keys[i])
	c.count(&c.rows[i], -1)
	if c.allowance.giveBack(c.rows[i].Namespace, c.sizes[i]) && c.withheld > 0 {
		c.roomAgain = true
	}
	c.rows[i], c.keys[i], c.sizes[i] = cluster.PodClass{}, classKey{}, 0
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
