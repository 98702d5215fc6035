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
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/clusterapi/capi"
)

// scope is one namespace to read, or all of them ("").
type scope struct {
	namespace string
	found     map[string][]*capi.Scalable // by kind
	clusters  map[string]*capi.Cluster
	noPause   error // why the Clusters could not be read
	err       error // why the scope was not read whole
	nothing   bool  // not even the groups could be listed
}

// namespaces returns the namespaces of the rules; with one rule without a namespace, all of
// them. (Cluster Autoscaler watches only the first one.)
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

// survey lists the scalable objects of every scope.
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

func (p *Provider) surveyScope(ctx context.Context, sc *scope, s capi.Served, version string) {
	group := p.set.keys.group
	var mu sync.Mutex
	var wg sync.WaitGroup
	sc.found, sc.clusters = map[string][]*capi.Scalable{}, map[string]*capi.Cluster{}
	failed := 0
	for kind, resource := range resources {
		if s.Plural[version+"/"+kind] == "" {
			continue // an older Cluster API, or MachinePools switched off
		}
		wg.Go(func() {
			items, err := capi.List[capi.Scalable](ctx, p.management, "list "+resource, "", capi.Path(group, version, sc.namespace, resource)...)
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
		items, err := capi.List[capi.Cluster](ctx, p.management, "list clusters", "", capi.Path(group, version, sc.namespace, "clusters")...)
		mu.Lock()
		defer mu.Unlock()
		sc.noPause = err
		for i := range items {
			sc.clusters[items[i].Namespace+"/"+items[i].Name] = &items[i]
		}
	})
	wg.Wait()
	sc.nothing = sc.err != nil && len(sc.found) == 0
	if sc.err != nil && capi.NotFound(sc.err) {
		p.management.Forget(group)
	}
}

// identify sets kind and cluster of an object.
func (p *Provider) identify(o *capi.Scalable, kind string) *capi.Scalable {
	o.Kind = kind
	o.Cluster = cmp.Or(o.Spec.ClusterName, o.Labels[p.set.keys.clusterName()], o.Labels[oldClusterName])
	return o
}

// ours tells whether the object is a node group of this agent: both annotations, no
// MachineDeployment as owner, and a rule that matches.
func (p *Provider) ours(o *capi.Scalable) bool {
	if o.Kind == kindSet && o.Owner(kindDeployment) != "" {
		return false
	}
	_, hasMin := p.bound(o, p.set.keys.minSize(), oldMinSize)
	_, hasMax := p.bound(o, p.set.keys.maxSize(), oldMaxSize)
	return hasMin && hasMax && slices.ContainsFunc(p.set.rules, func(r rule) bool { return r.matches(o) })
}

func (p *Provider) bound(o *capi.Scalable, key, old string) (string, bool) {
	if v, ok := o.Annotations[key]; ok {
		return v, true
	}
	v, ok := o.Annotations[old]
	return v, ok
}

// bounds reads the two annotations; why is empty when they are valid.
func (p *Provider) bounds(o *capi.Scalable) (lo, hi int, why string) {
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

// source is a group with its objects in the management cluster.
type source struct {
	*capi.Scalable
	id       cluster.GroupID
	sets     []*capi.Scalable // of a MachineDeployment; the MachineSet itself
	machines []*capi.Machine
	ofSet    map[string]*capi.Scalable // by UID
	// err is the reason for a part that could not be read.
	err *provider.Error
	// noTemplate is the reason for an infrastructure template that could not be read now.
	noTemplate *provider.Error
}

// members adds the machines of the group from the machines of its namespace.
func (g *source) members(machines []*capi.Machine) {
	for _, m := range machines {
		if m.Namespace != g.Namespace {
			continue
		}
		if g.Kind == kindPool && m.Owner(kindPool) == g.UID || g.Kind != kindPool && g.ofSet[m.Owner(kindSet)] != nil {
			g.machines = append(g.machines, m)
		}
	}
}

// gather returns the source of a group. sets has every MachineSet of its namespace.
func gather(o *capi.Scalable, sets []*capi.Scalable) *source {
	g := &source{Scalable: o, id: idOf(o.Kind, o.Namespace, o.Name), ofSet: map[string]*capi.Scalable{}}
	switch o.Kind {
	case kindSet:
		g.sets = []*capi.Scalable{o}
	case kindDeployment:
		for _, s := range sets {
			if s.Namespace == o.Namespace && s.Owner(kindDeployment) == o.UID {
				g.sets = append(g.sets, s)
			}
		}
	}
	for _, s := range g.sets {
		g.ofSet[s.UID] = s
	}
	return g
}

// rolling tells whether the group has machines of more than one MachineSet: then a rollout
// decides which machines are deleted.
func (g *source) rolling() bool {
	if len(g.sets) < 2 {
		return false
	}
	used := map[string]bool{}
	for _, s := range g.sets {
		if s.Target() > 0 {
			used[s.UID] = true
		}
	}
	for _, m := range g.machines {
		used[m.Owner(kindSet)] = true
	}
	return len(used) > 1
}

// readMachines lists the machines of all groups, one list per namespace, of the
// groups' own clusters only, because a management cluster may have many more.
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

func (p *Provider) listMachines(ctx context.Context, version, namespace string, groups []*source) ([]*capi.Machine, error) {
	names := map[string]bool{}
	for _, g := range groups {
		names[g.Cluster] = true
	}
	selector := ""
	if !names[""] {
		selector = p.set.keys.clusterName() + " in (" + strings.Join(slices.Sorted(maps.Keys(names)), ",") + ")"
	}
	items, err := capi.List[capi.Machine](ctx, p.management, "list machines", selector, capi.Path(p.set.keys.group, version, namespace, "machines")...)
	out := make([]*capi.Machine, len(items))
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
	o, err := capi.Get[capi.Scalable](ctx, p.management, "get "+resources[kind], capi.Path(group, version, namespace, resources[kind], name)...)
	if err != nil {
		return nil, "", classify(op, id, err)
	}
	if !p.ours(p.identify(o, kind)) {
		return nil, "", &provider.Error{Op: op, Group: id, Kind: provider.NotFound, Err: errNoGroup, Remedy: "check its annotations and the discovery rules"}
	}
	if !whole {
		return gather(o, nil), version, nil
	}
	var sets []*capi.Scalable
	if kind == kindDeployment {
		items, err := capi.List[capi.Scalable](ctx, p.management, "list machinesets", "", capi.Path(group, version, namespace, "machinesets")...)
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

// paused returns why Cluster API does not change the group now; "": it does. cl may be nil:
// not known.
func (p *Provider) paused(o *capi.Scalable, cl *capi.Cluster) string {
	if o.DeletionTimestamp != nil {
		return "the " + o.Kind + " is being deleted"
	}
	if _, ok := o.Annotations[p.set.keys.paused()]; ok {
		return "the " + o.Kind + " is paused (annotation " + p.set.keys.paused() + ")"
	}
	if cl == nil {
		return ""
	}
	if _, ok := cl.Annotations[p.set.keys.paused()]; ok || cl.Spec.Paused {
		return "the Cluster " + cl.Name + " is paused"
	}
	groups, name := cl.Spec.Topology.Workers.MachineDeployments, o.Labels[labelTopologyDeployment]
	if o.Kind == kindPool {
		groups, name = cl.Spec.Topology.Workers.MachinePools, o.Labels[labelTopologyPool]
	}
	for _, t := range groups {
		if name != "" && t.Name == name && t.Replicas != nil {
			return "the topology of Cluster " + cl.Name + " sets replicas of " + name + " to " + strconv.Itoa(*t.Replicas) +
				", and would revert every change: leave spec.topology.workers[].replicas unset"
		}
	}
	return ""
}
