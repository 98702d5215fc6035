package days

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/observe/store"
	"github.com/autoscaler-agent/autoscaler-agent/test/judge/yardstick"
)

// again is how soon after a removal in its group a purchase counts as one of the same again.
const again = 10 * time.Minute

// Report is what a day came to, from the end of its first hour.
type Report struct {
	Bill      float64 // of machines from launch to the call that ended them, in dollars
	End       float64 // dollars an hour of the machines at the end of the day
	Bound     float64 // dollars an hour that no set of machines for the pods of the end can go below
	Karpenter float64 // dollars an hour of these machines after Karpenter's consolidation rule
	Waits     []time.Duration
	Waiting   int // pods that wait at the end
	Evictions int
	Started   int // machines that were bought
	Again     int // of them, within ten minutes after a removal in their group
	Removed   int
	Spent     Spent
	// Why the purchases of Again were made: ordered by consolidation, for nothing but evicted pods, or for new pods
	// after the last removal of the group was of an idle node, or of one that was consolidated.
	AgainOrder, AgainEvicted, AgainIdle, AgainDear int

	Decisions int
	CPU       time.Duration // processor time of decisions
}

// waited notes how long a pod waited for its node.
func (r *Report) waited(w *world, p *pod) {
	if w.clock.Now.After(w.from) {
		made := p.object.CreationTimestamp.Time
		if made.Before(w.from) {
			made = w.from
		}
		r.Waits = append(r.Waits, w.clock.Now.Sub(made))
	}
}

// asked tells whether one of some pods that wait, nil for all that do, was made for another reason than an eviction.
func (w *world) asked(pods []cluster.PodKey) bool {
	return pods != nil && len(pods) == 0 || slices.ContainsFunc(w.pods, func(p *pod) bool {
		return p.node == nil && !p.deleting && !p.moved && (pods == nil || slices.Contains(pods, key(p)))
	})
}

// bought counts a purchase: for some pods, nil for all that wait, or as the order of a consolidation.
func (r *Report) bought(w *world, g *group, n int, pods []cluster.PodKey, order bool) {
	if w.clock.Now.Before(w.from) {
		return
	}
	r.Started += n
	if !g.removed.IsZero() && w.clock.Now.Sub(g.removed) <= again {
		r.Again += n
		switch {
		case order:
			r.AgainOrder += n
		case !w.asked(pods):
			r.AgainEvicted += n
		case g.dear:
			r.AgainDear += n
		default:
			r.AgainIdle += n
		}
	}
}

// ran adds what a machine cost that ended, or that the day left running.
func (r *Report) ran(w *world, m *machine) {
	since, until := m.Created, m.ended
	if until.IsZero() {
		until = w.clock.Now
		r.End += m.group.Price
	} else if until.After(w.from) {
		r.Removed++
	}
	if since.Before(w.from) {
		since = w.from
	}
	r.Bill += max(until.Sub(since).Hours(), 0) * m.group.Price
}

func (r *Report) finish(w *world) {
	for _, g := range w.groups {
		for _, m := range g.machines {
			if m.ended.IsZero() {
				r.ran(w, m)
			}
		}
	}
	for _, p := range w.pods {
		if p.node == nil && !p.deleting {
			r.Waiting++
			r.waited(w, p)
		}
	}
	slices.Sort(r.Waits)
	r.Bound, r.Karpenter = w.bound(), w.karpenter()
}

// bound is what the machines for the pods that are there cost at least, an hour.
func (w *world) bound() float64 {
	var pods []*corev1.Pod
	for _, p := range w.pods {
		if !p.deleting {
			o := p.object.DeepCopy()
			o.Spec.NodeName = ""
			pods = append(pods, o)
		}
	}
	if len(pods) == 0 {
		return 0
	}
	s := store.FromObjects(store.Objects{Pods: pods})
	pools, zones := make([]string, len(w.groups)), make([]string, len(w.groups))
	s.Now, s.Groups = w.clock.Now, w.day.Groups
	for i := range pools {
		pools[i], zones[i] = "main", "a"
	}
	count, tie, skew := make([]int, len(s.Classes)), make([]yardstick.Tie, len(s.Classes)), make([]int, len(s.Classes))
	for i := range s.Pods {
		count[s.Pods[i].Class]++
	}
	for i := range skew {
		skew[i] = 1
	}
	var kept cluster.Snapshot // classes of pods that are there
	kept.Now, kept.Groups = s.Now, s.Groups
	n := 0
	for c := range s.Classes {
		if count[c] > 0 {
			kept.Classes = append(kept.Classes, s.Classes[c])
			count[n], n = count[c], n+1
		}
	}
	return yardstick.NewMix(kept, count[:n], tie[:n], skew[:n], pools, zones).Bound()
}

// PodHours is how long all pods waited together.
func (r *Report) PodHours() (sum float64) {
	for _, d := range r.Waits {
		sum += d.Hours()
	}
	return sum
}

// Wait is how long the share q of pods waited at most.
func (r *Report) Wait(q float64) time.Duration {
	if len(r.Waits) == 0 {
		return 0
	}
	return r.Waits[min(int(q*float64(len(r.Waits))), len(r.Waits)-1)]
}

// String is one line of the log.
func (r *Report) String() string {
	return fmt.Sprintf("bill %7.2f, end %.2f of a bound of %.2f and %.2f by Karpenter's rule, %d pods waited %.2f h, p50 %s, p99 %s, %d wait at the end, %d evictions, %d machines started, %d again, %d removed, %d decisions in %s",
		r.Bill, r.End, r.Bound, r.Karpenter, len(r.Waits), r.PodHours(), r.Wait(0.5).Round(time.Second), r.Wait(0.99).Round(time.Second), r.Waiting, r.Evictions, r.Started, r.Again, r.Removed, r.Decisions, r.CPU.Round(time.Millisecond))
}

