package externalgrpc

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/externalgrpc/protos"
)

// service lists the methods for gRPC's library. It is written by hand because the code
// that protoc-gen-go-grpc generates must be in the package of the messages, which is the
// product's, and the product does not import gRPC's library.
var service = grpc.ServiceDesc{
	ServiceName: protos.CloudProviderName,
	HandlerType: (*any)(nil),
	Methods: []grpc.MethodDesc{
		method("Refresh", (*Server).Refresh),
		method("NodeGroups", (*Server).NodeGroups),
		method("NodeGroupTargetSize", (*Server).NodeGroupTargetSize),
		method("NodeGroupNodes", (*Server).NodeGroupNodes),
		method("NodeGroupIncreaseSize", (*Server).NodeGroupIncreaseSize),
		method("NodeGroupDecreaseTargetSize", (*Server).NodeGroupDecreaseTargetSize),
		method("NodeGroupDeleteNodes", (*Server).NodeGroupDeleteNodes),
		method("NodeGroupTemplateNodeInfo", (*Server).NodeGroupTemplateNodeInfo),
		method("NodeGroupGetOptions", (*Server).NodeGroupGetOptions),
		method("PricingNodePrice", (*Server).PricingNodePrice),
		missing[protos.NodeGroupForNodeRequest]("NodeGroupForNode"),
		missing[protos.PricingPodPriceRequest]("PricingPodPrice"),
		missing[protos.GPULabelRequest]("GPULabel"),
		missing[protos.GetAvailableGPUTypesRequest]("GetAvailableGPUTypes"),
		missing[protos.CleanupRequest]("Cleanup"),
	},
}

// method makes the description of one method.
func method[Req, Res any](name string, serve func(*Server, context.Context, *Req) (*Res, error)) grpc.MethodDesc {
	return grpc.MethodDesc{MethodName: name, Handler: func(server any, ctx context.Context, decode func(any) error, intercept grpc.UnaryServerInterceptor) (any, error) {
		request := new(Req)
		if err := decode(request); err != nil {
			return nil, err
		}
		s := server.(*Server)
		return intercept(ctx, request, &grpc.UnaryServerInfo{Server: s, FullMethod: "/" + protos.CloudProviderName + "/" + name}, func(ctx context.Context, request any) (any, error) {
			return serve(s, ctx, request.(*Req))
		})
	}}
}

// missing is a method that is UNIMPLEMENTED; calls of it are counted all the same.
func missing[Req any](name string) grpc.MethodDesc {
	return method(name, func(*Server, context.Context, *Req) (*protos.CleanupResponse, error) {
		return nil, status.Errorf(codes.Unimplemented, "method %s not implemented", name)
	})
}
