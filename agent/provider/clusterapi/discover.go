package clusterapi

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
)

// scope is one namespace that is read, or all of them ("").
type scope struct {
	namespace string
	found     map[string][]*scalable // by kind
	clusters  map[string]*clusterObject
	noPause   error // why the Clusters could not be read
	err       error // why the scope was not read whole
	nothing   bool  // not even the groups could be listed
}

// namespaces are those that the rules name; one rule without a namespace makes it all
// of them. (Cluster Autoscaler watches the first one only.)
func (s settings) namespaces() []string {
	named := map[string]bool{}
	for _, r := range s.rules {
		if r.namespace == "" {
			return []string{""}
		}
		named[r.namespace] = true
	}
	return slices.Sorted(maps.Keys(named))
}

// survey lists what scales in every scope.
func (p *Provider) survey(ctx context.Context) ([]*scope, string, error) {
	s, version, err := p.version(ctx)
	if err != nil {
		return nil, "", err
	}
	var scopes []*scope
	var wg sync.WaitGroup
	for _, ns := range p.set.namespaces() {
		sc := &scope{namespace: ns}
		scopes = append(scopes, sc)
		wg.Go(func() { p.surveyScope(ctx, sc, s, version) })
	}
	wg.Wait()
	return scopes, version, nil
}

func (p *Provider) surveyScope(ctx context.Context, sc *scope, s served, version string) {
	group := p.set.keys.group
	var mu sync.Mutex
	var wg sync.WaitGroup
	sc.found, sc.clusters = map[string][]*scalable{}, map[string]*clusterObject{}
	failed := 0
	for kind, resource := range resources {
		if s.plural[version+"/"+kind] == "" {
			continue // an older Cluster API, or MachinePools switched off
		}
		wg.Go(func() {
			items, err := list[scalable](ctx, p.management, "list "+resource, "", path(group, version, sc.namespace, resource)...)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				sc.err = cmp.Or(sc.err, err)
				failed++
			}
			for i := range items {
				sc.found[kind] = append(sc.found[kind], p.identify(&items[i], kind))
			}
		})
	}
	wg.Go(func() {
		items, err := list[clusterObject](ctx, p.management, "list clusters", "", path(group, version, sc.namespace, "clusters")...)
		mu.Lock()
		defer mu.Unlock()
		sc.noPause = err
		for i := range items {
			sc.clusters[items[i].Namespace+"/"+items[i].Name] = &items[i]
		}
	})
	wg.Wait()
	sc.nothing = sc.err != nil && len(sc.found) == 0
	if sc.err != nil && notFound(sc.err) {
		p.management.forget(group)
	}
}

// identify notes kind and cluster of an object.
func (p *Provider) identify(o *scalable, kind string) *scalable {
	o.kind = kind
	o.cluster = cmp.Or(o.Spec.ClusterName, o.Labels[p.set.keys.clusterName()], o.Labels[oldClusterName])
	return o
}

// ours tells whether the object is a node group of this agent: both annotations, no
// MachineDeployment above it, and a rule that fits.
func (p *Provider) ours(o *scalable) bool {
	if o.kind == kindSet && o.owner(kindDeployment) != "" {
		return false
	}
	_, hasMin := p.bound(o, p.set.keys.minSize(), oldMinSize)
	_, hasMax := p.bound(o, p.set.keys.maxSize(), oldMaxSize)
	return hasMin && hasMax && slices.ContainsFunc(p.set.rules, func(r rule) bool { return r.matches(o) })
}

func (p *Provider) bound(o *scalable, key, old string) (string, bool) {
	if v, ok := o.Annotations[key]; ok {
		return v, true
	}
	v, ok := o.Annotations[old]
	return v, ok
}

// bounds are the two annotations; why is empty when they make sense.
func (p *Provider) bounds(o *scalable) (lo, hi int, why string) {
	read := func(key, old string) int {
		text, _ := p.bound(o, key, old)
		n, err := strconv.Atoi(strings.TrimSpace(text))
		if (err != nil || n < 0) && why == "" {
			why = "the annotation " + key + " is " + strconv.Quote(text) + ": write a whole number of machines"
		}
		return n
	}
	lo, hi = read(p.set.keys.minSize(), oldMinSize), read(p.set.keys.maxSize(), oldMaxSize)
	if why == "" && lo > hi {
		why = "the annotations give a minimum of " + strconv.Itoa(lo) + " and a maximum of " + strconv.Itoa(hi) + ": swap them"
	}
	return lo, hi, why
}

// source is one group as the management cluster has it.
type source struct {
	*scalable
	id       cluster.GroupID
	sets     []*scalable // of a MachineDeployment; the MachineSet itself
	machines []*machineObject
	ofSet    map[string]*scalable // by UID
	// err is why part of it could not be read.
	err *provider.Error
	// noTemplate is why its infrastructure template could not be read now.
	noTemplate *provider.Error
}

// members finds the machines of a group among those of its namespace.
func (g *source) members(machines []*machineObject) {
	for _, m := range machines {
		if m.Namespace != g.Namespace {
			continue
		}
		if g.kind == kindPool && m.owner(kindPool) == g.UID || g.kind != kindPool && g.ofSet[m.owner(kindSet)] != nil {
			g.machines = append(g.machines, m)
		}
	}
}

