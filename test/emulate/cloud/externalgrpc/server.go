// Package externalgrpc is a plug-in for tests: a server of Cluster Autoscaler's protocol
// externalgrpc, on gRPC's own library, over any cloud that speaks the house's contract
// (the fake in memory, or a provider over an emulated cloud). Like Cluster Autoscaler's
// own wrapper it answers from what it read at the last Refresh.
//
// It refuses to know the agent: what misbehaves is told by Fault.
package externalgrpc

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/externalgrpc/protos"
)

// Options of Start.
type Options struct {
	// Cloud is what the plug-in manages.
	Cloud provider.Provider
	// Old has the server speak as before Kubernetes 1.35: messages of k8s.io/api in
	// place of bytes and durations, and no MachineFacts.
	Old bool
	// TLS of the server; nil: none.
	TLS *tls.Config
	// Price of a template's node for an hour; 0: PricingNodePrice is UNIMPLEMENTED.
	Price float64
	// Options, when set, answers NodeGroupGetOptions; nil: UNIMPLEMENTED.
	Options func(group string, defaults *protos.NodeGroupAutoscalingOptions) *protos.NodeGroupAutoscalingOptions
	// Network and Address to listen on; empty: tcp on a free port of 127.0.0.1.
	Network, Address string
}

// Fault is what a call meets before the plug-in does anything.
type Fault struct {
	Method string // "" is every one
	Group  string // "" is every one
	Code   codes.Code
	Text   string
	Delay  time.Duration
	Spare  int // so many calls more go well
	// After lets the call do its work and spoils the answer only.
	After bool
	// Change may change an answer that went well.
	Change func(answer any)
}

// Server is a running plug-in.
type Server struct {
	o      Options
	listen net.Listener
	server *grpc.Server

	mu     sync.Mutex
	groups []cluster.NodeGroup // as of the last Refresh, with this server's own writes
	faults []*Fault
	calls  map[string]int
	raises []time.Time
}

// Start starts a plug-in. Whoever starts it calls Close.
func Start(o Options) (*Server, error) {
	s := &Server{o: o, calls: map[string]int{}}
	if o.Network == "" {
		s.o.Network, s.o.Address = "tcp", "127.0.0.1:0"
	}
	var err error
	if s.listen, err = net.Listen(s.o.Network, s.o.Address); err != nil {
		return nil, err
	}
	opts := []grpc.ServerOption{grpc.UnaryInterceptor(s.intercept)}
	if o.TLS != nil {
		opts = append(opts, grpc.Creds(credentials.NewTLS(o.TLS)))
	}
	s.server = grpc.NewServer(opts...)
	s.server.RegisterService(&service, s)
	go func() { _ = s.server.Serve(s.listen) }() // ends with Close
	return s, nil
}

// Address is what to write into the agent's configuration.
func (s *Server) Address() string {
	if s.o.Network == "unix" {
		return "unix:" + s.o.Address
	}
	return s.listen.Addr().String()
}

// Close ends the server and every connection.
func (s *Server) Close() { s.server.Stop() }

// Inject has calls meet a fault until the returned function is called.
func (s *Server) Inject(f Fault) (stop func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	own := &f
	s.faults = append(s.faults, own)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.faults = slices.DeleteFunc(s.faults, func(x *Fault) bool { return x == own })
	}
}

// Calls is how often a method was called, its faults included.
func (s *Server) Calls(method string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls[method]
}

// Counts are the calls so far by method.
func (s *Server) Counts() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.calls)
}

// Raises is when each NodeGroupIncreaseSize was carried out.
func (s *Server) Raises() []time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.raises)
}

func (s *Server) intercept(ctx context.Context, request any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
	method := info.FullMethod[strings.LastIndex(info.FullMethod, "/")+1:]
	group := ""
	if r, ok := request.(interface{ GetId() string }); ok {
		group = r.GetId()
	}
	var met []*Fault
	s.mu.Lock()
	s.calls[method]++
	for _, f := range s.faults {
		if (f.Method == "" || f.Method == method) && (f.Group == "" || f.Group == group) {
			if f.Spare--; f.Spare < 0 {
				met = append(met, f)
			}
		}
	}
	s.mu.Unlock()
	for _, f := range met {
		if f.Delay > 0 {
			select {
			case <-ctx.Done():
				return nil, status.FromContextError(ctx.Err()).Err()
			case <-time.After(f.Delay):
			}
		}
		if f.Code != codes.OK && !f.After {
			return nil, status.Error(f.Code, f.Text)
		}
	}
	answer, err := handle(ctx, request)
	for _, f := range met {
		if err == nil && f.Change != nil {
			f.Change(answer)
		}
		if f.Code != codes.OK && f.After {
			return nil, status.Error(f.Code, f.Text)
		}
	}
	return answer, err
}

