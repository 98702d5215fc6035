package worlds

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/observe/store"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan"
	"github.com/autoscaler-agent/autoscaler-agent/test/judge/oracle"
	"github.com/autoscaler-agent/autoscaler-agent/test/judge/yardstick"
)

// Result is how one buyer did in one world.
type Result struct {
	Price     float64 // of the machines that were bought, an hour
	Machines  int
	Rounds    int // purchases
	Early     int // machines that were bought while others of a purchase had still to join
	Again     int // machines that the next round would have bought while none of a purchase had joined
	First     int // pods that the first purchase of each wave was for
	LeftFirst int // of them, those that kube-scheduler left after it
	Stuck     int // of those, the ones that were left at the end of their wave: no purchase helped them
	Claimed   int // pods that the agent claimed a machine for when it bought
	Refused   int // of them, those that kube-scheduler's filters keep off it
	Left      int // in the end
	Slowest   time.Duration
	Took      time.Duration // processor time of all decisions
	Said      string
}

// buyer looks at waiting pods and says how many machines of each group to buy.
type buyer func(p *player, waiting []*corev1.Pod) []int

// maxRounds ends a loop that would buy for ever.
const maxRounds = 12

type player struct {
	w       *World
	judge   *oracle.Judge
	seed    uint64
	now     time.Time
	memory  decision.Memory
	decided time.Duration // of the last decision, where that is known without what it takes to ask
	again   bool          // the buyer is asked again before a machine joins, as the next round does
	stages  int           // in how many parts the machines of a purchase join, with a decision between them; 0 and 1: all at once
	failed  error         // a peer's; it ends the play
	result  Result
}

// Play lets one buyer loose on a world, and changes it.
func Play(j *oracle.Judge, w *World, buy buyer) (Result, error) {
	p := &player{w: w, judge: j, seed: w.Seed, now: start.Add(time.Minute)}
	_, err := p.play(buy)
	return p.result, err
}

// play returns the pods that are left in the end.
func (p *player) play(buy buyer) (waiting []*corev1.Pod, err error) {
	for _, wave := range p.w.Waves {
		waiting = append(waiting, wave...)
		if waiting, err = p.bind(waiting); err != nil {
			return waiting, err
		}
		first, left := true, 0
		for range maxRounds {
			if len(waiting) == 0 {
				break
			}
			before := usage()
			machines := buy(p, waiting)
			if p.failed != nil {
				return waiting, p.failed
			}
			took := usage() - before
			if p.decided > 0 {
				took, p.decided = p.decided, 0
			}
			p.result.Took += took
			p.result.Slowest = max(p.result.Slowest, took)
			p.result.Said += fmt.Sprintf("round %d: %v; ", p.result.Rounds+1, machines)
			ordered := p.orderAll(machines)
			if len(ordered) == 0 {
				break
			}
			p.result.Rounds++
			if p.again {
				p.result.Again += sum(buy(p, waiting))
			}
			n := len(waiting)
			if waiting, err = p.joinAll(ordered, waiting, buy); err != nil {
				return waiting, err
			}
			if first {
				first = false
				p.result.First += n
				left = len(waiting)
			}
		}
		p.result.LeftFirst += left
		p.result.Stuck += min(left, len(waiting))
	}
	p.result.Left = len(waiting)
	return waiting, nil
}

func sum(machines []int) (n int) {
	for _, k := range machines {
		n += k
	}
	return n
}

