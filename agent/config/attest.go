package config

import (
	"fmt"
	"slices"

	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/all"
	"github.com/autoscaler-agent/autoscaler-agent/bootstrap/attest"
)

// AttestConfig is the listener's configuration, its region that of the provider unless it
// has its own.
func (s Services) AttestConfig() attest.Config {
	cfg := s.Bootstrap.Attest
	if cfg.Region == "" {
		cfg.Region = s.AWS.Region
	}
	return cfg
}

// validateAttest finds what the listener needs of other settings, and its own that are missing.
func (s Services) validateAttest(providers string) error {
	cfg := s.AttestConfig()
	names, err := all.Split(providers)
	switch {
	case err != nil:
		return nil
	case cfg.Listen == "":
		return nil
	case !s.Bootstrap.Enabled:
		return fmt.Errorf("set %s_BOOTSTRAP_ENABLED=true: attested join (%s_BOOTSTRAP_ATTEST_LISTEN) needs bootstrap", Prefix, Prefix)
	case !slices.Contains(names, "asg"):
		return fmt.Errorf("%s_BOOTSTRAP_ATTEST_LISTEN is set and %s_PROVIDER is %s: only machines on AWS can attest", Prefix, Prefix, providers)
	case !s.JoinIsClosed():
		return fmt.Errorf("%s_BOOTSTRAP_ATTEST_LISTEN is set and the join is open: any token is good for every name then; set %s_CSR_JOIN=closed", Prefix, Prefix)
	}
	return cfg.Validate()
}
