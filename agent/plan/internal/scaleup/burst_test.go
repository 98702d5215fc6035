package scaleup

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/round"
)

var burstNow = time.Date(2026, 1, 5, 8, 0, 5, 0, time.UTC)

// The classes of the pods of these tests.
const (
	early = iota
	late
	other
	expendable
)

var classes = []string{"early", "late", "other", "expendable"}

// burstRound is a round two seconds after a machine of group g was ordered for twelve early pods; it is coming.
type burstRound struct {
	s cluster.Snapshot
	m decision.Memory
	p decision.Policy
}

func newBurst() *burstRound {
	ordered := burstNow.Add(-2 * time.Second)
	b := &burstRound{}
	b.s = cluster.Snapshot{Now: burstNow, Groups: []cluster.NodeGroup{{ID: "g", Max: 9, Target: 1, ReadAt: burstNow,
		Instances: []cluster.Instance{{ID: "x:///new", Phase: cluster.PhaseRunning, Member: true, Created: ordered}}}}}
	for _, name := range classes {
		b.s.Classes = append(b.s.Classes, cluster.PodClass{Namespace: "default", Labels: map[string]string{"app": name}})
	}
	b.s.Classes[expendable].Priority = -20
	b.p = decision.Policy{BurstHold: 15 * time.Second, MaxNodeProvisionTime: time.Hour, ExpendablePodsCutoff: -10}
	b.m = decision.Memory{BurstOrdered: ordered, Resized: map[cluster.GroupID]decision.Resized{"g": {To: 1, At: ordered}}}
	b.pods(early, 12, 3*time.Second)
	r := decision.Reservation{Group: "g"}
	for i := range b.s.Pods {
		r.Pods = append(r.Pods, b.s.Pods[i].Key)
	}
	b.m.Reservations = decision.Reservations{r}
	return b
}

// pods adds pods that wait, were made so long ago, and that kube-scheduler has judged; it returns them.
func (b *burstRound) pods(class, n int, age time.Duration) []cluster.Pod {
	for i := range n {
		key := cluster.PodKey(fmt.Sprintf("default/%s-%d-%d", classes[class], len(b.s.Pods), i))
		b.s.Pods = append(b.s.Pods, cluster.Pod{Key: key, Class: class, Created: cluster.At(burstNow.Add(-age)), Unschedulable: cluster.At(burstNow)})
	}
	return b.s.Pods[len(b.s.Pods)-n:]
}

// unjudged adds pods that kube-scheduler has not judged.
func (b *burstRound) unjudged(class, n int, age time.Duration) {
	pods := b.pods(class, n, age)
	for i := range pods {
		pods[i].Unschedulable = 0
	}
}

// owned adds pods of a controller, which has still to make some.
func (b *burstRound) owned(uid cluster.UID, class, n int, age time.Duration, missing int) {
	owner := &cluster.Owner{Kind: "ReplicaSet", Name: string(uid), UID: uid}
	pods := b.pods(class, n, age)
	for i := range pods {
		pods[i].Owner = owner
	}
	if missing > 0 {
		b.s.Controllers = append(b.s.Controllers, cluster.Controller{Owner: *owner, Missing: missing})
	}
}

// joins lets the machine that was ordered become a Node on which later pods run.
func (b *burstRound) joins(pods int, change func(n *cluster.Node)) {
	n := &cluster.Node{Name: "new", ProviderID: "x:///new", Created: burstNow.Add(-time.Second), Ready: cluster.StatusTrue, ReadySince: burstNow.Add(-time.Second)}
	for i := range pods {
		n.Pods = append(n.Pods, cluster.Pod{Key: cluster.PodKey(fmt.Sprint("default/bound-", i)), Node: "new", Class: late, Created: cluster.At(burstNow.Add(-time.Second))})
	}
	change(n)
	b.s.Nodes = append(b.s.Nodes, n)
}

// hold plays the round, and says which pods wait, and until when they do.
func (b *burstRound) hold() (waiting string, until time.Duration) {
	w := round.New(new(round.Cache), &b.s, &b.m, &b.p)
	w.Remember()
	w.OpenHeadroom()
	w.Index()
	w.Account()
	w.Gather()
	w.Plan.Wake = time.Time{}
	HoldBurst(w)
	var held []string
	for _, k := range w.Demands {
		if k.DeferralRule != decision.RuleBurst || k.Buys {
			continue
		}
		name := k.Headroom
		if name == "" {
			name = classes[k.Class]
		}
		held = append(held, name)
	}
	slices.Sort(held)
	if len(held) > 0 {
		until = w.Plan.Wake.Sub(burstNow)
	}
	return strings.Join(held, " "), until
}

