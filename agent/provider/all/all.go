// Package all is the list of the clouds that the agent can work with, and nothing
// else. It registers by naming them here; it refuses to have init functions.
package all

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/asg"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/asg/pool"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/clusterapi"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/externalgrpc"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/magnum"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/nova"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/nova/section"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/openstack"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/wrap"
	"github.com/autoscaler-agent/autoscaler-agent/userdata/upgrade"
)

// Config holds the configuration of every cloud, each under its own prefix: the
// variables of AWS are AUTOSCALER_AWS_*.
type Config struct {
	AWS asg.Config
	// OpenStack is how OpenStack is reached, for every provider of it.
	OpenStack    openstack.Config
	Nova         nova.Config
	Magnum       magnum.Config
	ClusterAPI   clusterapi.Config
	ExternalGRPC externalgrpc.Config
	// OnCall, when set, is told of every single call to a cloud's API, by the
	// cloud's own name of it ("autoscaling:SetDesiredCapacity"), for metrics.
	OnCall func(action string, took time.Duration, err error) `ignored:"true"`
	// Section is the provider's section of groups.yaml as it is in force at the time of
	// the call; nil: there is none. A provider asks at every read.
	Section func(provider string) json.RawMessage `ignored:"true"`
	// TokenFor mints a join token for one machine that is about to be made, by its name;
	// nil: this agent mints none.
	TokenFor func(ctx context.Context, machine string) (string, error) `ignored:"true"`
	// Upgrades decides which version of Kubernetes the user data of groups should install; nil: the version stays as it is. Published are
	// the launch templates on AWS that the agent publishes it in.
	Upgrades  *upgrade.Follower `ignored:"true"`
	Published []string          `ignored:"true"`
	// Defaults are the agent's own settings for groups that say nothing else, for
	// providers whose clouds ask for them.
	Defaults cluster.Options `ignored:"true"`
	// Kubeconfig is the path of the agent's own, for providers whose groups are objects
	// of the cluster itself.
	Kubeconfig string `ignored:"true"`
}

// cloud is what this package knows of one provider.
type cloud struct {
	make func(ctx context.Context, c Config, reservation cluster.Reservation) (provider.Provider, error)
	// validate returns everything that is wrong with the provider's variables.
	validate func(c Config) error
	// section reads the provider's section of groups.yaml; nil: it has none.
	section func(json.RawMessage) error
	// none is what to do when it has no node group; empty: to describe one in its section
	// of groups.yaml.
	none string
}

// clouds lists the providers by the name that configuration uses.
var clouds = map[string]cloud{
	"asg": {
		make: func(ctx context.Context, c Config, r cluster.Reservation) (provider.Provider, error) {
			opts := []asg.Option{asg.WithUpgrades(c.Upgrades, c.Published)}
			if c.OnCall != nil {
				opts = append(opts, asg.WithCallHook(func(k asg.Call) { c.OnCall(k.Action, k.Took, k.Err) }))
			}
			if c.Section != nil {
				opts = append(opts, asg.WithSection(func() json.RawMessage { return c.Section("asg") }))
			}
			return asg.New(ctx, c.AWS, r, opts...)
		},
		validate: func(c Config) error { return c.AWS.Validate() },
		section:  func(raw json.RawMessage) error { _, err := pool.Parse(raw); return err },
		none: "set AUTOSCALER_AWS_CLUSTER_NAME and tag the groups k8s.io/cluster-autoscaler/enabled and k8s.io/cluster-autoscaler/NAME, or name them in " +
			"AUTOSCALER_AWS_GROUPS; see that AUTOSCALER_AWS_REGION is their region",
	},
	"nova": {
		make: func(_ context.Context, c Config, r cluster.Reservation) (provider.Provider, error) {
			opts := []nova.Option{nova.WithTokens(c.TokenFor), nova.WithUpgrades(c.Upgrades)}
			if c.OnCall != nil {
				opts = append(opts, nova.WithCallHook(func(k openstack.Call) { c.OnCall(k.Action, k.Took, k.Err) }))
			}
			return nova.New(c.Nova, c.OpenStack, func() json.RawMessage { return c.Section("nova") }, r, opts...)
		},
		validate: func(c Config) error { return errors.Join(c.OpenStack.Validate(), c.Nova.Validate()) },
		section:  func(raw json.RawMessage) error { _, err := section.Parse(raw); return err },
	},
	"clusterapi": {
		make: func(ctx context.Context, c Config, r cluster.Reservation) (provider.Provider, error) {
			var opts []clusterapi.Option
			if c.OnCall != nil {
				opts = append(opts, clusterapi.WithCallHook(func(k clusterapi.Call) { c.OnCall(k.Action, k.Took, k.Err) }))
			}
			return clusterapi.New(ctx, c.ClusterAPI, c.Kubeconfig, r, opts...)
		},
		validate: func(c Config) error { return c.ClusterAPI.Validate() },
		none: "annotate MachineDeployments with cluster.x-k8s.io/cluster-api-autoscaler-node-group-min-size and -max-size, and check " +
			"AUTOSCALER_CLUSTERAPI_NAMESPACE, _CLUSTER_NAME and _AUTO_DISCOVERY",
	},
	"externalgrpc": {
		make: func(_ context.Context, c Config, r cluster.Reservation) (provider.Provider, error) {
			opts := []externalgrpc.Option{externalgrpc.WithDefaults(c.Defaults)}
			if c.OnCall != nil {
				opts = append(opts, externalgrpc.WithCallHook(c.OnCall))
			}
			if c.Section != nil {
				opts = append(opts, externalgrpc.WithSection(func() json.RawMessage { return c.Section("externalgrpc") }))
			}
			return externalgrpc.New(c.ExternalGRPC, r, opts...)
		},
		validate: func(c Config) error { return c.ExternalGRPC.Validate() },
		section:  externalgrpc.Section,
		none:     "the plug-in lists no group: see its own configuration, and that AUTOSCALER_EXTERNALGRPC_ADDRESS is the right one",
	},
	"magnum": {
		make: func(_ context.Context, c Config, r cluster.Reservation) (provider.Provider, error) {
			session, err := openstack.NewSession(c.OpenStack, c.openStackCalls())
			if err != nil {
				return nil, err
			}
			return magnum.New(c.Magnum, session, r)
		},
		validate: func(c Config) error { return errors.Join(c.OpenStack.Validate(), c.Magnum.Validate()) },
	},
}

