// Package yardstick buys machines as others do, to hold plan.Decide's purchases
// against: Cluster Autoscaler's rule (its bin-packing estimator per group, one group a
// round, the expander least-waste), Karpenter's rule (first fit decreasing over all
// instance types at once), and a lower bound that no purchase can go below (column
// generation). All three are written anew from what the originals do.
//
// It refuses to flatter: where a rule leaves something to chance, the choice here is
// one that the original could make, never one that it could not.
package yardstick

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/binpack"
	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/fit"
)

const (
	zoneLabel = "topology.kubernetes.io/zone"
	hostLabel = "kubernetes.io/hostname"
)

// Tie is what binds the pods of a class to each other.
type Tie int

// The ties that a mix may have; all of them select the class's own label.
const (
	Free       Tie = iota
	AntiHost       // required anti-affinity on the hostname
	SpreadHost     // DoNotSchedule spread over hostnames
	SpreadZone     // DoNotSchedule spread over zones
	TogetherIn     // required affinity in the zone
)

// Mix is one question: pods of some classes wait, and nothing is there.
type Mix struct {
	Seed     uint64
	Snapshot cluster.Snapshot
	Count    []int // pods by class
	Tie      []Tie // by class
	Skew     []int
	Like     []int    // by class, a class whose ties count the same pods; nil: every class counts its own
	Pool     []string // by group: groups of one pool differ by machine type and zone only
	Zone     []string // by group

	space  *fit.Dimensions
	empty  [][]int64 // room of a group's machine
	shapes []fit.NodeInfo
	fits   [][]bool // by class and group: whether a machine of it takes one pod at all
}

// machine types: cores, GiB, and the price in thousandths; odd prices on purpose.
var types = []struct{ cores, gib, milli int64 }{
	{2, 4, 85}, {2, 8, 96}, {2, 16, 126}, {4, 8, 170}, {4, 16, 192}, {4, 32, 252}, {8, 16, 340}, {8, 32, 384}, {8, 64, 504},
	{16, 32, 680}, {16, 64, 768}, {16, 128, 1008}, {32, 64, 1360}, {32, 128, 1536}, {48, 96, 2040}, {48, 192, 2304},
}

var start = time.Date(2026, 1, 5, 8, 0, 0, 0, time.UTC)

// Generate makes the mix of a seed. most bounds the number of classes.
func Generate(seed uint64, most int) *Mix {
	r := rand.New(rand.NewPCG(seed, 0x9a4d))
	m := &Mix{Seed: seed}
	equal := r.IntN(4) == 0 // every machine costs the same
	m.Snapshot.Now = start
	m.groups(r, equal)
	return m.classes(r, most)
}

// GeneratePool makes a mix whose groups are 40 machine types in three zones, of three shares of memory and several generations.
func GeneratePool(seed uint64, most int) *Mix {
	r := rand.New(rand.NewPCG(seed, 0x9001))
	m := &Mix{Seed: seed}
	m.Snapshot.Now = start
	for i := range 40 {
		cores, share := []int64{2, 4, 8, 16, 32, 48}[r.IntN(6)], r.IntN(3)
		price := math.Round(float64(cores)*[]float64{42.5, 48, 63}[share]*(0.85+0.3*r.Float64())) / 1000
		for _, zone := range []string{"a", "b", "c"} {
			m.group(i, cores, cores*[]int64{2, 4, 8}[share], "main", zone, price)
		}
	}
	return m.classes(r, most)
}

// classes adds the pods.
func (m *Mix) classes(r *rand.Rand, most int) *Mix {
	tied := r.IntN(5) < 2
	classes := 1 + r.IntN([]int{8, 60, most}[min(r.IntN(5), 4)%3])
	pods := 1 + r.IntN(60)
	if tied {
		classes, pods = min(classes, 40), 1+r.IntN(30)
	}
	for range classes {
		m.class(r, tied, 1+r.IntN(pods))
	}
	m.index()
	return m
}

