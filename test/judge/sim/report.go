package sim

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
)

// Report is what a day came to.
type Report struct {
	Curve string
	Seed  uint64

	created   int
	pending   []time.Duration // of every pod that was bound or given up
	Late      int             // pods that waited longer than the bound, without a reason that was given
	LateHeld  int             // the same, with a reason
	Overtaken int             // pods that waited longer than the bound because the scheduler gave the room that was bought for them to others; not longer than the bound since
	WorstLate string          // the worst of Late, for people
	bound     time.Duration   // decision and the slowest boot that the cloud knows
	worst     time.Duration

	Machines                 int // launched
	NeverJoined, Interrupted int
	NodeHours                float64
	Cost                     float64
	Grows, Terminates        int
	Evictions, TookBack      int
	Rounds, Reads, Restarts  int
	Flaps                    int      // bought within the group's unneeded time of one removed, without new demand
	Rebought                 int      // the same, with or without new demand
	FlapWords                []string // what each flap was
	Deciding                 time.Duration
	Boots                    []time.Duration
	requested, allocatable   float64 // cpu over time
	samples                  []sample
	unneededFor              time.Duration
	started, last            time.Time
	stillWaiting             int
}

type sample struct{ running, waiting, machines int }

// removal is one machine that the agent removed.
type removal struct {
	at   time.Time
	node cluster.NodeName
}

func (r *Report) begin(w *world) {
	r.Curve, r.Seed, r.started = w.opt.Curve, w.opt.Seed, w.clock.Now
	r.unneededFor = w.policy.UnneededFor
}

// waited notes how long a pod waited, from its creation to its node.
func (r *Report) waited(w *world, p *pod, gaveUp bool) {
	if p.service == nil {
		return
	}
	took := w.clock.Now.Sub(p.Created.Time())
	r.pending = append(r.pending, took)
	if took <= r.bound {
		return
	}
	if p.held {
		r.LateHeld++
		return
	}
	if w.clock.Now.Sub(p.overtaken) <= r.bound {
		r.Overtaken++
		w.log("overtaken: %s waited %s", p.Key, took.Round(time.Second))
		return
	}
	r.Late++
	if took > r.worst {
		r.worst = took
		r.WorstLate = fmt.Sprintf("%s, made at %s, waited %s (bound %s)", p.Key, p.Created.Time().Format("15:04:05"), took.Round(time.Second), r.bound)
	}
	w.log("LATE: %s waited %s; gave up: %v", p.Key, took.Round(time.Second), gaveUp)
}

// held marks the pods of whose class the agent said why they wait: any reason but
// that room is there or coming.
func (r *Report) held(w *world, p decision.Plan) {
	for _, h := range p.Held {
		if h.Kind != "pod" || h.Rule == decision.RuleRoomOnNode || h.Rule == decision.RuleRoomUpcoming {
			continue
		}
		i := slices.IndexFunc(w.pods, func(x *pod) bool { return string(x.Key) == h.Name })
		if i < 0 {
			continue
		}
		for _, x := range w.pods {
			if x.waiting() && x.Class == w.pods[i].Class {
				x.held = true
			}
		}
	}
}

func (r *Report) boot(d time.Duration) { r.Boots = append(r.Boots, d) }

// ran adds a machine that is gone.
func (r *Report) ran(m *machine) {
	h := m.ended.Sub(m.Created).Hours()
	r.NodeHours += h
	r.Cost += h * m.pool.price
}

// sent notes a machine that the agent sends away, and when it decided that: of pods that were asked for since, it knew nothing.
func (r *Report) sent(m *machine, decided time.Time) {
	r.Terminates++
	if m.node != nil {
		m.pool.removed = append(m.pool.removed, removal{decided, m.node.Name})
	}
}

