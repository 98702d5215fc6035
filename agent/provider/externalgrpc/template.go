package externalgrpc

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/externalgrpc/protos"
	"github.com/autoscaler-agent/autoscaler-agent/internal/nodespec"
	"github.com/autoscaler-agent/autoscaler-agent/internal/resourcelist"
)

// describe reads the optional facts of a group: template, options and price.
func (p *Provider) describe(ctx context.Context, g *cluster.NodeGroup) error {
	name, err := p.template(ctx, g)
	if err != nil {
		g.Template.Unknown = err.Error()
		return err
	}
	g.Options, err = p.options(ctx, g.ID)
	if err != nil {
		g.Warnings = append(g.Warnings, "the plug-in does not report the group's options, so the agent's own apply: "+err.Error())
	}
	if name != "" {
		g.PriceSource, g.Price = "plug-in", p.price(ctx, g.ID, name, g.Template.Labels)
	}
	return nil
}

// template reads the group's template Node and returns its name; "" when there is none.
func (p *Provider) template(ctx context.Context, g *cluster.NodeGroup) (string, error) {
	none := "the plug-in reports no template: a Ready node of the group shows it, or describe the machine in groups.yaml (groups." + string(g.ID) + ".template.capacity: cpu, memory)"
	g.Template = cluster.Template{Spec: "externalgrpc/" + string(g.ID), Unknown: none, ByNodes: true, Labels: map[string]string{}}
	answer, err := repeatedly(ctx, p, question{"NodeGroupTemplateNodeInfo", g.ID}, func() (*protos.NodeGroupTemplateNodeInfoResponse, error) {
		return p.plugin.NodeGroupTemplateNodeInfo(ctx, &protos.NodeGroupTemplateNodeInfoRequest{Id: string(g.ID)})
	})
	if err != nil {
		if unimplemented(err) {
			return "", nil
		}
		return "", classify("read", g.ID, err)
	}
	raw := answer.GetNodeBytes()
	if len(raw) == 0 {
		raw = answer.GetNodeInfo()
	}
	if len(raw) == 0 {
		return "", nil
	}
	var n corev1.Node
	if err := n.Unmarshal(raw); err != nil {
		return "", &provider.Error{Op: "read", Group: g.ID, Kind: provider.Transient, Err: fmt.Errorf("NodeGroupTemplateNodeInfo: the template is no core/v1 Node: %w", err)}
	}
	g.Template, err = p.convert(&n)
	if err != nil {
		g.Template.Unknown = err.Error()
		return n.Name, nil
	}
	for _, why := range nodespec.Clean(&g.Template) {
		g.Warnings = append(g.Warnings, "of the plug-in's template, "+why)
	}
	for _, key := range []string{corev1.LabelOSStable, corev1.LabelArchStable} {
		if g.Template.Labels[key] == "" {
			g.Warnings = append(g.Warnings, "the plug-in's template has no label "+key+": pods that select it do not fit the group")
		}
	}
	return n.Name, nil
}

// convert reads a template from a Node.
func (p *Provider) convert(n *corev1.Node) (cluster.Template, error) {
	t := cluster.Template{Labels: maps.Clone(n.Labels)}
	if t.Labels == nil {
		t.Labels = map[string]string{}
	}
	// The host name of this Node is not that of the next one.
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
	t.Capacity = resourcelist.Resources(n.Status.Capacity)
	t.Allocatable = p.allocatable(t.Capacity, resourcelist.Resources(n.Status.Allocatable))
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
		return t, fmt.Errorf("the plug-in's template has %d thousandths of a core and %d bytes of memory: correct the plug-in, or describe the machine in groups.yaml", t.Allocatable.MilliCPU, t.Allocatable.Memory)
	}
	return t, nil
}

// allocatable returns the plug-in's allocatable. When it only repeats the capacity, as
// Cluster Autoscaler's own clouds do, it leaves out what kubelets reserve, and allocatable
// is computed as for every other cloud.
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