func (m *Mix) groups(r *rand.Rand, equal bool) {
	zones := []string{"a", "b", "c"}[:1+r.IntN(3)]
	pools := []string{"main"}
	if r.IntN(3) == 0 {
		pools = append(pools, "special")
	}
	for i := range 1 + r.IntN(20) {
		t := types[r.IntN(len(types))]
		pool, zone := pools[r.IntN(len(pools))], zones[r.IntN(len(zones))]
		if i == 0 {
			pool = "main"
		}
		price := math.Round(float64(t.milli)*(0.9+0.2*r.Float64())) / 1000
		if equal {
			price = 1
		}
		m.group(i, t.cores, t.gib, pool, zone, price)
	}
}

func (m *Mix) group(i int, cores, gib int64, pool, zone string, price float64) {
	g := cluster.NodeGroup{ID: cluster.GroupID(fmt.Sprintf("g%02d-%dx%d", i, cores, gib)), Max: 100000, ReadAt: start, Price: price,
		Template: cluster.Template{Spec: "lt", Capacity: cluster.Resources{MilliCPU: cores * 1000, Memory: gib << 30, Pods: 110},
			Allocatable: cluster.Resources{MilliCPU: cores*1000 - 200, Memory: gib<<30 - 612<<20, Pods: 110},
			Labels:      map[string]string{"pool": pool, zoneLabel: zone, "type": fmt.Sprintf("%dx%d", cores, gib)}}}
	if slices.ContainsFunc(m.Snapshot.Groups, func(o cluster.NodeGroup) bool { return o.ID == g.ID }) {
		g.ID += cluster.GroupID("-" + zone)
	}
	if pool == "special" {
		g.Template.Taints = []cluster.Taint{{Key: "special", Effect: "NoSchedule"}}
	}
	m.Snapshot.Groups = append(m.Snapshot.Groups, g)
	m.Pool, m.Zone = append(m.Pool, pool), append(m.Zone, zone)
}

// class adds one class of pods that some group can take.
func (m *Mix) class(r *rand.Rand, tied bool, count int) {
	i := len(m.Snapshot.Classes)
	app := fmt.Sprintf("app-%03d", i)
	c := cluster.PodClass{Namespace: "default", Labels: map[string]string{"app": app}, Requests: cluster.Resources{Pods: 1,
		MilliCPU: []int64{50, 100, 250, 500, 750, 1000, 1500, 2000, 4000}[r.IntN(9)] + 10*r.Int64N(10),
		Memory:   []int64{64, 128, 256, 512, 1024, 2048, 4096, 8192}[r.IntN(8)]<<20 + r.Int64N(16)<<22}}
	if r.IntN(4) == 0 {
		c.Tolerations = []cluster.Toleration{{Key: "special", Operator: "Exists"}}
		if r.IntN(2) == 0 && slices.Contains(m.Pool, "special") {
			c.NodeSelector = map[string]string{"pool": "special"}
		}
	}
	tie, skew := Free, 1
	if tied && r.IntN(2) == 0 {
		tie = []Tie{AntiHost, SpreadHost, SpreadZone, TogetherIn}[r.IntN(4)]
		skew = 1 + r.IntN(3)
		own := &cluster.Selector{Requirements: []cluster.Requirement{{Key: "app", Operator: "In", Values: []string{app}}}}
		switch tie {
		case AntiHost:
			count = min(count, 20)
			c.PodAntiAffinity = []cluster.PodTerm{{TopologyKey: hostLabel, Selector: own, Namespaces: []string{"default"}}}
		case SpreadHost:
			c.Spread = []cluster.Spread{{TopologyKey: hostLabel, MaxSkew: skew, Selector: own}}
		case SpreadZone:
			c.Spread = []cluster.Spread{{TopologyKey: zoneLabel, MaxSkew: skew, Selector: own}}
		case TogetherIn:
			c.PodAffinity = []cluster.PodTerm{{TopologyKey: zoneLabel, Selector: own, Namespaces: []string{"default"}}}
		}
	}
	fits := false
	for g := range m.Snapshot.Groups {
		t := &m.Snapshot.Groups[g].Template
		fits = fits || t.Allocatable.MilliCPU >= c.Requests.MilliCPU && t.Allocatable.Memory >= c.Requests.Memory &&
			fit.Passes(&c, &fit.NodeInfo{Labels: t.Labels, Taints: t.Taints})
	}
	if !fits {
		return
	}
	m.Snapshot.Classes = append(m.Snapshot.Classes, c)
	m.Count, m.Tie, m.Skew = append(m.Count, count), append(m.Tie, tie), append(m.Skew, skew)
	for k := range count {
		m.Snapshot.Pods = append(m.Snapshot.Pods, cluster.Pod{Key: cluster.PodKey(fmt.Sprintf("default/%s-%03d", app, k)), UID: cluster.UID(fmt.Sprintf("%s-%d", app, k)),
			Class: i, Created: cluster.At(start), Unschedulable: cluster.At(start), Owner: &cluster.Owner{Kind: "ReplicaSet", Name: app, UID: cluster.UID(app)}})
	}
}

