package topology

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/growth"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/round"
)

const zone = "topology.kubernetes.io/zone"

// world is a cluster whose pods wait. Its machines have four cores.
type world struct {
	s cluster.Snapshot
	m decision.Memory
	p decision.Policy
}

// newWorld has one group for each zone, by the name of the zone.
func newWorld(zones ...string) *world {
	w := &world{p: decision.Policy{FreshFor: time.Minute, MaxNodeProvisionTime: 15 * time.Minute, MaxNodeStartupTime: 15 * time.Minute, OKTotalUnready: 1, MaxTotalUnreadyPercent: 45}}
	w.s.Now = time.Date(2026, 1, 5, 8, 0, 0, 0, time.UTC)
	for _, z := range zones {
		w.group(z, zone, z)
	}
	return w
}

// group adds a group of machines with labels.
func (w *world) group(id string, labels ...string) *cluster.NodeGroup {
	machine := cluster.Resources{MilliCPU: 4000, Memory: 8 << 30, Pods: 110}
	t := cluster.Template{Spec: "m", Capacity: machine, Allocatable: machine, Labels: map[string]string{}}
	for i := 0; i+1 < len(labels); i += 2 {
		t.Labels[labels[i]] = labels[i+1]
	}
	w.s.Groups = append(w.s.Groups, cluster.NodeGroup{ID: cluster.GroupID(id), Max: 10, ReadAt: w.s.Now, Template: t})
	return &w.s.Groups[len(w.s.Groups)-1]
}

func (w *world) g(id string) *cluster.NodeGroup {
	return &w.s.Groups[slices.IndexFunc(w.s.Groups, func(g cluster.NodeGroup) bool { return g.ID == cluster.GroupID(id) })]
}

// full lets a group not grow any more.
func (w *world) full(id string) { w.g(id).Max = w.g(id).Target }

// coming adds a machine that has not joined.
func (w *world) coming(group string) *cluster.Instance {
	g := w.g(group)
	g.Instances = append(g.Instances, cluster.Instance{ID: cluster.InstanceID(fmt.Sprint("i-", group, "-", g.Target)), Member: true, Phase: cluster.PhaseRunning, Created: w.s.Now.Add(-time.Minute)})
	g.Target++
	return &g.Instances[len(g.Instances)-1]
}

// node adds a machine that joined a day ago.
func (w *world) node(name, group string) *cluster.Node {
	g, x := w.g(group), w.coming(group)
	x.Created = w.s.Now.Add(-24 * time.Hour)
	n := &cluster.Node{Name: cluster.NodeName(name), ProviderID: string(x.ID), Ready: cluster.StatusTrue, Created: x.Created, Labels: maps.Clone(g.Template.Labels), Capacity: g.Template.Capacity, Allocatable: g.Template.Allocatable}
	n.Labels[KeyHostname] = name
	w.s.Nodes = append(w.s.Nodes, n)
	return n
}

// term changes what a class asks for.
type term func(*cluster.PodClass)

func is(app string) *cluster.Selector {
	return &cluster.Selector{Requirements: []cluster.Requirement{{Key: "app", Operator: "In", Values: []string{app}}}}
}

func apart(key, app string) term {
	return func(c *cluster.PodClass) {
		c.PodAntiAffinity = append(c.PodAntiAffinity, cluster.PodTerm{TopologyKey: key, Selector: is(app), Namespaces: []string{"default"}})
	}
}

func near(key, app string) term {
	return func(c *cluster.PodClass) {
		c.PodAffinity = append(c.PodAffinity, cluster.PodTerm{TopologyKey: key, Selector: is(app), Namespaces: []string{"default"}})
	}
}

func spread(key string, skew int, app string) term {
	return func(c *cluster.PodClass) {
		c.Spread = append(c.Spread, cluster.Spread{TopologyKey: key, MaxSkew: skew, Selector: is(app)})
	}
}

func volume(driver, handle string) term {
	return func(c *cluster.PodClass) {
		c.Volumes = append(c.Volumes, cluster.Volume{Driver: driver, Handle: handle, Claim: "default/" + handle})
	}
}

// volumeIn is a volume that only machines of a zone reach.
func volumeIn(z string) term {
	return func(c *cluster.PodClass) {
		c.Volumes = append(c.Volumes, cluster.Volume{Claim: "default/" + z, Zones: []cluster.Requirement{{Key: zone, Operator: "In", Values: []string{z}}}})
	}
}

func on(key, value string) term {
	return func(c *cluster.PodClass) { c.NodeSelector = map[string]string{key: value} }
}

func cores(n int64) term { return func(c *cluster.PodClass) { c.Requests.MilliCPU = 1000 * n } }

func in(namespace string) term { return func(c *cluster.PodClass) { c.Namespace = namespace } }

