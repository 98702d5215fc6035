package plan

import (
	"cmp"
	"slices"
)

// mend takes a few machines of the best answer, thinks afresh about what is on them,
// and keeps what is cheaper, again and again: first those that carry least for their
// cost, with others by a fixed sequence.
const (
	mendWork = 4_000_000 // of one attempt
	mendMost = 4_000     // machines in an answer beyond which nothing is mended
)

// sequence is a source of numbers that only look random, the same on every machine.
type sequence uint64

func (s *sequence) below(n int) int {
	*s = *s*6364136223846793005 + 1442695040888963407
	return int(uint64(*s>>33) % uint64(n))
}

func (b *blender) mend() {
	bins := b.singles()
	if len(bins) < 2 || len(bins) > mendMost {
		return
	}
	s := sequence(len(bins))
	tries, sizes := 0, []int{2, 3, 4, 3, 6, 2, 5, 8, 4, 10}
	for b.work > 0 && tries < 60+40*len(bins) && b.cost > b.lower*blendClose {
		k := min(sizes[tries%len(sizes)], len(bins))
		tries++
		picked := b.pick(bins, k, &s)
		before := 0.0
		for _, i := range picked {
			before += b.kinds[bins[i].kind].cost
		}
		after, cost := b.afresh(bins, picked, before)
		if after == nil || cost >= before*(1-1e-9) {
			continue
		}
		slices.Sort(picked)
		for n := len(picked) - 1; n >= 0; n-- {
			bins = slices.Delete(bins, picked[n], picked[n]+1)
		}
		bins = append(bins, after...)
		b.cost -= before - cost
		tries -= min(tries, len(bins))
	}
	b.best = bins
}

// singles are the machines of the best answer one by one, on the cheapest kinds that
// hold them.
func (b *blender) singles() []filled {
	var out []filled
	for _, f := range b.best {
		b.shrink(&f)
		for range f.times {
			out = append(out, filled{f.kind, 1, f.content})
		}
	}
	return out
}

// pick chooses k machines: one of those that carry least for their cost, and others.
func (b *blender) pick(bins []filled, k int, s *sequence) []int {
	weak := -1
	for range 3 {
		i := s.below(len(bins))
		if weak < 0 || b.use(&bins[i]) < b.use(&bins[weak]) {
			weak = i
		}
	}
	out := []int{weak}
	for len(out) < k {
		if i := s.below(len(bins)); !slices.Contains(out, i) {
			out = append(out, i)
		}
	}
	return out
}

// use is what the content of a machine takes of it: the mean of cpu and memory.
func (b *blender) use(f *filled) float64 {
	var cpu, memory int64
	for r, n := range f.content {
		cpu += b.sizes[r][0] * int64(n)
		memory += b.sizes[r][1] * int64(n)
	}
	full := b.kinds[f.kind].empty
	return float64(cpu)/float64(max(full[0], 1)) + float64(memory)/float64(max(full[1], 1))
}

// afresh buys for the content of some machines as if it were all there is.
func (b *blender) afresh(bins []filled, picked []int, before float64) ([]filled, float64) {
	used := make([]int, len(b.kinds))
	for i := range bins {
		used[bins[i].kind]++
	}
	count := make([]int, len(b.sizes))
	for _, i := range picked {
		used[bins[i].kind]--
		for r, n := range bins[i].content {
			count[r] += int(n)
		}
	}
	sub := &blender{cost: before, work: min(mendWork, b.work)}
	var rows []int
	for r, n := range count {
		if n > 0 {
			rows = append(rows, r)
			sub.sizes, sub.count = append(sub.sizes, b.sizes[r]), append(sub.count, n)
		}
	}
	for k := range b.kinds {
		kd := b.kinds[k]
		kd.limit -= used[k]
		kd.may = make([]bool, len(rows))
		for i, r := range rows {
			kd.may[i] = b.kinds[k].may[r]
		}
		sub.kinds = append(sub.kinds, kd)
	}
	spent := sub.work
	sub.dive(slices.Clone(sub.count), make([]int, len(sub.kinds)), nil, 0, true)
	b.work -= spent - sub.work
	if sub.best == nil {
		return nil, 0
	}
	var out []filled
	cost := 0.0
	for _, f := range sub.singles() {
		content := make([]int32, len(b.sizes))
		for i, n := range f.content {
			content[rows[i]] = n
		}
		out = append(out, filled{f.kind, 1, content})
		cost += b.kinds[f.kind].cost
	}
	return out, cost
}

// gather counts equal machines together.
func gather(bins []filled) []filled {
	slices.SortStableFunc(bins, func(x, y filled) int {
		return cmp.Or(cmp.Compare(x.kind, y.kind), slices.Compare(x.content, y.content))
	})
	var out []filled
	for _, f := range bins {
		if n := len(out) - 1; n >= 0 && out[n].kind == f.kind && slices.Equal(out[n].content, f.content) {
			out[n].times += f.times
			continue
		}
		out = append(out, f)
	}
	return out
}
