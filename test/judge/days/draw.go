package days

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	asgtypes "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	corev1 "k8s.io/api/core/v1"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/asg/price"
)

const (
	warmUp = time.Hour // is played and not counted
	length = warmUp + 24*time.Hour
)

// begin is when days begin: 23:00 of a Sunday.
var begin = time.Date(2026, 1, 4, 23, 0, 0, 0, time.UTC)

// Day is what is asked of a cluster on one day, and what machines it may have.
type Day struct {
	Kind   string
	Seed   uint64
	Groups []cluster.NodeGroup // Price is that of AWS's price list
	Work   []Workload
	Demand []Demand // by time
}

// Workload is a Deployment, or Jobs of one pod each.
type Workload struct {
	Name        string
	Milli, MiB  int64
	Job, Budget bool // Budget: a PodDisruptionBudget of maxUnavailable 25 %
}

// Demand is one change of a workload.
type Demand struct {
	At       time.Duration // since begin
	Work     int
	Replicas int           // of a Deployment from now on
	Roll     bool          // the Deployment gets a new template
	Runs     time.Duration // a Job is submitted that runs so long
}

// Kinds are the kinds of days, and what draws the demand of each.
var Kinds = []string{"office", "batch", "nightly", "rolling", "decay", "random"}

type drawer struct {
	*rand.Rand
	d *Day
}

// Draw makes the day of a kind and a seed.
func Draw(kind string, seed uint64) (*Day, error) {
	i := slices.Index(Kinds, kind)
	if i < 0 {
		return nil, fmt.Errorf("no kind of day %q; there are %v", kind, Kinds)
	}
	d := &drawer{rand.New(rand.NewPCG(seed, 0xda75+uint64(i))), &Day{Kind: kind, Seed: seed}}
	d.groups()
	for range 4 + d.IntN(7) {
		d.workload(false)
	}
	[]func(){d.office, d.batch, d.nightly, d.rolling, d.decay, d.noPattern}[i]()
	slices.SortStableFunc(d.d.Demand, func(a, b Demand) int { return cmp.Compare(a.At, b.At) })
	return d.d, nil
}

// groups draws 3 to 8 types of EC2, of large to 4xlarge, with what EKS leaves allocatable.
func (d *drawer) groups() {
	families := []struct {
		name string
		gib  int64 // by core
	}{{"c5", 2}, {"m5", 4}, {"r5", 8}, {"c6i", 2}, {"m6i", 4}, {"r6i", 8}, {"c6a", 2}, {"m6a", 4}, {"r6a", 8}, {"c7a", 2}, {"m7a", 4}}
	sizes := []struct {
		name              string
		cores, kept, pods int64
	}{{"large", 2, 70, 29}, {"xlarge", 4, 80, 58}, {"2xlarge", 8, 90, 58}, {"4xlarge", 16, 110, 234}}
	seen := map[string]bool{}
	for n := 3 + d.IntN(6); len(d.d.Groups) < n; {
		f, s := families[d.IntN(len(families))], sizes[d.IntN(len(sizes))]
		name := f.name + "." + s.name
		if seen[name] {
			continue
		}
		seen[name] = true
		bytes := s.cores * f.gib << 30
		capacity := cluster.Resources{MilliCPU: s.cores * 1000, Memory: bytes, Pods: s.pods}
		left := cluster.Resources{MilliCPU: s.cores*1000 - s.kept, Memory: bytes - bytes/50 - (355+11*s.pods)<<20, Pods: s.pods}
		p := price.PerHour(asgtypes.AutoScalingGroup{}, []price.Type{{Name: name, Capacity: capacity}}, false, price.Listed{}, price.Market{})
		d.d.Groups = append(d.d.Groups, cluster.NodeGroup{ID: cluster.GroupID(fmt.Sprintf("g%d-%s", len(d.d.Groups), name)), Max: 1000, Price: p.Hour, PriceSource: p.Source,
			Template: cluster.Template{Spec: "lt-1", Capacity: capacity, Allocatable: left,
				Labels: map[string]string{corev1.LabelInstanceTypeStable: name, corev1.LabelTopologyZone: "a", corev1.LabelOSStable: "linux", corev1.LabelArchStable: "amd64"}}})
	}
}

// workload draws a workload of which half a machine of some group takes a pod, and returns its index.
func (d *drawer) workload(job bool) int {
	w := Workload{Name: fmt.Sprintf("work%02d", len(d.d.Work)), Job: job, Budget: !job && d.IntN(2) == 0}
	for fits := false; !fits; {
		w.Milli = []int64{100, 200, 250, 500, 750, 1000, 1500, 2000, 3000}[d.IntN(9)]
		w.MiB = w.Milli * []int64{1, 2, 3, 4, 6, 8}[d.IntN(6)] * 9 / 10
		for _, g := range d.d.Groups {
			fits = fits || 2*w.Milli <= g.Template.Allocatable.MilliCPU && 2*w.MiB<<20 <= g.Template.Allocatable.Memory
		}
	}
	d.d.Work = append(d.d.Work, w)
	return len(d.d.Work) - 1
}

func (d *drawer) scale(at time.Duration, work int, replicas float64) {
	d.d.Demand = append(d.d.Demand, Demand{At: at, Work: work, Replicas: max(int(replicas+0.5), 1)})
}

// within is a random time from lo to hi.
func (d *drawer) within(lo, hi time.Duration) time.Duration {
	return lo + time.Duration(d.Int64N(int64(hi-lo)))
}

// pods is a number of replicas that takes about so many cores.
func (d *drawer) pods(work int, lo, hi float64) float64 {
	return (lo + (hi-lo)*d.Float64()) * 1000 / float64(d.d.Work[work].Milli)
}
