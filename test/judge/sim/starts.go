package sim

import (
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/observe/template"
)

// starts are the starts of machines whose Nodes register with taints that pass, and without labels
// and devices that come. The agent's templates are corrected by what the Nodes show, as observe does it.
type starts struct {
	r        *rand.Rand // of its own: the rest of the world is the same without it
	after    []func(w *world, n *node, r *rand.Rand)
	seen     template.Evidence
	known    map[string]template.Correction
	patience time.Duration
}

func newStarts(seed uint64, patience time.Duration) *starts {
	return &starts{r: rand.New(rand.NewPCG(seed, 0x57a7)), known: map[string]template.Correction{}, patience: patience,
		seen: template.Evidence{FirstSeen: map[cluster.NodeName]template.FirstSeen{}, ProvisionTime: patience}}
}

// begin is what a Node shows when it registers; what it lacks comes later.
func (s *starts) begin(w *world, n *node) {
	if s == nil {
		return
	}
	for _, f := range s.after {
		f(w, n, s.r)
	}
	s.seen.FirstSeen[n.Name] = template.FirstSeen{UID: n.UID, Labels: n.Labels, Taints: n.Taints}
}

// change changes a Node a while from now.
func (w *world) change(n *node, d time.Duration, do func()) {
	w.after(d, func() {
		if w.byName[n.Name] != n {
			return
		}
		do()
		w.agent.soon(w)
		w.scheduler.flush(w)
	})
}

// lateTaint is on a Node for a while; one that comes is set by a controller soon after the Node has registered.
func lateTaint(key, effect string, lasts time.Duration, comes time.Duration) func(*world, *node, *rand.Rand) {
	taint := cluster.Taint{Key: key, Value: "true", Effect: effect}
	return func(w *world, n *node, r *rand.Rand) {
		set := func() { n.Taints = append(slices.Clone(n.Taints), taint) }
		if comes == 0 {
			set()
		} else {
			w.change(n, comes, set)
		}
		w.change(n, comes+upTo(r, lasts), func() {
			n.Taints = slices.DeleteFunc(slices.Clone(n.Taints), func(t cluster.Taint) bool { return t == taint })
		})
	}
}

// lateLabel comes to a Node after a while.
func lateLabel(key string, after time.Duration) func(*world, *node, *rand.Rand) {
	return func(w *world, n *node, r *rand.Rand) {
		value, promised := n.Labels[key]
		if !promised {
			return
		}
		n.Labels = maps.Clone(n.Labels)
		delete(n.Labels, key)
		w.change(n, upTo(r, after), func() {
			n.Labels = maps.Clone(n.Labels)
			n.Labels[key] = value
		})
	}
}

// lateDevices come to a Node in steps of equal length; it registers with the first amount, or, where
// that is below zero, without the resource.
func lateDevices(name string, amounts []int64, after time.Duration) func(*world, *node, *rand.Rand) {
	return func(w *world, n *node, r *rand.Rand) {
		whole := n.Allocatable.Extended[name]
		if whole == 0 {
			return
		}
		show := func(v int64) {
			n.Allocatable.Extended = maps.Clone(n.Allocatable.Extended)
			if n.Allocatable.Extended[name] = v; v < 0 {
				delete(n.Allocatable.Extended, name)
			}
		}
		all := upTo(r, after)
		for i, v := range append(slices.Clip(amounts), whole) {
			if i == 0 {
				show(v)
				continue
			}
			w.change(n, all*time.Duration(i)/time.Duration(len(amounts)), func() { show(v) })
		}
	}
}

// upTo is a time of at most about the given one, of which no two machines have the same.
func upTo(r *rand.Rand, most time.Duration) time.Duration {
	return most/2 + time.Duration(r.Int64N(int64(most/2)+1))
}

// correct corrects the templates of a Snapshot by its Nodes.
func (s *starts) correct(to *cluster.Snapshot) {
	if s == nil {
		return
	}
	s.seen.Nodes, s.seen.Specs = to.Nodes, map[cluster.InstanceID]string{}
	for i := range to.Groups {
		for _, in := range to.Groups[i].Instances {
			s.seen.Specs[in.ID] = to.Groups[i].Template.Spec
		}
	}
	to.Groups, _ = template.Correct(to.Groups, s.seen, s.known, to.Now)
}

// forget is a restart of the agent that loses its memory.
func (s *starts) forget() {
	if s != nil {
		clear(s.known)
		clear(s.seen.FirstSeen)
	}
}
