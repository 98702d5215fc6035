// Command externalgrpc-server is an example of a plug-in: it makes node groups of
// anything that has a command line (virsh, qm, govc, a provider's own tool). One command
// per group does the work:
//
//	COMMAND list          prints a line for each machine: NAME STATE ADDRESS CREATED
//	COMMAND create NAME   makes a machine of that name; returns when list shows it
//	COMMAND delete NAME   ends it
//
// STATE is creating, running or deleting; CREATED is a time like 2026-11-21T10:00:00Z.
// The kubelet of machine NAME runs with --provider-id example:///NAME, and its Node is
// called NAME. docs/providers/externalgrpc.md explains every answer; serve.go listens.
package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"log"
	"maps"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"
	corev1 "k8s.io/api/core/v1"

	"github.com/autoscaler-agent/autoscaler-agent/examples/externalgrpc-server/protos"
)

const idPrefix = "example:///"

// group is a node group: its bounds, its machine, its command. What it keeps in memory
// is only what list does not show yet, so a restart loses nothing that exists.
type group struct {
	ID       string
	Min, Max int32
	Machine  corev1.ResourceList // cpu, memory and pods of one machine
	Labels   map[string]string
	Command  []string

	mu      sync.Mutex
	pending map[string]string // machines that are being made, by name; not "": why it failed
}

// server answers the agent. Everything that is not here is UNIMPLEMENTED.
type server struct {
	protos.UnimplementedCloudProviderServer
	groups map[string]*group
}

func (g *group) run(ctx context.Context, args ...string) (string, error) {
	var out, errout bytes.Buffer
	cmd := exec.CommandContext(ctx, g.Command[0], append(g.Command[1:len(g.Command):len(g.Command)], args...)...)
	cmd.Stdout, cmd.Stderr = &out, &errout
	if err := cmd.Run(); err != nil {
		return "", status.Errorf(codes.Unavailable, "%s %v: %s", args[0], err, strings.TrimSpace(errout.String()))
	}
	return out.String(), nil
}

// machines are all instances of a group by name, with those that list does not show
// yet. A list that fails is an error, never an empty group.
func (s *server) machines(ctx context.Context, id string) (*group, map[string]*protos.Instance, error) {
	g := s.groups[id]
	if g == nil {
		return nil, nil, status.Errorf(codes.NotFound, "there is no group %q", id)
	}
	// Noted before the list: a machine that comes into being meanwhile is in one of them.
	g.mu.Lock()
	pending := maps.Clone(g.pending)
	g.mu.Unlock()
	text, err := g.run(ctx, "list")
	if err != nil {
		return nil, nil, err
	}
	all := map[string]*protos.Instance{}
	for line := range strings.Lines(text) {
		states := map[string]protos.InstanceStatus_InstanceState{"running": 1, "creating": 2, "deleting": 3}
		f := append(strings.Fields(line), "", "", "", "")
		created, err := time.Parse(time.RFC3339, f[3])
		if err != nil || states[f[1]] == 0 {
			return nil, nil, status.Errorf(codes.Internal, "list printed %q, not NAME STATE ADDRESS CREATED", line)
		}
		all[f[0]] = &protos.Instance{Id: idPrefix + f[0], Status: &protos.InstanceStatus{InstanceState: states[f[1]]},
			Machine: &protos.MachineFacts{NodeNames: []string{f[0]}, Addresses: []string{f[2]}, Created: timestamppb.New(created)}}
	}
	for name, failure := range pending {
		if all[name] == nil {
			all[name] = &protos.Instance{Id: idPrefix + name, Status: &protos.InstanceStatus{InstanceState: protos.InstanceStatus_instanceCreating}}
		}
		if failure != "" {
			all[name].Status.ErrorInfo = &protos.InstanceErrorInfo{ErrorCode: "create-failed", ErrorMessage: failure, InstanceErrorClass: 99}
		}
	}
	return g, all, nil
}

func (s *server) NodeGroups(context.Context, *protos.NodeGroupsRequest) (*protos.NodeGroupsResponse, error) {
	out := &protos.NodeGroupsResponse{}
	for _, g := range s.groups {
		out.NodeGroups = append(out.NodeGroups, &protos.NodeGroup{Id: g.ID, MinSize: g.Min, MaxSize: g.Max})
	}
	return out, nil
}