// Sum is a scaler's days together.
type Sum struct {
	Name    string
	days    int
	bill    float64 // logarithms, over that of the peer
	worst   float64 // bill over that of the peer
	kinds   map[string]*kindSum
	end     float64 // logarithms, over the bound
	ends    int
	rule    float64 // logarithms, the bill of the end over that after Karpenter's rule
	left    float64 // the same of the worst day
	waits   []time.Duration
	hours   float64
	reports Report // what adds up
}

// kindSum are the days of one kind.
type kindSum struct {
	days int
	bill float64 // logarithms, over that of the peer
}

// Add adds a day of a kind; peer is what the same day came to by the scaler that it is compared
// with.
func (s *Sum) Add(kind string, r, peer *Report) {
	s.days++
	over := r.Bill / peer.Bill
	if s.kinds == nil {
		s.kinds = map[string]*kindSum{}
	}
	if s.kinds[kind] == nil {
		s.kinds[kind] = &kindSum{}
	}
	s.kinds[kind].days++
	s.kinds[kind].bill += math.Log(over)
	s.bill, s.worst = s.bill+math.Log(over), max(s.worst, over)
	if r.Bound > 0 && r.End > 0 {
		s.end, s.ends = s.end+math.Log(r.End/r.Bound), s.ends+1
		s.rule, s.left = s.rule+math.Log(r.End/r.Karpenter), max(s.left, r.End/r.Karpenter)
	}
	s.waits, s.hours = append(s.waits, r.Waits...), s.hours+r.PodHours()
	t := &s.reports
	t.Spent.add(&r.Spent)
	t.AgainOrder, t.AgainEvicted, t.AgainIdle, t.AgainDear = t.AgainOrder+r.AgainOrder, t.AgainEvicted+r.AgainEvicted, t.AgainIdle+r.AgainIdle, t.AgainDear+r.AgainDear
	t.Bill += r.Bill
	t.Evictions, t.Started, t.Again, t.CPU, t.Waiting = t.Evictions+r.Evictions, t.Started+r.Started, t.Again+r.Again, t.CPU+r.CPU, t.Waiting+r.Waiting
}

// Bill is the geometric mean of the bills over those of the peer.
func (s *Sum) Bill() float64 { return math.Exp(s.bill / float64(max(s.days, 1))) }

// End is the geometric mean of the bills of the end of the days over their bounds.
func (s *Sum) End() float64 { return math.Exp(s.end / float64(max(s.ends, 1))) }

// Table is what all scalers came to, as Markdown.
func Table(sums []Sum) string {
	var b strings.Builder
	row := func(name string, cell func(s *Sum) string) {
		fmt.Fprintf(&b, "| %s |", name)
		for i := range sums {
			fmt.Fprintf(&b, " %s |", cell(&sums[i]))
		}
		b.WriteString("\n")
	}
	row("", func(s *Sum) string { return s.Name })
	row("---", func(*Sum) string { return "---:" })
	row("bill over that of the peer, geometric mean; worst day", func(s *Sum) string { return fmt.Sprintf("%.3f; %.2f", s.Bill(), s.worst) })
	for _, kind := range Kinds {
		if sums[0].kinds[kind] != nil {
			row("of "+kind+" days", func(s *Sum) string {
				return fmt.Sprintf("%.3f", math.Exp(s.kinds[kind].bill/float64(s.kinds[kind].days)))
			})
		}
	}
	row("bill at the day's end over a packing bound, geometric mean", func(s *Sum) string { return fmt.Sprintf("%.3f", s.End()) })
	row("the same over that after Karpenter's consolidation rule; worst day", func(s *Sum) string {
		return fmt.Sprintf("%.3f; %.2f", math.Exp(s.rule/float64(max(s.ends, 1))), s.left)
	})
	row("waiting, pod-hours a day; p50, p99, s", func(s *Sum) string {
		slices.Sort(s.waits)
		all := Report{Waits: s.waits}
		return fmt.Sprintf("%.2f; %.1f, %.0f", s.hours/float64(max(s.days, 1)), all.Wait(0.5).Seconds(), all.Wait(0.99).Seconds())
	})
	row("evictions", func(s *Sum) string { return fmt.Sprint(s.reports.Evictions) })
	row("machines started; bought within 10 minutes after a removal in that group", func(s *Sum) string {
		return fmt.Sprintf("%d; %d", s.reports.Started, s.reports.Again)
	})
	row("of these bought again: consolidation's own; for evicted pods alone; after an idle node went; after a dear one", func(s *Sum) string {
		t := &s.reports
		return fmt.Sprintf("%d; %d; %d; %d", t.AgainOrder, t.AgainEvicted, t.AgainIdle, t.AgainDear)
	})
	row("bill of all days over the bound of each moment", func(s *Sum) string { return fmt.Sprintf("%.3f", s.reports.Bill/s.reports.Spent.Bound) })
	row("% of the bill: booting; going; empty; at most half used; with a young pod; the rest", func(s *Sum) string { return shares(s.reports.Spent.Bill, s.reports.Bill) })
	row("of it over the bound", func(s *Sum) string { return shares(s.reports.Spent.Over, s.reports.Bill) })
	row("processor time of decisions, s a day", func(s *Sum) string {
		return fmt.Sprintf("%.2f", s.reports.CPU.Seconds()/float64(max(s.days, 1)))
	})
	return b.String()
}

// usage is the processor time of this process.
func usage() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// decided adds a decision.
func (r *Report) decided(w *world, took time.Duration) {
	if w.clock.Now.After(w.from) {
		r.Decisions++
		r.CPU += took
	}
}
