package schedsim

import "math"

// The weights of kube-scheduler's default profile (getDefaultPlugins); NodeResourcesFit and
// NodeResourcesBalancedAllocation have 1.
const (
	weightTaints   = 3
	weightAffinity = 2
	weightSpread   = 2
	weightInter    = 2
	maxScore       = 100
)

// ownScore is the score of a node's own room for one more pod of a class: LeastAllocated and
// BalancedAllocation. kube-scheduler leaves the second out for a pod that asks for neither cpu nor memory: it is the same on all nodes.
func (s *Sim) ownScore(v *view, x *node) int32 {
	return int32(leastAllocated(x, s.asks[v.class].cpu, s.asks[v.class].memory) + balance(x, v.size[0], v.size[1]))
}

func leastAllocated(x *node, milliCPU, memory int64) int64 {
	var sum, weights int64
	if x.milliCPU != 0 {
		sum += leastRequested(x.usedMilliCPU+x.moreCPU+milliCPU, x.milliCPU)
		weights++
	}
	if x.memory != 0 {
		sum += leastRequested(x.usedByte+x.moreMemory+memory, x.memory)
		weights++
	}
	if weights == 0 {
		return 0
	}
	return sum / weights
}

func leastRequested(requested, capacity int64) int64 {
	return max(capacity-requested, 0) * maxScore / capacity
}

// balance is how much the pod betters the balance of the node.
func balance(x *node, milliCPU, memory int64) int64 {
	with, without := evenness(x, x.usedMilliCPU+milliCPU, x.usedByte+memory), evenness(x, x.usedMilliCPU, x.usedByte)
	return maxScore/2 + (maxScore/2+with-without)/2
}

func evenness(x *node, milliCPU, memory int64) int64 {
	if x.milliCPU == 0 || x.memory == 0 {
		return maxScore
	}
	cpu, bytes := min(float64(milliCPU)/float64(x.milliCPU), 1), min(float64(memory)/float64(x.memory), 1)
	std := math.Abs((cpu - bytes) / 2)
	return int64((1 - std) * maxScore)
}

// spreadWeights are the normalising weights of few domains (topologyNormalizingWeight).
var spreadWeights = func() (w [256]float64) {
	for i := range w {
		w[i] = math.Log(float64(i + 2))
	}
	return w
}()

func spreadWeight(domains int) float64 {
	if domains < len(spreadWeights) {
		return spreadWeights[domains]
	}
	return math.Log(float64(domains + 2))
}

// scratch is memory that scoring uses again and again.
type scratch struct {
	key    []byte
	passes []int32 // the sets that pass
	sets   []bool  // by set, whether it passes
	spread []int64 // by set that passes; -1: not scored
	inter  []int64
	best   []int32
	weight []float64
	seen   []int32 // per domain, the stamp of the last count
	stamp  int32
}

// evaluate scores every set of nodes for one more pod of the view's class and returns the
// sets of which the best node has the highest score. It costs the sets.
func (s *Sim) evaluate(v *view) (best []int32, feasible int) {
	w := &s.work
	w.passes, w.best = w.passes[:0], w.best[:0]
	for _, id := range v.live {
		s.Steps++
		g := &v.sets[id]
		if v.constrained && !s.cfg.State.Passes(v.class, int(s.nodes[g.any()].state)) {
			continue
		}
		w.passes = append(w.passes, id)
		feasible += g.count
	}
	spread := s.rawSpread(v)
	inter := s.rawInter(v)
	var taints, affinity int64
	for _, id := range w.passes {
		taints, affinity = max(taints, v.sets[id].taints), max(affinity, v.sets[id].affinity)
	}
	top := int64(-1)
	for i, id := range w.passes {
		g := &v.sets[id]
		score := int64(g.buckets[0].score)
		if taints > 0 {
			score += weightTaints * (maxScore - maxScore*g.taints/taints)
		}
		if affinity > 0 {
			score += weightAffinity * (maxScore * g.affinity / affinity)
		}
		if spread {
			score += weightSpread * w.spread[i]
		}
		if inter {
			score += weightInter * w.inter[i]
		}
		if score > top {
			top, w.best = score, w.best[:0]
		}
		if score == top {
			w.best = append(w.best, id)
		}
	}
	return w.best, feasible
}

// rawSpread scores PodTopologySpread for the sets that pass, normalised; false where the
// class has no soft constraint.
func (s *Sim) rawSpread(v *view) bool {
	if len(v.reads.spread) == 0 {
		return false
	}
	w := &s.work
	s.weighSpread(v)
	w.spread = w.spread[:0]
	least, most := int64(math.MaxInt64), int64(0)
	for _, id := range w.passes {
		g := &v.sets[id]
		if g.ignored {
			w.spread = append(w.spread, -1)
			continue
		}
		sum := 0.0
		for i := range v.reads.spread {
			soft := &v.reads.spread[i]
			x, n := g.values[i], int64(0)
			if x < 0 {
				continue
			}
			if soft.counter < 0 {
				n = int64(x)
			} else if c := s.spread[soft.counter]; int(x) < len(c) {
				n = c[x]
			}
			sum += float64(n)*w.weight[i] + float64(soft.maxSkew-1)
		}
		raw := int64(math.Round(sum))
		least, most = min(least, raw), max(most, raw)
		w.spread = append(w.spread, raw)
	}
	for i, raw := range w.spread {
		switch {
		case raw < 0:
			w.spread[i] = 0
		case most == 0:
			w.spread[i] = maxScore
		default:
			w.spread[i] = maxScore * (most + least - raw) / most
		}
	}
	return true
}

// weighSpread works out the weight of each soft constraint: by the nodes of the hostname,
// else by the domains that have a node that passes.
func (s *Sim) weighSpread(v *view) {
	w := &s.work
	w.weight = w.weight[:0]
	for i := range v.reads.spread {
		size := 0
		w.stamp++
		for _, id := range w.passes {
			g := &v.sets[id]
			if g.ignored {
				continue
			}
			if v.reads.spread[i].counter < 0 {
				size += g.count
				continue
			}
			d := int(g.values[i] + 1) // nodes without the label are a domain here
			for d >= len(w.seen) {
				w.seen = append(w.seen, 0)
			}
			if w.seen[d] != w.stamp {
				w.seen[d] = w.stamp
				size++
			}
		}
		w.weight = append(w.weight, spreadWeight(size))
	}
}

// rawInter scores InterPodAffinity for the sets that pass, normalised; false where nothing
// weighs.
func (s *Sim) rawInter(v *view) bool {
	w := &s.work
	reads := v.reads.inter
	some := false
	for i := range reads {
		some = some || s.inter[reads[i].counter].pods > 0
	}
	if !some {
		return false
	}
	w.inter = w.inter[:0]
	least, most := int64(math.MaxInt64), int64(math.MinInt64)
	for _, id := range w.passes {
		g := &v.sets[id]
		raw := int64(0)
		for i := range reads {
			x := g.values[v.interFrom+i]
			if s.interCounters[reads[i].counter].key < 0 {
				raw += reads[i].weight * int64(x)
			} else if c := s.inter[reads[i].counter].byDomain; x >= 0 && int(x) < len(c) {
				raw += reads[i].weight * c[x]
			}
		}
		least, most = min(least, raw), max(most, raw)
		w.inter = append(w.inter, raw)
	}
	for i, raw := range w.inter {
		score := 0.0
		if most > least {
			score = maxScore * (float64(raw-least) / float64(most-least))
		}
		w.inter[i] = int64(score)
	}
	return true
}