// code is how an error of the contract is said in gRPC.
func code(err error) error {
	kinds := map[provider.Kind]codes.Code{
		provider.Transient: codes.Unavailable, provider.Conflict: codes.Aborted, provider.NotFound: codes.NotFound, provider.Invalid: codes.FailedPrecondition,
		provider.Exhausted: codes.ResourceExhausted, provider.Denied: codes.PermissionDenied,
	}
	if c, ok := kinds[provider.KindOf(err)]; ok {
		return status.Error(c, err.Error())
	}
	return err // gRPC says UNKNOWN, as of every server that returns plain errors
}

// Refresh implements the service.
func (s *Server) Refresh(ctx context.Context, _ *protos.RefreshRequest) (*protos.RefreshResponse, error) {
	if err := s.read(ctx); err != nil {
		return nil, err
	}
	return &protos.RefreshResponse{}, nil
}

func (s *Server) read(ctx context.Context) error {
	groups, err := s.o.Cloud.Groups(ctx)
	if groups == nil {
		return code(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.groups = groups
	return nil
}

func (s *Server) group(id string) (cluster.NodeGroup, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, g := range s.groups {
		if string(g.ID) == id {
			return g, nil
		}
	}
	return cluster.NodeGroup{}, fmt.Errorf("NodeGroup %q, not found", id)
}

// NodeGroups implements the service.
func (s *Server) NodeGroups(context.Context, *protos.NodeGroupsRequest) (*protos.NodeGroupsResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := &protos.NodeGroupsResponse{}
	for _, g := range s.groups {
		out.NodeGroups = append(out.NodeGroups, &protos.NodeGroup{Id: string(g.ID), MinSize: int32(g.Min), MaxSize: int32(g.Max), Debug: "a group of the tests"})
	}
	return out, nil
}

// NodeGroupTargetSize implements the service.
func (s *Server) NodeGroupTargetSize(_ context.Context, r *protos.NodeGroupTargetSizeRequest) (*protos.NodeGroupTargetSizeResponse, error) {
	g, err := s.group(r.GetId())
	if err != nil {
		return nil, err
	}
	return &protos.NodeGroupTargetSizeResponse{TargetSize: int32(g.Target)}, nil
}

// NodeGroupIncreaseSize implements the service.
func (s *Server) NodeGroupIncreaseSize(ctx context.Context, r *protos.NodeGroupIncreaseSizeRequest) (*protos.NodeGroupIncreaseSizeResponse, error) {
	if r.GetDelta() <= 0 {
		return nil, errors.New("size increase must be positive")
	}
	err := s.resize(ctx, r.GetId(), int(r.GetDelta()))
	if err == nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.raises = append(s.raises, time.Now())
	}
	return &protos.NodeGroupIncreaseSizeResponse{}, err
}

// NodeGroupDecreaseTargetSize implements the service.
func (s *Server) NodeGroupDecreaseTargetSize(ctx context.Context, r *protos.NodeGroupDecreaseTargetSizeRequest) (*protos.NodeGroupDecreaseTargetSizeResponse, error) {
	if r.GetDelta() >= 0 {
		return nil, errors.New("size decrease must be negative")
	}
	return &protos.NodeGroupDecreaseTargetSizeResponse{}, s.resize(ctx, r.GetId(), int(r.GetDelta()))
}

func (s *Server) resize(ctx context.Context, id string, delta int) error {
	g, err := s.group(id)
	if err != nil {
		return err
	}
	if err := s.o.Cloud.Resize(ctx, g.ID, g.Target, g.Target+delta); err != nil {
		return code(err)
	}
	return s.read(ctx)
}

// NodeGroupDeleteNodes implements the service.
func (s *Server) NodeGroupDeleteNodes(ctx context.Context, r *protos.NodeGroupDeleteNodesRequest) (*protos.NodeGroupDeleteNodesResponse, error) {
	g, err := s.group(r.GetId())
	if err != nil {
		return nil, err
	}
	var ids []cluster.InstanceID
	for _, n := range r.GetNodes() {
		if n.GetProviderID() == "" || n.GetName() == "" {
			return nil, status.Error(codes.InvalidArgument, "a node without provider ID or name")
		}
		ids = append(ids, cluster.InstanceID(n.GetProviderID()))
	}
	if err := s.o.Cloud.Delete(ctx, g.ID, ids...); err != nil {
		return nil, code(err)
	}
	return &protos.NodeGroupDeleteNodesResponse{}, s.read(ctx)
}