// countRefused counts the claims that kube-scheduler refuses, whatever it would score: pods that no order of binding puts on
// the machine that the purchase has for them. The orders that are tried: the claimed pods alone; and with them the pods without a
// claim, on the nodes that were there, each of these being the first once (98093: five pods of a spread are to go to the zone of the
// second).
func (p *player) countRefused(joined []orderedMachine, waiting []*corev1.Pod) error {
	machines := make([][]string, len(p.w.Groups)) // by group, in the order of their numbers
	for _, m := range joined {
		machines[m.group] = append(machines[m.group], m.name)
	}
	on := make(map[cluster.PodKey][]string)
	for _, r := range p.memory.Reservations {
		g := slices.IndexFunc(p.w.Groups, func(g cluster.NodeGroup) bool { return g.ID == r.Group })
		names := machines[g]
		if r.Machine > 0 { // a number without a machine is a claim that nothing keeps
			names = names[min(r.Machine-1, len(names)):min(r.Machine, len(names))]
		}
		for _, key := range r.Pods {
			on[key] = names
		}
	}
	p.result.Claimed += len(on)
	var before []string // nodes that were there
	for _, n := range p.w.Nodes[:len(p.w.Nodes)-len(joined)] {
		before = append(before, n.Name)
	}
	least := len(on)
	for k := range len(before) + 1 {
		var others []string // none at first
		if k > 0 {
			others = slices.Concat(before[k-1:], before[:k-1])
		}
		refused, err := oracle.Claims(&oracle.World{Nodes: p.w.Nodes, Pods: p.w.Bound, Waiting: waiting, ReplicaSets: p.w.ReplicaSets}, on, others)
		if err != nil {
			return fmt.Errorf("seed %d: %w", p.seed, err)
		}
		if least = min(least, len(refused)); least == 0 {
			return nil
		}
	}
	p.result.Refused += least
	return nil
}

// orderedMachine is one that has not joined yet.
type orderedMachine struct {
	group int
	name  string
}

// orderAll orders the machines of a purchase.
func (p *player) orderAll(machines []int) (out []orderedMachine) {
	for g, n := range machines {
		for range n {
			out = append(out, orderedMachine{g, p.w.order(g, p.now)})
		}
		p.result.Price += float64(n) * p.w.Groups[g].Price
	}
	p.result.Machines += len(out)
	return out
}

// joinAll lets machines join, in stages in any order where there are several, and kube-scheduler bind after each. Between two
// stages the buyer decides again; what it orders then joins last.
func (p *player) joinAll(ordered []orderedMachine, waiting []*corev1.Pod, buy buyer) (left []*corev1.Pod, err error) {
	if p.stages > 1 {
		r := rand.New(rand.NewPCG(p.seed, uint64(p.result.Rounds)))
		r.Shuffle(len(ordered), func(i, j int) { ordered[i], ordered[j] = ordered[j], ordered[i] })
	}
	for stage := 1; len(ordered) > 0; stage++ {
		n := len(ordered)
		if stage < p.stages {
			n = (n + p.stages - stage) / (p.stages - stage + 1)
		}
		for _, m := range ordered[:n] {
			p.w.join(m.group, m.name, p.now.Add(-time.Hour))
		}
		if len(p.memory.Reservations) > 0 && p.stages <= 1 {
			if err := p.countRefused(ordered, waiting); err != nil {
				return waiting, err
			}
		}
		ordered = ordered[n:]
		if waiting, err = p.bind(waiting); err != nil {
			return waiting, err
		}
		if len(ordered) > 0 && len(waiting) > 0 {
			more := p.orderAll(buy(p, waiting))
			if p.failed != nil {
				return waiting, p.failed
			}
			p.result.Early += len(more)
			ordered = append(ordered, more...)
		}
	}
	return waiting, nil
}

func usage() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// bind lets kube-scheduler bind what it can, in the order of the queue, and try again what it has left as long as that
// helps: a pod that was bound may be what another waits for.
func (p *player) bind(waiting []*corev1.Pod) (left []*corev1.Pod, err error) {
	p.now = p.now.Add(time.Minute)
	waiting = slices.Clone(waiting)
	slices.SortStableFunc(waiting, func(a, b *corev1.Pod) int { return cmp.Compare(priority(b), priority(a)) })
	for before := len(waiting) + 1; len(waiting) > 0 && len(waiting) < before; {
		before = len(waiting)
		if waiting, err = p.bindOnce(waiting); err != nil {
			return waiting, err
		}
	}
	return waiting, nil
}

