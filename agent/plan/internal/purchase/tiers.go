package purchase

import (
	"fmt"
	"hash/fnv"
	"math"
	"regexp"
)

// pricing holds the facts that the expanders need beside the purchases, worked out once a round and
// only when one of them asks.
type pricing struct {
	names        []string // of the expanders in their order
	chain        []expander
	priorityTier []int // by group; the last tier has those that no entry of the map finds
	drawTier     []int // by group, its place in the draw
}

const noPriority = math.MinInt

// priorityTiers are the groups by priority, the highest first: a group's own from groups.yaml, else
// the highest entry of the live map that finds its ID. Groups without one are the last tier,
// which is Cluster Autoscaler's "dropped unless nothing matches".
func (w *Buyer) priorityTiers() []int {
	if w.pricing.priorityTier != nil {
		return w.pricing.priorityTier
	}
	p := make([]int, len(w.Groups))
	for g := range p {
		p[g] = noPriority
	}
	for _, tier := range w.Policy.Priorities {
		for _, pattern := range tier.Patterns {
			re, err := regexp.Compile(pattern)
			if err != nil {
				continue // whoever read the map has said so
			}
			for g := range p {
				if re.MatchString(string(w.Groups[g].ID)) {
					p[g] = max(p[g], tier.Priority)
				}
			}
		}
	}
	for g := range p {
		if own := w.Groups[g].Priority; own != nil {
			p[g] = *own
		}
	}
	w.pricing.priorityTier = tiersOf(p)
	return w.pricing.priorityTier
}

// draws are the groups in the order of a draw: by Policy.RandomSeed, the pods that want room and the groups, so
// that a replayed round draws the same and another round another.
func (w *Buyer) draws() []int {
	if w.pricing.drawTier != nil {
		return w.pricing.drawTier
	}
	h := fnv.New64a()
	fmt.Fprintln(h, w.Policy.RandomSeed)
	for i := range w.Demands {
		fmt.Fprintln(h, w.Demands[i].Expected, w.Demands[i].Name())
	}
	for i := range w.Groups {
		fmt.Fprintln(h, w.Groups[i].ID, w.Groups[i].Size)
	}
	seed, lots := h.Sum64(), make([]uint64, len(w.Groups))
	for g := range lots {
		h := fnv.New64a()
		fmt.Fprint(h, seed, w.Groups[g].ID)
		// FNV's last bytes reach the high bits too little for a fair draw.
		x := h.Sum64()
		x ^= x >> 33
		x *= 0xff51afd7ed558ccd
		x ^= x >> 33
		lots[g] = ^x // the lowest wins
	}
	w.pricing.drawTier = tiersOf(lots)
	return w.pricing.drawTier
}
