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

// infraMachines has the infrastructure object of each Machine, by provider ID: it may outlive
// a Machine whose finalizer was removed by hand.
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
		// A template is no machine, and outlives its machines.
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

// sameForm returns one form of OpenStack's provider IDs, which have three.
func sameForm(id cluster.InstanceID) cluster.InstanceID {
	if rest, ok := strings.CutPrefix(string(id), "openstack://"); ok {
		return cluster.InstanceID("openstack:///" + strings.ToLower(rest[strings.LastIndexByte(rest, '/')+1:]))
	}
	return id
}

// Instances implements provider.Witness. An instance exists while a Machine or MachinePool in
// the namespaces of the rules has its provider ID, or while the infrastructure object of its
// Machine exists. Cluster API does not know a machine without any object (after a
// `clusterctl move`); then its group is gone, too, so nothing is deleted.
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

// bearers returns the objects with a provider ID, as texts for an answer.
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

// infraExistence reads the infrastructure object of a Machine that is gone.
func (p *Provider) infraExistence(ctx context.Context, id cluster.InstanceID) (cluster.Testimony, error) {
	m, ok := p.infra.of(id)
	if !ok {
		return cluster.Testimony{Existence: cluster.InstanceNotFound, Why: "no Machine has this provider ID"}, nil
	}
	what := m.ref.Kind + " " + m.namespace + "/" + m.ref.Name
	_, err := p.infraTemplate(ctx, m.namespace, m.ref)
	switch {
	case err == nil:
		return cluster.Testimony{Existence: cluster.InstanceExists, Why: what + " exists, and its Machine does not"}, nil
	case lacksObject(err, m.ref.Name):
		return cluster.Testimony{Existence: cluster.InstanceNotFound, Why: "no Machine has this provider ID, and there is no " + what}, nil
	}
	e := classify("ask for instances", "", fmt.Errorf("%s: %w", what, err))
	e.Instance = id
	return cluster.Testimony{Why: e.Error()}, e
}

// lacksObject tells whether the API server answered that there is no object of that name. The
// 404 of a path that is not served has no name.
func lacksObject(err error, name string) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && status.Status().Code == 404 && status.Status().Details != nil && status.Status().Details.Name == name
}
