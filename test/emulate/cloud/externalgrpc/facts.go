package externalgrpc

import (
	"context"
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/externalgrpc/protos"
)

// NodeGroupNodes implements the service. An instance that the cloud could not make is
// listed as one that is being created, with an error, as Cluster Autoscaler's clouds do.
func (s *Server) NodeGroupNodes(_ context.Context, r *protos.NodeGroupNodesRequest) (*protos.NodeGroupNodesResponse, error) {
	g, err := s.group(r.GetId())
	if err != nil {
		return nil, err
	}
	out := &protos.NodeGroupNodesResponse{}
	members := 0
	for _, i := range g.Instances {
		if i.Phase == cluster.PhaseGone {
			continue
		}
		if i.Phase != cluster.PhaseDeleting {
			members++
		}
		out.Instances = append(out.Instances, s.instance(i))
	}
	for n := members; n < g.Target && len(g.Failures) > 0; n++ {
		f := g.Failures[0]
		out.Instances = append(out.Instances, s.instance(cluster.Instance{
			ID: cluster.InstanceID(fmt.Sprintf("fake:///pending/%s-%d", g.ID, n)), Phase: cluster.PhaseFailed, Failure: &f}))
	}
	return out, nil
}

func (s *Server) instance(i cluster.Instance) *protos.Instance {
	states := map[cluster.Phase]protos.InstanceStatus_InstanceState{
		cluster.PhaseRunning: protos.InstanceStatus_instanceRunning, cluster.PhasePending: protos.InstanceStatus_instanceCreating,
		cluster.PhaseFailed: protos.InstanceStatus_instanceCreating, cluster.PhaseDeleting: protos.InstanceStatus_instanceDeleting,
	}
	out := &protos.Instance{Id: string(i.ID), Status: &protos.InstanceStatus{InstanceState: states[i.Phase], ErrorInfo: &protos.InstanceErrorInfo{}}}
	f := &protos.MachineFacts{Type: i.Type, Zone: i.Zone, NodeNames: i.NodeNames, DnsNames: i.Names}
	if !i.Created.IsZero() {
		f.Created = timestamppb.New(i.Created)
	}
	for _, a := range i.Addresses {
		f.Addresses = append(f.Addresses, a.String())
	}
	if i.Failure != nil {
		class := int32(99)
		if i.Failure.Cause == cluster.CauseCapacity || i.Failure.Cause == cluster.CauseQuota {
			class = 1
		}
		out.Status.ErrorInfo = &protos.InstanceErrorInfo{ErrorCode: "cannot-create", ErrorMessage: i.Failure.Text, InstanceErrorClass: class}
		f.FailedAt = timestamppb.New(i.Failure.At)
	}
	if !s.o.Old {
		out.Machine = f
	}
	return out
}

// NodeGroupTemplateNodeInfo implements the service, in the layout that is wanted.
func (s *Server) NodeGroupTemplateNodeInfo(_ context.Context, r *protos.NodeGroupTemplateNodeInfoRequest) (*protos.NodeGroupTemplateNodeInfoResponse, error) {
	g, err := s.group(r.GetId())
	if err != nil {
		return nil, err
	}
	if g.Template.Unknown != "" {
		return nil, status.Error(codes.Unimplemented, g.Template.Unknown)
	}
	raw, err := TemplateNode(g).Marshal()
	if err != nil {
		return nil, err
	}
	out := &protos.NodeGroupTemplateNodeInfoResponse{NodeBytes: raw}
	if s.o.Old {
		out = &protos.NodeGroupTemplateNodeInfoResponse{NodeInfo: raw}
	}
	return out, nil
}

// TemplateNode is the Node that a group's next instance becomes.
func TemplateNode(g cluster.NodeGroup) *corev1.Node {
	list := func(r cluster.Resources) corev1.ResourceList {
		out := corev1.ResourceList{
			corev1.ResourceCPU: *resource.NewMilliQuantity(r.MilliCPU, resource.DecimalSI), corev1.ResourceMemory: *resource.NewQuantity(r.Memory, resource.BinarySI),
			corev1.ResourcePods: *resource.NewQuantity(r.Pods, resource.DecimalSI), corev1.ResourceEphemeralStorage: *resource.NewQuantity(r.EphemeralStorage, resource.BinarySI),
		}
		for name, n := range r.Extended {
			out[corev1.ResourceName(name)] = *resource.NewQuantity(n, resource.DecimalSI)
		}
		return out
	}
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: string(g.ID) + "-template", Labels: map[string]string{corev1.LabelHostname: string(g.ID) + "-template"}}}
	for k, v := range g.Template.Labels {
		n.Labels[k] = v
	}
	for _, t := range g.Template.Taints {
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: t.Key, Value: t.Value, Effect: corev1.TaintEffect(t.Effect)})
	}
	n.Status.Capacity, n.Status.Allocatable = list(g.Template.Capacity), list(g.Template.Allocatable)
	return n
}

// NodeGroupGetOptions implements the service.
func (s *Server) NodeGroupGetOptions(_ context.Context, r *protos.NodeGroupAutoscalingOptionsRequest) (*protos.NodeGroupAutoscalingOptionsResponse, error) {
	if s.o.Options == nil {
		return nil, status.Error(codes.Unimplemented, "method NodeGroupGetOptions not implemented")
	}
	if r.GetDefaults() == nil {
		return nil, status.Error(codes.InvalidArgument, "request fields were nil")
	}
	out := s.o.Options(r.GetId(), r.GetDefaults())
	if out != nil && s.o.Old {
		out = oldDurations(out)
	}
	return &protos.NodeGroupAutoscalingOptionsResponse{NodeGroupAutoscalingOptions: out}, nil
}

// oldDurations moves durations to fields 3 to 5, as meta/v1 Duration (nanoseconds).
func oldDurations(o *protos.NodeGroupAutoscalingOptions) *protos.NodeGroupAutoscalingOptions {
	out := proto.Clone(o).(*protos.NodeGroupAutoscalingOptions)
	old := func(d *durationpb.Duration) *protos.MetaDuration {
		return &protos.MetaDuration{Duration: int64(d.AsDuration())}
	}
	out.ScaleDownUnneededTime, out.ScaleDownUnreadyTime, out.MaxNodeProvisionTime = old(o.GetScaleDownUnneededDuration()), old(o.GetScaleDownUnreadyDuration()), old(o.GetMaxNodeProvisionDuration())
	out.ScaleDownUnneededDuration, out.ScaleDownUnreadyDuration, out.MaxNodeProvisionDuration = nil, nil, nil
	return out
}

// PricingNodePrice implements the service.
func (s *Server) PricingNodePrice(_ context.Context, r *protos.PricingNodePriceRequest) (*protos.PricingNodePriceResponse, error) {
	if s.o.Price == 0 {
		return nil, status.Error(codes.Unimplemented, "method PricingNodePrice not implemented")
	}
	hours := r.GetEndTimestamp().AsTime().Sub(r.GetStartTimestamp().AsTime()).Hours()
	if r.GetNode().GetName() == "" || hours <= 0 {
		return nil, status.Error(codes.InvalidArgument, "request fields were nil")
	}
	return &protos.PricingNodePriceResponse{Price: s.o.Price * hours}, nil
}
