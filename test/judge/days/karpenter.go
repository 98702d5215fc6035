package days

import (
	"cmp"
	"slices"
	"time"
)

// A model of Karpenter's consolidation, written anew from reading sigs.k8s.io/karpenter 1.8.0 (pkg/controllers/disruption and
// pkg/controllers/provisioning/scheduling): empty nodes go, then the longest run of nodes, cheapest to disrupt first, whose pods have
// room on the others and at most one new machine that costs less, then single nodes by the same rule, until nothing changes. It is no
// copy, and knows what these days have: one pool of one zone, on-demand, without a NodePool's budgets.
const (
	karpenterBatch   = 100             // nodes that are disrupted together, at most
	karpenterExpires = 720 * time.Hour // expireAfter, by which nodes get cheaper to disrupt as they age
)

// consolidated is a machine as the rule sees it.
type consolidated struct {
	group *group
	pods  []*pod
	age   time.Duration
}

// karpenter is what the machines of this moment would cost an hour after Karpenter's rule. Machines that have not joined stay, and
// take no pod. It costs the machines times the pods for each look, with a look for each machine at most until one changes.
func (w *world) karpenter() (price float64) {
	var c consolidation
	for _, g := range w.groups {
		for _, m := range g.machines {
			switch {
			case !m.ended.IsZero():
			case m.node == nil || !m.node.ready:
				price += g.Price
			default:
				pods := slices.DeleteFunc(slices.Clone(m.node.pods), func(p *pod) bool { return p.deleting })
				c.machines = append(c.machines, &consolidated{group: g, pods: pods, age: w.clock.Now.Sub(m.Created)})
			}
		}
	}
	slices.SortStableFunc(c.machines, func(a, b *consolidated) int { return cmp.Compare(b.age, a.age) }) // nodes by name
	c.groups = w.groups
	for c.step() {
	}
	for _, m := range c.machines {
		price += m.group.Price
	}
	return price
}

// consolidation is the rule at work.
type consolidation struct {
	groups   []*group
	machines []*consolidated // in the order in which they are filled
}

// step makes one change: false where there is none.
func (c *consolidation) step() bool {
	c.machines = slices.DeleteFunc(c.machines, func(m *consolidated) bool { return len(m.pods) == 0 })
	order := slices.Clone(c.machines)
	slices.SortStableFunc(order, func(a, b *consolidated) int { return cmp.Compare(a.disruptionCost(), b.disruptionCost()) })
	if next := c.several(order); next != nil {
		c.machines = next
		return true
	}
	for i := range order {
		if next := c.without(order[i:i+1], nil); next != nil {
			c.machines = next
			return true
		}
	}
	return false
}

func (m *consolidated) disruptionCost() float64 {
	return float64(len(m.pods)) * max(1-m.age.Seconds()/karpenterExpires.Seconds(), 0)
}

// several looks for the longest run of two machines or more, by halving.
func (c *consolidation) several(order []*consolidated) (best []*consolidated) {
	least, most := 1, min(karpenterBatch, len(order)-1)
	for least <= most {
		middle := (least + most) / 2
		if next := c.without(order[:middle+1], order[:middle+1]); next != nil {
			best, least = next, middle+1
		} else {
			most = middle - 1
		}
	}
	return best
}

// without is the machines after some have gone; nil: their pods have no room on the others and one new machine that is
// cheaper than all of these, and than each machine of unlike whose type the new one could have.
func (c *consolidation) without(gone, unlike []*consolidated) []*consolidated {
	var pods []*pod
	var out []*consolidated
	paid := 0.0
	for _, m := range gone {
		pods, paid = append(pods, m.pods...), paid+m.group.Price
	}
	var rooms []size
	for _, m := range c.machines {
		if !slices.Contains(gone, m) {
			out = append(out, &consolidated{m.group, slices.Clone(m.pods), m.age})
			rooms = append(rooms, m.room())
		}
	}
	slices.SortStableFunc(pods, func(a, b *pod) int {
		x, y := a.service.size(), b.service.size()
		return cmp.Or(cmp.Compare(y[0], x[0]), cmp.Compare(y[1], x[1]), a.object.CreationTimestamp.Compare(b.object.CreationTimestamp.Time), cmp.Compare(a.object.UID, b.object.UID))
	})
	fresh := &consolidated{}
	for _, p := range pods {
		if i := slices.IndexFunc(rooms, func(r size) bool { return r.take(p.service.size()) }); i >= 0 {
			rooms[i].take(p.service.size())
			out[i].pods = append(out[i].pods, p)
		} else if fresh.pods = append(fresh.pods, p); c.cheapest(fresh.pods) == nil {
			return nil
		}
	}
	if len(fresh.pods) == 0 {
		return out
	}
	if fresh.group = c.cheapest(fresh.pods); fresh.group.Price >= paid {
		return nil
	}
	for _, m := range unlike {
		if m.group.holds(fresh.pods) && m.group.Price < paid && fresh.group.Price >= m.group.Price {
			return nil // one machine of the set can stay in its place
		}
	}
	return append(out, fresh)
}

func (m *consolidated) room() size {
	r := sizeOf(m.group.Template.Allocatable)
	for _, p := range m.pods {
		r.take(p.service.size())
	}
	return r
}

func (g *group) holds(pods []*pod) bool {
	r := sizeOf(g.Template.Allocatable)
	return !slices.ContainsFunc(pods, func(p *pod) bool { return !r.take(p.service.size()) })
}

// cheapest is the cheapest group whose machine holds some pods; nil: there is none.
func (c *consolidation) cheapest(pods []*pod) (best *group) {
	for _, g := range c.groups {
		if (best == nil || g.Price < best.Price) && g.holds(pods) {
			best = g
		}
	}
	return best
}
