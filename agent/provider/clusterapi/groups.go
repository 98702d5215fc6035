package clusterapi

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/clusterapi/capi"
)

// Groups reads all groups. See provider.Provider. It makes one list per kind and
// namespace of the rules, one list of machines per namespace with groups, one get per
// infrastructure template, and one get of a Node for each template without a known shape.
func (p *Provider) Groups(ctx context.Context) ([]cluster.NodeGroup, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("read: %w", err)
	}
	at := p.now()
	scopes, version, err := p.survey(ctx)
	if err != nil {
		return nil, classify("read", "", err)
	}
	var errs []error
	var sources []*source
	nothing := true
	for _, sc := range scopes {
		if sc.err != nil {
			e := classify("read", "", sc.err)
			if sc.namespace != "" {
				e.Err = fmt.Errorf("namespace %s: %w", sc.namespace, e.Err)
			}
			errs = append(errs, e)
		}
		nothing = nothing && sc.nothing
		sources = append(sources, p.sources(sc)...)
	}
	if nothing {
		return nil, errors.Join(errs...)
	}
	p.readMachines(ctx, version, sources)
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("read: %w", err)
	}
	clusters, pauses := pausable(scopes)
	infra := p.readInfra(ctx, sources)
	annotated := p.annotatedNodes(ctx, sources)
	out := make([]cluster.NodeGroup, 0, len(sources))
	for _, g := range sources {
		ng := p.assemble(ctx, g, infra, annotated, at)
		ng.Paused = cmp.Or(ng.Paused, p.paused(g.Scalable, clusters[g.Namespace+"/"+g.Cluster]))
		if ng.Paused != "" {
			ng.Pause = &cluster.Pause{Why: ng.Paused}
		}
		p.pauseUnknown(g, &ng, cmp.Or(pauses[g.Namespace], pauses[""]))
		if g.err != nil {
			ng.Stale = g.err.Error()
			errs = append(errs, g.err)
		}
		if g.noTemplate != nil {
			ng.TemplateStale = g.noTemplate.Error()
			errs = append(errs, g.noTemplate)
		}
		slices.Sort(ng.Warnings)
		out = append(out, ng)
	}
	p.collisions(out)
	return out, errors.Join(errs...)
}

// pausable returns the Clusters of all scopes by namespace and name, and the namespaces
// whose Clusters could not be read, each with its error.
func pausable(scopes []*scope) (clusters map[string]*capi.Cluster, unread map[string]error) {
	clusters, unread = map[string]*capi.Cluster{}, map[string]error{}
	for _, sc := range scopes {
		maps.Copy(clusters, sc.clusters)
		if sc.noPause != nil {
			unread[sc.namespace] = sc.noPause
		}
	}
	return clusters, unread
}

// pauseUnknown records that the Clusters could not be read; err nil: they could. A transient
// error makes the facts stale. A missing right does not: Cluster Autoscaler has none either.
func (p *Provider) pauseUnknown(g *source, ng *cluster.NodeGroup, err error) {
	if err == nil {
		return
	}
	e := classify("read", g.id, err)
	if e.Kind == provider.Transient {
		g.err = cmp.Or(g.err, e)
		return
	}
	ng.Warnings = append(ng.Warnings, "whether its Cluster is paused is not known: "+err.Error())
}

// sources returns the groups of a scope. Without a list of MachineSets the machines of the
// scope's MachineDeployments are not known.
func (p *Provider) sources(sc *scope) []*source {
	var out []*source
	for _, kind := range []string{kindDeployment, kindSet, kindPool} {
		for _, o := range sc.found[kind] {
			if !p.ours(o) {
				continue
			}
			g := gather(o, sc.found[kindSet])
			if sc.err != nil && sc.found[kindSet] == nil && kind == kindDeployment {
				g.err = classify("read", g.id, sc.err)
			}
			out = append(out, g)
		}
	}
	return out
}

