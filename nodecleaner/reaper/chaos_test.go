package reaper

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/internal/testing/drawn"
)

// roundsOfAFarm is how long one farm lives; a round is some twenty seconds.
const roundsOfAFarm = 400

// TestChaos: whatever clouds answer and operators do, no Node goes whose machine exists.
// AUTOSCALER_TEST_ROUNDS sets the number of rounds (`make chaos`: a million).
func TestChaos(t *testing.T) {
	rounds, seed := drawn.Number(t, "AUTOSCALER_TEST_ROUNDS", 6000), drawn.Seed(t)
	deleted, missed, taken, played := 0, 0, 0, uint64(0)
	for n := uint64(0); played < rounds; n++ {
		f := newFarm(seed+n, int(n%3), 10)
		for range roundsOfAFarm {
			f.mischief()
			f.round()
			played++
			if f.living > 0 {
				t.Fatalf("seed %d, farm %d, a cloud of kind %d: Node %s was deleted by %s and its machine exists: %s\nmachine %+v",
					seed, n, f.kind, f.last.Node, f.last.Rule, f.last.Why, *f.of[f.last.UID])
			}
		}
		deleted, taken = deleted+f.deleted, taken+f.takenOver
		for uid := range f.gone {
			if f.nodeOf(uid) != nil {
				missed++
			}
		}
	}
	t.Logf("seed %d: %d rounds, 0 living Nodes deleted, %d of dead machines; %d of dead machines were still held at the end of their farm; %d Nodes of dead machines were used by others",
		seed, played, deleted, missed, taken)
	if uint64(deleted) < rounds/1000 || uint64(taken) < rounds/1000 {
		t.Errorf("only %d Nodes of dead machines were deleted, and %d used by others, in %d rounds: the chaos tests nothing", deleted, taken, played)
	}
}

// TestChaosFindsVictims: where a cloud's word by ID is worth no more than its lists, the
// same chaos kills: it is the proof by ID that holds.
func TestChaosFindsVictims(t *testing.T) {
	for n := uint64(0); n < 100; n++ {
		f := newFarm(1+n, listsEnds, 10)
		f.credulous = true
		for range roundsOfAFarm {
			f.mischief()
			f.round()
			if f.living > 0 {
				return
			}
		}
	}
	t.Error("no living Node was deleted although the cloud vouched for nothing: the chaos has no teeth")
}

// TestChaosNeedsWitnesses: without the boot ID the same chaos kills machines that use a dead one's Node.
func TestChaosNeedsWitnesses(t *testing.T) {
	all := witnesses
	defer func() { witnesses = all }()
	witnesses = slices.DeleteFunc(slices.Clone(all), func(w witness) bool { return w.of == "the boot ID" })
	for n := uint64(0); n < 300; n++ {
		f := newFarm(1+n, int(n%3), 10)
		for range roundsOfAFarm {
			f.mischief()
			f.round()
			if f.living > 0 {
				return
			}
		}
	}
	t.Error("no living Node was deleted although the boot ID was not asked")
}

// nodeOf is the Node with that UID; nil: it was deleted.
func (f *farm) nodeOf(uid cluster.UID) *cluster.Node {
	if n := f.nodes[cluster.NodeName(f.of[uid].name)]; n != nil && n.UID == uid {
		return n
	}
	return nil
}

// worker is a machine of a group that exists; nil: there is none.
func (f *farm) worker() *rig {
	var list []*rig
	for _, r := range f.rigs {
		if r.exists() && r.group != "" {
			list = append(list, r)
		}
	}
	if len(list) == 0 {
		return nil
	}
	return list[f.IntN(len(list))]
}

// mischief lets some time pass and something happen.
func (f *farm) mischief() {
	f.now = f.now.Add(time.Duration(5+f.IntN(30)) * time.Second)
	if f.IntN(60) == 0 {
		f.now = f.now.Add(time.Duration(f.IntN(900)) * time.Second)
	}
	if f.IntN(3) > 0 {
		return
	}
	r := f.worker()
	switch op := f.IntN(32); {
	case r == nil || op < 3:
		f.launch(f.groups[f.IntN(2)])
	case op >= 30:
		f.reuse()
	case op == 29:
		r.boot += "+"
	case op < 9:
		f.happens(op, r)
	case op < 17:
		f.isDone(op, r)
	default:
		f.goesWrong(op)
	}
	for _, g := range f.rigs { // what was told to go goes at last
		if g.phase == cluster.PhaseDeleting && f.IntN(10) == 0 {
			f.end(g)
		}
	}
}

// happens: machines die and fall silent.
func (f *farm) happens(op int, r *rig) {
	switch op {
	case 3:
		f.end(r)
	case 4, 5:
		r.deaf = r.deaf || f.hushes(r)
	case 6:
		r.deaf = false
	case 7:
		r.skew = time.Duration(f.IntN(200)-100) * time.Hour // a clock that lies
	case 8:
		for _, o := range f.rigs { // a network split
			o.deaf = o.deaf || f.hushes(o) && f.IntN(2) == 0
		}
	}
}

// isDone: people and controllers do things to machines and Nodes.
func (f *farm) isDone(op int, r *rig) {
	n := f.nodes[cluster.NodeName(r.name)]
	switch op {
	case 9:
		r.phase = cluster.PhaseStopped
	case 10:
		r.phase = cluster.PhaseRunning
	case 11: // out of its group; of a plug-in's cloud nobody detaches what is silent: nothing could tell it from a dead one
		if !r.detached && (f.kind != plugIn || !r.deaf && r.phase == cluster.PhaseRunning && f.now.Sub(r.heard) < time.Minute) {
			r.detached, r.out = true, f.now
		}
	case 12:
		if !r.detached { // a cloud refuses to end what is not in the group
			r.phase = cluster.PhaseDeleting
			f.sent[r.id] = true
		}
	case 13:
		r.phase = cluster.PhaseDeleting // by somebody else, and a hook may let it wait
	case 14:
		if n != nil {
			n.Taints = append(slices.Clone(n.Taints), sentAway)
		}
	case 15:
		if n != nil {
			n.Taints = nil
		}
	case 16:
		f.lies(r)
	}
	if f.kind == plugIn && r.detached {
		r.deaf, r.phase = false, cluster.PhaseRunning // it lives on outside
	}
}

