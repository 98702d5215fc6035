// Package sim runs the decision engine against a whole day of a cluster in a few
// seconds: pods arrive and finish by day curves, controllers make them, a scheduler
// binds them, machines boot, join, fail or are taken away, and plan.Decide is called
// when the agent would call it, with what the agent would show it. Time is simulated
// and chance has a seed, so every run can be repeated.
//
// It refuses to look inside the engine (a Snapshot goes in, a Plan comes out), to
// touch a real cluster or cloud, and to excuse what it measures: a pod that waits
// longer than a decision and a boot is counted, and so is a machine that is bought
// right after one was removed by a scale-down.
package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/kelseyhightower/envconfig"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/test/judge/simtime"
)

// Options are what a run can be given.
type Options struct {
	Curve   string           // one of Curves
	Seed    uint64           // of everything that is left to chance
	Length  time.Duration    // simulated; 0: 24 hours
	Policy  *decision.Policy // nil: the agent's defaults
	Restart time.Duration    // mean time between restarts of the agent that lose its memory; 0: none
	ByAge   bool             // the scheduler takes waiting pods strictly by age; else those that it has backed off come last, as kube-scheduler does it
	Log     func(string)     // is told every action of the agent; nil: nobody
	Check   func(cluster.Snapshot, decision.Memory, decision.Policy, decision.Plan)
}

// Defaults is the policy of an agent whose operator has set nothing but the
// AUTOSCALER_SCALING_* variables of this process's environment.
func Defaults() (decision.Policy, error) {
	var p decision.Policy
	err := envconfig.Process("AUTOSCALER_SCALING", &p)
	return p, err
}

// midnight is when every simulated day begins: a Monday.
var midnight = time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC)

// world is the cluster, the cloud and the clock in one.
type world struct {
	opt    Options
	r      *rand.Rand
	policy decision.Policy
	clock  simtime.Clock
	end    time.Time

	classes  []cluster.PodClass
	services []*service
	daemons  []cluster.DaemonSet
	pods     []*pod
	pools    []*pool
	nodes    []*node
	byName   map[cluster.NodeName]*node
	serial   int
	starts   *starts // of machines whose Nodes are not at once what they are to be; nil: there are none

	agent     agent
	scheduler scheduler
	report    Report
}

// Run plays a curve and reports.
func Run(o Options) (Report, error) {
	i := slices.IndexFunc(Curves, func(c Curve) bool { return c.Name == o.Curve })
	if i < 0 {
		var names []string
		for _, c := range Curves {
			names = append(names, c.Name)
		}
		return Report{}, fmt.Errorf("no curve %q; there are %s", o.Curve, strings.Join(names, ", "))
	}
	return run(o, Curves[i].setup)
}

func run(o Options, setup func(*world)) (Report, error) {
	if o.Length == 0 {
		o.Length = 24 * time.Hour
	}
	w := &world{opt: o, r: rand.New(rand.NewPCG(o.Seed, 0x51ed)), byName: map[cluster.NodeName]*node{}}
	if o.Policy != nil {
		w.policy = *o.Policy
	} else {
		p, err := Defaults()
		if err != nil {
			return Report{}, err
		}
		w.policy = p
	}
	w.clock.Now, w.end = midnight, midnight.Add(o.Length)
	w.report.begin(w)
	setup(w)
	w.report.bound = decisionTime + max(w.slowestBoot(), slowestEnd)
	w.agent.start(w)
	w.every(time.Minute, w.sample)
	w.clock.Run(w.end, nil)
	w.report.finish(w)
	return w.report, nil
}

// slowestEnd is how long an evicted pod may wait whose topology spread counts its old node until the Node object is gone
// (nodeTaintsPolicy: Ignore): the last pod ends, the machine is ended (terminate), and the Node is deleted (vanish).
const slowestEnd = 10*time.Second + 40*time.Second + 60*time.Second

// decisionTime is what may pass between a pod's creation and the order for its machine:
// its controller makes its siblings, the scheduler fails it, the agent lets the burst
// settle, decides and calls the cloud.
const decisionTime = 5 * time.Second

func (w *world) at(t time.Time, do func())       { w.clock.At(t, do) }
func (w *world) after(d time.Duration, f func()) { w.clock.After(d, f) }

// every calls do now and then once in an interval.
func (w *world) every(d time.Duration, do func()) {
	w.after(0, func() {
		do()
		w.after(d, func() { w.every(d, do) })
	})
}

// between is a random time from lo to hi.
func (w *world) between(lo, hi time.Duration) time.Duration {
	if hi <= lo {
		return lo
	}
	return lo + time.Duration(w.r.Int64N(int64(hi-lo)))
}

func (w *world) log(format string, args ...any) {
	if w.opt.Log != nil {
		w.opt.Log(w.clock.Now.Format("15:04:05.0 ") + fmt.Sprintf(format, args...))
	}
}
