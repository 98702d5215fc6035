package asg

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/pricing"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/asg/awsapi"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/asg/price"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/asg/refresh"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/asg/template"
	"github.com/autoscaler-agent/autoscaler-agent/userdata/upgrade"
)

// Provider implements provider.Provider for EC2 Auto Scaling groups. Its methods are safe
// for concurrent use.
type Provider struct {
	cfg         Config
	rules       []tagRule
	names       []named
	region      string
	credentials aws.CredentialsProvider

	client    *awsapi.Client
	templates *template.Resolver
	members   members
	sources   sources
	launches  launches
	pools     pools
	notices   notices
	refreshes refresh.Reader
	list      price.List
	spot      price.Spot
	now       func() time.Time

	locks provider.Locks // held from the read to the write of a change of a group
}

var _ provider.Provider = (*Provider)(nil)

// Call is one finished call to AWS.
type Call = awsapi.Call

// Option changes how New builds a Provider.
type Option func(*Provider)

// WithCallHook has f called after every call to AWS, from the goroutine that made
// it; f must be safe for concurrent use.
func WithCallHook(f func(Call)) Option { return func(p *Provider) { p.client.Hook = f } }

// WithUpgrades has groups warn of what keeps their machines from the version of Kubernetes that f wants; published are
// the launch templates that get user data for it.
func WithUpgrades(f *upgrade.Follower, published []string) Option {
	return func(p *Provider) {
		p.templates.Upgrades = template.Upgrades{Follower: f, Published: published}
	}
}

// New validates c, runs the SDK's default chain, finds the region and returns a
// Provider. It makes no call to AWS: Check and the first Groups find bad credentials, so
// that a cloud that is down or a role that comes late does not keep the rest of the agent
// from starting.
//
// Allocatable is computed with reservation, the resources that the kubelets of the groups
// reserve.
func New(ctx context.Context, c Config, reservation cluster.Reservation, opts ...Option) (*Provider, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	cfg, err := loadAWS(ctx, c)
	if err != nil {
		return nil, err
	}
	p := newProvider(c, reservation, cfg.Region, autoscaling.NewFromConfig(cfg), ec2.NewFromConfig(cfg))
	p.credentials = cfg.Credentials
	if r := pricingRegion(cfg.Region); r != "" {
		p.client.Pricing = pricing.NewFromConfig(cfg, func(o *pricing.Options) { o.Region = r })
	}
	for _, o := range opts {
		o(p)
	}
	return p, nil
}

func newProvider(c Config, r cluster.Reservation, region string, scaling awsapi.Scaling, compute awsapi.Compute) *Provider {
	rules, names, _ := c.parse()
	client := &awsapi.Client{Scaling: scaling, Compute: compute, Timeout: c.Timeout}
	return &Provider{
		cfg: c, rules: rules, names: names, region: region, client: client,
		templates: template.New(client, region, r, c.VMMemoryOverheadPercent), now: time.Now,
	}
}

// pricingRegion is the region in which the price list of a region is asked for (Price List Query API, endpoints); empty: its
// partition has none.
func pricingRegion(region string) string {
	switch {
	case strings.HasPrefix(region, "cn-"):
		return "cn-northwest-1"
	case strings.HasPrefix(region, "us-gov-"), strings.Contains(region, "-iso"), strings.HasPrefix(region, "eusc-"):
		return ""
	}
	return "us-east-1"
}

// Region is the region that the groups are looked for in.
func (p *Provider) Region() string { return p.region }

// Check reports whether credentials are found, AWS accepts them for reading groups,
// and there is a group of ours. Its error carries a *provider.Error with a remedy.
func (p *Provider) Check(ctx context.Context) error {
	if p.credentials != nil {
		if _, err := p.credentials.Retrieve(ctx); err != nil {
			return &provider.Error{Op: "get AWS credentials", Kind: provider.Denied, Err: err, Remedy: awsapi.NoCredentials}
		}
	}
	found, err := p.discover(ctx)
	if err != nil || len(found) > 0 {
		return err
	}
	return &provider.Error{Op: "read", Kind: provider.NotFound,
		Err:    fmt.Errorf("no Auto Scaling group in %s carries the tags %s", p.region, p.rules),
		Remedy: "tag the groups, or check AUTOSCALER_AWS_REGION, AUTOSCALER_AWS_CLUSTER_NAME and AUTOSCALER_AWS_AUTO_DISCOVERY"}
}
