package plan

import (
	"cmp"
	"slices"
)

// localSearch takes a few machines of the best answer, optimises anew what is on them,
// and keeps what is cheaper, again and again: first those that carry least for their
// cost, with others by a fixed sequence.
const (
	localSearchWork = 1_500_000 // of one attempt
	localSearchBins = 4_000     // machines in an answer beyond which no local search is made
)

// lcg is a source of numbers that only look random, the same on every machine.
type lcg uint64

func (s *lcg) below(n int) int {
	*s = *s*6364136223846793005 + 1442695040888963407
	return int(uint64(*s>>33) % uint64(n))
}

func (b *mixed) localSearch() {
	bins := b.singles()
	if len(bins) < 2 || len(bins) > localSearchBins {
		return
	}
	s := lcg(len(bins))
	tries, sizes := 0, []int{2, 3, 4, 3, 6, 2, 5, 8, 4, 10}
	for b.work > 0 && tries < 60+40*len(bins) && b.cost > b.lower*mixedClose {
		k := min(sizes[tries%len(sizes)], len(bins))
		tries++
		picked := b.pick(bins, k, &s)
		before := 0.0
		for _, i := range picked {
			before += b.machineTypes[bins[i].machineType].cost
		}
		after, cost := b.reoptimise(bins, picked, before)
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
func (b *mixed) singles() []mixedBins {
	var out []mixedBins
	for _, f := range b.best {
		b.toCheapestType(&f)
		for range f.times {
			out = append(out, mixedBins{f.machineType, 1, f.content})
		}
	}
	return out
}

// pick chooses k machines: one of those that carry least for their cost, and others.
func (b *mixed) pick(bins []mixedBins, k int, s *lcg) []int {
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
func (b *mixed) use(f *mixedBins) float64 {
	var cpu, memory int64
	for r, n := range f.content {
		cpu += b.sizes[r][0] * int64(n)
		memory += b.sizes[r][1] * int64(n)
	}
	full := b.machineTypes[f.machineType].empty
	return float64(cpu)/float64(max(full[0], 1)) + float64(memory)/float64(max(full[1], 1))
}

// reoptimise buys for the content of some machines as if it were all there is.
func (b *mixed) reoptimise(bins []mixedBins, picked []int, before float64) ([]mixedBins, float64) {
	used := make([]int, len(b.machineTypes))
	for i := range bins {
		used[bins[i].machineType]++
	}
	count := make([]int, len(b.sizes))
	for _, i := range picked {
		used[bins[i].machineType]--
		for r, n := range bins[i].content {
			count[r] += int(n)
		}
	}
	sub := &mixed{cost: before, work: min(localSearchWork, b.work)}
	var rows []int
	for r, n := range count {
		if n > 0 {
			rows = append(rows, r)
			sub.sizes, sub.count = append(sub.sizes, b.sizes[r]), append(sub.count, n)
		}
	}
	for k := range b.machineTypes {
		kd := b.machineTypes[k]
		kd.limit -= used[k]
		kd.may = make([]bool, len(rows))
		for i, r := range rows {
			kd.may[i] = b.machineTypes[k].may[r]
		}
		sub.machineTypes = append(sub.machineTypes, kd)
	}
	spent := sub.work
	sub.dive(slices.Clone(sub.count), make([]int, len(sub.machineTypes)), nil, 0, true)
	b.work -= spent - sub.work
	if sub.best == nil {
		return nil, 0
	}
	var out []mixedBins
	cost := 0.0
	for _, f := range sub.singles() {
		content := make([]int32, len(b.sizes))
		for i, n := range f.content {
			content[rows[i]] = n
		}
		out = append(out, mixedBins{f.machineType, 1, content})
		cost += b.machineTypes[f.machineType].cost
	}
	return out, cost
}

// gather counts equal machines together.
func gather(bins []mixedBins) []mixedBins {
	slices.SortStableFunc(bins, func(x, y mixedBins) int {
		return cmp.Or(cmp.Compare(x.machineType, y.machineType), slices.Compare(x.content, y.content))
	})
	var out []mixedBins
	for _, f := range bins {
		if n := len(out) - 1; n >= 0 && out[n].machineType == f.machineType && slices.Equal(out[n].content, f.content) {
			out[n].times += f.times
			continue
		}
		out = append(out, f)
	}
	return out
}
