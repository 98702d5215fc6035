package config

import (
	"errors"
	"fmt"
	"slices"

	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/all"
	"github.com/autoscaler-agent/autoscaler-agent/bootstrap"
	"github.com/autoscaler-agent/autoscaler-agent/csrsigner"
	"github.com/autoscaler-agent/autoscaler-agent/nodecleaner"
)

// Services are the settings of the clouds and of the services beside the scaler, each
// declared in its own package.
type Services struct {
	all.Config  // AUTOSCALER_AWS_* and those of every other cloud
	CSR         csrsigner.Config
	Nodecleaner nodecleaner.Config
	Bootstrap   bootstrap.Config
}

func (s Services) validate(provider string) error {
	return errors.Join(s.Config.Validate(provider), s.Bootstrap.Validate(), s.validateJoin(), s.validateAttest(provider))
}

// JoinIsClosed tells whether the agent alone approves the client certificates of machines that
// join with its tokens.
func (s Services) JoinIsClosed() bool { return s.CSR.Enabled && s.CSR.Join == csrsigner.JoinClosed }

// JoinGroups are the auth groups of the agent's join tokens.
func (s Services) JoinGroups() []string {
	switch {
	case len(s.Bootstrap.TokenGroups) > 0:
		return s.Bootstrap.TokenGroups
	case s.JoinIsClosed():
		return []string{bootstrap.WorkersGroup}
	}
	return []string{bootstrap.KubeadmGroup}
}

// validateJoin finds settings of two services that contradict each other.
func (s Services) validateJoin() error {
	if s.JoinIsClosed() && slices.Contains(s.Bootstrap.TokenGroups, bootstrap.KubeadmGroup) {
		return fmt.Errorf("%s_BOOTSTRAP_TOKEN_GROUPS names %s while %s_CSR_JOIN is closed: kubeadm lets that group in by itself; leave the groups empty, or set %s_CSR_JOIN=open",
			Prefix, bootstrap.KubeadmGroup, Prefix, Prefix)
	}
	return nil
}