func priority(p *corev1.Pod) int32 {
	if p.Spec.Priority == nil {
		return 0
	}
	return *p.Spec.Priority
}

func (p *player) bindOnce(waiting []*corev1.Pod) (left []*corev1.Pod, err error) {
	world := &oracle.World{Nodes: p.w.Nodes, Pods: p.w.Bound, Waiting: waiting, ReplicaSets: p.w.ReplicaSets}
	bindings, err := p.judge.Bind(world, p.seed)
	if err != nil {
		return nil, fmt.Errorf("seed %d: %w", p.seed, err)
	}
	for i, b := range bindings {
		pod := waiting[i]
		if b.Node == 0 {
			pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, LastTransitionTime: metav1.Time{Time: p.now}}}
			left = append(left, pod)
			continue
		}
		pod.Spec.NodeName = p.w.Nodes[b.Node-1].Name
		pod.Status.Phase, pod.Status.Conditions = corev1.PodRunning, nil
		p.w.Bound = append(p.w.Bound, pod)
	}
	return left, nil
}

// snapshot is the world as the agent sees it.
func (p *player) snapshot(waiting []*corev1.Pod) cluster.Snapshot {
	s := store.FromObjects(store.Objects{Nodes: p.w.Nodes, Pods: slices.Concat(p.w.Bound, waiting)})
	s.Now = p.now
	s.Groups = slices.Clone(p.w.Groups)
	for g := range s.Groups {
		s.Groups[g].ReadAt = s.Now
	}
	return s
}

// Policy is what the engine decides by.
var Policy = decision.Policy{Expander: "least-waste", RandomSeed: 1, ExpendablePodsCutoff: -10, MaxNodeProvisionTime: 15 * time.Minute, MaxNodeStartupTime: 15 * time.Minute,
	BackoffInitial: 5 * time.Minute, BackoffMax: 30 * time.Minute, BackoffReset: 3 * time.Hour, OKTotalUnready: 3, MaxTotalUnreadyPercent: 45, EnforceMin: true, FreshFor: time.Minute}

// Ours buys as agent/plan decides.
func Ours(p *player, waiting []*corev1.Pod) []int {
	p.now = p.now.Add(time.Minute)
	s := p.snapshot(waiting)
	for g := range s.Groups {
		if p.w.Unpriced {
			s.Groups[g].Price = 0
		}
	}
	before := usage()
	policy := Policy
	policy.Expander = cmp.Or(p.w.Expander, policy.Expander)
	got, memory := plan.Decide(s, p.memory, policy)
	took := usage() - before
	p.memory, p.decided = memory, max(took, 1)
	out := make([]int, len(p.w.Groups))
	for _, a := range got.Actions {
		if grow, ok := a.(decision.Grow); ok {
			g := slices.IndexFunc(p.w.Groups, func(g cluster.NodeGroup) bool { return g.ID == grow.Group })
			out[g] += grow.To - grow.From
		}
	}
	return out
}

// mix is the question as the rules see it.
func (p *player) mix(waiting []*corev1.Pod) *yardstick.Mix {
	s := p.snapshot(waiting)
	count := make([]int, len(s.Classes))
	for i := range s.Pods {
		count[s.Pods[i].Class]++
	}
	tie, skew := make([]yardstick.Tie, len(s.Classes)), make([]int, len(s.Classes))
	for c := range s.Classes {
		app := s.Classes[c].Labels["app"]
		tie[c], skew[c] = p.w.Tie[app], max(p.w.Skew[app], 1)
	}
	return yardstick.NewMix(s, count, tie, skew, p.w.Pool, p.w.Zone)
}

// ClusterAutoscaler buys by Cluster Autoscaler's rule.
func ClusterAutoscaler(p *player, waiting []*corev1.Pod) []int {
	return p.mix(waiting).ClusterAutoscaler().Machines
}

// Karpenter buys by Karpenter's rule.
func Karpenter(p *player, waiting []*corev1.Pod) []int { return p.mix(waiting).Karpenter().Machines }
