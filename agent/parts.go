package agent

import (
	"context"
	"errors"

	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
)

// Parts are the configurations of the packages that this one wires, under their own
// names.
type Parts struct{}

func (p Parts) validate(provider string) error { return nil }

func (p Parts) provider(ctx context.Context, c Config) (provider.Provider, error) {
	return nil, errors.New("none is wired yet")
}

func (p Parts) services(a *running) []Service { return nil }