// assemble returns the node group of the objects that were read.
func (p *Provider) assemble(ctx context.Context, g *source, infra map[string]infraAnswer, annotated map[string]string, at time.Time) cluster.NodeGroup {
	ng := cluster.NodeGroup{ID: g.id, Target: g.Target(), ReadAt: at}
	var why string
	if ng.Min, ng.Max, why = p.bounds(g.Scalable); why != "" {
		// The size is frozen, because neither bound is valid.
		ng.Min, ng.Max, ng.Paused = ng.Target, ng.Target, why
		ng.Warnings = append(ng.Warnings, why)
	}
	options, warnings := parseOptions(p.set.keys.options(), g.Annotations)
	ng.Options, ng.Warnings = options, append(ng.Warnings, warnings...)
	marks := p.marks(g)
	for _, m := range g.machines {
		ng.Instances = append(ng.Instances, p.instance(g, m, marks.going[m.UID], annotated))
	}
	if g.Kind == kindPool && len(g.machines) == 0 && len(g.Spec.ProviderIDList) > 0 {
		ng.Instances = p.poolInstances(g)
		ng.Warnings = append(ng.Warnings, "its infrastructure provider creates no Machine objects, so no single instance can be deleted and no serving certificate of its nodes can be approved; "+
			"scale-down needs a provider with MachinePool Machines")
	}
	ng.Failures = p.failures(g)
	draft := p.template(ctx, g, infra)
	ng.Template, ng.Warnings = draft.template, append(ng.Warnings, draft.warnings...)
	if g.rolling() {
		ng.Keeps = "a rollout is in progress: until its end Cluster API decides which machines are deleted"
	}
	if p.set.archGuess != "" {
		ng.Warnings = append(ng.Warnings, p.set.archGuess)
	}
	p.facts.saw(g.id, ng.Instances, at)
	return ng
}

// collisions finds provider IDs of two machines, which cannot be told apart. Such instances
// get PhaseUnknown, so that nothing is done with them.
func (p *Provider) collisions(groups []cluster.NodeGroup) {
	seen := map[cluster.InstanceID]*cluster.Instance{}
	for g := range groups {
		for i := range groups[g].Instances {
			in := &groups[g].Instances[i]
			if other := seen[in.ID]; other != nil {
				in.Phase, other.Phase = cluster.PhaseUnknown, cluster.PhaseUnknown
				groups[g].Warnings = append(groups[g].Warnings, "two Machines have the provider ID "+string(in.ID)+": neither is touched")
			}
			seen[in.ID] = in
		}
	}
}

// annotatedNodes finds the Nodes of machines without a provider ID and without a nodeRef: a
// Node has the machine's name as an annotation. The result is by "namespace/machine". Nodes
// are listed only when there is such a machine.
func (p *Provider) annotatedNodes(ctx context.Context, groups []*source) map[string]string {
	open := slices.ContainsFunc(groups, func(g *source) bool {
		return slices.ContainsFunc(g.machines, func(m *capi.Machine) bool {
			return m.Spec.ProviderID == "" && m.Status.NodeRef.Name == "" && (m.Status.Phase == "Provisioned" || m.Status.Phase == "Running")
		})
	})
	if !open {
		return nil
	}
	type node struct {
		capi.Meta `json:"metadata"`
	}
	nodes, err := capi.List[node](ctx, p.workload, "list nodes", "", capi.Path("", "v1", "", "nodes")...)
	if err != nil {
		return nil // instances are matched by other facts, too
	}
	out := map[string]string{}
	for _, n := range nodes {
		name, ns := n.Annotations[p.set.keys.machine()], n.Annotations[p.set.keys.clusterNamespace()]
		if name == "" {
			continue
		}
		if before, after, ok := strings.Cut(name, "/"); ok {
			ns, name = before, after
		}
		out[ns+"/"+name] = n.Name
	}
	return out
}

// parseOptions reads the autoscaling-options annotations. An invalid one is left out, with a
// warning.
func parseOptions(prefix string, annotations map[string]string) (cluster.Options, []string) {
	var (
		o        cluster.Options
		warnings []string
	)
	for _, key := range slices.Sorted(maps.Keys(annotations)) {
		name, ok := strings.CutPrefix(key, prefix)
		if !ok {
			continue
		}
		value := annotations[key]
		if err := provider.SetOption(&o, name, value); err != nil {
			warnings = append(warnings, leftOut(key, value, err))
		}
	}
	return o, warnings
}

func leftOut(key, value string, err error) string {
	return fmt.Sprintf("annotation %s=%q is left out: %v", key, value, err)
}
