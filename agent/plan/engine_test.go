package plan

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/round"
)

// TestEngineIsDecide plays sequences of changing Snapshots and compares an Engine that
// has seen them all with the function Decide, which has seen nothing.
func TestEngineIsDecide(t *testing.T) {
	n := 400
	if testing.Short() {
		n = 60
	}
	again := 0
	for seed := range uint64(n) {
		again += playEngine(t, someWorld, rand.New(rand.NewPCG(seed, 11)), fmt.Sprint("seed ", seed), 40, nil, nil)
		if seed%2 == 0 {
			playEngine(t, replaceWorld, rand.New(rand.NewPCG(seed, 11)), fmt.Sprint("replacements, seed ", seed), 40, nil, nil)
		}
	}
	if again < n {
		t.Errorf("only %d rounds of %d sequences were answered from memory: the test shows little", again, n)
	}
}

func FuzzEngine(f *testing.F) {
	f.Add(uint64(1), uint64(2))
	// Fewer rounds than above: a world that needs all the work a search may do takes a
	// second for 40, and a fuzzing worker, many times slower, counts as hung after ten. On
	// a busy machine it may play fewer still.
	f.Fuzz(func(t *testing.T, a, b uint64) {
		began := time.Now()
		world := someWorld
		if a%2 == 0 {
			world = replaceWorld
		}
		playEngine(t, world, rand.New(rand.NewPCG(a, b)), fmt.Sprint(a, " ", b), 15, func() bool { return time.Since(began) > 3*time.Second }, nil)
	})
}

// playEngine plays so many rounds, or until it has had enough (nil: never), and tells each
// (nil: nobody).
func playEngine(t *testing.T, world func(*rand.Rand) (cluster.Snapshot, decision.Memory, decision.Policy), r *rand.Rand, seed string, rounds int, enough func() bool, tell func(cluster.Snapshot, decision.Memory, decision.Policy)) (again int) {
	s, m, p := world(r)
	s = s.Seated()
	slices.SortFunc(s.Nodes, round.CompareNames)
	var e Engine
	for i := range rounds {
		if enough != nil && enough() {
			break
		}
		if r.IntN(5) > 0 {
			s.Now = s.Now.Add(pick(r, 0, time.Millisecond, time.Second, time.Second, 7*time.Second, 20*time.Second, time.Minute, 11*time.Minute))
		}
		if r.IntN(3) == 0 {
			for range 1 + r.IntN(2) {
				shake(r, &s, &p)
			}
		}
		if tell != nil {
			tell(s, m, p)
		}
		out := sameAsDecide(t, &e, s, m, p, fmt.Sprintf("%s, round %d", seed, i))
		if e.Cached() {
			again++
		}
		s.Outcomes = nil
		switch r.IntN(12) {
		case 0:
			m = decision.Memory{}
		case 1: // the one before
		case 2:
			m = copied(t, out)
		default:
			m = out
		}
	}
	return again
}

// sameAsDecide lets an Engine and Decide answer, and returns the Engine's Memory.
func sameAsDecide(t *testing.T, e *Engine, s cluster.Snapshot, m decision.Memory, p decision.Policy, what string) decision.Memory {
	t.Helper()
	plan, out := e.Decide(s, m, p)
	want, wantOut := Decide(s, m, p)
	if plan.String() != want.String() || !plan.Wake.Equal(want.Wake) || !bytes.Equal(text(t, out), text(t, wantOut)) {
		t.Fatalf("%s (from memory: %v): the Engine says\n%s%s\n%s\n--- want\n%s%s\n%s", what, e.Cached(), plan, plan.Wake, text(t, out), want, want.Wake, text(t, wantOut))
	}
	return out
}

func copied[T any](t *testing.T, v T) T { return again(t, v) }

