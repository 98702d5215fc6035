package scaleup

import (
	"cmp"
	"maps"
	"slices"

	"github.com/autoscaler-agent/autoscaler-agent/agent/binpack"
	"github.com/autoscaler-agent/autoscaler-agent/agent/fit"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/round"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/topology"
)

// nodeClaim is a machine of which the group is still open: it has the room of none, and in
// the State the labels that do not depend on its domain, as long as that is open too.
type nodeClaim struct {
	plannedMachine
	options []int // groups that it may still become
	domain  int   // 0: open
	pods    int
	used    []int64
}

// nodeClaims is the rule at work.
type nodeClaims struct {
	*baseline
	all  []*nodeClaim
	left []int
	bare map[int]*fit.NodeInfo // by group
}

// claimNodes takes pods by falling cpu and then memory, one after the other: each onto the
// planned machine with the fewest pods that can still take it as some group's, else onto
// a new one. In the end each becomes the cheapest that it may be. pooled: a new one is of
// the groups with the same taints, those without first; else it may become any.
func (g *baseline) claimNodes(pooled bool) bool {
	w := g.v.w
	c := &nodeClaims{baseline: g, left: slices.Clone(g.v.a.left), bare: make(map[int]*fit.NodeInfo)}
	order := make([]int, len(w.Demands))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		x, y := w.Dimensions.Class(w.Demands[a].Class), w.Dimensions.Class(w.Demands[b].Class)
		return cmp.Or(cmp.Compare(y[0], x[0]), cmp.Compare(y[1], x[1]))
	})
	pools := c.pools(pooled)
	if pooled && len(pools) < 2 {
		return false // the same as without
	}
	for moved := true; moved; {
		moved = false
		for _, i := range order {
			for c.left[i] > 0 && *g.work > 0 && c.add(i, pools) {
				moved = true
			}
		}
	}
	for _, x := range c.all {
		if x.group = c.cheapest(x); x.group >= 0 {
			g.v.a.grow[x.group]++
			g.machines = append(g.machines, x.plannedMachine)
		}
	}
	return true
}

// pools are the groups that one machine may become.
func (c *nodeClaims) pools(pooled bool) [][]int {
	w := c.v.w
	var out [][]int
	for x := range w.Groups {
		if w.Groups[x].Template.Unknown != "" || c.v.own(x) <= 0 {
			continue
		}
		at := slices.IndexFunc(out, func(p []int) bool {
			return !pooled || round.SameTaints(w.Groups[p[0]].Template.Taints, w.Groups[x].Template.Taints)
		})
		if at < 0 {
			at, out = len(out), append(out, nil)
		}
		out[at] = append(out[at], x)
	}
	for _, p := range out {
		slices.SortStableFunc(p, func(a, b int) int { return cmp.Compare(c.cost[a], c.cost[b]) })
	}
	slices.SortStableFunc(out, func(a, b []int) int {
		return cmp.Compare(len(w.Groups[a[0]].Template.Taints), len(w.Groups[b[0]].Template.Taints))
	})
	return out
}

func (c *nodeClaims) cheapest(x *nodeClaim) int {
	for _, o := range x.options {
		if c.v.own(o) > 0 {
			return o
		}
	}
	return -1
}

