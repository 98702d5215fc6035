package purchase

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/autoscaler-agent/autoscaler-agent/agent/fit"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/growth"
)

// collectGroups finds the groups that may be bought, one for each balanced set and one of those that sell the same, and what the
// share of a machine costs that a pod of each class takes at least. It costs C*G, and the groups squared.
func (b *board) collectGroups() {
	b.sets = make([][]int, len(b.Groups))
	for g := range b.Groups {
		if b.rooms[g] == nil || !b.worthwhile(b.cost)[g] || slices.ContainsFunc(b.groups, func(o int) bool { return slices.Contains(b.sets[o], g) || b.alike(g, o) }) {
			continue
		}
		if set := slices.DeleteFunc(slices.Clone(b.Peers(g)), func(o int) bool { return o != g && !b.takesSame(g, o) }); len(set) > 1 {
			b.sets[g] = set
			b.rooms[g] = b.smallest(set)
		}
		b.groups = append(b.groups, g)
	}
	for _, c := range b.order {
		for _, g := range b.groups {
			if b.takes(c, g) {
				if unit := share(b.Dimensions.Class(c), b.rooms[g]) * b.cost[g]; b.units[c] == 0 || unit < b.units[c] {
					b.units[c] = unit
				}
			}
		}
	}
	b.numberZones()
	if b.large {
		b.numberDomains()
	}
}

// standsFor is the group that stands for the balanced set of a group; else the group itself.
func (b *board) standsFor(g int) int {
	for _, o := range b.groups {
		if slices.Contains(b.sets[o], g) {
			return o
		}
	}
	return g
}

// smallest is the room that a machine of every group of a set has.
func (b *board) smallest(set []int) []int64 {
	room := slices.Clone(b.rooms[set[0]])
	for _, g := range set[1:] {
		for k := range room {
			room[k] = min(room[k], b.rooms[g][k])
		}
	}
	return room
}

// takesSame tells whether a group can be grown in place of another: it takes the same of the pods that are left.
func (b *board) takesSame(g, o int) bool {
	return b.rooms[o] != nil && b.Groups[o].CanGrow() && !slices.ContainsFunc(b.order, func(c int) bool { return b.left[c] > 0 && b.takes(c, g) != b.takes(c, o) })
}

// alike tells whether two groups sell the same machine for the same price.
func (b *board) alike(x, y int) bool {
	return b.cost[x] == b.cost[y] && slices.Equal(b.rooms[x], b.rooms[y]) && b.Groups[y].Max-b.Groups[y].Size > 1000 &&
		maps.Equal(b.infos[x].Labels, b.infos[y].Labels) && slices.Equal(b.infos[x].Taints, b.infos[y].Taints) &&
		slices.Equal(b.Groups[x].Template.Zones, b.Groups[y].Template.Zones)
}

// share is the largest part of a room, of any dimension, that a size takes.
func share(size, room []int64) (most float64) {
	for k, n := range size {
		if n > 0 {
			most = max(most, float64(n)/float64(max(room[k], 1)))
		}
	}
	return most
}

// numberZones numbers the zones of the groups: the values of the keys that waiting pods are spread over, hostname aside.
func (b *board) numberZones() {
	var keys []string
	for _, c := range b.order {
		for _, s := range b.Snapshot.Classes[c].Spread {
			if s.TopologyKey != hostname && b.left[c] > 0 {
				keys = append(keys, s.TopologyKey)
			}
		}
	}
	if len(keys) > 0 {
		b.zones = b.numbered(keys)
	}
}

// numberDomains numbers the groups by the values of all keys that terms of pods name, hostname aside.
func (b *board) numberDomains() {
	var keys []string
	for c := range b.Snapshot.Classes {
		fit.TopologyKeys(&b.Snapshot.Classes[c], func(key string) { keys = append(keys, key) })
	}
	b.domains = b.numbered(slices.DeleteFunc(keys, func(key string) bool { return key == hostname }))
}

// numbered numbers the groups by the values of some labels.
func (b *board) numbered(keys []string) []int {
	slices.Sort(keys)
	keys = slices.Compact(keys)
	ids, out := map[string]int{}, make([]int, len(b.Groups))
	for g := range b.Groups {
		var name strings.Builder
		for _, key := range keys {
			name.WriteString(strconv.Quote(b.Groups[g].Template.Labels[key]))
		}
		if _, known := ids[name.String()]; !known {
			ids[name.String()] = len(ids)
		}
		out[g] = ids[name.String()]
	}
	return out
}

// zonesOf is in how many zones a purchase has machines; 0 where no pods are spread over zones. It costs G.
func (b *board) zonesOf(x []int) (n int) {
	if b.zones == nil {
		return 0
	}
	seen := make([]bool, len(b.Groups))
	for g, k := range x {
		if z := b.zones[g]; k > 0 && !seen[z] {
			seen[z] = true
			n++
		}
	}
	return n
}

// shared gives the machines of each balanced set to its groups; false: the maxima do not allow it. It costs the groups.
func (b *board) shared(x []int) ([]int, bool) {
	for g, set := range b.sets {
		if set != nil && x[g] > 0 {
			x = slices.Clone(x)
			n := x[g]
			x[g] = 0
			if !growth.Share(b.State, x, set, n) {
				return x, false
			}
		}
	}
	return x, true
}

// within tells whether the limits allow a purchase.
func (b *board) within(x []int) bool {
	x, ok := b.shared(x)
	return ok && growth.Allows(b.State, x)
}

// may tells whether the limits allow one machine of a group beside a purchase.
func (b *board) may(x []int, g int) bool {
	x[g]++
	ok := b.within(x)
	x[g]--
	return ok
}

func (b *board) price(x []int) (sum float64) {
	for g, n := range x {
		sum += float64(n) * b.cost[g]
	}
	return sum
}

func (b *board) none() []int { return make([]int, len(b.cost)) }

func sum(list []int) (n int) {
	for _, k := range list {
		n += k
	}
	return n
}
