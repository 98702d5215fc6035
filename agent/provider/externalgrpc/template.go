package externalgrpc

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
	corev1 "k8s.io/api/core/v1"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
)

// describe asks for what a plug-in need not have: template, options and price.
func (p *Provider) describe(ctx context.Context, g *cluster.NodeGroup) error {
	id := string(g.ID)
	name, err := p.template(ctx, g)
	if err != nil {
		g.Template.Unknown = err.Error()
		return err
	}
	asked := appendText(nil, 1, id)
	defaults := p.defaultOptions()
	o, given, err := p.options(ctx, g.ID, appendMessage(asked, 2, defaults.marked().write()))
	if err != nil {
		g.Warnings = append(g.Warnings, "the plug-in does not tell the group's options, so the agent's own hold: "+err.Error())
	} else if given {
		g.Options = o.differing(defaults)
	}
	if name == "" || p.without(methodPrice) {
		return nil
	}
	now := p.now()
	request := appendMessage(nil, 1, node("", name, g.Template.Labels))
	for i, t := range []time.Time{now, now.Add(time.Hour)} {
		request = appendTime(appendTime(request, protowire.Number(2+i), t), protowire.Number(4+i), t)
	}
	price, err := read(ctx, p, "read", g.ID, methodPrice, request, readPrice)
	switch {
	case err == nil && price > 0:
		g.Price = price
	case err != nil && unimplemented(err):
		p.lack(methodPrice)
	}
	return nil
}

// without tells whether the plug-in said a while ago that it has no such method.
func (p *Provider) without(method string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.now().Before(p.lacks[method])
}

func (p *Provider) lack(method string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lacks[method] = p.now().Add(lacksFor)
}

func (p *Provider) options(ctx context.Context, id cluster.GroupID, request []byte) (options, bool, error) {
	answer, err := p.client.call(ctx, methodOptions, request)
	if err != nil {
		if unimplemented(err) {
			return options{}, false, nil
		}
		return options{}, false, err
	}
	return readOptions(answer)
}

func (p *Provider) defaultOptions() options {
	d := p.defaults
	return options{
		utilization: value(d.ScaleDownUtilization), gpuUtilization: value(d.ScaleDownGPUUtilization), unneeded: value(d.ScaleDownUnneededTime),
		unready: value(d.ScaleDownUnreadyTime), provision: value(d.MaxNodeProvisionTime), ignoreDaemonSets: value(d.IgnoreDaemonSetsUtilization),
	}
}

