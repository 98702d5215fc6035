package observe

import (
	"slices"
	"strconv"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// table keeps rows densely, so that a Snapshot is one copy of a slice, and none at
// all while nothing changed. Not safe for concurrent use.
type table[K comparable, V any] struct {
	rows  []V
	keys  []K
	at    map[K]int
	taken []V // the last copy handed out; nil when rows changed since
}

func (t *table[K, V]) get(k K) (V, bool) {
	i, ok := t.at[k]
	if !ok {
		var zero V
		return zero, false
	}
	return t.rows[i], true
}

func (t *table[K, V]) put(k K, v V) {
	if t.at == nil {
		t.at = map[K]int{}
	}
	t.taken = nil
	if i, ok := t.at[k]; ok {
		t.rows[i] = v
		return
	}
	t.at[k] = len(t.rows)
	t.rows = append(t.rows, v)
	t.keys = append(t.keys, k)
}

func (t *table[K, V]) drop(k K) {
	i, ok := t.at[k]
	if !ok {
		return
	}
	last := len(t.rows) - 1
	t.rows[i], t.keys[i] = t.rows[last], t.keys[last]
	t.at[t.keys[i]] = i
	var zero V
	t.rows[last] = zero
	t.rows, t.keys = t.rows[:last], t.keys[:last]
	delete(t.at, k)
	t.taken = nil
}

// snapshot returns the rows as a slice that no later put or drop touches. Callers
// share it and must not change it.
func (t *table[K, V]) snapshot() []V {
	if t.taken == nil && len(t.rows) > 0 {
		t.taken = slices.Clone(t.rows)
	}
	return t.taken
}

// classes interns pod classes: equal ones share an index. Not safe for concurrent
// use.
type classes struct {
	rows  []cluster.PodClass
	refs  []int
	keys  []string
	at    map[string]int
	free  []int
	buf   []byte
	taken []cluster.PodClass
	// asking counts the classes with a term that selects namespaces by labels.
	asking int
}

// intern returns the class's index and counts one more user of it.
func (c *classes) intern(p cluster.PodClass) (index int, fresh bool) {
	c.buf = appendClass(c.buf[:0], &p)
	if i, ok := c.at[string(c.buf)]; ok {
		c.refs[i]++
		return i, false
	}
	if c.at == nil {
		c.at = map[string]int{}
	}
	key := string(c.buf)
	c.taken = nil
	if asksNamespaces(&p) {
		c.asking++
	}
	if n := len(c.free); n > 0 {
		i := c.free[n-1]
		c.free = c.free[:n-1]
		c.rows[i], c.refs[i], c.keys[i] = p, 1, key
		c.at[key] = i
		return i, true
	}
	c.rows, c.refs, c.keys = append(c.rows, p), append(c.refs, 1), append(c.keys, key)
	c.at[key] = len(c.rows) - 1
	return len(c.rows) - 1, true
}

// release takes one user away; a class without users leaves a zero row that the
// next new class takes.
func (c *classes) release(i int) {
	c.refs[i]--
	if c.refs[i] > 0 {
		return
	}
	delete(c.at, c.keys[i])
	if asksNamespaces(&c.rows[i]) {
		c.asking--
	}
	c.rows[i], c.keys[i] = cluster.PodClass{}, ""
	c.free = append(c.free, i)
	c.taken = nil
}

// snapshot returns the classes as a slice that no later change touches.
func (c *classes) snapshot() []cluster.PodClass {
	if c.taken == nil && len(c.rows) > 0 {
		c.taken = slices.Clone(c.rows)
	}
	return c.taken
}

// appendClass writes an injective encoding of p: every string carries its length
// and every list its count.
func appendClass(b []byte, p *cluster.PodClass) []byte {
	b = appendString(b, p.Namespace)
	b = appendMap(b, p.Labels)
	b = appendResources(b, p.Requests)
	b = appendInt(b, int64(len(p.HostPorts)))
	for _, h := range p.HostPorts {
		b = appendInt(appendString(appendString(b, h.IP), h.Protocol), int64(h.Port))
	}
	b = appendMap(b, p.NodeSelector)
	b = appendNodeTerms(b, p.Affinity)
	b = appendInt(b, int64(len(p.Tolerations)))
	for _, t := range p.Tolerations {
		b = appendString(appendString(appendString(appendString(b, t.Key), t.Operator), t.Value), t.Effect)
	}
	b = appendInt(b, int64(p.Priority))
	b = appendString(b, string(p.NodeName))
	return appendRelations(appendStrings(b, p.NotUnderstood), p)
}

func appendRequirements(b []byte, in []cluster.Requirement) []byte {
	b = appendInt(b, int64(len(in)))
	for _, r := range in {
		b = appendStrings(appendString(appendString(b, r.Key), r.Operator), r.Values)
	}
	return b
}

func appendResources(b []byte, r cluster.Resources) []byte {
	for _, v := range []int64{r.MilliCPU, r.Memory, r.EphemeralStorage, r.Pods, int64(len(r.Extended))} {
		b = appendInt(b, v)
	}
	for _, k := range sortedKeys(r.Extended) {
		b = appendInt(appendString(b, k), r.Extended[k])
	}
	return b
}

func appendMap(b []byte, m map[string]string) []byte {
	b = appendInt(b, int64(len(m)))
	for _, k := range sortedKeys(m) {
		b = appendString(appendString(b, k), m[k])
	}
	return b
}

func appendStrings(b []byte, list []string) []byte {
	b = appendInt(b, int64(len(list)))
	for _, s := range list {
		b = appendString(b, s)
	}
	return b
}

func appendString(b []byte, s string) []byte { return append(appendInt(b, int64(len(s))), s...) }

func appendInt(b []byte, n int64) []byte { return append(strconv.AppendInt(b, n, 36), ' ') }

func sortedKeys[V any](m map[string]V) []string {
	if len(m) == 0 {
		return nil
	}
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
