package externalgrpc

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/externalgrpc/protos"
)

// price reads the price of one hour of a node; 0: the plug-in reports none.
func (p *Provider) price(ctx context.Context, group cluster.GroupID, name string, labels map[string]string) float64 {
	p.mu.Lock()
	skip := p.now().Before(p.noPrice)
	p.mu.Unlock()
	if skip {
		return 0
	}
	now := p.now()
	start, end := timestamppb.New(now), timestamppb.New(now.Add(time.Hour))
	answer, err := repeatedly(ctx, p, question{"PricingNodePrice", group}, func() (*protos.PricingNodePriceResponse, error) {
		return p.plugin.PricingNodePrice(ctx, &protos.PricingNodePriceRequest{Node: &protos.ExternalGrpcNode{Name: name, Labels: labels},
			StartTime: start, EndTime: end, StartTimestamp: start, EndTimestamp: end})
	})
	if unimplemented(err) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.noPrice = now.Add(noPriceFor)
	}
	// A failed call gives no price until the next read.
	return max(answer.GetPrice(), 0)
}

// options reads the options of a group that differ from the defaults.
func (p *Provider) options(ctx context.Context, id cluster.GroupID) (cluster.Options, error) {
	defaults := p.defaultOptions()
	answer, err := repeatedly(ctx, p, question{"NodeGroupGetOptions", id}, func() (*protos.NodeGroupAutoscalingOptionsResponse, error) {
		return p.plugin.NodeGroupGetOptions(ctx, &protos.NodeGroupAutoscalingOptionsRequest{Id: string(id), Defaults: defaults.marked().message()})
	})
	if unimplemented(err) || err == nil && answer.GetNodeGroupAutoscalingOptions() == nil {
		return cluster.Options{}, nil
	}
	if err != nil {
		return cluster.Options{}, err
	}
	o, err := optionsOf(answer.GetNodeGroupAutoscalingOptions())
	if err != nil {
		return cluster.Options{}, err
	}
	return o.differing(defaults), nil
}

// options is NodeGroupAutoscalingOptions.
type options struct {
	utilization, gpuUtilization  float64
	unneeded, unready, provision time.Duration
	ignoreDaemonSets             bool
}

// message has the durations in both layouts: an older plug-in reads fields 3 to 5, a newer
// one fields 8 to 10.
func (o options) message() *protos.NodeGroupAutoscalingOptions {
	return &protos.NodeGroupAutoscalingOptions{
		ScaleDownUtilizationThreshold: o.utilization, ScaleDownGpuUtilizationThreshold: o.gpuUtilization, IgnoreDaemonSetsUtilization: o.ignoreDaemonSets,
		ScaleDownUnneededTime:     &protos.MetaDuration{Duration: int64(o.unneeded)},
		ScaleDownUnreadyTime:      &protos.MetaDuration{Duration: int64(o.unready)},
		MaxNodeProvisionTime:      &protos.MetaDuration{Duration: int64(o.provision)},
		ScaleDownUnneededDuration: durationpb.New(o.unneeded), ScaleDownUnreadyDuration: durationpb.New(o.unready), MaxNodeProvisionDuration: durationpb.New(o.provision),
	}
}

// optionsOf reads a message. Where a duration is in both layouts, the newer one applies.
func optionsOf(m *protos.NodeGroupAutoscalingOptions) (options, error) {
	o := options{utilization: m.GetScaleDownUtilizationThreshold(), gpuUtilization: m.GetScaleDownGpuUtilizationThreshold(), ignoreDaemonSets: m.GetIgnoreDaemonSetsUtilization()}
	for _, d := range []struct {
		to    *time.Duration
		field string
		now   *durationpb.Duration
		old   *protos.MetaDuration
	}{
		{&o.unneeded, "scaleDownUnneededDuration", m.GetScaleDownUnneededDuration(), m.GetScaleDownUnneededTime()},
		{&o.unready, "scaleDownUnreadyDuration", m.GetScaleDownUnreadyDuration(), m.GetScaleDownUnreadyTime()},
		{&o.provision, "MaxNodeProvisionDuration", m.GetMaxNodeProvisionDuration(), m.GetMaxNodeProvisionTime()},
	} {
		*d.to = d.now.AsDuration()
		if *d.to == 0 {
			*d.to = time.Duration(d.old.GetDuration())
		}
		if *d.to < 0 {
			return options{}, fmt.Errorf("%s is %s, which is below zero", d.field, *d.to)
		}
	}
	return o, nil
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

// marked returns the defaults with the smallest possible addition to two of them, which
// no configured value has. Cluster Autoscaler's wrapper of plug-ins passes the GPU
// threshold to the cloud for both thresholds, and the unneeded time for the unready time
// (wrapper.go, NodeGroupGetOptions). A value that comes back with the mark is such a
// default, not an override.
func (o options) marked() options {
	o.gpuUtilization = math.Nextafter(o.gpuUtilization, 2)
	o.unneeded++
	return o
}

// differing returns the options that differ from the defaults. A zero is no override: on
// the wire it equals a missing field, and a plug-in that sets one field would otherwise
// set every time to zero.
func (o options) differing(from options) cluster.Options {
	sent := from.marked()
	return cluster.Options{
		ScaleDownUtilization:    differs(o.utilization, from.utilization, sent.gpuUtilization),
		ScaleDownGPUUtilization: differs(o.gpuUtilization, from.gpuUtilization, sent.gpuUtilization),
		ScaleDownUnneededTime:   differs(o.unneeded, from.unneeded, sent.unneeded),
		ScaleDownUnreadyTime:    differs(o.unready, from.unready, sent.unneeded),
		MaxNodeProvisionTime:    differs(o.provision, from.provision),
		// On the wire false equals a missing field.
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
