package provider

import (
	"context"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

type onlyKey struct{}

// WithOnly narrows a Groups to the named groups. A provider may return others, too, and may
// leave them out: a group that is not returned is unknown then, not gone. It may also repeat
// facts that it read less than a minute ago where nothing that it reads says that they have
// changed; NodeGroup.ReadAt is the time of the oldest fact about the machines. A provider
// that cannot read less than everything ignores the wish.
func WithOnly(ctx context.Context, ids []cluster.GroupID) context.Context {
	return context.WithValue(ctx, onlyKey{}, ids)
}

// Only are the groups that a Groups is narrowed to; nil: it is to read everything anew.
func Only(ctx context.Context) []cluster.GroupID {
	ids, _ := ctx.Value(onlyKey{}).([]cluster.GroupID)
	return ids
}
