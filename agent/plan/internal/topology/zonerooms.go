package topology

import (
	"slices"

	"github.com/autoscaler-agent/autoscaler-agent/agent/binpack"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/round"
)

// zoneRoom is a node, a machine that is upcoming, or a machine that pods of this round need in a zone: room there costs nothing more. A
// node counts also where a spread closes its zone now: pods of this round that run in other zones open it.
type zoneRoom struct {
	node  int // -1: a machine of group
	group int
	room  []int64
	own   bool // room is a copy
}

// collectRooms lists the rooms of each domain. It costs N + U.
func (s *zoneAssignment) collectRooms() {
	w := s.w
	s.rooms = make([][]zoneRoom, len(s.groups))
	for n := range w.Nodes {
		if st := w.Nodes[n].State; st == round.StateReady || st == round.StateUpcoming {
			s.rooms[s.NodeDomain[n]] = append(s.rooms[s.NodeDomain[n]], zoneRoom{node: n, group: w.Nodes[n].Group, room: w.Nodes[n].Room})
		}
	}
	for g := range w.Groups {
		if s.usable[g] {
			for range w.Groups[g].Upcoming + w.Groups[g].Grow {
				s.rooms[s.GroupDomain[g]] = append(s.rooms[s.GroupDomain[g]], s.machine(g))
			}
		}
	}
}

// machine is an empty machine of a group.
func (s *zoneAssignment) machine(g int) zoneRoom {
	empty, _ := s.w.Template(&s.w.Groups[g])
	return zoneRoom{node: -1, group: g, room: empty}
}

// fits is how many pods of a class a room takes.
func (s *zoneAssignment) fits(class int, r *zoneRoom) int {
	n := binpack.MaxFit(r.room, s.w.Dimensions.Class(class))
	switch {
	case n == 0:
		return 0
	case r.node < 0 && s.takes(class, r.group):
		return min(n, s.onMachine(class, r.group))
	case r.node >= 0 && s.w.Passes(class, r.node):
		return min(n, s.hosts.MaxFit(class, r.node))
	}
	return 0
}

// takes tells whether an empty machine of a group takes a class, but for its size and what onMachine counts.
func (s *zoneAssignment) takes(class, g int) bool {
	_, shape := s.w.Template(&s.w.Groups[g])
	return s.w.Takes(class, g, shape)
}

// onMachine is how many pods of a class the terms on hosts let onto one empty machine of a group.
func (s *zoneAssignment) onMachine(class, g int) int {
	n, known := s.perMachine[[2]int{class, g}]
	if !known {
		mark := s.hosts.Mark()
		_, shape := s.w.Template(&s.w.Groups[g])
		n = s.hosts.MaxFit(class, s.hosts.AddNode(shape, nil))
		s.hosts.Rollback(mark)
		s.perMachine[[2]int{class, g}] = n
	}
	return n
}

// measureRooms finds how many pods of a class the rooms of each domain take, at most so many, and how many one more machine. It costs the
// rooms.
func (s *zoneAssignment) measureRooms(class, most int, spots []candidateDomain) {
	for i := range spots {
		p := &spots[i]
		if p.group >= 0 {
			r := s.machine(p.group)
			p.per = s.fits(class, &r)
		}
		rooms := s.rooms[p.domain]
		for r := range rooms {
			if p.free >= most {
				break
			}
			p.free += s.fits(class, &rooms[r])
		}
		p.free = min(p.free, p.room)
	}
}

// fill puts the pods of a class that go to a domain into its rooms, first fit, and the others on more machines. It costs
// the rooms.
func (s *zoneAssignment) fill(class int, p *candidateDomain) {
	left := p.taken
	for r := 0; r < len(s.rooms[p.domain]) && left > 0; r++ {
		left -= s.put(class, left, &s.rooms[p.domain][r])
	}
	for left > 0 && p.per > 0 {
		r := s.machine(p.group)
		left -= s.put(class, left, &r) // as many as per, or the rest
		s.rooms[p.domain] = append(s.rooms[p.domain], r)
	}
}

// put puts at most so many pods of a class into a room, and returns how many.
func (s *zoneAssignment) put(class, most int, r *zoneRoom) int {
	n := min(most, s.fits(class, r))
	if n > 0 {
		if !r.own {
			r.room, r.own = slices.Clone(r.room), true
		}
		binpack.Sub(r.room, s.w.Dimensions.Class(class), n)
	}
	return n
}

// putReserved puts the pod that counts on an upcoming machine of a group on one.
func (s *zoneAssignment) putReserved(class, g int) {
	rooms := s.rooms[s.GroupDomain[g]]
	for r := range rooms {
		x := &rooms[r]
		if x.group == g && (x.node < 0 || s.w.Nodes[x.node].State == round.StateUpcoming) && s.put(class, 1, x) > 0 {
			return
		}
	}
}

// zoneKey tells a topology key that is not that of hosts.
func zoneKey(key string) bool { return key != KeyHostname }