// lies: a machine joins with another machine's provider ID, a dead one's, or none that
// there is.
func (f *farm) lies(victim *rig) {
	id := string(victim.id)
	switch f.IntN(3) {
	case 0:
		id = strings.Replace(id, "0000000000", "0000ffff00", 1)
	case 1:
		for _, r := range f.rigs {
			if !r.exists() {
				id = string(r.id)
			}
		}
	}
	f.born++
	liar := f.launch(f.groups[f.IntN(2)])
	delete(f.nodes, cluster.NodeName(liar.name))
	f.join(liar, liar.name, id)
}

// goesWrong: clouds, credentials, the API server and agents fail.
func (f *farm) goesWrong(op int) {
	flip := func(s *string, text string) {
		if *s == "" {
			*s = text
		} else {
			*s = ""
		}
	}
	switch op {
	case 17:
		flip(&f.problem, "throttled")
	case 18:
		flip(&f.stale, "partial")
	case 19:
		flip(&f.mute, "403")
	case 20, 21:
		f.elsewhere, f.twin = !f.elsewhere, f.IntN(2) == 0
	case 22:
		f.cut = !f.cut
	case 23:
		flip(&f.outage, "no answer")
	case 24:
		f.left[f.groups[f.IntN(2)]] = f.IntN(2) == 0
	case 25:
		f.memory = f.standby // a failover
		f.memory.LastRound = time.Time{}
	case 26:
		f.memory, f.standby = Memory{}, Memory{} // and all state is lost
	default: // most trouble passes
		f.problem, f.stale, f.mute, f.outage, f.elsewhere, f.cut = "", "", "", "", false, false
		clear(f.left)
	}
}

// TestHonestWorlds: where nobody lies and no cloud fails, every dead Node goes within 15
// minutes of its machine's end, or of the last failover after that: to a standby, which has
// kept its own ledger, or to an agent that knows nothing.
func TestHonestWorlds(t *testing.T) {
	const patience = 15 * time.Minute
	seed, slowest, all := drawn.Seed(t), time.Duration(0), 0
	for n := range uint64(drawn.Number(t, "AUTOSCALER_TEST_FARMS", 6)) {
		f := newFarm(seed+n, int(n%3), 25)
		worst, dead := time.Duration(0), 0
		for f.now.Before(noon.Add(6 * time.Hour)) {
			f.now = f.now.Add(time.Duration(5+f.IntN(10)) * time.Second)
			f.life()
			f.round()
			for uid, since := range f.gone {
				node := f.nodeOf(uid)
				if node == nil {
					delete(f.gone, uid)
					dead++
					continue
				}
				if since = later(since, f.failedOver); f.now.Sub(since) > worst {
					worst = f.now.Sub(since)
				}
				if worst > patience {
					t.Fatalf("seed %d, farm %d, a cloud of kind %d: dead Node %s stays %s after its machine's end: %s", seed, n, f.kind, node.Name, worst,
						fmt.Sprintf("%+v", Explain(f.input(), f.memory, f.policy, node.Name)))
				}
			}
		}
		slowest, all = max(slowest, worst), all+dead
		if f.living > 0 || dead == 0 {
			t.Fatalf("seed %d, farm %d: %d living Nodes deleted, %d dead ones", seed, n, f.living, dead)
		}
	}
	t.Logf("seed %d: %d dead Nodes went, the slowest after %s", seed, all, slowest)
}

// life is what happens in an honest world: one machine at a time dies, is ended by the
// scaler, hangs before it is ended, is stopped, or leaves its group before its end.
func (f *farm) life() {
	for _, r := range f.rigs {
		if r.exists() && r.phase == cluster.PhaseDeleting && f.now.Sub(r.ended) > 90*time.Second {
			f.end(r)
		}
	}
	if f.IntN(60) > 0 {
		return
	}
	r := f.worker()
	if r == nil || f.workers() < 20 {
		f.launch(f.groups[f.IntN(2)])
		return
	}
	op := f.IntN(7)
	if op == 0 || op == 2 || op == 3 {
		if f.now.Sub(f.died) < 8*time.Minute {
			return // more at once are a mass, which has a rule of its own (B2)
		}
		f.died = f.now
	}
	switch op {
	case 0:
		f.end(r)
	case 1:
		f.sent[r.id], r.phase, r.ended = true, cluster.PhaseDeleting, f.now
	case 2:
		r.phase, r.ended, r.deaf = cluster.PhaseDeleting, f.now, true
	case 3:
		r.deaf = true // and somebody ends it later
	case 4:
		if f.kind != plugIn {
			r.detached = true
		}
	case 5:
		f.memory, f.failedOver = f.standby, f.now
		f.memory.LastRound = time.Time{}
	case 6:
		if f.kind != plugIn { // of an ended machine such a cloud tells nothing any more: its Node is held for an operator
			f.memory, f.standby, f.failedOver = Memory{}, Memory{}, f.now
		}
	}
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

func (f *farm) workers() (n int) {
	for _, r := range f.rigs {
		if r.exists() && r.group != "" {
			n++
		}
	}
	return n
}