// shake changes one thing, as an observer does: what was handed out stays as it was.
func shake(r *rand.Rand, s *cluster.Snapshot, p *decision.Policy) {
	group := func(do func(g *cluster.NodeGroup)) {
		s.Groups = slices.Clone(s.Groups)
		g := &s.Groups[r.IntN(len(s.Groups))]
		g.Instances = slices.Clone(g.Instances)
		do(g)
	}
	switch r.IntN(15) {
	case 0, 1, 2, 3:
		shakeNode(r, s)
	case 4:
		if len(s.Nodes) > 0 {
			i := r.IntN(len(s.Nodes))
			s.Nodes = slices.Clone(s.Nodes)
			s.Nodes[i] = s.Nodes[len(s.Nodes)-1]
			s.Nodes = s.Nodes[:len(s.Nodes)-1]
		}
	case 5:
		s.Nodes = slices.Clone(s.Nodes)
		r.Shuffle(len(s.Nodes), func(i, j int) { s.Nodes[i], s.Nodes[j] = s.Nodes[j], s.Nodes[i] })
	case 6:
		s.Classes = slices.Clone(s.Classes)
		s.Classes[r.IntN(len(s.Classes))] = someClass(r, r.IntN(9))
	case 7:
		s.Classes = append(slices.Clone(s.Classes), someClass(r, len(s.Classes)))
	case 8:
		s.Pods = slices.Clone(s.Pods)
		if len(s.Pods) > 0 && r.IntN(2) == 0 {
			s.Pods = slices.Delete(s.Pods, 0, 1)
			return
		}
		pod := somePod(r, s, 500+r.IntN(100), func(time.Duration) time.Time { return s.Now.Add(-time.Second) })
		pod.Unschedulable = cluster.At(pick(r, s.Now, time.Time{}))
		s.Pods = append(s.Pods, pod)
	case 9:
		group(func(g *cluster.NodeGroup) { g.Target = r.IntN(6); g.ReadAt = s.Now })
	case 10:
		s.Groups = slices.Clone(s.Groups) // the cloud was read again, and nothing is new
		for i := range s.Groups {
			s.Groups[i].ReadAt = s.Now
		}
	case 11:
		group(func(g *cluster.NodeGroup) {
			if len(g.Instances) > 0 {
				in := &g.Instances[r.IntN(len(g.Instances))]
				if in.Phase, in.Interruption = pick(r, cluster.PhaseRunning, cluster.PhaseDeleting, cluster.PhaseGone), nil; in.Phase == cluster.PhaseDeleting {
					in.Interruption = &cluster.Interruption{Why: "notice", By: s.Now.Add(time.Minute)}
				}
			}
			g.Stale = pick(r, "", "", "throttled")
		})
	case 12:
		s.Budgets = slices.Clone(s.Budgets)
		for i := range s.Budgets {
			s.Budgets[i].Allowed = r.IntN(3)
		}
	case 13:
		p.UnneededFor = pick(r, time.Minute, 10*time.Minute)
		p.UtilizationThreshold = pick(r, 0.4, 0.5, 0.9)
		p.ExpendablePodsCutoff = pick(r, int32(-10), 50)
		p.IgnoreDaemonSetsUtilization = r.IntN(2) == 0
	default:
		g := s.Groups[r.IntN(len(s.Groups))]
		s.Outcomes = append(s.Outcomes, cluster.Outcome{Action: "grow", Group: g.ID, From: g.Target, To: g.Target + 1, At: s.Now, Kind: pick(r, "", "exhausted"), Error: ""})
		s.Stale = pick(r, "", "", "silence")
	}
}

// shakeNode puts another value in the place of a Node.
func shakeNode(r *rand.Rand, s *cluster.Snapshot) {
	if len(s.Nodes) == 0 {
		return
	}
	i := r.IntN(len(s.Nodes))
	n := *s.Nodes[i]
	n.Pods = slices.Clone(n.Pods)
	switch r.IntN(7) {
	case 0:
		n.Ready = pick(r, cluster.StatusTrue, cluster.StatusFalse)
	case 1:
		n.Taints = append(slices.Clone(n.Taints), cluster.Taint{Key: pick(r, "team", "node.kubernetes.io/not-ready"), Value: "x", Effect: "NoSchedule"})
	case 2:
		n.Taints = nil
	case 3:
		n.Labels = map[string]string{"pool": pick(r, "a", "b")}
	case 4:
		if len(n.Pods) > 0 {
			n.Pods = slices.Delete(n.Pods, 0, 1)
		}
	case 5:
		for k := range n.Pods {
			n.Pods[k].Deleting = cluster.At(pick(r, time.Time{}, s.Now.Add(-20*time.Second), s.Now.Add(10*time.Second)))
			n.Pods[k].Finished = r.IntN(4) == 0
		}
	default:
		pod := somePod(r, s, 700+r.IntN(200), func(time.Duration) time.Time { return s.Now.Add(-time.Second) })
		pod.Node = n.Name
		n.Pods = append(n.Pods, pod)
	}
	s.Nodes = slices.Clone(s.Nodes)
	s.Nodes[i] = &n
}

// TestIdleRoundCostsNothing: the size of the world plays no part.
func TestIdleRoundCostsNothing(t *testing.T) {
	allocs := func(nodes int) float64 {
		s, e := (rounds{nodes: nodes, use: 90}).snapshot(), new(Engine)
		m := settled(e, &s)
		p := policy()
		n := testing.AllocsPerRun(10, func() {
			s.Now = s.Now.Add(time.Millisecond)
			e.Decide(s, m, p)
		})
		if !e.Cached() {
			t.Error("an idle round was worked out anew")
		}
		return n
	}
	if few, many := allocs(10), allocs(1000); many > few {
		t.Errorf("%v allocations on 10 nodes, %v on 1000", few, many)
	}
}
