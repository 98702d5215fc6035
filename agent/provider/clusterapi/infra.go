package clusterapi

import (
	"cmp"
	"context"
	"encoding/json"
	"strings"
	"sync"

	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
)

// infraAnswer is what became of reading an infrastructure template.
type infraAnswer struct {
	object *infraObject
	err    error
}

func templateKey(namespace string, r ref) string {
	group := r.APIGroup
	if group == "" {
		group, _, _ = strings.Cut(r.APIVersion, "/")
	}
	return group + "/" + r.Kind + "/" + namespace + "/" + r.Name
}

// atOnce is how many templates are asked for at the same time.
const atOnce = 8

// readInfra gets the infrastructure template of every group, each once. It is read in
// every round: status.capacity may come late.
func (p *Provider) readInfra(ctx context.Context, groups []*source) map[string]infraAnswer {
	wanted := map[string]*source{}
	for _, g := range groups {
		if r := g.Spec.Template.Spec.InfrastructureRef; r.Kind != "" && r.Name != "" {
			wanted[templateKey(g.Namespace, r)] = g
		}
	}
	var (
		mu  sync.Mutex
		wg  sync.WaitGroup
		out = map[string]infraAnswer{}
		sem = make(chan struct{}, atOnce)
	)
	for key, g := range wanted {
		wg.Go(func() {
			sem <- struct{}{}
			defer func() { <-sem }()
			o, err := p.infraTemplate(ctx, g.Namespace, g.Spec.Template.Spec.InfrastructureRef)
			if o != nil {
				p.facts.learnType(key, machineType(o.Spec))
			}
			mu.Lock()
			defer mu.Unlock()
			out[key] = infraAnswer{o, err}
		})
	}
	wg.Wait()
	for _, g := range groups {
		answer := out[templateKey(g.Namespace, g.Spec.Template.Spec.InfrastructureRef)]
		if answer.err == nil || g.err != nil {
			continue
		}
		if e := classify("read", g.id, answer.err); e.Kind == provider.Transient || ctx.Err() != nil {
			g.noTemplate = e
		}
	}
	return out
}

func (p *Provider) infraTemplate(ctx context.Context, namespace string, r ref) (*infraObject, error) {
	group, version, plural, err := p.management.locate(ctx, r)
	if err != nil {
		return nil, err
	}
	return get[infraObject](ctx, p.management, "get "+plural, path(group, version, cmp.Or(r.Namespace, namespace), plural, r.Name)...)
}

// typeWords are what infrastructure providers call the type of a machine: AWS and
// others instanceType, OpenStack flavor, Azure vmSize, Hetzner type or serverType.
var typeWords = []string{"instanceType", "flavor", "vmSize", "machineType", "serverType", "type", "size"}

// machineType finds the word in the places where templates have it; empty: nowhere.
func machineType(spec json.RawMessage) string {
	type inner struct {
		Spec           map[string]json.RawMessage `json:"spec"`
		VMSize         string                     `json:"vmSize"`
		LaunchTemplate map[string]json.RawMessage `json:"awsLaunchTemplate"`
	}
	var s struct {
		Template       inner                      `json:"template"`
		LaunchTemplate map[string]json.RawMessage `json:"awsLaunchTemplate"`
	}
	if json.Unmarshal(spec, &s) != nil {
		return ""
	}
	for _, place := range []map[string]json.RawMessage{s.Template.Spec, s.LaunchTemplate} {
		for _, word := range typeWords {
			var v string
			if json.Unmarshal(place[word], &v) == nil && v != "" {
				return v
			}
		}
	}
	return s.Template.VMSize
}
