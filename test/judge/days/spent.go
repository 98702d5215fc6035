package days

import (
	"fmt"
	"strings"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/binpack"
	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// The parts of a bill, by what a machine is at a look.
const (
	booting = iota // it is not Ready yet
	going          // it is cordoned
	empty          // Ready without a pod
	half           // Ready, and at most half of cpu and of memory requested
	young          // Ready and used more, with a pod younger than an hour
	settled        // the rest
	parts
)

// Spent says what a bill is made of, in dollars, by looks once a minute.
type Spent struct {
	Bound float64        // what no set of machines for the pods of the moment can go below, by looks every ten minutes
	Bill  [parts]float64 // by part
	Over  [parts]float64 // what it is more than the share of its pods in the bound
	bound float64        // dollars an hour at the last look for it
}

// look counts what the machines of this moment cost until the next look.
func (w *world) look(every time.Duration) {
	w.clock.After(every, func() { w.look(every) })
	if w.clock.Now.Before(w.from) {
		return
	}
	s := &w.report.Spent
	if since := 10 * time.Minute; w.clock.Now.Sub(w.from)%since == 0 {
		s.bound = w.bound()
		s.Bound += s.bound * since.Hours()
	}
	all := 0.0
	for _, p := range w.pods {
		if !p.deleting {
			all += p.cores()
		}
	}
	for _, g := range w.groups {
		for _, m := range g.machines {
			if m.ended.IsZero() {
				part, cores := w.partOf(m)
				s.Bill[part] += every.Hours() * g.Price
				s.Over[part] += every.Hours() * (g.Price - cores/max(all, 1e-9)*s.bound)
			}
		}
	}
}

// cores weighs what a pod requests, as the engine does.
func (p *pod) cores() float64 {
	return binpack.CoreEquivalents(float64(p.service.Milli), float64(p.service.MiB<<20))
}

// partOf is the part of the bill that a machine belongs to now, and what its pods weigh.
func (w *world) partOf(m *machine) (part int, cores float64) {
	n := m.node
	if n == nil || !n.ready {
		return booting, 0
	}
	cpu, memory, fresh := int64(0), int64(0), false
	for _, p := range n.pods {
		cpu, memory, cores = cpu+p.service.Milli, memory+p.service.MiB<<20, cores+p.cores()
		fresh = fresh || w.clock.Now.Sub(p.object.CreationTimestamp.Time) < time.Hour
	}
	a := &m.group.Template.Allocatable
	switch {
	case w.tainted(n, cluster.TaintToBeDeleted):
		return going, cores
	case len(n.pods) == 0:
		return empty, 0
	case cpu*2 <= a.MilliCPU && memory*2 <= a.Memory:
		return half, cores
	case fresh:
		return young, cores
	}
	return settled, cores
}

func (s *Spent) add(o *Spent) {
	s.Bound += o.Bound
	for i := range parts {
		s.Bill[i] += o.Bill[i]
		s.Over[i] += o.Over[i]
	}
}

// shares are parts of a bill in per cent of the whole.
func shares(of [parts]float64, whole float64) string {
	var out []string
	for _, x := range of {
		out = append(out, fmt.Sprintf("%.1f", 100*x/max(whole, 1e-9)))
	}
	return strings.Join(out, "; ")
}
