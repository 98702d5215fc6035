package config

import (
	"strings"
	"testing"

	"github.com/autoscaler-agent/autoscaler-agent/bootstrap"
)

// TestTokenGroupsGoByTheJoin: a join that nobody would approve in is never published.
func TestTokenGroupsGoByTheJoin(t *testing.T) {
	for name, c := range map[string]struct {
		env  map[string]string
		want string
		err  string
	}{
		"default":         {nil, bootstrap.WorkersGroup, ""},
		"open":            {map[string]string{"AUTOSCALER_CSR_JOIN": "open"}, bootstrap.KubeadmGroup, ""},
		"csrsigner off":   {map[string]string{"AUTOSCALER_CSR_ENABLED": "false"}, bootstrap.KubeadmGroup, ""},
		"own group":       {map[string]string{"AUTOSCALER_BOOTSTRAP_TOKEN_GROUPS": "system:bootstrappers:mine:workers"}, "system:bootstrappers:mine:workers", ""},
		"closed for show": {map[string]string{"AUTOSCALER_BOOTSTRAP_TOKEN_GROUPS": bootstrap.KubeadmGroup}, bootstrap.KubeadmGroup, "AUTOSCALER_CSR_JOIN is closed"},
		"typo":            {map[string]string{"AUTOSCALER_CSR_JOIN": "clsoed"}, bootstrap.KubeadmGroup, "AUTOSCALER_CSR_JOIN"},
		"template":        {map[string]string{"AUTOSCALER_CSR_EXTRA_NAMES": "fixed.example.org"}, bootstrap.WorkersGroup, "AUTOSCALER_CSR_EXTRA_NAMES"},
	} {
		t.Run(name, func(t *testing.T) {
			clean(t)
			t.Setenv("AUTOSCALER_AWS_CLUSTER_NAME", "demo")
			for k, v := range c.env {
				t.Setenv(k, v)
			}
			cfg, err := Load()
			if got := cfg.Bootstrap.TokenGroups; len(got) != 1 || got[0] != c.want {
				t.Errorf("groups %v, want %s", got, c.want)
			}
			if (c.err == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), c.err) {
				t.Errorf("error %v, want %q", err, c.err)
			}
		})
	}
}
