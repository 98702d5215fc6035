package reaper

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// FuzzDecide lets bytes play the world: Nodes die and revive, instances stop,
// terminate and vanish, names are given again, volumes hang on, reads fail or come from
// another account, the agent is blind, a cloud controller manager works. Whatever
// happens: a deleted Node was not Ready, eligible, and by an account kept apart from the
// code under test two reads at least SightInterval apart said that its instance was gone
// and none between them said otherwise; no breaker was open; the order of slices and a
// trip through JSON change nothing.
func FuzzDecide(f *testing.F) {
	f.Add([]byte{0x10, 0x20, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff})
	f.Add([]byte{0x10, 0x30, 0x11, 0x31, 0xf0, 0xf0, 0xf0, 0xf0, 0xf0, 0x50, 0xf0, 0xf0})
	f.Add([]byte{0x60, 0x10, 0x20, 0xf0, 0xf0, 0x70, 0xf0, 0xf0, 0x70, 0xf0, 0xf0, 0xf0, 0xf0, 0xf0, 0xf0, 0xf0, 0xf0})
	f.Add([]byte{0xd8, 0x10, 0x20, 0xf2, 0xf2, 0xf2, 0xff, 0xff})             // volumes
	f.Add([]byte{0x10, 0xde, 0xf2, 0xf2, 0xff, 0xff, 0xff, 0xdf, 0x20, 0xff}) // another account
	f.Add([]byte{0x10, 0x30, 0xc0, 0xf2, 0xf2, 0xf2, 0xf2})                   // a name given again
	f.Add([]byte{0xd2, 0x10, 0x60, 0xde, 0xf2, 0xf2, 0xff, 0xff, 0xff})       // a group in a file, another account
	f.Add([]byte{0x01, 0x10, 0x20, 0xff, 0xff, 0x00, 0xff})                   // a cloud controller manager
	f.Fuzz(func(t *testing.T, script []byte) {
		if len(script) > 150 {
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
			checkPure(t, w.last, before, w)
			for _, d := range w.plan.Delete {
				proveDeleted(t, w, in, d, goneSince[cluster.InstanceID(d.ProviderID)])
			}
			for _, d := range w.plan.Fence {
				if i := w.listed(cluster.InstanceID(d.ProviderID)); i < 0 || in.Groups[0].Instances[i].Phase != cluster.PhaseGone {
					t.Fatalf("%s is fenced and its instance is not terminated", d.Node)
				}
			}
		}
	})
}

// other is what the cloud lists with the wrong credentials: nothing of ours, in a group
// of the same name or of another.
func other(name cluster.GroupID) []cluster.NodeGroup {
	return []cluster.NodeGroup{{ID: name, Target: 1, Instances: []cluster.Instance{{ID: "aws:///z/i-x", Phase: cluster.PhaseRunning, Member: true}}}}
}

func (w *world) listed(id cluster.InstanceID) int {
	return slices.IndexFunc(w.in.Groups[0].Instances, func(i cluster.Instance) bool { return i.ID == id })
}

// play turns one byte into an event; the high half says what, the low half whom.
func (w *world) play(op byte) {
	n := int(op & 0xf)
	node := w.node(n)
	switch op >> 4 {
	case 0:
		w.in.Coexist = []string{"", "a cloud controller manager works"}[n%2]
	case 12:
		w.join(cluster.Instance{ID: cluster.InstanceID(fmt.Sprintf("aws:///z/i-again-%d", n)), Phase: cluster.PhaseRunning, Member: true,
			Created: w.in.Now, NodeNames: []string{fmt.Sprintf("n%02d", n)}})
	case 13:
		w.oddity(n)
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
	w.elapse(op, n)
}

// oddity: volumes come and go, the group stands in a file or in the cloud, or the cloud
// answers from another account.
func (w *world) oddity(n int) {
	switch {
	case n >= 8 && n < 12:
		w.in.Attached = map[cluster.NodeName]int{cluster.NodeName(fmt.Sprintf("n%02d", n-8)): 1}
	case n >= 4 && n < 8:
		w.in.Attached = nil
	case n >= 2 && n < 4:
		w.in.Groups[0].Declared, w.in.Groups[0].Quota = n == 2, "here"
	case n < 2:
		w.policy.Observe = n == 1
	case w.ours == nil && n < 15:
		w.ours, w.in.Groups = w.in.Groups, other([]cluster.GroupID{"workers", "other"}[n%2])
		w.in.Groups[0].Declared, w.in.Groups[0].Quota = w.ours[0].Declared, w.ours[0].Quota
	case w.ours != nil && n == 15:
		w.in.Groups, w.ours = w.ours, nil
	}
}

func (w *world) elapse(op byte, n int) {
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
	if i < 0 || in.Nodes[i].UID != d.UID || in.Nodes[i].Ready == cluster.StatusTrue || in.Nodes[i].ControlPlane {
		t.Fatalf("%s is deleted though it is Ready or another: %+v", d.Node, d)
	}
	if len(reads) < 2 || reads[len(reads)-1].Sub(reads[0]) < w.policy.SightInterval {
		t.Fatalf("%s is deleted on the reads %v", d.Node, reads)
	}
	at := w.listed(cluster.InstanceID(d.ProviderID))
	positive := at >= 0 && in.Groups[0].Instances[at].Phase == cluster.PhaseGone
	if at >= 0 && !positive {
		t.Fatalf("%s is deleted and its instance is %q", d.Node, in.Groups[0].Instances[at].Phase)
	}
	if in.Outage != "" || in.Coexist != "" || w.policy.Observe {
		t.Fatalf("%s is deleted though outage %q, %q, observe %t", d.Node, in.Outage, in.Coexist, w.policy.Observe)
	}
	if frozen := in.Now.Before(w.memory.FrozenUntil) || in.Now.Before(w.memory.CloudUntil); frozen && !(d.Ledgered && positive) {
		t.Fatalf("%s is deleted while frozen", d.Node)
	}
	anyReady := slices.ContainsFunc(in.Nodes, func(n cluster.Node) bool { return n.Ready == cluster.StatusTrue })
	if w.ours != nil && (!d.Ledgered || anyReady) {
		t.Fatalf("%s is deleted by a list of another account: %+v", d.Node, d)
	}
	if w.ours != nil && w.memory.Seen[machine(d.ProviderID)].Declared {
		t.Fatalf("%s of a group that stands in a file is deleted by a list of another account: %+v", d.Node, d)
	}
	if positive && in.Attached[d.Node] > 0 && in.Now.Sub(w.fenced[d.UID]) < w.policy.DetachFor {
		t.Fatalf("%s is deleted with volumes, fenced at %s", d.Node, w.fenced[d.UID])
	}
	for _, b := range w.plan.Breakers {
		if b.Rule == "B2" && !positive {
			t.Fatalf("%s is deleted though %v", d.Node, b)
		}
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
	in.Groups = slices.Clone(in.Groups)
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
