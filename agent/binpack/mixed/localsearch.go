package mixed

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

// Sequence is a source of numbers that only look random, the same on every machine.
type Sequence uint64

func (s *Sequence) Below(n int) int {
	*s = *s*6364136223846793005 + 1442695040888963407
	return int(uint64(*s>>33) % uint64(n))
}

func (b *Problem) localSearch() {
	bins := b.singles()
	if len(bins) < 2 || len(bins) > localSearchBins {
		return
	}
	s := Sequence(len(bins))
	tries, sizes := 0, []int{2, 3, 4, 3, 6, 2, 5, 8, 4, 10}
	for b.work > 0 && tries < 60+40*len(bins) && b.Cost > b.lower*mixedClose {
		k := min(sizes[tries%len(sizes)], len(bins))
		tries++
		picked := b.pick(bins, k, &s)
		before := 0.0
		for _, i := range picked {
			before += b.MachineTypes[bins[i].MachineType].Cost
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
		b.Cost -= before - cost
		tries -= min(tries, len(bins))
	}
	b.Best = bins
}

// singles are the machines of the best answer one by one, on the cheapest kinds that
// hold them.
func (b *Problem) singles() []Bins {
	var out []Bins
	for _, f := range b.Best {
		b.toCheapestType(&f)
		for range f.Times {
			out = append(out, Bins{f.MachineType, 1, f.Content})
		}
	}
	return out
}

// pick chooses k machines: one of those that carry least for their cost, and others.
func (b *Problem) pick(bins []Bins, k int, s *Sequence) []int {
	weak := -1
	for range 3 {
		i := s.Below(len(bins))
		if weak < 0 || b.use(&bins[i]) < b.use(&bins[weak]) {
			weak = i
		}
	}
	out := []int{weak}
	for len(out) < k {
		if i := s.Below(len(bins)); !slices.Contains(out, i) {
			out = append(out, i)
		}
	}
	return out
}

// use is what the content of a machine takes of it: the mean of cpu and memory.
func (b *Problem) use(f *Bins) float64 {
	var cpu, memory int64
	for r, n := range f.Content {
		cpu += b.Sizes[r][0] * int64(n)
		memory += b.Sizes[r][1] * int64(n)
	}
	full := b.MachineTypes[f.MachineType].Empty
	return float64(cpu)/float64(max(full[0], 1)) + float64(memory)/float64(max(full[1], 1))
}

// reoptimise buys for the content of some machines as if it were all there is.
func (b *Problem) reoptimise(bins []Bins, picked []int, before float64) ([]Bins, float64) {
	used := make([]int, len(b.MachineTypes))
	for i := range bins {
		used[bins[i].MachineType]++
	}
	count := make([]int, len(b.Sizes))
	for _, i := range picked {
		used[bins[i].MachineType]--
		for r, n := range bins[i].Content {
			count[r] += int(n)
		}
	}
	sub := &Problem{Cost: before, work: min(localSearchWork, b.work)}
	var rows []int
	for r, n := range count {
		if n > 0 {
			rows = append(rows, r)
			sub.Sizes, sub.Count = append(sub.Sizes, b.Sizes[r]), append(sub.Count, n)
		}
	}
	for k := range b.MachineTypes {
		kd := b.MachineTypes[k]
		kd.Limit -= used[k]
		kd.May = make([]bool, len(rows))
		for i, r := range rows {
			kd.May[i] = b.MachineTypes[k].May[r]
		}
		sub.MachineTypes = append(sub.MachineTypes, kd)
	}
	spent := sub.work
	sub.dive(slices.Clone(sub.Count), make([]int, len(sub.MachineTypes)), nil, 0, true)
	b.work -= spent - sub.work
	if sub.Best == nil {
		return nil, 0
	}
	var out []Bins
	cost := 0.0
	for _, f := range sub.singles() {
		content := make([]int32, len(b.Sizes))
		for i, n := range f.Content {
			content[rows[i]] = n
		}
		out = append(out, Bins{f.MachineType, 1, content})
		cost += b.MachineTypes[f.MachineType].Cost
	}
	return out, cost
}

// gather counts equal machines together.
func gather(bins []Bins) []Bins {
	slices.SortStableFunc(bins, func(x, y Bins) int {
		return cmp.Or(cmp.Compare(x.MachineType, y.MachineType), slices.Compare(x.Content, y.Content))
	})
	var out []Bins
	for _, f := range bins {
		if n := len(out) - 1; n >= 0 && out[n].MachineType == f.MachineType && slices.Equal(out[n].Content, f.Content) {
			out[n].Times += f.Times
			continue
		}
		out = append(out, f)
	}
	return out
}
