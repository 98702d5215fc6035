package oracle

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// Coverage counts what was judged.
type Coverage struct {
	Worlds, Judgements, Fits int64
	Held, Failed             int64 // no judgements: fit holds the pod by name, the scheduler fails with an error
	OtherFilter              int64 // both refuse, and name different filters
	Filters                  map[string]*FilterCount
	HeldFor                  map[string]int64
	Other                    map[string]int64
	order                    []string
}

// FilterCount counts one filter's verdicts on pods that reached it and that it had
// something to say about.
type FilterCount struct {
	Accepts int64
	Rejects map[string]int64 // by reason
}

func newCoverage() *Coverage {
	return &Coverage{Filters: map[string]*FilterCount{}, HeldFor: map[string]int64{}, Other: map[string]int64{}}
}

func (c *Coverage) filter(name string) *FilterCount {
	f := c.Filters[name]
	if f == nil {
		f = &FilterCount{Rejects: map[string]int64{}}
		c.Filters[name] = f
	}
	return f
}

// Add counts one world. A filter accepts where it was asked and the verdict is of a
// later one, or that the pod fits.
func (c *Coverage) Add(w *World, real *Ruling, ours [][]Answer, filters []string) {
	c.Worlds++
	c.order = filters
	for p := range w.Waiting {
		for n := range w.Nodes {
			r, o := real.Cells[p][n], ours[p][n]
			switch {
			case o.Held:
				c.Held++
				c.HeldFor[o.Words]++
			case r.Failed():
				c.Failed++
			default:
				c.Judgements++
			}
			switch {
			case o.Held || r.Failed():
			case r.Fits:
				c.Fits++
			case !o.Fits && plugins[o.Rule] != r.Filter:
				c.OtherFilter++
				c.Other[r.Filter+" -> "+plugins[o.Rule]]++
			}
			if !r.Fits {
				for reason := range strings.SplitSeq(r.Reason, "; ") { // a pod may lack several things
					c.filter(r.Filter).Rejects[reason]++
				}
			}
			if r.Early {
				continue
			}
			for _, name := range filters {
				if name == r.Filter {
					break
				}
				if !slices.Contains(real.Skipped[p], name) {
					c.filter(name).Accepts++
				}
			}
		}
	}
}

// Merge adds another count.
func (c *Coverage) Merge(o *Coverage) {
	c.Worlds += o.Worlds
	c.Judgements += o.Judgements
	c.Fits += o.Fits
	c.Held += o.Held
	c.Failed += o.Failed
	c.OtherFilter += o.OtherFilter
	if len(o.order) > 0 {
		c.order = o.order
	}
	for name, f := range o.Filters {
		to := c.filter(name)
		to.Accepts += f.Accepts
		for reason, n := range f.Rejects {
			to.Rejects[reason] += n
		}
	}
	for reason, n := range o.HeldFor {
		c.HeldFor[reason] += n
	}
	for reason, n := range o.Other {
		c.Other[reason] += n
	}
}

// Print writes the table of filters with their accepts and each of their reasons.
func (c *Coverage) Print(out io.Writer) {
	fmt.Fprintf(out, "%d judgements in %d worlds: %d fit (%.0f %%); not counted: %d held by name, %d without a verdict; %d refused in another filter's name\n",
		c.Judgements, c.Worlds, c.Fits, 100*float64(c.Fits)/float64(max(c.Judgements, 1)), c.Held, c.Failed, c.OtherFilter)
	for _, name := range c.order {
		f := c.filter(name)
		fmt.Fprintf(out, "  %-20s %10d accepted\n", name, f.Accepts)
		for _, reason := range byCount(f.Rejects) {
			fmt.Fprintf(out, "  %-20s %10d refused: %s\n", "", f.Rejects[reason], reason)
		}
	}
	for _, why := range byCount(c.HeldFor) {
		fmt.Fprintf(out, "  held %10d: %s\n", c.HeldFor[why], why)
	}
	for _, pair := range byCount(c.Other) {
		fmt.Fprintf(out, "  named differently %10d: %s\n", c.Other[pair], pair)
	}
}

func byCount(m map[string]int64) []string {
	return slices.SortedFunc(maps.Keys(m), func(a, b string) int {
		if m[a] != m[b] {
			return int(min(1, max(-1, m[b]-m[a])))
		}
		return strings.Compare(a, b)
	})
}
