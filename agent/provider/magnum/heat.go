package magnum

import (
	"context"
	"net/http"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack/orchestration/v1/stackresources"
	"github.com/gophercloud/gophercloud/v2/openstack/orchestration/v1/stacks"

	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
)

// minions is the resource group of worker nodes in the templates of all of Magnum's
// Kubernetes drivers; refsMap is its output from index to server.
const (
	minions = "kube_minions"
	refsMap = "refs_map"
)

// stackRefs reads which server a stack has for each of its indices. While a node is
// made, and when it could not be made, the value is not a UUID but the name of a
// resource or the index. refs is nil where Heat is not there, may not be read, or does
// not know the stack: the driver then is none of Heat's, or the policy forbids it
// (kubernetes/autoscaler#5065). why is Heat's account of the last failure.
func (p *Provider) stackRefs(ctx context.Context, stack string) (refs map[string]string, why string, err error) {
	api, err := p.session.Service(ctx, "orchestration", "")
	if provider.KindOf(err) == provider.Invalid {
		return nil, "", nil
	}
	if err != nil {
		return nil, "", err
	}
	nested, why, err := p.nodeStack(ctx, api, stack)
	if absent(err) {
		return nil, "", nil
	}
	if err != nil {
		return nil, "", err
	}
	if nested == nil { // nothing has been made yet
		return map[string]string{}, why, nil
	}
	for _, out := range nested.Outputs {
		if out["output_key"] != refsMap {
			continue
		}
		refs = map[string]string{}
		list, _ := out["output_value"].(map[string]any)
		for index, value := range list {
			ref, _ := value.(string)
			refs[index] = ref
		}
	}
	return refs, nested.StatusReason, nil
}

// place is where the stack of a group's nodes is: name and ID of a stack do not change.
type place struct{ name, id string }

// nodeStack reads the stack of a group's nodes, which is the physical resource behind
// kube_minions; nil: it has not been made, and why. Resolving a stack's name costs Heat
// two requests and a redirect, so what was found once is asked for directly.
func (p *Provider) nodeStack(ctx context.Context, api *gophercloud.ServiceClient, stack string) (*stacks.RetrievedStack, string, error) {
	p.mu.Lock()
	at, known := p.places[stack]
	p.mu.Unlock()
	if known {
		s, err := stacks.Get(ctx, api, at.name, at.id).Extract()
		if err == nil && (s == nil || s.ID == "") {
			err = errHollow
		}
		if !gophercloud.ResponseCodeIs(err, http.StatusNotFound) {
			return s, "", err
		}
	}
	top, err := findStack(ctx, api, stack)
	if err != nil {
		return nil, "", err
	}
	group, err := stackresources.Get(ctx, api, top.Name, top.ID, minions).Extract()
	if err == nil && group == nil {
		err = errHollow
	}
	if err != nil {
		return nil, "", err
	}
	if group.PhysicalID == "" {
		return nil, group.StatusReason, nil
	}
	nested, err := findStack(ctx, api, group.PhysicalID)
	if err == nil {
		p.mu.Lock()
		if p.places == nil {
			p.places = map[string]place{}
		}
		p.places[stack] = place{nested.Name, nested.ID}
		p.mu.Unlock()
	}
	return nested, "", err
}

// findStack reads a stack by its ID; Heat answers with a redirect to name and ID.
func findStack(ctx context.Context, api *gophercloud.ServiceClient, id string) (*stacks.RetrievedStack, error) {
	s, err := stacks.Find(ctx, api, id).Extract()
	if err == nil && (s == nil || s.ID == "") {
		return nil, errHollow
	}
	return s, err
}
