package bootstrap

import (
	"errors"
	"fmt"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/bootstrap/attest"
	"github.com/autoscaler-agent/autoscaler-agent/userdata/upgrade"
)

// Config is read from AUTOSCALER_BOOTSTRAP_* (envconfig, nested by package agent).
type Config struct {
	// Enabled switches the service on.
	Enabled bool `envconfig:"ENABLED" default:"true" desc:"Whether join tokens are made and published."`
	// File is where the join information is published; empty: nowhere. A symbolic
	// link is followed and kept.
	File string `envconfig:"FILE" default:"/etc/worker.env" form:"file" desc:"File of the join values; empty: none."`
	// Tokens is "standing": one token lives while the agent does; "growth": there is one
	// while machines come that have not joined, and while an operator has asked for one;
	// "none": only tokens for single machines are made.
	Tokens string `envconfig:"TOKENS" default:"standing" oneof:"standing,growth,none" desc:"standing: one token lives while the agent does; growth: one while machines come; none: only those of single machines."`
	// TokenTTL is how long the token lives after the agent last renewed it; it is
	// renewed at half of it.
	TokenTTL time.Duration `envconfig:"TOKEN_TTL" default:"24h" range:"10s..48h" desc:"How long the token lives after its last renewal; 48h at most."`
	// TokenMaxAge is the age at which a token is replaced by a new one; 0: never, so
	// that user data that was pasted somewhere works while the agent lives.
	TokenMaxAge time.Duration `envconfig:"TOKEN_MAX_AGE" default:"0s" range:"10s..87600h" zero:"never" desc:"Age at which a token is replaced by a new one, no less than the time that it lives; 0: never."`
	// TokenGroups are the token's auth-extra-groups; empty: WorkersGroup in a closed join
	// (AUTOSCALER_CSR_JOIN), KubeadmGroup in an open one.
	TokenGroups []string `envconfig:"TOKEN_GROUPS" form:"group" most:"2" desc:"Auth groups of the token, comma-separated; empty: by the mode of the join."`
	// Endpoint is the host:port that workers join; empty: kubeadm-config's
	// controlPlaneEndpoint, else cluster-info's server.
	Endpoint string `envconfig:"ENDPOINT" form:"endpoint" desc:"host:port that workers join; empty: kubeadm's controlPlaneEndpoint."`
	// SSMParameter is the SSM parameter (SecureString) that join information is published
	// as, beside the file; empty: none. SSMKey is the KMS key that encrypts it; empty: the
	// account's own.
	SSMParameter string `envconfig:"SSM_PARAMETER" form:"parameter" desc:"SSM parameter that the join values are published as, too; empty: none."`
	SSMKey       string `envconfig:"SSM_KEY" form:"word" desc:"KMS key of this parameter; empty: the account's own."`
	// LaunchTemplates are the IDs of EC2 launch templates whose user data gets the join values
	// as a new version, of which LaunchTemplateKeep stay; empty: none.
	LaunchTemplates    []string `envconfig:"LAUNCH_TEMPLATES" form:"launch template" desc:"IDs of EC2 launch templates that get a new version when the join values change, comma-separated; empty: none."`
	LaunchTemplateKeep int      `envconfig:"LAUNCH_TEMPLATE_KEEP" default:"3" range:"1..100" desc:"How many of the agent's versions stay in each of these launch templates."`
	// Upgrade lets the version of Kubernetes in user data follow the API server's: in these launch templates as a new
	// version, in the user data that new servers of Nova get. It is one of upgrade.Modes.
	Upgrade string `envconfig:"UPGRADE" default:"off" oneof:"off,minor,patch" desc:"Which versions of the API server the workers' user data follows, once every leader has them: off, minor, patch."`
	// Secret publishes the join information as the Secret kube-system/autoscaler-agent-join.
	Secret bool `envconfig:"SECRET" default:"false" desc:"Whether the join values are published as the Secret kube-system/autoscaler-agent-join, too."`
	// Attest is the listener at which machines on AWS get a token of their own.
	Attest attest.Config
}

// The values of Config.Tokens. Empty is standing.
const (
	TokensStanding = "standing"
	TokensGrowth   = "growth"
	TokensNone     = "none"
)

// ttl is how long a published token lives after it was renewed.
func (c Config) ttl() time.Duration {
	if c.Tokens == TokensGrowth {
		return min(c.TokenTTL, growthTTL)
	}
	return c.TokenTTL
}

// Upgrades tells that the workers' version of Kubernetes follows the API server's.
func (c Config) Upgrades() bool { return c.Upgrade != "" && c.Upgrade != upgrade.Off }

// maxTokenTTL is an hour below what units/admission-policy.yaml allows.
const maxTokenTTL = 48 * time.Hour

// The auth groups of join tokens. units/rbac.yaml gives WorkersGroup what a machine needs
// to join, except that its client certificate is approved: csrsigner does that. kubeadm
// init gives KubeadmGroup all of it.
const (
	WorkersGroup = "system:bootstrappers:autoscaler-agent:workers"
	KubeadmGroup = "system:bootstrappers:kubeadm:default-node-token"
)

// Validate finds what one setting demands of another one, and the remedy. A machine has the user data of
// its launch, so the token has to be there before the machine is asked for.
func (c Config) Validate() error {
	var errs []error
	if len(c.LaunchTemplates) > 0 && c.Tokens != "" && c.Tokens != TokensStanding && (c.Tokens != TokensNone || !c.Upgrades()) {
		errs = append(errs, fmt.Errorf("AUTOSCALER_BOOTSTRAP_TOKENS is %s: use standing with AUTOSCALER_BOOTSTRAP_LAUNCH_TEMPLATES (and TOKEN_MAX_AGE to replace the token): a machine has the user data of the moment at which it was asked for", c.Tokens))
	}
	if c.Upgrades() && !c.Enabled {
		errs = append(errs, fmt.Errorf("AUTOSCALER_BOOTSTRAP_UPGRADE is %s: use off, or set AUTOSCALER_BOOTSTRAP_ENABLED=true", c.Upgrade))
	}
	return errors.Join(errs...)
}
