package nova

import (
	"fmt"
	"slices"
	"time"
)

// What a server was asked for with: one that found no host shows no zone.
const (
	metaZone   = "autoscaler-agent.zone"
	metaFlavor = "autoscaler-agent.flavor"
)

// shortFor is how long a flavor in a zone is passed over after Nova found no host for it.
const shortFor = 10 * time.Minute

// wish is a flavor in a zone; no zone: wherever Nova likes.
type wish struct{ flavor, zone string }

func (w wish) String() string {
	if w.zone == "" {
		return w.flavor
	}
	return fmt.Sprintf("%s in zone %s", w.flavor, w.zone)
}

// spots lists where the group's servers may be asked for: every zone of the first
// flavor before any of the next.
func (g *Group) spots() []wish {
	zones := g.Zones
	if len(zones) == 0 {
		zones = []string{""}
	}
	var out []wish
	for _, f := range g.Flavor {
		for _, z := range zones {
			out = append(out, wish{f, z})
		}
	}
	return out
}

// choose picks where the next server goes: the first flavor that there is room for, in
// the zone with the fewest of the group's servers. ok is false when Nova lately found
// room nowhere: the first is tried then.
func (s *site) choose(g *Group, inZone map[string]int) (best wish, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := g.spots()
	open := slices.DeleteFunc(slices.Clone(list), func(w wish) bool {
		at, short := s.short[spot{g.Name, w.flavor, w.zone}]
		return short && s.now().Sub(at) < shortFor
	})
	ok = len(open) > 0
	if !ok {
		open = list
	}
	best = open[0]
	for _, w := range open {
		if w.flavor == best.flavor && inZone[w.zone] < inZone[best.zone] {
			best = w
		}
	}
	return best, ok
}

// note remembers that Nova found no host.
func (s *site) note(where spot, at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if old, ok := s.short[where]; !ok || at.After(old) {
		s.short[where] = at
	}
}