// class adds a class of pods of half a core.
func (w *world) class(app string, terms ...term) int {
	c := cluster.PodClass{Namespace: "default", Labels: map[string]string{"app": app}, Requests: cluster.Resources{MilliCPU: 500, Memory: 1 << 28, Pods: 1}}
	for _, change := range terms {
		change(&c)
	}
	w.s.Classes = append(w.s.Classes, c)
	return len(w.s.Classes) - 1
}

// pods adds n that the scheduler could not place: app-0, app-1 and so on.
func (w *world) pods(n int, app string, terms ...term) int {
	class := w.class(app, terms...)
	for i := range n {
		w.s.Pods = append(w.s.Pods, cluster.Pod{Key: cluster.PodKey(fmt.Sprintf("%s-%d", app, i)), Class: class, Created: cluster.At(w.s.Now), Unschedulable: cluster.At(w.s.Now)})
	}
	return class
}

// run adds n pods that run on a node.
func (w *world) run(n int, node, app string, terms ...term) {
	class := w.class(app, terms...)
	for i := range n {
		w.s.Pods = append(w.s.Pods, cluster.Pod{Key: cluster.PodKey(fmt.Sprintf("run-%s-%s-%d", app, node, i)), Class: class, Node: cluster.NodeName(node), Created: cluster.At(w.s.Now.Add(-time.Hour))})
	}
}

// reserve lets pods count on upcoming machines of a group.
func (w *world) reserve(group string, pods ...cluster.PodKey) {
	w.m.Reservations = append(w.m.Reservations, decision.Reservation{Group: cluster.GroupID(group), Pods: pods})
}

// waiting lets the pods of a class wait for room that is there: no machine is bought for them.
func (w *world) waiting(class int) {
	for i := range w.s.Pods {
		if w.s.Pods[i].Class == class {
			w.s.Pods[i].Unschedulable = 0
		}
	}
}

// missing lets a controller have pods of a class still to make.
func (w *world) missing(class, n int) {
	owner := &cluster.Owner{UID: "controller"}
	for i := range w.s.Pods {
		if w.s.Pods[i].Class == class {
			w.s.Pods[i].Owner = owner
		}
	}
	w.s.Controllers = append(w.s.Controllers, cluster.Controller{Owner: *owner, Missing: n})
}

// compile plays the round as far as the pods are divided.
func (w *world) compile() (*Topology, *round.State) {
	r := round.New(new(round.Cache), &w.s, &w.m, &w.p)
	r.OpenHeadroom()
	r.Index()
	r.Account()
	growth.Judge(r)
	r.Gather()
	return Compile(r), r
}

// domainName is the zone of a domain, or what its groups or nodes are.
func domainName(b *Topology, d int) string {
	for g := range b.GroupDomain {
		if b.GroupDomain[g] == d {
			return string(b.w.Groups[g].ID)
		}
	}
	for n := range b.NodeDomain {
		if b.NodeDomain[n] == d {
			return string(b.w.Nodes[n].Name)
		}
	}
	return fmt.Sprint("domain ", d)
}

// divided tells how many pods of each class go where: "web a:2 b:1". A star stands for any
// place, a question mark behind the number for pods that are placed singly.
func divided(b *Topology, r *round.State) string {
	if b == nil {
		return "nothing to divide"
	}
	byApp := map[string][]string{}
	for i := range r.Demands {
		k := &r.Demands[i]
		at := "*"
		if k.Domain > 0 {
			at = domainName(b, k.Domain)
		}
		at = fmt.Sprintf("%s:%d", at, k.Count())
		if k.PerPod {
			at += "?"
		}
		app := r.Snapshot.Classes[k.Class].Labels["app"]
		byApp[app] = append(byApp[app], at)
	}
	var out []string
	for _, app := range slices.Sorted(maps.Keys(byApp)) {
		out = append(out, app+" "+strings.Join(byApp[app], " "))
	}
	return strings.Join(out, ", ")
}

// whose tells the names of the pods that go to each domain.
func whose(b *Topology, r *round.State) string {
	var out []string
	for i := range r.Demands {
		if k := &r.Demands[i]; k.Domain > 0 {
			out = append(out, fmt.Sprintf("%s%v+%d", domainName(b, k.Domain), k.Keys, k.Expected))
		}
	}
	slices.SortStableFunc(out, func(a, b string) int { return cmp.Compare(a[:1], b[:1]) })
	return strings.Join(out, " ")
}

// row is a world, and how its pods are divided.
type row struct {
	name  string
	zones string // one group for each
	build func(*world)
	want  string
}

func check(t *testing.T, rows []row, told func(*Topology, *round.State) string) {
	t.Helper()
	for _, c := range rows {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(strings.Fields(c.zones)...)
			c.build(w)
			if got := told(w.compile()); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}
