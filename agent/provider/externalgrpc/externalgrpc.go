package externalgrpc

import (
	"encoding/json"
	"sync"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/externalgrpc/protos"
)

// Provider implements provider.Provider with a plug-in. Its methods are safe for
// concurrent use.
type Provider struct {
	plugin      protos.CloudProviderClient
	client      *client // the connections of plugin
	reservation cluster.Reservation
	section     func() json.RawMessage
	defaults    cluster.Options
	now         func() time.Time

	locks provider.Locks // held from the read to the write of a change of a group

	mu      sync.Mutex
	seen    map[cluster.InstanceID]sight
	surplus map[cluster.GroupID]time.Time // since when a group has listed more machines than its target
	noPrice time.Time                     // until then PricingNodePrice, which was UNIMPLEMENTED, is not called
	answers map[question]answer           // for provider.WithRepeated
}

var _ provider.Provider = (*Provider)(nil)

// sight is what this process has seen of an instance and the protocol does not tell.
type sight struct {
	group  cluster.GroupID
	first  time.Time // when it was first listed
	last   time.Time // when it was last listed
	told   time.Time // when the plug-in accepted its deletion
	failed time.Time // when it was first listed with an error
}

const (
	// toldFor is how long a plug-in may list an instance as running after it accepted its
	// deletion. In that time the deletion is not repeated, because each one lowers the
	// target.
	toldFor = 2 * time.Minute
	// seenFor is how long an instance is remembered after it was last listed.
	seenFor = 24 * time.Hour
	// noPriceFor is how long PricingNodePrice is not called after it was UNIMPLEMENTED.
	noPriceFor = 10 * time.Minute
)

// Option configures a Provider.
type Option func(*Provider)

// WithCallHook calls f after every call ("externalgrpc:NodeGroups"). f must be safe for
// concurrent use.
func WithCallHook(f func(method string, took time.Duration, err error)) Option {
	return func(p *Provider) { p.client.hook = f }
}

// WithSection makes every read take the section externalgrpc of groups.yaml from f.
func WithSection(f func() json.RawMessage) Option {
	return func(p *Provider) { p.section = f }
}

// WithDefaults sets the options of groups without options of their own. The protocol sends
// them to the plug-in with every request for a group's options.
func WithDefaults(o cluster.Options) Option {
	return func(p *Provider) { p.defaults = o }
}

// New validates c and returns a Provider. It makes no call, so that the agent starts
// before the plug-in does.
//
// reservation is what the kubelets of the groups reserve; allocatable is computed with it
// when a plug-in's template has only the capacity.
func New(c Config, reservation cluster.Reservation, opts ...Option) (*Provider, error) {
	s, err := c.settings()
	if err != nil {
		return nil, err
	}
	p := &Provider{
		reservation: reservation, now: time.Now,
		section: func() json.RawMessage { return nil }, seen: map[cluster.InstanceID]sight{}, surplus: map[cluster.GroupID]time.Time{},
		answers: map[question]answer{},
	}
	p.plugin, p.client = newClient(s)
	for _, o := range opts {
		o(p)
	}
	return p, nil
}

// Close ends the connections to the plug-in. The provider can still be used.
func (p *Provider) Close() { p.client.closeIdle() }
