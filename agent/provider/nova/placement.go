package nova

import (
	"fmt"
	"slices"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/nova/section"
)

// The zone and flavor of a request: a server that found no host shows no zone.
const (
	metaZone   = "autoscaler-agent.zone"
	metaFlavor = "autoscaler-agent.flavor"
)

// shortFor is how long a flavor in a zone is passed over after Nova found no host for it.
const shortFor = 10 * time.Minute

// placement is a flavor in a zone; no zone: Nova chooses it.
type placement struct{ flavor, zone string }

func (w placement) String() string {
	if w.zone == "" {
		return w.flavor
	}
	return fmt.Sprintf("%s in zone %s", w.flavor, w.zone)
}

// placementsOf lists the placements of the group's servers: every zone of the first flavor
// before any zone of the next.
func placementsOf(g *section.Group) []placement {
	zones := g.Zones
	if len(zones) == 0 {
		zones = []string{""}
	}
	var out []placement
	for _, f := range g.Flavor {
		for _, z := range zones {
			out = append(out, placement{f, z})
		}
	}
	return out
}

// choose picks the placement of the next server: the first flavor that there is room for,
// in the zone with the fewest of the group's servers. ok is false when Nova found no host
// for any of them in the last minutes: the first is tried then.
func (s *site) choose(g *section.Group, inZone map[string]int) (best placement, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := placementsOf(g)
	open := slices.DeleteFunc(slices.Clone(list), func(w placement) bool {
		at, short := s.short[groupPlacement{g.Name, w.flavor, w.zone}]
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
func (s *site) note(where groupPlacement, at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if old, ok := s.short[where]; !ok || at.After(old) {
		s.short[where] = at
	}
}