func (s *server) NodeGroupNodes(ctx context.Context, r *protos.NodeGroupNodesRequest) (*protos.NodeGroupNodesResponse, error) {
	_, all, err := s.machines(ctx, r.GetId())
	return &protos.NodeGroupNodesResponse{Instances: slices.Collect(maps.Values(all))}, err
}

// NodeGroupTargetSize counts what is there or being made: a target that is not kept
// apart from the machines cannot disagree with them.
func (s *server) NodeGroupTargetSize(ctx context.Context, r *protos.NodeGroupTargetSizeRequest) (*protos.NodeGroupTargetSizeResponse, error) {
	_, all, err := s.machines(ctx, r.GetId())
	maps.DeleteFunc(all, func(_ string, i *protos.Instance) bool {
		return i.Status.InstanceState == protos.InstanceStatus_instanceDeleting
	})
	return &protos.NodeGroupTargetSizeResponse{TargetSize: int32(len(all))}, err
}

func (s *server) NodeGroupIncreaseSize(ctx context.Context, r *protos.NodeGroupIncreaseSizeRequest) (*protos.NodeGroupIncreaseSizeResponse, error) {
	g, all, err := s.machines(ctx, r.GetId())
	if err != nil || r.GetDelta() <= 0 || len(all)+int(r.GetDelta()) > int(g.Max) {
		return nil, status.Errorf(codes.FailedPrecondition, "%d more than %d: %v", r.GetDelta(), len(all), err)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for range r.GetDelta() {
		name := g.ID + "-" + strings.ToLower(rand.Text()[:8])
		g.pending[name] = ""
		go func() { // the call has a deadline of seconds and does not wait for a machine
			_, err := g.run(context.Background(), "create", name)
			g.mu.Lock()
			defer g.mu.Unlock()
			if delete(g.pending, name); err != nil {
				log.Print(err)
				g.pending[name] = err.Error() // listed as failed until the agent deletes it
			}
		}()
	}
	return &protos.NodeGroupIncreaseSizeResponse{}, nil
}

func (s *server) NodeGroupDecreaseTargetSize(context.Context, *protos.NodeGroupDecreaseTargetSizeRequest) (*protos.NodeGroupDecreaseTargetSizeResponse, error) {
	return nil, status.Error(codes.FailedPrecondition, "every machine that was asked for is being made already: delete it by its name")
}

func (s *server) NodeGroupDeleteNodes(ctx context.Context, r *protos.NodeGroupDeleteNodesRequest) (*protos.NodeGroupDeleteNodesResponse, error) {
	g, all, err := s.machines(ctx, r.GetId())
	if err != nil {
		return nil, err
	}
	for _, n := range r.GetNodes() {
		name := strings.TrimPrefix(n.GetProviderID(), idPrefix)
		switch i := all[name]; {
		case i == nil:
			return nil, status.Errorf(codes.NotFound, "machine %q is not in group %s", name, g.ID)
		case i.Status.InstanceState == protos.InstanceStatus_instanceDeleting:
			continue // a second order for the same machine does nothing
		}
		// What is left of a machine that could not be made is deleted too.
		if _, err := g.run(ctx, "delete", name); err != nil {
			return nil, err
		}
		g.mu.Lock()
		delete(g.pending, name)
		g.mu.Unlock()
	}
	return &protos.NodeGroupDeleteNodesResponse{}, nil
}

// NodeGroupTemplateNodeInfo describes the next machine. Its allocatable is left out:
// the agent works out what the kubelet keeps back.
func (s *server) NodeGroupTemplateNodeInfo(_ context.Context, r *protos.NodeGroupTemplateNodeInfoRequest) (*protos.NodeGroupTemplateNodeInfoResponse, error) {
	g := s.groups[r.GetId()]
	if g == nil {
		return nil, status.Errorf(codes.NotFound, "there is no group %q", r.GetId())
	}
	var n corev1.Node
	n.Name, n.Labels, n.Status.Capacity = g.ID+"-template", g.Labels, g.Machine
	raw, err := n.Marshal()
	return &protos.NodeGroupTemplateNodeInfoResponse{NodeBytes: raw}, err
}