// add places one pod of a demand.
func (c *nodeClaims) add(i int, pools [][]int) bool {
	var best *nodeClaim
	var options []int
	cell := 0
	for _, x := range c.all {
		if best != nil && x.pods >= best.pods {
			continue
		}
		if o, at := c.may(x, i); len(o) > 0 {
			best, options, cell = x, o, at
		}
	}
	for p := 0; best == nil && p < len(pools); p++ {
		x := &nodeClaim{options: pools[p], used: make([]int64, c.v.w.Dimensions.Len())}
		mark := c.st.Mark()
		x.node = c.st.AddNode(c.bareShape(x.options[0]), nil)
		if o, at := c.may(x, i); len(o) > 0 {
			best, options, cell = x, o, at
			c.all = append(c.all, x)
		} else {
			c.st.Rollback(mark)
		}
	}
	if best == nil {
		return false
	}
	best.options = options
	if cell != best.domain {
		c.fixDomain(best, cell)
	}
	class := c.v.w.Demands[i].Class
	for j, n := range c.v.w.Dimensions.Class(class) {
		best.used[j] += n
	}
	best.pods++
	c.left[i]--
	if c.v.w.topology.Constrained[class] {
		c.st.Put(class, best.node, 1)
	}
	if at := len(best.portions) - 1; at >= 0 && best.portions[at].Item == i {
		best.portions[at].N++
	} else {
		best.portions = append(best.portions, binpack.Portion{Item: i, N: 1})
	}
	return true
}

// may returns what a planned machine could still become with one more pod of a demand, and
// the domain that it is then in. A pod with terms on zones settles the domain: that with the
// most room as its own spread goes, then that of the cheapest group.
func (c *nodeClaims) may(x *nodeClaim, i int) (options []int, cell int) {
	w := c.v.w
	class := w.Demands[i].Class
	size := w.Dimensions.Class(class)
	*c.work--
next:
	for _, o := range x.options {
		if !c.fits[i][o] {
			continue
		}
		empty, _ := w.Template(&w.Groups[o])
		for j, n := range size {
			if n > 0 && x.used[j]+n > empty[j] {
				continue next
			}
		}
		options = append(options, o)
	}
	if len(options) == 0 || !w.topology.Constrained[class] {
		return options, x.domain
	}
	if x.domain > 0 || !topology.HasZoneTerms(&w.Snapshot.Classes[class]) {
		if !c.st.Passes(class, x.node) {
			return nil, 0
		}
		return options, x.domain
	}
	most := 0
	var tried []int
	for _, o := range options {
		at := w.topology.GroupDomain[o]
		if slices.Contains(tried, at) {
			continue
		}
		tried = append(tried, at)
		mark := c.st.Mark()
		was := x.node
		c.move(x, o)
		*c.work -= 2
		if n := c.st.MaxFit(class, x.node); n > most {
			most, cell = n, at
		}
		c.st.Rollback(mark)
		x.node = was
	}
	if cell == 0 {
		return nil, 0
	}
	return slices.DeleteFunc(options, func(o int) bool { return w.topology.GroupDomain[o] != cell }), cell
}

// fixDomain puts a planned machine into a domain.
func (c *nodeClaims) fixDomain(x *nodeClaim, cell int) {
	x.domain = cell
	c.move(x, x.options[0])
}

// move makes a planned machine one of a group in the State.
func (c *nodeClaims) move(x *nodeClaim, group int) {
	w := c.v.w
	for _, t := range x.portions {
		if class := w.Demands[t.Item].Class; w.topology.Constrained[class] {
			c.st.Put(class, x.node, -t.N)
		}
	}
	c.st.RemoveNode(x.node)
	_, shape := w.Template(&w.Groups[group])
	x.node = c.st.AddNode(shape, w.Groups[group].Template.VolumeLimits)
	for _, t := range x.portions {
		if class := w.Demands[t.Item].Class; w.topology.Constrained[class] {
			c.st.Put(class, x.node, t.N)
		}
	}
}

// bareShape is the shape of a group's machine without what its domain is known by.
func (c *nodeClaims) bareShape(group int) *fit.NodeInfo {
	if c.bare[group] == nil {
		_, shape := c.v.w.Template(&c.v.w.Groups[group])
		out := *shape
		out.Labels = maps.Clone(shape.Labels)
		for i := range c.v.w.Demands {
			topology.KeysOf(&c.v.w.Snapshot.Classes[c.v.w.Demands[i].Class], func(key string) {
				if key != topology.KeyHostname {
					delete(out.Labels, key)
				}
			})
		}
		c.bare[group] = &out
	}
	return c.bare[group]
}
