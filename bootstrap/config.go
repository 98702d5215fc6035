package bootstrap

import (
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/bootstrap/attest"
	"github.com/autoscaler-agent/autoscaler-agent/internal/lazyregexp"
	"github.com/autoscaler-agent/autoscaler-agent/userdata/upgrade"
)

// Config is read from AUTOSCALER_BOOTSTRAP_* (envconfig, nested by package agent).
type Config struct {
	// Enabled switches the service on.
	Enabled bool `envconfig:"ENABLED" default:"true" desc:"Whether join tokens are made and published."`
	// File is where the join information is published; empty: nowhere. A symbolic
	// link is followed and kept.
	File string `envconfig:"FILE" default:"/etc/worker.env" desc:"File of the join values; empty: none."`
	// Tokens is "standing": one token lives while the agent does; "growth": there is one
	// while machines come that have not joined, and while an operator has asked for one;
	// "none": only tokens for single machines are made.
	Tokens string `envconfig:"TOKENS" default:"standing" desc:"standing: one token lives while the agent does; growth: one while machines come; none: only those of single machines."`
	// TokenTTL is how long the token lives after the agent last renewed it; it is
	// renewed at half of it.
	TokenTTL time.Duration `envconfig:"TOKEN_TTL" default:"24h" desc:"How long the token lives after its last renewal; 48h at most."`
	// TokenMaxAge is the age at which a token is replaced by a new one; 0: never, so
	// that user data that was pasted somewhere works while the agent lives.
	TokenMaxAge time.Duration `envconfig:"TOKEN_MAX_AGE" default:"0s" desc:"Age at which a token is replaced by a new one; 0: never."`
	// TokenGroups are the token's auth-extra-groups; empty: WorkersGroup in a closed join
	// (AUTOSCALER_CSR_JOIN), KubeadmGroup in an open one.
	TokenGroups []string `envconfig:"TOKEN_GROUPS" desc:"Auth groups of the token, comma-separated; empty: by the mode of the join."`
	// Endpoint is the host:port that workers join; empty: kubeadm-config's
	// controlPlaneEndpoint, else cluster-info's server.
	Endpoint string `envconfig:"ENDPOINT" desc:"host:port that workers join; empty: kubeadm's controlPlaneEndpoint."`
	// SSMParameter is the SSM parameter (SecureString) that join information is published
	// as, beside the file; empty: none. SSMKey is the KMS key that encrypts it; empty: the
	// account's own.
	SSMParameter string `envconfig:"SSM_PARAMETER" desc:"SSM parameter that the join values are published as, too; empty: none."`
	SSMKey       string `envconfig:"SSM_KEY" desc:"KMS key of this parameter; empty: the account's own."`
	// LaunchTemplates are the IDs of EC2 launch templates whose user data gets the join values
	// as a new version, of which LaunchTemplateKeep stay; empty: none.
	LaunchTemplates    []string `envconfig:"LAUNCH_TEMPLATES" desc:"IDs of EC2 launch templates that get a new version when the join values change, comma-separated; empty: none."`
	LaunchTemplateKeep int      `envconfig:"LAUNCH_TEMPLATE_KEEP" default:"3" desc:"How many of the agent's versions stay in each of these launch templates."`
	// Upgrade lets the version of Kubernetes in user data follow the API server's: in these launch templates as a new
	// version, in the user data that new servers of Nova get. It is one of upgrade.Modes.
	Upgrade string `envconfig:"UPGRADE" default:"off" desc:"Which versions of the API server the workers' user data follows, once every leader has them: off, minor, patch."`
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

// parameterPattern is the form of an SSM parameter's name with a hierarchy.
var parameterPattern = lazyregexp.New(`\A(/[A-Za-z0-9_.-]+){1,15}\z`)

var templatePattern = lazyregexp.New(`\Alt-[0-9a-f]{8,17}\z`)

// validateTemplates: a machine has the user data of its launch, so the token has to be there
// before the machine is asked for.
func (c Config) validateTemplates(bad func(name, value, remedy string)) {
	if len(c.LaunchTemplates) == 0 {
		return
	}
	for _, id := range c.LaunchTemplates {
		if !templatePattern.MatchString(id) {
			bad("LAUNCH_TEMPLATES", fmt.Sprintf("%q", id), "write the IDs of launch templates with commas between them, for example lt-0123456789abcdef0: a policy cannot name them otherwise")
		}
	}
	if c.Tokens != "" && c.Tokens != TokensStanding && (c.Tokens != TokensNone || !c.Upgrades()) {
		bad("TOKENS", c.Tokens, "use standing with AUTOSCALER_BOOTSTRAP_LAUNCH_TEMPLATES (and TOKEN_MAX_AGE to replace the token): a machine has the user data of the moment at which it was asked for")
	}
	if c.LaunchTemplateKeep < 1 || c.LaunchTemplateKeep > 100 {
		bad("LAUNCH_TEMPLATE_KEEP", fmt.Sprint(c.LaunchTemplateKeep), "use 1 to 100")
	}
}

// maxTokenTTL is an hour below what units/admission-policy.yaml allows.
const maxTokenTTL = 48 * time.Hour

// The auth groups of join tokens. units/rbac.yaml gives WorkersGroup what a machine needs
// to join, except that its client certificate is approved: csrsigner does that. kubeadm
// init gives KubeadmGroup all of it.
const (
	WorkersGroup = "system:bootstrappers:autoscaler-agent:workers"
	KubeadmGroup = "system:bootstrappers:kubeadm:default-node-token"
)

// Validate names every variable that is wrong, and the remedy.
func (c Config) Validate() error {
	var errs []error
	bad := func(name, value, remedy string) {
		errs = append(errs, fmt.Errorf("AUTOSCALER_BOOTSTRAP_%s is %s: %s", name, value, remedy))
	}
	if c.File != "" && !filepath.IsAbs(c.File) {
		bad("FILE", fmt.Sprintf("%q", c.File), "use an absolute path, for example /etc/worker.env")
	}
	if p := c.SSMParameter; p != "" && (!parameterPattern.MatchString(p) || len(p) > 500 || strings.HasPrefix(p, "/aws") || strings.HasPrefix(p, "/ssm")) {
		bad("SSM_PARAMETER", fmt.Sprintf("%q", p), "write a name that begins with a slash, for example /clusters/demo/join")
	}
	c.validateTemplates(bad)
	if c.Upgrade != "" && !slices.Contains(upgrade.Modes, c.Upgrade) {
		bad("UPGRADE", fmt.Sprintf("%q", c.Upgrade), "use "+strings.Join(upgrade.Modes, ", "))
	}
	if c.Upgrades() && !c.Enabled {
		bad("UPGRADE", c.Upgrade, "use off, or set AUTOSCALER_BOOTSTRAP_ENABLED=true")
	}
	switch c.Tokens {
	case "", TokensStanding, TokensGrowth, TokensNone:
	default:
		bad("TOKENS", fmt.Sprintf("%q", c.Tokens), "use standing, growth or none")
	}
	if c.TokenTTL < 10*time.Second {
		bad("TOKEN_TTL", c.TokenTTL.String(), "use 10s or more, for example 24h; a token without expiry is not offered")
	}
	if c.TokenTTL > maxTokenTTL {
		bad("TOKEN_TTL", c.TokenTTL.String(), fmt.Sprintf("use %s or less: units/admission-policy.yaml lets no token live longer; it is renewed while the agent runs", maxTokenTTL))
	}
	if c.TokenMaxAge < 0 {
		bad("TOKEN_MAX_AGE", c.TokenMaxAge.String(), "use 0s (never replace) or a positive time")
	}
	for _, g := range c.TokenGroups {
		if !groupPattern.MatchString(g) {
			bad("TOKEN_GROUPS", fmt.Sprintf("%q", g), "every group must match system:bootstrappers:[a-z0-9:-]+")
		}
	}
	if c.Endpoint != "" {
		if host, port, err := net.SplitHostPort(c.Endpoint); err != nil || host == "" || port == "" {
			bad("ENDPOINT", fmt.Sprintf("%q", c.Endpoint), "write host:port, for example api.example.com:6443")
		}
	}
	return errors.Join(errs...)
}