func same(*cluster.Node) {}

// TestHoldBurst: which pods wait for the rest of a burst, and until when.
func TestHoldBurst(t *testing.T) {
	for name, c := range map[string]struct {
		change func(b *burstRound)
		want   string
		until  time.Duration
	}{
		"no later pod":                 {func(*burstRound) {}, "", 0},
		"ten later pods":               {func(b *burstRound) { b.pods(late, 10, 0) }, "late", quiet},
		"nine later pods":              {func(b *burstRound) { b.pods(late, 9, 0) }, "", 0},
		"of several classes":           {func(b *burstRound) { b.pods(late, 5, time.Second); b.pods(other, 5, 0) }, "late other", quiet},
		"their newest counts":          {func(b *burstRound) { b.pods(late, 10, 2*time.Second); b.pods(late, 1, time.Second) }, "late", quiet - time.Second},
		"no more come":                 {func(b *burstRound) { b.pods(late, 12, quiet) }, "", 0},
		"some have waited long":        {func(b *burstRound) { b.pods(late, 10, quiet); b.pods(late, 9, 0) }, "", 0},
		"nothing was ordered":          {func(b *burstRound) { b.pods(late, 12, 0); b.m.BurstOrdered = time.Time{} }, "", 0},
		"the order is too long ago":    {func(b *burstRound) { b.pods(late, 12, 0); b.m.BurstOrdered = burstNow.Add(-b.p.BurstHold) }, "", 0},
		"at most so long from it":      {func(b *burstRound) { b.pods(late, 12, 0); b.m.BurstOrdered = burstNow.Add(time.Second - b.p.BurstHold) }, "late", time.Second},
		"headroom waits, too":          {func(b *burstRound) { b.pods(late, 10, 0); b.p.Headroom = []cluster.Headroom{{Name: "spare", Count: 1}} }, "late spare", quiet},
		"headroom waits for nothing":   {func(b *burstRound) { b.p.Headroom = []cluster.Headroom{{Name: "spare", Count: 1}} }, "", 0},
		"pods below the cutoff":        {func(b *burstRound) { b.pods(late, 1, 0); b.pods(expendable, 12, 0) }, "", 0},
		"ten that nobody has judged":   {func(b *burstRound) { b.pods(late, 1, quiet); b.unjudged(other, 10, quiet) }, "late", 13 * time.Second},
		"nine that nobody has judged":  {func(b *burstRound) { b.pods(late, 1, quiet); b.unjudged(other, 9, quiet) }, "", 0},
		"a class that has been judged": {func(b *burstRound) { b.pods(late, 1, quiet); b.unjudged(early, 10, quiet) }, "", 0},

		"a controller makes more":              {func(b *burstRound) { b.owned("rs", late, 2, 0, 8) }, "late", quiet},
		"it makes too few":                     {func(b *burstRound) { b.owned("rs", late, 2, 0, 7) }, "", 0},
		"another one's pods":                   {func(b *burstRound) { b.owned("rs", late, 2, 0, 0); b.owned("none", other, 0, 0, 8) }, "", 0},
		"its pods are of two classes":          {func(b *burstRound) { b.owned("rs", late, 5, 0, 0); b.owned("rs", other, 5, 0, 0) }, "late other", quiet},
		"of a known number the first are news": {func(b *burstRound) { b.owned("rs", late, 6, quiet, 0); b.owned("rs", late, 6, 0, 1) }, "", 0},
		"else the last, too":                   {func(b *burstRound) { b.owned("rs", late, 6, quiet, 0); b.owned("rs", late, 6, 0, 0) }, "late", quiet},
		"they were counted on unmade":          {reservedMissing(12, 12), "", 0},
		"some of them were":                    {reservedMissing(12, 2), "late", quiet},
		"too many of them were":                {reservedMissing(12, 3), "", 0},
		"of all, beside others": {func(b *burstRound) {
			reservedMissing(5, 5)(b)
			b.pods(other, 10, 0)
		}, "other", quiet},
	} {
		b := newBurst()
		c.change(b)
		if got, until := b.hold(); got != c.want || until != c.until {
			t.Errorf("%s: %q waits for %s, want %q for %s", name, got, until, c.want, c.until)
		}
	}
}