// bought judges a purchase. It is a flap when the group lost a machine within its
// unneeded time and none of the pods that the purchase is for was asked for since:
// then the machine should have stayed. A pod that was evicted and one that went with
// another machine are no new demand; the latter is a loss, and no flap either. New demand may also have taken the room of an
// evicted pod: see displaced.
func (r *Report) bought(w *world, p *pool, x decision.Grow) {
	unneeded := r.unneededFor
	if o := p.Options.ScaleDownUnneededTime; o != nil {
		unneeded = *o
	}
	since := time.Time{}
	for _, m := range p.removed {
		if w.clock.Now.Sub(m.at) <= unneeded && (since.IsZero() || m.at.Before(since)) {
			since = m.at
		}
	}
	if since.IsZero() {
		return
	}
	r.Rebought++
	if x.Rule == decision.RuleConsolidate { // it takes the place of machines that go
		return
	}
	fresh := x.Expected
	for _, key := range x.Pods {
		i := slices.IndexFunc(w.pods, func(q *pod) bool { return q.Key == key })
		if i >= 0 && (w.pods[i].birth == demanded && w.pods[i].Created.Time().After(since) || w.pods[i].birth == lost) {
			fresh++
		}
	}
	if fresh > 0 || w.displaced(x.Pods, since) {
		return
	}
	r.Flaps++
	words := fmt.Sprintf("%s: %s; sent one away at %s", w.clock.Now.Format("15:04:05"), x, since.Format("15:04:05"))
	r.FlapWords = append(r.FlapWords, words)
	w.log("FLAP: %s", words)
}

// displaced tells whether one of the pods of a purchase would have room in place of a pod that was asked for since a time.
func (w *world) displaced(pods []cluster.PodKey, since time.Time) bool {
	for _, p := range w.pods {
		if !slices.Contains(pods, p.Key) {
			continue
		}
		for _, n := range w.nodes {
			for _, q := range n.pods {
				left := n.Allocatable.Sub(n.used).Add(w.classes[q.Class].Requests).Sub(w.classes[p.Class].Requests)
				if q.birth == demanded && q.Created.Time().After(since) && left.MilliCPU >= 0 && left.Memory >= 0 && left.Pods >= 0 {
					return true
				}
			}
		}
	}
	return false
}

// sample is called once a minute.
func (w *world) sample() {
	s := sample{}
	for _, p := range w.pods {
		switch {
		case p.service == nil || p.Finished:
		case p.Node != "":
			s.running++
			w.report.requested += float64(w.classes[p.Class].Requests.MilliCPU)
		case p.waiting():
			s.waiting++
		}
	}
	for _, p := range w.pools {
		for _, m := range p.machines {
			if m.ended.IsZero() {
				s.machines++
				w.report.allocatable += float64(p.Template.Allocatable.MilliCPU)
			}
		}
	}
	w.report.samples = append(w.report.samples, s)
}

// finish counts what still runs and what still waits.
func (r *Report) finish(w *world) {
	r.last = w.clock.Now
	for _, p := range w.pools {
		for _, m := range p.machines {
			if m.ended.IsZero() {
				m.ended = w.clock.Now
				r.ran(m)
			}
		}
	}
	for _, p := range w.pods {
		if p.waiting() {
			r.stillWaiting++
			if w.clock.Now.Sub(p.Created.Time()) > r.bound {
				r.waited(w, p, true)
			}
		}
	}
	slices.Sort(r.pending)
	slices.Sort(r.Boots)
}

// Pending is the share q of pods that waited at most this long.
func (r *Report) Pending(q float64) time.Duration { return quantile(r.pending, q) }

func quantile(sorted []time.Duration, q float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(int(q*float64(len(sorted))), len(sorted)-1)]
}

func mean(all []time.Duration) time.Duration {
	var sum time.Duration
	for _, d := range all {
		sum += d
	}
	return sum / time.Duration(max(len(all), 1))
}

