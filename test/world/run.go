package world

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"maps"
	mathrand "math/rand/v2"
	"net"
	"slices"
	"strings"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"

	"github.com/autoscaler-agent/autoscaler-agent/agent/config"
)

// Play is what is played: a seed draws everything that Faults does not say.
type Play struct {
	Dir    string
	Env    config.Config
	Seed   uint64
	Length time.Duration // simulated; 0: an act
	Tempo  int           // 0: by the seed; see tempoOf
	Agents int           // 0: by the seed, 1 to 3
	Faults []Fault       // nil: as Draw draws them
}

// Report is what a play came to.
type Report struct {
	Violations []string
	Faults     []Fault
	Story      string
	Hours      float64
	Requests   map[string]int

	raises int
}

// String is the report as one reads it.
func (r Report) String() string {
	var out strings.Builder
	for _, v := range r.Violations {
		fmt.Fprintln(&out, "VIOLATION", v)
	}
	for _, f := range r.Faults {
		fmt.Fprintln(&out, "  ", f)
	}
	return out.String()
}

// workloads are what users scale; Replicas is the most.
var workloads = []Workload{
	{Name: "web", Replicas: 60, MilliCPU: 500, Memory: 512 << 20},
	{Name: "api", Replicas: 20, MilliCPU: 1500, Memory: 2 << 30},
	{Name: "big", Replicas: 8, MilliCPU: 3000, Memory: 8 << 30},
}

// groupsOf draws the groups: one, or two among which an agent chooses.
func groupsOf(r *mathrand.Rand) []Group {
	out := []Group{{"workers", "m5.xlarge", r.IntN(3), 60}}
	if r.IntN(2) == 0 {
		out = append(out, Group{"others", []string{"m5.xlarge", "m5.2xlarge"}[r.IntN(2)], 0, []int{60, 2}[r.IntN(2)]})
	}
	return out
}

// tempoOf is the tempo of a seed: three in four worlds are brisk. Their agents' times are a third of the usual ones, and so are
// the storms, their pauses and what the judge grants, so that as much goes wrong in a third of the time. What machines and networks
// take is the same.
func tempoOf(seed uint64) int {
	if mathrand.New(mathrand.NewPCG(seed, 5)).IntN(4) == 0 {
		return 1
	}
	return 3
}

// hurried are an agent's times at a tempo.
func hurried(c config.Config, tempo int) config.Config {
	s, n := &c.Scaling, &c.Nodecleaner
	for _, d := range []*time.Duration{&s.BurstHold, &s.Patience, &s.MaxNodeProvisionTime, &s.MaxNodeStartupTime, &s.BackoffInitial, &s.BackoffMax, &s.BackoffReset, &s.UnneededFor, &s.UnreadyFor,
		&s.DelayAfterAdd, &s.DelayAfterFailure, &s.ConsolidateAfter, &s.ReplaceSettleTime, &n.SightInterval, &n.SentGrace, &n.Grace, &n.KnownFor, &n.MassHold, &n.FreezeFor, &n.BreakWithin} {
		*d /= time.Duration(tempo)
	}
	if tempo > 1 {
		c.Bootstrap.TokenTTL = 40 * time.Minute
	}
	return c
}

// brisk is a time of the agents, or of the judge, in this world.
func (w *World) brisk(d time.Duration) time.Duration { return d / time.Duration(max(1, w.tempo)) }