func value[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

// marked are defaults of which two are told from all values that anybody writes, by the
// least that can be added to them. Cluster Autoscaler's wrapper of plug-ins hands the
// cloud the GPU threshold for the other one, too, and the unneeded time for the unready
// one (wrapper.go, NodeGroupGetOptions); what comes back with a mark is such a default,
// and no wish of the plug-in.
func (o options) marked() options {
	o.gpuUtilization = math.Nextafter(o.gpuUtilization, 2)
	o.unneeded++
	return o
}

// differing returns what a plug-in says beyond the defaults that it was given. A zero
// says nothing: the protocol cannot tell it from a field that was left out, and a
// plug-in that fills in one field would otherwise have nodes go at once.
func (o options) differing(from options) cluster.Options {
	sent := from.marked()
	return cluster.Options{
		ScaleDownUtilization:    differs(o.utilization, from.utilization, sent.gpuUtilization),
		ScaleDownGPUUtilization: differs(o.gpuUtilization, from.gpuUtilization, sent.gpuUtilization),
		ScaleDownUnneededTime:   differs(o.unneeded, from.unneeded, sent.unneeded),
		ScaleDownUnreadyTime:    differs(o.unready, from.unready, sent.unneeded),
		MaxNodeProvisionTime:    differs(o.provision, from.provision),
		// The protocol's false may be one that was left out.
		IgnoreDaemonSetsUtilization: differs(o.ignoreDaemonSets, from.ignoreDaemonSets),
	}
}

func differs[T comparable](v T, from ...T) *T {
	var zero T
	if v == zero || slices.Contains(from, v) {
		return nil
	}
	return &v
}

// template asks for the group's next Node and returns its name; "" when there is none.
func (p *Provider) template(ctx context.Context, g *cluster.NodeGroup) (string, error) {
	none := "the plug-in tells no template: describe the machine in groups.yaml (groups." + string(g.ID) + ".template.capacity: cpu, memory)"
	g.Template = cluster.Template{Spec: "externalgrpc/" + string(g.ID), Unknown: none, Labels: map[string]string{}}
	answer, err := p.client.call(ctx, methodTemplate, appendText(nil, 1, string(g.ID)))
	if err != nil {
		if unimplemented(err) {
			return "", nil
		}
		return "", classify("read", g.ID, err)
	}
	raw, err := readTemplate(answer)
	if err == nil && len(raw) == 0 {
		return "", nil
	}
	var n corev1.Node
	if err == nil {
		err = n.Unmarshal(raw)
	}
	if err != nil {
		return "", &provider.Error{Op: "read", Group: g.ID, Kind: provider.Transient, Err: fmt.Errorf("%s: %w", methodTemplate, errors.Join(errTorn, err))}
	}
	g.Template, err = p.convert(&n)
	if err != nil {
		g.Template.Unknown = err.Error()
		return n.Name, nil
	}
	for _, key := range []string{corev1.LabelOSStable, corev1.LabelArchStable} {
		if g.Template.Labels[key] == "" {
			g.Warnings = append(g.Warnings, "the plug-in's template has no label "+key+": pods that ask for it find no place in the group")
		}
	}
	return n.Name, nil
}

// convert makes a template of a Node.
func (p *Provider) convert(n *corev1.Node) (cluster.Template, error) {
	t := cluster.Template{Labels: maps.Clone(n.Labels)}
	if t.Labels == nil {
		t.Labels = map[string]string{}
	}
	// Not of the next node, but of this one.
	delete(t.Labels, corev1.LabelHostname)
	for key, from := range map[string]string{corev1.LabelOSStable: n.Status.NodeInfo.OperatingSystem, corev1.LabelArchStable: n.Status.NodeInfo.Architecture} {
		old := t.Labels["beta."+key]
		if t.Labels[key] == "" && or(from, old) != "" {
			t.Labels[key] = or(from, old)
		}
	}
	for _, x := range n.Spec.Taints {
		t.Taints = append(t.Taints, cluster.Taint{Key: x.Key, Value: x.Value, Effect: string(x.Effect)})
	}
	slices.SortFunc(t.Taints, func(a, b cluster.Taint) int { return strings.Compare(a.Key+a.Effect, b.Key+b.Effect) })
	t.Capacity = resources(n.Status.Capacity)
	t.Allocatable = p.allocatable(t.Capacity, resources(n.Status.Allocatable))
	if t.Capacity.MilliCPU == 0 && t.Capacity.Memory == 0 {
		t.Capacity = t.Allocatable
	}
	spec, err := json.Marshal(t)
	if err != nil {
		return t, err
	}
	sum := sha256.Sum256(spec)
	t.Spec = "externalgrpc/" + hex.EncodeToString(sum[:8])
	if t.Allocatable.MilliCPU <= 0 || t.Allocatable.Memory <= 0 {
		return t, fmt.Errorf("the plug-in's template has %d thousandths of a core and %d bytes of memory: mend the plug-in, or describe the machine in groups.yaml", t.Allocatable.MilliCPU, t.Allocatable.Memory)
	}
	return t, nil
}

// allocatable is what the plug-in says. One that only repeats the capacity (as Cluster
// Autoscaler's own clouds do) has not thought of what kubelets keep back: that is
// computed, as for every other cloud.
func (p *Provider) allocatable(capacity, told cluster.Resources) cluster.Resources {
	if told.MilliCPU == 0 && told.Memory == 0 || told.MilliCPU == capacity.MilliCPU && told.Memory == capacity.Memory {
		own := p.reservation.Allocatable(capacity)
		own.Extended = maps.Clone(capacity.Extended)
		if capacity.Pods > 0 {
			own.Pods = capacity.Pods
		}
		return own
	}
	if told.Pods == 0 {
		told.Pods = p.reservation.MaxPods
		if capacity.Pods > 0 {
			told.Pods = capacity.Pods
		}
	}
	return told
}

func resources(list corev1.ResourceList) cluster.Resources {
	var out cluster.Resources
	for name, q := range list {
		switch name {
		case corev1.ResourceCPU:
			out.MilliCPU = q.MilliValue()
		case corev1.ResourceMemory:
			out.Memory = q.Value()
		case corev1.ResourceEphemeralStorage:
			out.EphemeralStorage = q.Value()
		case corev1.ResourcePods:
			out.Pods = q.Value()
		default:
			if out.Extended == nil {
				out.Extended = map[string]int64{}
			}
			out.Extended[string(name)] = q.Value()
		}
	}
	return out
}
