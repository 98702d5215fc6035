package sim

import (
	"fmt"
	"math"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

const (
	zoneLabel = "topology.kubernetes.io/zone"
	hostLabel = "kubernetes.io/hostname"
)

// Curve is one kind of day.
type Curve struct {
	Name string
	Doc  string
	// Losses tells that machines are lost, late or not to be had on this day, so that a
	// pod may wait for more than one of them.
	Losses bool
	setup  func(*world)
}

// Curves are the days that are ready made.
var Curves = []Curve{
	{"office", "people come at eight, have lunch and leave at six; six services of different size", false, office},
	{"night", "a small day, and a night of batch jobs of ten minutes to an hour", false, night},
	{"spiky", "a quiet service that is asked for ten times as much for a few minutes, again and again", false, spiky},
	{"ramp", "up without a break for ten hours, down for eight", false, ramp},
	{"sawtooth", "up slowly and down at once, every two hours", false, sawtooth},
	{"storms", "constant demand, and a deployment of everything every hour", false, storms},
	{"zones", "the office day in three zones: services spread over zones and over hosts, one that wants hosts of its own, one that stays together", false, zones},
	{"spot", "the office day on machines that are taken away now and then", true, spot},
	{"lemons", "the office day where one machine in fifteen never joins and a group is sold out in the morning", true, lemons},
}

// usualPools is the cloud of most days: a general group, one with more memory and one with
// few large machines.
func (w *world) usualPools(change func(*pool)) {
	w.pool("general", 4, 16, 0.192, 0, 60, change)
	w.pool("memory", 4, 32, 0.252, 0, 40, change)
	w.pool("large", 16, 64, 0.768, 0, 20, change)
	c := cluster.PodClass{Namespace: "kube-system", Labels: map[string]string{"app": "logs"}, Requests: cluster.Resources{MilliCPU: 100, Memory: 128 << 20, Pods: 1},
		Tolerations: []cluster.Toleration{{Operator: "Exists"}}}
	w.classes = append(w.classes, c)
	w.daemons = append(w.daemons, cluster.DaemonSet{Key: "kube-system/logs", UID: "ds-logs", Class: len(w.classes) - 1})
}

// usualServices are six services of an office; most have a budget.
func (w *world) usualServices() []*service {
	budget := func(_ *cluster.PodClass, s *service) { s.budget = true }
	return []*service{
		w.deployment("web", 250, 512, budget),
		w.deployment("api", 500, 1024, budget),
		w.deployment("search", 1000, 6144, budget),
		w.deployment("cache", 300, 4096, budget),
		w.deployment("worker", 1500, 2048, nil),
		w.deployment("front", 100, 128, func(_ *cluster.PodClass, s *service) { s.budget, s.priority = true, 100 }),
	}
}

// hours is the time of day.
func (w *world) hours() float64 { return w.clock.Now.Sub(midnight).Hours() }

// follow lets a service follow a curve, looked at once a minute, as a horizontal pod
// autoscaler does: up at once, down only to the most of the last five minutes, and not
// for a change of less than a tenth.
func (w *world) follow(s *service, curve func(hour float64) float64) {
	var recent []int
	w.every(time.Minute, func() {
		want := int(math.Round(curve(w.hours()) * (1 + 0.05*w.r.NormFloat64())))
		recent = append(recent, want)
		if len(recent) > 5 {
			recent = recent[1:]
		}
		target := want
		for _, n := range recent {
			target = max(target, n)
		}
		if d := math.Abs(float64(target - s.want)); s.want == 0 || d > 0.1*float64(s.want) {
			w.scale(s, target)
		}
	})
}

// officeHours is one at noon and small at night, with a dip for lunch.
func officeHours(h float64) float64 {
	rise := 1/(1+math.Exp(-(h-8)*2.2)) - 1/(1+math.Exp(-(h-18)*1.6))
	return 0.06 + 0.94*rise*(1-0.25*math.Exp(-(h-12.5)*(h-12.5)*2))
}

func (w *world) officeDay() {
	most := []float64{60, 40, 24, 20, 12, 80}
	for i, s := range w.usualServices() {
		shift := (w.r.Float64() - 0.5)
		w.follow(s, func(h float64) float64 { return most[i] * officeHours(h+shift) })
	}
}

func office(w *world) {
	w.usualPools(nil)
	w.officeDay()
}

func night(w *world) {
	w.usualPools(nil)
	for i, s := range w.usualServices() {
		w.follow(s, func(h float64) float64 { return []float64{10, 6, 4, 4, 2, 12}[i] * (0.6 + 0.4*officeHours(h)) })
	}
	small := w.deployment("report", 900, 1500, func(_ *cluster.PodClass, s *service) { s.job = true })
	big := w.deployment("train", 3000, 8000, func(_ *cluster.PodClass, s *service) { s.job, s.unsafe = true, true })
	var next func()
	next = func() {
		h := w.hours()
		rate := 0.02 // jobs a second
		if h < 5 || h > 22 {
			rate = 0.12
		}
		if w.r.IntN(4) == 0 {
			w.job(big, w.between(15*time.Minute, time.Hour))
		} else {
			w.job(small, w.between(10*time.Minute, 40*time.Minute))
		}
		w.after(time.Duration(w.r.ExpFloat64()/rate*float64(time.Second)), next)
	}
	next()
}

func spiky(w *world) {
	w.usualPools(nil)
	for i, s := range w.usualServices() {
		w.follow(s, func(float64) float64 { return []float64{8, 6, 4, 3, 2, 10}[i] })
	}
	spike := w.deployment("spike", 400, 700, func(_ *cluster.PodClass, s *service) { s.grace = 5 * time.Second })
	w.scale(spike, 5)
	var next func()
	next = func() {
		w.scale(spike, 30+w.r.IntN(120))
		w.after(w.between(3*time.Minute, 25*time.Minute), func() {
			w.scale(spike, 5)
			w.after(w.between(2*time.Minute, 60*time.Minute), next)
		})
	}
	w.after(10*time.Minute, next)
}

func ramp(w *world) {
	w.usualPools(nil)
	most := []float64{90, 60, 30, 30, 20, 100}
	for i, s := range w.usualServices() {
		w.follow(s, func(h float64) float64 {
			return most[i] * max(0.04, min((h-2)/10, (22-h)/8, 1))
		})
	}
}

func sawtooth(w *world) {
	w.usualPools(nil)
	most := []float64{60, 40, 20, 20, 12, 60}
	for i, s := range w.usualServices() {
		w.follow(s, func(h float64) float64 { return most[i] * (0.1 + 0.9*math.Mod(h+0.1*float64(i), 2)/2) })
	}
}

// storms replaces every service once an hour by one of a new revision: a quarter more
// first, then the old ones go as the new ones are up.
func storms(w *world) {
	w.usualPools(nil)
	replicas := []int{40, 24, 14, 12, 8, 50}
	live := w.usualServices()
	for i, s := range live {
		w.scale(s, replicas[i])
	}
	revision := 0
	w.after(time.Hour, func() {
		w.every(time.Hour, func() {
			revision++
			for i, old := range live {
				live[i] = w.rollOut(old, replicas[i], revision)
			}
		})
	})
}

// rollOut replaces a service step by step and returns the new one.
func (w *world) rollOut(old *service, replicas, revision int) *service {
	c := w.classes[old.class]
	s := w.deployment(fmt.Sprintf("%s-r%d", c.Labels["app"], revision), c.Requests.MilliCPU, c.Requests.Memory>>20, func(n *cluster.PodClass, s *service) {
		n.Labels = map[string]string{"app": c.Labels["app"], "pod-template-hash": fmt.Sprint("r", revision)}
		s.budget, s.priority, s.grace = old.budget, old.priority, old.grace
	})
	surge := (replicas + 3) / 4
	var step func()
	step = func() {
		up := 0
		for _, p := range s.live {
			if p.Node != "" && w.clock.Now.Sub(p.boundAt) > startup {
				up++
			}
		}
		w.scale(old, max(replicas-up, 0))
		w.scale(s, max(s.want, min(replicas, surge+up)))
		if old.want > 0 || s.want < replicas {
			w.after(5*time.Second, step)
		}
	}
	step()
	return s
}

// zones is the office day with pods that look at other pods.
func zones(w *world) {
	for _, zone := range []string{"zone-a", "zone-b", "zone-c"} {
		w.pool("general-"+zone, 4, 16, 0.192, 0, 60, func(p *pool) { p.Template.Labels[zoneLabel] = zone })
		w.pool("large-"+zone, 16, 64, 0.768, 0, 20, func(p *pool) { p.Template.Labels[zoneLabel] = zone })
	}
	own := func(c *cluster.PodClass) *cluster.Selector {
		return &cluster.Selector{Requirements: []cluster.Requirement{{Key: "app", Operator: "In", Values: []string{c.Labels["app"]}}}}
	}
	spread := func(key string, skew int) func(*cluster.PodClass, *service) {
		return func(c *cluster.PodClass, s *service) {
			s.budget = true
			c.Spread = []cluster.Spread{{TopologyKey: key, MaxSkew: skew, Selector: own(c)}}
		}
	}
	services := []*service{
		w.deployment("web", 250, 512, spread(zoneLabel, 1)),
		w.deployment("api", 500, 1024, spread(hostLabel, 2)),
		w.deployment("search", 1000, 6144, func(c *cluster.PodClass, s *service) {
			s.budget = true
			c.PodAntiAffinity = []cluster.PodTerm{{TopologyKey: hostLabel, Selector: own(c), Namespaces: []string{"default"}}}
		}),
		w.deployment("cache", 300, 4096, func(c *cluster.PodClass, s *service) {
			s.budget = true
			c.PodAffinity = []cluster.PodTerm{{TopologyKey: zoneLabel, Selector: own(c), Namespaces: []string{"default"}}}
		}),
		w.deployment("worker", 1500, 2048, nil),
	}
	for i, s := range services {
		shift := w.r.Float64() - 0.5
		w.follow(s, func(h float64) float64 { return []float64{60, 40, 12, 20, 12}[i] * officeHours(h+shift) })
	}
}

func spot(w *world) {
	w.usualPools(nil)
	w.officeDay()
	for _, p := range w.pools {
		var next func()
		next = func() {
			w.interrupt(p)
			w.after(time.Duration(w.r.ExpFloat64()*float64(40*time.Minute)), next)
		}
		w.after(time.Hour, next)
	}
}

func lemons(w *world) {
	w.usualPools(func(p *pool) { p.never = 1.0 / 15 })
	w.pools[0].dry = func(t time.Time) bool {
		h := t.Sub(midnight).Hours()
		return h > 8 && h < 9.5
	}
	w.pools[0].dryText = "InsufficientInstanceCapacity: We currently do not have sufficient m5.xlarge capacity in the Availability Zone you requested (zone-a)"
	w.officeDay()
}
