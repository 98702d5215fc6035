package clusterapi

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/clusterapi/capi"
)

var _ provider.Witness = (*Provider)(nil)

// infraMachines remember the object of the infrastructure that a Machine stood for, by
// provider ID: it may outlive a Machine whose finalizer was taken away by hand.
type infraMachines struct {
	mu   sync.Mutex
	byID map[cluster.InstanceID]infraMachine
}

type infraMachine struct {
	namespace string
	ref       capi.Ref
}

const rememberedMachines = 20000

func (i *infraMachines) note(machines []*capi.Machine) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.byID == nil || len(i.byID) > rememberedMachines {
		i.byID = map[cluster.InstanceID]infraMachine{}
	}
	for _, m := range machines {
		// A template is no machine, and outlives them all.
		if r := m.Spec.InfrastructureRef; m.Spec.ProviderID != "" && r.Kind != "" && r.Name != "" && !strings.HasSuffix(r.Kind, "Template") {
			i.byID[sameForm(cluster.InstanceID(m.Spec.ProviderID))] = infraMachine{m.Namespace, r}
		}
	}
}

func (i *infraMachines) of(id cluster.InstanceID) (infraMachine, bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	m, ok := i.byID[id]
	return m, ok
}

// sameForm is one form for OpenStack's provider IDs, which are written in three.
func sameForm(id cluster.InstanceID) cluster.InstanceID {
	if rest, ok := strings.CutPrefix(string(id), "openstack://"); ok {
		return cluster.InstanceID("openstack:///" + strings.ToLower(rest[strings.LastIndexByte(rest, '/')+1:]))
	}
	return id
}

// Instances implements provider.Witness. An instance exists while any Machine or
// MachinePool in the namespaces that are read bears its provider ID, or while the object
// of the infrastructure does that its Machine stood for. What the cloud below knows of a
// machine that no object stands for any more (after a `clusterctl move`), Cluster API
// cannot tell: its group is gone then, too, and so nothing is deleted.
func (p *Provider) Instances(ctx context.Context, ids ...cluster.InstanceID) (map[cluster.InstanceID]cluster.Testimony, error) {
	out := map[cluster.InstanceID]cluster.Testimony{}
	if len(ids) == 0 {
		return out, nil
	}
	there, err := p.bearers(ctx)
	if err != nil {
		e := classify("ask for instances", "", err)
		return provider.Unknown(e.Error(), ids...), e
	}
	var errs []error
	for _, id := range ids {
		if who, ok := there[sameForm(id)]; ok {
			out[id] = cluster.Testimony{Existence: cluster.InstanceExists, Why: who}
			continue
		}
		one, err := p.infraExistence(ctx, sameForm(id))
		out[id], errs = one, append(errs, err)
	}
	return out, errors.Join(errs...)
}

// bearers are all objects with a provider ID, in the words of an answer.
func (p *Provider) bearers(ctx context.Context) (map[cluster.InstanceID]string, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	scopes, version, err := p.survey(ctx)
	if err != nil {
		return nil, err
	}
	out := map[cluster.InstanceID]string{}
	for _, sc := range scopes {
		if sc.err != nil {
			return nil, sc.err
		}
		items, err := capi.List[capi.Machine](ctx, p.management, "list machines", "", capi.Path(p.set.keys.group, version, sc.namespace, "machines")...)
		if err != nil {
			return nil, err
		}
		machines := make([]*capi.Machine, len(items))
		for i := range items {
			machines[i] = &items[i]
			if id := items[i].Spec.ProviderID; id != "" {
				out[sameForm(cluster.InstanceID(id))] = "Machine " + items[i].Namespace + "/" + items[i].Name
			}
		}
		p.infra.note(machines)
		for _, pool := range sc.found[kindPool] {
			for _, id := range pool.Spec.ProviderIDList {
				out[sameForm(cluster.InstanceID(id))] = "MachinePool " + pool.Namespace + "/" + pool.Name
			}
		}
	}
	return out, nil
}

// infraExistence asks for the object of the infrastructure behind a Machine that is gone.
func (p *Provider) infraExistence(ctx context.Context, id cluster.InstanceID) (cluster.Testimony, error) {
	m, ok := p.infra.of(id)
	if !ok {
		return cluster.Testimony{Existence: cluster.InstanceNotFound, Why: "no Machine bears it"}, nil
	}
	what := m.ref.Kind + " " + m.namespace + "/" + m.ref.Name
	_, err := p.infraTemplate(ctx, m.namespace, m.ref)
	switch {
	case err == nil:
		return cluster.Testimony{Existence: cluster.InstanceExists, Why: what + " exists, and its Machine does not"}, nil
	case lacksObject(err, m.ref.Name):
		return cluster.Testimony{Existence: cluster.InstanceNotFound, Why: "no Machine bears it, and there is no " + what}, nil
	}
	e := classify("ask for instances", "", fmt.Errorf("%s: %w", what, err))
	e.Instance = id
	return cluster.Testimony{Why: e.Error()}, e
}

// lacksObject tells the API server's own word that there is no object of that name: a path
// that is not served is a 404, too, and names none.
func lacksObject(err error, name string) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && status.Status().Code == 404 && status.Status().Details != nil && status.Status().Details.Name == name
}