func (m *Mix) index() {
	m.space = fit.NewDimensions(m.Snapshot.Classes)
	m.fits = make([][]bool, len(m.Snapshot.Classes))
	for g := range m.Snapshot.Groups {
		t := &m.Snapshot.Groups[g].Template
		m.shapes = append(m.shapes, fit.NodeInfo{Labels: t.Labels, Taints: t.Taints})
		room := make([]int64, m.space.Len())
		m.space.Capacity(room, t.Allocatable)
		m.empty = append(m.empty, room)
	}
	for c := range m.fits {
		m.fits[c] = make([]bool, len(m.empty))
		for g := range m.empty {
			m.fits[c][g] = binpack.MaxFit(m.empty[g], m.space.Class(c)) > 0 && fit.Passes(&m.Snapshot.Classes[c], &m.shapes[g])
		}
	}
}

// Tied tells whether any class has a tie.
func (m *Mix) Tied() bool { return slices.ContainsFunc(m.Tie, func(t Tie) bool { return t != Free }) }

// Purchase is what a rule buys.
type Purchase struct {
	Machines []int // by group
	Left     int   // pods that it does not help
}

// Price is what a purchase costs an hour.
func (m *Mix) Price(p Purchase) float64 {
	sum := 0.0
	for g, n := range p.Machines {
		sum += float64(n) * m.Snapshot.Groups[g].Price
	}
	return math.Round(sum*1e6) / 1e6
}

// bins are machines that are being filled.
type bins struct {
	m     *Mix
	state *fit.State // nil: the mix has no ties
	all   []*bin
	left  []int // pods by class
}

type bin struct {
	group int
	room  []int64
	node  int // in state
	pods  int
}

func (m *Mix) bins() *bins {
	b := &bins{m: m, left: slices.Clone(m.Count)}
	if m.Tied() {
		b.state = fit.NewState(m.Snapshot.Classes, nil)
	}
	return b
}

// open adds an empty machine.
func (b *bins) open(group int) *bin {
	x := &bin{group: group, room: slices.Clone(b.m.empty[group])}
	if b.state != nil {
		x.node = b.state.AddNode(&b.m.shapes[group], nil)
	}
	b.all = append(b.all, x)
	return x
}

// put puts at most n pods of a class onto a machine, one after the other, and returns
// how many it took.
func (b *bins) put(x *bin, class, n int) int {
	if n = min(n, binpack.MaxFit(x.room, b.m.space.Class(class))); n <= 0 || !b.m.fits[class][x.group] {
		return 0
	}
	if b.state != nil {
		done := 0
		for done < n && b.state.Passes(class, x.node) {
			b.state.Put(class, x.node, 1)
			done++
		}
		n = done
	}
	binpack.Sub(x.room, b.m.space.Class(class), n)
	x.pods += n
	b.left[class] -= n
	return n
}

// NewMix is a question that somebody else has drawn: pods of some classes wait, and what
// the groups sell is all that there is. Slices are by class, but pool and zone by group.
func NewMix(s cluster.Snapshot, count []int, tie []Tie, skew []int, pool, zone []string) *Mix {
	m := &Mix{Snapshot: s, Count: count, Tie: tie, Skew: skew, Pool: pool, Zone: zone}
	m.index()
	return m
}