// gather makes the source of a group, given every MachineSet of its namespace.
func gather(o *scalable, sets []*scalable) *source {
	g := &source{scalable: o, id: idOf(o.kind, o.Namespace, o.Name), ofSet: map[string]*scalable{}}
	switch o.kind {
	case kindSet:
		g.sets = []*scalable{o}
	case kindDeployment:
		for _, s := range sets {
			if s.Namespace == o.Namespace && s.owner(kindDeployment) == o.UID {
				g.sets = append(g.sets, s)
			}
		}
	}
	for _, s := range g.sets {
		g.ofSet[s.UID] = s
	}
	return g
}

// rolling says that machines of more than one MachineSet make up the group: a rollout
// decides which of them go.
func (g *source) rolling() bool {
	if len(g.sets) < 2 {
		return false
	}
	used := map[string]bool{}
	for _, s := range g.sets {
		if s.target() > 0 {
			used[s.UID] = true
		}
	}
	for _, m := range g.machines {
		used[m.owner(kindSet)] = true
	}
	return len(used) > 1
}

// readMachines lists the machines of all groups, one list per namespace, of the
// groups' own clusters only: a management cluster may have many more.
func (p *Provider) readMachines(ctx context.Context, version string, groups []*source) {
	byNamespace := map[string][]*source{}
	for _, g := range groups {
		byNamespace[g.Namespace] = append(byNamespace[g.Namespace], g)
	}
	var wg sync.WaitGroup
	for ns, in := range byNamespace {
		wg.Go(func() {
			machines, err := p.listMachines(ctx, version, ns, in)
			for _, g := range in {
				if err != nil && g.err == nil {
					g.err = classify("read", g.id, err)
				}
				g.members(machines)
			}
		})
	}
	wg.Wait()
}

func (p *Provider) listMachines(ctx context.Context, version, namespace string, groups []*source) ([]*machineObject, error) {
	names := map[string]bool{}
	for _, g := range groups {
		names[g.cluster] = true
	}
	selector := ""
	if !names[""] {
		selector = p.set.keys.clusterName() + " in (" + strings.Join(slices.Sorted(maps.Keys(names)), ",") + ")"
	}
	items, err := list[machineObject](ctx, p.management, "list machines", selector, path(p.set.keys.group, version, namespace, "machines")...)
	out := make([]*machineObject, len(items))
	for i := range items {
		out[i] = &items[i]
	}
	p.infra.note(out)
	return out, err
}

// one reads a single group with its machines, for a write.
func (p *Provider) one(ctx context.Context, op string, id cluster.GroupID, whole bool) (*source, string, error) {
	kind, namespace, name, ok := parseID(id)
	if !ok {
		if err := ctx.Err(); err != nil {
			return nil, "", &provider.Error{Op: op, Group: id, Err: err}
		}
		return nil, "", &provider.Error{Op: op, Group: id, Kind: provider.NotFound, Err: errNoGroup, Remedy: "a name looks like MachineDeployment/namespace/name"}
	}
	_, version, err := p.version(ctx)
	if err != nil {
		return nil, "", classify(op, id, err)
	}
	group := p.set.keys.group
	o, err := get[scalable](ctx, p.management, "get "+resources[kind], path(group, version, namespace, resources[kind], name)...)
	if err != nil {
		return nil, "", classify(op, id, err)
	}
	if !p.ours(p.identify(o, kind)) {
		return nil, "", &provider.Error{Op: op, Group: id, Kind: provider.NotFound, Err: errNoGroup, Remedy: "check its annotations and the discovery rules"}
	}
	if !whole {
		return gather(o, nil), version, nil
	}
	var sets []*scalable
	if kind == kindDeployment {
		items, err := list[scalable](ctx, p.management, "list machinesets", "", path(group, version, namespace, "machinesets")...)
		if err != nil {
			return nil, "", classify(op, id, err)
		}
		for i := range items {
			sets = append(sets, p.identify(&items[i], kindSet))
		}
	}
	g := gather(o, sets)
	machines, err := p.listMachines(ctx, version, namespace, []*source{g})
	if err != nil {
		return nil, "", classify(op, id, err)
	}
	g.members(machines)
	return g, version, nil
}

// paused says why Cluster API leaves the group alone now. cl may be nil: not known.
func (p *Provider) paused(o *scalable, cl *clusterObject) string {
	if o.DeletionTimestamp != nil {
		return "the " + o.kind + " is being deleted"
	}
	if _, ok := o.Annotations[p.set.keys.paused()]; ok {
		return "the " + o.kind + " is paused (annotation " + p.set.keys.paused() + ")"
	}
	if cl == nil {
		return ""
	}
	if _, ok := cl.Annotations[p.set.keys.paused()]; ok || cl.Spec.Paused {
		return "the Cluster " + cl.Name + " is paused"
	}
	groups, name := cl.Spec.Topology.Workers.MachineDeployments, o.Labels[labelTopologyDeployment]
	if o.kind == kindPool {
		groups, name = cl.Spec.Topology.Workers.MachinePools, o.Labels[labelTopologyPool]
	}
	for _, t := range groups {
		if name != "" && t.Name == name && t.Replicas != nil {
			return "the topology of Cluster " + cl.Name + " sets replicas of " + name + " to " + strconv.Itoa(*t.Replicas) +
				", and would take back every change: leave spec.topology.workers[].replicas unset"
		}
	}
	return ""
}