// reservedMissing adds pods of a controller of which an order counted on some before they were made, and some of another one
// that has no pods.
func reservedMissing(pods, counted int) func(b *burstRound) {
	return func(b *burstRound) {
		b.owned("rs", late, pods, 0, 0)
		b.m.ReservedMissing = map[string]int{round.MissingPodsKey("g", "rs"): counted, round.MissingPodsKey("g", "gone"): 9}
	}
}

// TestOvertaken: pods that lost their room to later pods wait with these, unless a machine that was ordered is missing.
func TestOvertaken(t *testing.T) {
	const waits = "early"
	leaves := func(n *cluster.Node) { n.Deleting = true }
	old := func(n *cluster.Node) {
		n.Name, n.ProviderID, n.ReadySince = "old", "x:///old", burstNow.Add(-time.Hour)
	}
	group := func(b *burstRound) *cluster.NodeGroup { return &b.s.Groups[0] }
	for name, c := range map[string]struct {
		change func(b *burstRound)
		want   string
	}{
		"ten later pods run there": {func(b *burstRound) { b.joins(10, same) }, waits},
		"nine do":                  {func(b *burstRound) { b.joins(9, same) }, ""},
		"nine do, and one waits":   {func(b *burstRound) { b.joins(9, same); b.pods(late, 1, 0) }, "early late"},
		"none does yet":            {func(b *burstRound) { b.joins(0, same); b.pods(late, 10, 0) }, "early late"},
		"no machine is a Node yet": {func(b *burstRound) { b.pods(late, 10, 0) }, "late"},
		"no pod lost its room":     {func(b *burstRound) { b.joins(10, same); b.s.Pods = nil; b.pods(late, 1, 0) }, ""},
		"they came long ago": {func(b *burstRound) {
			b.joins(10, changePods(func(p *cluster.Pod) { p.Created = cluster.At(burstNow.Add(-quiet)) }))
		}, ""},
		"they are older": {func(b *burstRound) {
			b.joins(10, changePods(func(p *cluster.Pod) { p.Created = cluster.At(b.m.BurstOrdered.Add(-time.Second)) }))
		}, ""},
		"they are older than an order of just burstNow": {func(b *burstRound) {
			b.m.BurstOrdered = burstNow.Add(-time.Second)
			b.joins(10, changePods(func(p *cluster.Pod) { p.Created = cluster.At(burstNow.Add(-2 * time.Second)) }))
		}, ""},
		"later pods of the class it counted on": {func(b *burstRound) { b.joins(10, changePods(func(p *cluster.Pod) { p.Class = early })) }, waits},
		"their stamp is the order's second": {func(b *burstRound) {
			b.m.BurstOrdered = b.m.BurstOrdered.Add(900 * time.Millisecond)
			b.joins(10, changePods(func(p *cluster.Pod) { p.Created = cluster.At(b.m.BurstOrdered.Truncate(time.Second)) }))
		}, waits},
		"so is that of pods it counted on": {func(b *burstRound) {
			b.m.BurstOrdered = b.m.BurstOrdered.Add(900 * time.Millisecond)
			b.joins(10, changePods(func(p *cluster.Pod) { p.Created, p.Class = cluster.At(b.m.BurstOrdered.Truncate(time.Second)), early }))
		}, ""},
		"static pods": {func(b *burstRound) { b.joins(10, changePods(func(p *cluster.Pod) { p.Mirror = true })) }, ""},
		"pods of a DaemonSet": {func(b *burstRound) {
			b.joins(10, changePods(func(p *cluster.Pod) { p.Owner = &cluster.Owner{Kind: "DaemonSet"} }))
		}, ""},
		"the machine is starting": {func(b *burstRound) { b.joins(10, starting) }, waits},
		"the machine goes":        {func(b *burstRound) { b.joins(10, leaves) }, ""},
		"another one is coming":   {func(b *burstRound) { b.joins(10, leaves); second(b, 1) }, waits},
		"one of two has failed": {func(b *burstRound) {
			b.joins(10, same)
			second(b, 2)
			group(b).Instances[1].Phase = cluster.PhaseFailed
		}, ""},
		"two of two are":              {func(b *burstRound) { b.joins(10, same); second(b, 2) }, waits},
		"no order is known":           {func(b *burstRound) { b.joins(10, same); b.m.Resized = nil }, ""},
		"on a machine that was there": {func(b *burstRound) { b.joins(12, old); group(b).Instances[0].ID = "x:///old" }, ""},
		"a machine that was there goes": {func(b *burstRound) {
			b.joins(10, same)
			b.joins(0, func(n *cluster.Node) { old(n); n.Deleting = true })
			group(b).Instances = append(group(b).Instances, cluster.Instance{ID: "x:///old", Phase: cluster.PhaseRunning, Member: true})
			b.m.Resized["g"] = decision.Resized{To: 2, At: burstNow}
		}, waits},
		"a node of no group joins": {func(b *burstRound) {
			b.joins(10, same)
			b.joins(12, func(n *cluster.Node) { n.Name, n.ProviderID = "foreign", "x:///foreign" })
		}, waits},
		"a machine of another group joins": {func(b *burstRound) {
			b.joins(10, same)
			b.joins(12, func(n *cluster.Node) { n.Name, n.ProviderID = "h", "x:///h" })
			b.s.Groups = append(b.s.Groups, cluster.NodeGroup{ID: "h", Max: 9, Target: 1, ReadAt: burstNow, Instances: []cluster.Instance{{ID: "x:///h", Phase: cluster.PhaseRunning, Member: true}}})
		}, waits},
		"a group that is gone was counted on": {func(b *burstRound) {
			b.joins(10, same)
			b.m.Reservations = append(b.m.Reservations, decision.Reservation{Group: "gone", Pods: []cluster.PodKey{"default/any"}})
		}, ""},
	} {
		b := newBurst()
		c.change(b)
		if got, _ := b.hold(); got != c.want {
			t.Errorf("%s: %q waits, want %q", name, got, c.want)
		}
	}
}