// Print writes the report for people.
func (r *Report) Print(w io.Writer) {
	tenth := func(d time.Duration) time.Duration { return d.Round(100 * time.Millisecond) }
	fmt.Fprintf(w, "curve %s, seed %d, %s simulated\n\n", r.Curve, r.Seed, r.last.Sub(r.started))
	fmt.Fprintf(w, "  pods            %d made; waited mean %s, half %s, p99 %s, most %s\n", r.created,
		tenth(mean(r.pending)), tenth(r.Pending(0.5)), tenth(r.Pending(0.99)), tenth(r.Pending(1)))
	fmt.Fprintf(w, "  over the bound  %d; %d held with a reason, %d overtaken by others in the scheduler's queue (the bound is %s)\n", r.Late, r.LateHeld, r.Overtaken, r.bound)
	if r.WorstLate != "" {
		fmt.Fprintf(w, "                  %s\n", r.WorstLate)
	}
	fmt.Fprintf(w, "  machines        %d launched, boot to Ready %s to %s; %d never joined, %d taken away by the cloud\n", r.Machines,
		tenth(quantile(r.Boots, 0)), tenth(quantile(r.Boots, 1)), r.NeverJoined, r.Interrupted)
	fmt.Fprintf(w, "  node-hours      %.1f, cost %.2f, requests fill %.0f %% of the cpu\n", r.NodeHours, r.Cost, 100*r.requested/max(r.allocatable, 1))
	fmt.Fprintf(w, "  calls           %d to grow, %d to terminate, %d evictions, %d marks taken back; %d reads of the cloud\n", r.Grows, r.Terminates, r.Evictions, r.TookBack, r.Reads)
	fmt.Fprintf(w, "  flaps           %d; %d purchases followed a removal within the unneeded time in all\n", r.Flaps, r.Rebought)
	for _, f := range r.FlapWords {
		fmt.Fprintf(w, "                  %s\n", f)
	}
	fmt.Fprintf(w, "  rounds          %d, %s each; %d restarts\n\n", r.Rounds, (r.Deciding / time.Duration(max(r.Rounds, 1))).Round(time.Microsecond), r.Restarts)
	r.Chart(w)
}

const (
	chartWide = 72
	chartHigh = 8
)

// Chart draws pods and machines over the day: # runs, + waits.
func (r *Report) Chart(w io.Writer) {
	if len(r.samples) == 0 {
		return
	}
	cols := make([]sample, chartWide)
	for i, s := range r.samples {
		c := &cols[i*chartWide/len(r.samples)]
		c.running, c.waiting, c.machines = max(c.running, s.running), max(c.waiting, s.waiting), max(c.machines, s.machines)
	}
	pods, machines := 1, 1
	for _, c := range cols {
		pods, machines = max(pods, c.running+c.waiting), max(machines, c.machines)
	}
	draw := func(title string, top int, cell func(sample) (int, int)) {
		fmt.Fprintf(w, "%s\n", title)
		for row := chartHigh; row > 0; row-- {
			line := make([]byte, chartWide)
			for i, c := range cols {
				low, high := cell(c)
				switch need := (2*row - 1) * top; {
				case 2*chartHigh*low >= need:
					line[i] = '#'
				case 2*chartHigh*(low+high) >= need:
					line[i] = '+'
				default:
					line[i] = ' '
				}
			}
			fmt.Fprintf(w, "%6d |%s\n", top*row/chartHigh, strings.TrimRight(string(line), " "))
		}
		fmt.Fprintf(w, "       +%s\n", strings.Repeat("-", chartWide))
	}
	draw("  pods (# bound, + waiting)", pods, func(s sample) (int, int) { return s.running, s.waiting })
	draw("  machines", machines, func(s sample) (int, int) { return s.machines, 0 })
	axis := []byte(strings.Repeat(" ", chartWide+1))
	hours := r.last.Sub(r.started).Hours()
	for k := range 9 {
		copy(axis[k*chartWide/8:], fmt.Sprintf("%02.0f", hours*float64(k)/8))
	}
	fmt.Fprintf(w, "        %s hours\n", strings.TrimRight(string(axis), " "))
}
