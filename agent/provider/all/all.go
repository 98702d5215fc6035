// Package all is the list of the clouds that the agent can work with, and nothing
// else. It registers by naming them here; it refuses to have init functions.
package all

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/asg"
)

// Config holds the configuration of every cloud, each under its own prefix: the
// variables of AWS are AUTOSCALER_AWS_*.
type Config struct {
	AWS asg.Config
	// OnCall, when set, is told of every single call to a cloud's API, by the
	// cloud's own name of it ("autoscaling:SetDesiredCapacity"), for metrics.
	OnCall func(action string, took time.Duration, err error) `ignored:"true"`
}

// A Factory makes the provider of one cloud. reservation is what kubelets keep
// back on the machines of its groups.
type Factory func(ctx context.Context, c Config, reservation cluster.Reservation) (provider.Provider, error)

// Providers lists the clouds by the name that configuration uses.
func Providers() map[string]Factory {
	return map[string]Factory{
		"asg": func(ctx context.Context, c Config, r cluster.Reservation) (provider.Provider, error) {
			var opts []asg.Option
			if c.OnCall != nil {
				opts = append(opts, asg.WithCallHook(func(k asg.Call) { c.OnCall(k.Action, k.Took, k.Err) }))
			}
			return asg.New(ctx, c.AWS, r, opts...)
		},
	}
}

// New makes the provider of that name. A name that is not listed is an error that
// names those that are.
func New(ctx context.Context, name string, c Config, reservation cluster.Reservation) (provider.Provider, error) {
	list := Providers()
	factory, ok := list[name]
	if !ok {
		return nil, fmt.Errorf("provider %q is not known; known are: %s", name, strings.Join(slices.Sorted(maps.Keys(list)), ", "))
	}
	return factory(ctx, c, reservation)
}