// changePods changes the pods of a node.
func changePods(change func(p *cluster.Pod)) func(n *cluster.Node) {
	return func(n *cluster.Node) {
		for i := range n.Pods {
			change(&n.Pods[i])
		}
	}
}

// starting gives a Ready node a taint that its start takes off.
func starting(n *cluster.Node) {
	n.Taints = []cluster.Taint{{Key: "node.kubernetes.io/network-unavailable", Effect: "NoSchedule"}}
}

// second adds a machine that is coming; so many were ordered.
func second(b *burstRound, ordered int) {
	b.s.Groups[0].Instances = append(b.s.Groups[0].Instances, cluster.Instance{ID: "x:///second", Phase: cluster.PhaseRunning, Member: true, Created: burstNow})
	b.m.Resized["g"] = decision.Resized{To: ordered, At: burstNow}
}

// TestRemember: which moment counts as the order of a burst in the next round.
func TestRemember(t *testing.T) {
	before := newBurst().m.BurstOrdered
	ten := make([]cluster.PodKey, 10)
	for name, c := range map[string]struct {
		action decision.Action
		change func(b *burstRound)
		want   time.Time
	}{
		"no order":                   {nil, func(*burstRound) {}, before},
		"no order, and none before":  {nil, func(b *burstRound) { b.m.BurstOrdered = time.Time{} }, time.Time{}},
		"the last one is over":       {nil, func(b *burstRound) { b.m.BurstOrdered = burstNow.Add(-b.p.BurstHold) }, time.Time{}},
		"for ten pods":               {decision.Grow{Pods: ten}, func(*burstRound) {}, burstNow},
		"for nine pods":              {decision.Grow{Pods: ten[1:]}, func(*burstRound) {}, before},
		"for pods that are not made": {decision.Grow{Pods: ten[1:], Expected: 1}, func(*burstRound) {}, burstNow},
		"another action":             {decision.Terminate{}, func(*burstRound) {}, before},
		"later pods wait":            {decision.Grow{Pods: ten}, func(b *burstRound) { b.pods(late, 10, 0) }, before},
		"bursts hold nothing":        {decision.Grow{Pods: ten}, func(b *burstRound) { b.p.BurstHold = 0 }, time.Time{}},
	} {
		b := newBurst()
		c.change(b)
		w := round.New(new(round.Cache), &b.s, &b.m, &b.p)
		w.Index()
		w.Gather()
		HoldBurst(w)
		if c.action != nil {
			w.Act(c.action)
		}
		if RememberBurst(w); !w.Next.BurstOrdered.Equal(c.want) {
			t.Errorf("%s: %s, want %s", name, w.Next.BurstOrdered, c.want)
		}
	}
}