// openStackCalls tells OnCall of requests to OpenStack's services.
func (c Config) openStackCalls() func(openstack.Call) {
	if c.OnCall == nil {
		return nil
	}
	return func(k openstack.Call) { c.OnCall(k.Action, k.Took, k.Err) }
}

// InSection reports whether the groups of a provider are those of its section of groups.yaml alone.
func InSection(name string) bool { return clouds[name].section != nil && clouds[name].none == "" }

// Names are the known providers, sorted.
func Names() []string { return slices.Sorted(maps.Keys(clouds)) }

// Sections are the readers of the sections that groups.yaml may have, by provider.
func Sections() map[string]func(json.RawMessage) error {
	out := map[string]func(json.RawMessage) error{}
	for name, c := range clouds {
		if c.section != nil {
			out[name] = c.section
		}
	}
	return out
}

// Split takes a list of names apart ("asg,externalgrpc"). A name that is not known, or
// that stands twice, is an error that names those that are known.
func Split(list string) ([]string, error) {
	var out []string
	for name := range strings.SplitSeq(list, ",") {
		name = strings.TrimSpace(name)
		if name == "aws" { // as in Cluster Autoscaler's --cloud-provider=aws
			name = "asg"
		}
		if _, ok := clouds[name]; !ok {
			return nil, fmt.Errorf("provider %q is not known; known are: %s", name, strings.Join(Names(), ", "))
		}
		if slices.Contains(out, name) {
			return nil, fmt.Errorf("provider %q stands twice", name)
		}
		out = append(out, name)
	}
	return out, nil
}

// Validate returns everything that is wrong with the variables of the named providers,
// joined.
func (c Config) Validate(list string) error {
	names, err := Split(list)
	if err != nil {
		return nil // the list is told about where it is read
	}
	var errs []error
	for _, name := range names {
		errs = append(errs, clouds[name].validate(c))
	}
	return errors.Join(errs...)
}

// NoGroups says what to do when the named providers have no node group.
func NoGroups(names ...string) string {
	var out []string
	for _, name := range names {
		text := clouds[name].none
		if text == "" {
			text = "describe one in section " + name + " of groups.yaml"
		}
		if len(names) > 1 {
			text = name + ": " + text
		}
		out = append(out, text)
	}
	return strings.Join(out, "; ")
}

// New makes the providers of a list of names, as one. One of several that cannot be
// made now is made later: its reads fail with the reason until then.
func New(ctx context.Context, list string, c Config, reservation cluster.Reservation) (provider.Provider, error) {
	names, err := Split(list)
	if err != nil {
		return nil, err
	}
	parts := make(map[string]provider.Provider, len(names))
	for _, name := range names {
		one := func() (provider.Provider, error) { return clouds[name].make(ctx, c, reservation) }
		p, err := one()
		switch {
		case err == nil:
		case len(names) == 1:
			return nil, fmt.Errorf("provider %s: %w", name, err)
		default:
			p = wrap.Deferred(one)
		}
		parts[name] = p
	}
	return wrap.Join(parts), nil
}
