package fit

import (
	"cmp"
	"slices"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

const (
	wordsClaims    = "cannot allocate all claims"
	wordsAllocated = "resourceclaim not available on the node"
	wordsUnknown   = wordsClaims + ": no devices of the group's next machine are known (a Ready node of the group shows them, or template.devices in groups.yaml tells them)"
)

// claimConstraints are the demands of one class on devices.
type claimConstraints struct {
	demand int32                // of the allocator; -1: every claim is allocated
	on     [][]cluster.NodeTerm // where the allocated ones can be used
}

// claims compiles what the classes' claims ask.
func (b *build) claims() {
	for tie := range int32(len(b.first)) {
		claims := b.example(tie).Claims
		if len(claims) == 0 {
			continue
		}
		for i := range claims {
			for _, r := range claims[i].Requests {
				if at, has := slices.BinarySearch(b.resources, r.Resource); r.Resource != "" && !has {
					b.resources = slices.Insert(b.resources, at, r.Resource)
				}
			}
		}
		c := &claimConstraints{demand: b.s.devices.Demand(claims)}
		for i := range claims {
			if len(claims[i].On) > 0 {
				c.on = append(c.on, claims[i].On)
			}
			if why := claims[i].Refused; why != "" {
				a := b.volumesOf(tie)
				a.refused = cmp.Or(a.refused, why)
			}
		}
		b.constraintsFor(tie).claims = c
	}
}

// allocatable says why the claims of a class cannot be allocated on a node as it is now, or not be used there.
func (s *State) allocatable(a *constraints, node int) string {
	if a.claims == nil {
		return ""
	}
	shape := s.shapes[s.shapeOf[node]]
	for _, terms := range a.claims.on {
		if !inEachZone(shape, func(in *NodeInfo) bool {
			return slices.ContainsFunc(terms, func(t cluster.NodeTerm) bool { return term(&t, in) })
		}) {
			return wordsAllocated
		}
	}
	switch {
	case s.devices.Take(s.has[node], a.claims.demand) >= 0:
		return ""
	case shape.Name == "" && shape.Devices == nil:
		return wordsUnknown
	}
	return wordsClaims
}

// plugged are those extended resources for which devices may stand that a device plug-in offers on a shape.
func (s *State) plugged(shape *NodeInfo) (out []string) {
	for _, name := range s.resources {
		if shape.Extended[name] > 0 {
			out = append(out, name)
		}
	}
	return out
}

// putClaims takes devices for n more pods of a class. Devices that a pod gives back are not looked for: its node is emptied, and
// nobody comes to it.
func (s *State) putClaims(a *constraints, node, n int) {
	if a == nil || a.claims == nil || a.claims.demand < 0 {
		return
	}
	if s.logged {
		s.given = append(s.given, s.has[node])
	}
	for ; n > 0; n-- {
		if to := s.devices.Take(s.has[node], a.claims.demand); to >= 0 {
			s.has[node] = to
		}
	}
}

// returnClaims undoes the last putClaims that was logged.
func (s *State) returnClaims(a *constraints, node int) {
	if a == nil || a.claims == nil || a.claims.demand < 0 {
		return
	}
	last := len(s.given) - 1
	s.has[node], s.given = s.given[last], s.given[:last]
}

// PutBound is Put for pods that are bound: the claims that they have are allocated, and their devices taken.
func (s *State) PutBound(class, node, n int) {
	before := s.has[node]
	s.Put(class, node, n)
	s.has[node] = before
}

// Devices is a number of what devices a node has left; nodes with one number are alike.
func (s *State) Devices(node int) int { return int(s.has[node]) }

// HasClaims tells whether a class asks for devices.
func (s *State) HasClaims(class int) bool {
	a := s.constraintsOf(class)
	return a != nil && a.claims != nil
}