// Run plays in the bubble that it is called in.
func Run(p Play) (Report, error) {
	r := mathrand.New(mathrand.NewPCG(p.Seed, 3))
	if p.Agents == 0 {
		p.Agents = []int{1, 1, 1, 2, 2, 3}[r.IntN(6)]
	}
	if p.Tempo == 0 {
		p.Tempo = tempoOf(p.Seed)
	}
	act := actLength / time.Duration(p.Tempo)
	p.Length = max(p.Length, act)
	if p.Faults == nil {
		p.Faults = Draw(p.Seed, p.Length, p.Agents, p.Tempo)
	}
	w, err := New(Options{Dir: p.Dir, Seed: p.Seed, Agents: p.Agents, Env: hurried(p.Env, p.Tempo), Groups: groupsOf(r), tempo: p.Tempo})
	if err != nil {
		return Report{}, err
	}
	w.mu.Lock()
	w.faults.random = mathrand.New(mathrand.NewPCG(p.Seed, 4))
	w.after(time.Minute, w.watch.look)
	w.after(w.brisk(20*time.Minute), w.backup)
	for _, v := range workloads {
		v.Budget = r.IntN(2) == 0
		most := v.Replicas
		v.Replicas = r.IntN(most / 2)
		if err := w.PutWorkload(v); err != nil {
			return Report{}, err
		}
	}
	for _, f := range p.Faults {
		w.after(f.At, func() { w.begin(f) })
	}
	for at := act; at <= p.Length; at += act {
		w.after(at-time.Second, w.watch.settled)
	}
	w.mu.Unlock()
	w.Start()
	for t := time.Duration(0); t < p.Length && len(w.watch.violations()) == 0; t += time.Minute {
		time.Sleep(time.Minute)
	}
	out := Report{Violations: w.watch.violations(), Faults: p.Faults, Hours: time.Since(w.Began).Hours()}
	w.watch.mu.Lock()
	out.Requests, out.raises = maps.Clone(w.watch.requests), w.watch.mostRaises
	w.watch.mu.Unlock()
	out.Story = w.Story(20000)
	w.Close()
	return out, nil
}

func (j *judge) violations() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.found)
}

// Shrink drops faults, halves first and then one at a time, while the play still ends in a violation. play runs a play in a
// bubble of its own.
func Shrink(faults []Fault, play func([]Fault) bool) []Fault {
	for size := (len(faults) + 1) / 2; size > 0; size /= 2 {
		for from := 0; from < len(faults); {
			less := slices.Concat(faults[:from], faults[min(from+size, len(faults)):])
			if play(less) {
				faults = less
			} else {
				from += size
			}
		}
	}
	return faults
}

// steal asks for a certificate that nobody may get.
func (w *World) steal(f Fault) {
	if what := f.N % 5; what >= 2 {
		w.hurt(f, func(m *machine) {
			t, why := m.serving(), "the machine has another address than 10.9.9.9"
			switch what {
			case 2:
				t, why = m.serving("www.example.com"), "the cloud does not know www.example.com"
			case 3:
				t.IPAddresses = append(t.IPAddresses, net.IPv4(10, 9, 9, 9))
			case 4:
				t.Subject.CommonName, why = "system:node:ip-10-9-9-9.ec2.internal", "it is not the requester's own"
			}
			w.stolen(w.request(m, t, certificatesv1.KubeletServingSignerName, certificatesv1.UsageServerAuth, "system:node:"+m.name, []string{"system:nodes"}), why)
		})
		return
	}
	id, groups := w.joinToken()
	if id == "" {
		return
	}
	key, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	m := &machine{name: "ip-10-9-9-9.ec2.internal", key: key}
	why := "nobody has that name"
	if all := w.fleet.list(); f.N%5 == 0 && len(all) > 0 {
		is := all[f.N/5%len(all)]
		if !is.node {
			return
		}
		m.name, why = is.name, "the machine of that name, "+is.ID+", has another key"
	}
	t := &x509.CertificateRequest{Subject: pkix.Name{CommonName: "system:node:" + m.name, Organization: []string{"system:nodes"}}}
	name := w.request(m, t, certificatesv1.KubeAPIServerClientKubeletSignerName, certificatesv1.UsageClientAuth, "system:bootstrap:"+id, append([]string{"system:bootstrappers"}, groups...))
	w.stolen(name, why)
}

// stolen notes a request that nobody may approve.
func (w *World) stolen(request, why string) {
	w.watch.mu.Lock()
	defer w.watch.mu.Unlock()
	w.watch.stolen[request] = why
}
