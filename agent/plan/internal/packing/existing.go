package packing

import "github.com/autoscaler-agent/autoscaler-agent/agent/binpack"

// placeOnExisting places what it can on what is there and commits that.
func (v *Solver) placeOnExisting(pick func(i int) int, whole bool) bool {
	p, which := v.problemOf(v.w.allDemands(), pick, nil, 0)
	if whole && len(p.Items) > 0 && p.Infeasible() {
		return false
	}
	k := binpack.Pack(p)
	if whole && k.Unplaced() > 0 {
		return false
	}
	v.apply(&k, which, -1, nil)
	return k.Unplaced() == 0
}

// placeAll places all pods on what is there, or none where that is not enough. Pods do not count that have no place there, and
// for which no machine may be bought. It costs placeOnExisting, and G for each demand without a place.
func (v *Solver) placeAll() bool {
	helped := make([]int, len(v.w.Demands))
	for i := range helped {
		if v.w.Demands[i].PerPod || v.left(i) == 0 {
			continue
		}
		if on := v.mayGo(i); on.Next(0) >= 0 {
			helped[i] = v.left(i)
		} else if v.mayBuy(i) {
			return false
		}
	}
	return v.placeOnExisting(func(i int) int { return helped[i] }, true)
}

// mayBuy tells whether a machine is upcoming, or may be bought, that takes a pod of a demand. It costs G.
func (v *Solver) mayBuy(i int) bool {
	if v.demanded(i) == 0 {
		return false
	}
	for g := range v.w.Groups {
		if v.w.Groups[g].Template.Unknown == "" && v.w.fits(i, g) && v.limit(g) > 0 {
			return true
		}
	}
	return false
}

// left is how many pods of demand i have no place yet.
func (v *Solver) left(i int) int { return v.Solution.Left[i] }

// leftPods is how many pods of demand i are left; 0: it is of headroom.
func (v *Solver) leftPods(i int) int {
	if v.w.Demands[i].Headroom != "" {
		return 0
	}
	return v.left(i)
}
