package clusterapi

import (
	"context"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/clusterapi/capi"
)

// attempts is the number of tries of a write while the object changes and its replicas do
// not: controllers write their status often.
const attempts = 6

// scale is autoscaling/v1's, with replicas as a pointer so that 0 is written.
type scale struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name            string `json:"name"`
		Namespace       string `json:"namespace"`
		ResourceVersion string `json:"resourceVersion"`
	} `json:"metadata"`
	Spec struct {
		Replicas *int `json:"replicas"`
	} `json:"spec"`
}

// setReplicas writes the scale subresource under the resource version that was read: the
// API server refuses it after any change.
func (p *Provider) setReplicas(ctx context.Context, version string, o *capi.Scalable, n int) error {
	var s scale
	s.APIVersion, s.Kind = "autoscaling/v1", "Scale"
	s.Metadata.Name, s.Metadata.Namespace, s.Metadata.ResourceVersion = o.Name, o.Namespace, o.ResourceVersion
	s.Spec.Replicas = &n
	resource := resources[o.Kind]
	_, err := capi.Put(ctx, p.management, "put "+resource+"/scale", s, capi.Path(p.set.keys.group, version, o.Namespace, resource, o.Name, "scale")...)
	return err
}

// Resize sets replicas. See provider.Provider. The object's resource version makes it
// a real compare-and-set.
//
// Lowering cancels machines that do not exist yet: existing Machines, including those being
// created, are listed under the same lock. A Machine object that its controller creates
// between that list and the write is the first that the controller deletes, because it has
// no Node.
func (p *Provider) Resize(ctx context.Context, id cluster.GroupID, from, to int) error {
	const op = "resize"
	unlock, err := p.locks.Lock(ctx, op, id)
	if err != nil {
		return err
	}
	defer unlock()
	for try := 1; ; try++ {
		g, version, err := p.one(ctx, op, id, false)
		if err != nil {
			return err
		}
		lo, hi, why := p.bounds(g.Scalable)
		target := g.Target()
		switch {
		case why != "":
			return fail(op, id, "", provider.Invalid, "", "%s", why)
		case to < lo || to > hi:
			return fail(op, id, "", provider.Invalid, "change the annotations "+p.set.keys.minSize()+" and "+p.set.keys.maxSize(), "%d is outside %d..%d", to, lo, hi)
		case target == to && g.Spec.Replicas != nil:
			return nil
		case target != from:
			return fail(op, id, "", provider.Conflict, "", "target is %d, not %d", target, from)
		}
		if why := p.paused(g.Scalable, nil); why != "" {
			return fail(op, id, "", provider.Conflict, "", "%s", why)
		}
		if to < target {
			if err := p.mayLower(ctx, id, to); err != nil {
				return err
			}
		}
		err = p.setReplicas(ctx, version, g.Scalable, to)
		if err == nil {
			return nil
		}
		e := unsure(classify(op, id, err), err)
		if e.Kind != provider.Conflict || try == attempts {
			return e
		}
	}
}

func (p *Provider) mayLower(ctx context.Context, id cluster.GroupID, to int) error {
	g, _, err := p.one(ctx, "resize", id, true)
	if err != nil {
		return err
	}
	n := len(g.live())
	if g.Kind == kindPool {
		n = max(n, len(g.Spec.ProviderIDList))
	}
	if to < n {
		return fail("resize", id, "", provider.Invalid, "", "%d is below its %d instances, and Resize never removes one", to, n)
	}
	return nil
}

// live returns the machines that are not being deleted.
func (g *source) live() []*capi.Machine {
	var out []*capi.Machine
	for _, m := range g.machines {
		if m.DeletionTimestamp == nil {
			out = append(out, m)
		}
	}
	return out
}
