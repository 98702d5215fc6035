package nodecleaner

import (
	"encoding/json"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// FuzzDecide lets bytes play the world: Nodes die and revive, instances stop,
// terminate and vanish, reads fail, the agent is blind. Whatever happens: a deleted
// Node was not Ready, two whole reads at least SightInterval apart said that its
// instance was gone and none after the first said otherwise, no freeze was on; the
// order of slices and a trip through JSON change nothing.
func FuzzDecide(f *testing.F) {
	f.Add([]byte{0x10, 0x20, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff})
	f.Add([]byte{0x10, 0x30, 0x11, 0x31, 0xf0, 0xf0, 0xf0, 0xf0, 0xf0, 0x50, 0xf0, 0xf0})
	f.Add([]byte{0x60, 0x10, 0x20, 0xf0, 0xf0, 0x70, 0xf0, 0xf0, 0x70, 0xf0, 0xf0, 0xf0, 0xf0, 0xf0, 0xf0, 0xf0, 0xf0})
	f.Fuzz(func(t *testing.T, script []byte) {
		if len(script) > 400 {
			return
		}
		w := newWorld()
		goneSince := map[cluster.InstanceID][]time.Time{}
		for _, op := range script {
			w.play(op)
			before := w.memory
			in := w.in
			in.Nodes, in.Groups = slices.Clone(in.Nodes), slices.Clone(in.Groups)
			observe(w, goneSince)
			w.step()
			checkPure(t, in, before, w)
			for _, d := range w.plan.Delete {
				proveDeleted(t, w, in, d, goneSince[cluster.InstanceID(d.ProviderID)])
			}
		}
	})
}

// play turns one byte into an event; the high half says what, the low half whom.
func (w *world) play(op byte) {
	n := int(op & 0xf)
	node := w.node(n)
	switch op >> 4 {
	case 1:
		if node != nil {
			w.lose(n)
		}
	case 2:
		if w.index(n) >= 0 {
			w.phase(n, cluster.PhaseGone)
		}
	case 3:
		if w.index(n) >= 0 {
			w.vanish(n)
		}
	case 4:
		if node != nil {
			node.Ready, node.ReadySince, node.Taints = cluster.StatusTrue, w.in.Now, nil
		}
	case 5:
		if w.index(n) >= 0 {
			w.phase(n, cluster.PhaseRunning)
		}
	case 6:
		if node != nil {
			node.Taints = append(node.Taints, cluster.Taint{Key: cluster.TaintToBeDeleted})
		}
	case 7:
		w.in.ReadProblem = []string{"", "throttled"}[n%2]
	case 8:
		w.in.Groups[0].Stale = []string{"", "partial"}[n%2]
	case 9:
		w.in.Outage = []string{"", "no answer"}[n%2]
	case 10:
		w.memory = Memory{}
	case 11:
		if node != nil {
			node.UID += "x"
		}
	}
	step := 10 * time.Second
	if op>>4 >= 14 {
		step = time.Duration(n+1) * 20 * time.Second
	}
	w.in.Now = w.in.Now.Add(step)
	if w.in.Groups[0].Stale == "" {
		w.in.Groups[0].ReadAt = w.in.Now
	}
}

// observe keeps, independently of the code under test, the reads in a row that say
// that an instance is gone.
func observe(w *world, since map[cluster.InstanceID][]time.Time) {
	for n := range 16 {
		i := w.index(n)
		at := w.in.Groups[0].ReadAt
		if w.in.Groups[0].Stale != "" {
			continue
		}
		if i >= 0 && w.in.Groups[0].Instances[i].Phase != cluster.PhaseGone {
			delete(since, id(n))
		} else if i >= 0 || w.in.ReadProblem == "" {
			since[id(n)] = append(since[id(n)], at)
		}
	}
}

func proveDeleted(t *testing.T, w *world, in Input, d Deletion, reads []time.Time) {
	t.Helper()
	i := slices.IndexFunc(in.Nodes, func(n cluster.Node) bool { return n.Name == d.Node })
	if i < 0 || in.Nodes[i].UID != d.UID || in.Nodes[i].Ready == cluster.StatusTrue {
		t.Fatalf("%s is deleted though it is Ready or another: %+v", d.Node, d)
	}
	if len(reads) < 2 || reads[len(reads)-1].Sub(reads[0]) < w.policy.SightInterval {
		t.Fatalf("%s is deleted on the reads %v", d.Node, reads)
	}
	if in.Outage != "" || in.Now.Before(w.memory.FrozenUntil) {
		t.Fatalf("%s is deleted while frozen", d.Node)
	}
	if len(w.plan.Breakers) > 0 && !d.Ledgered && d.Rule != "G3" {
		t.Fatalf("%s is deleted though %v", d.Node, w.plan.Breakers)
	}
}

// checkPure decides again on the same values, shuffled and sent through JSON.
func checkPure(t *testing.T, in Input, before Memory, w *world) {
	t.Helper()
	var copied Memory
	data, err := json.Marshal(before)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &copied); err != nil {
		t.Fatal(err)
	}
	slices.Reverse(in.Nodes)
	for g := range in.Groups {
		in.Groups[g].Instances = slices.Clone(in.Groups[g].Instances)
		slices.Reverse(in.Groups[g].Instances)
	}
	plan, next := Decide(in, copied, w.policy)
	a, _ := json.Marshal(next)
	b, _ := json.Marshal(w.memory)
	if !reflect.DeepEqual(plan, w.plan) || string(a) != string(b) {
		t.Fatalf("equal input, unequal plans:\n%+v\n%+v\n%s\n%s", plan, w.plan, a, b)
	}
	if again, _ := json.Marshal(before); string(again) != string(data) {
		t.Fatal("the memory that was given was changed")
	}
}
