package nova

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/nova/section"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/openstack"
	"github.com/autoscaler-agent/autoscaler-agent/userdata/upgrade"
)

// TokenFor mints a join token for one server that is about to be made, by its name.
type TokenFor func(ctx context.Context, server string) (string, error)

// Provider implements provider.Provider for servers of Nova. Its methods are safe for
// concurrent use.
type Provider struct {
	cfg         Config
	access      openstack.Config
	reservation cluster.Reservation
	section     func() json.RawMessage
	token       TokenFor
	upgrades    *upgrade.Follower
	hook        func(openstack.Call)
	now         func() time.Time
	locks       provider.Locks // held from the read to the write of a change of a group

	mu       sync.Mutex
	parsed   section.Section
	text     string // what parsed was read from
	sessions map[string]*openstack.Session
	sites    map[section.Cloud]*site
}

var _ provider.Provider = (*Provider)(nil)

// Option changes how New builds a Provider.
type Option func(*Provider)

// WithCallHook has f called after every request, from the goroutine that made it; f
// must be safe for concurrent use.
func WithCallHook(f func(openstack.Call)) Option { return func(p *Provider) { p.hook = f } }

// WithTokens has every server join with a token of its own: f mints one where
// the user data has userdata.TokenPlaceholder.
func WithTokens(f TokenFor) Option { return func(p *Provider) { p.token = f } }

// New returns a Provider and makes no request: a cloud that is down does not keep
// the rest of the agent from starting. read returns the section "nova" of
// groups.yaml as it is in force at the time of the call. reservation is what the
// kubelets of the groups keep back.
func New(c Config, access openstack.Config, read func() json.RawMessage, reservation cluster.Reservation, opts ...Option) (*Provider, error) {
	if err := errors.Join(c.Validate(), access.Validate()); err != nil {
		return nil, err
	}
	p := &Provider{cfg: c, access: access, reservation: reservation, section: read, now: time.Now,
		sessions: map[string]*openstack.Session{}, sites: map[section.Cloud]*site{}}
	for _, o := range opts {
		o(p)
	}
	return p, nil
}

// settings reads the section as it is now.
func (p *Provider) settings() (section.Section, error) {
	var raw json.RawMessage
	if p.section != nil {
		raw = p.section()
	}
	if len(raw) == 0 {
		return section.Section{}, &provider.Error{Op: "read", Kind: provider.Invalid, Err: errors.New("groups.yaml has no section nova"),
			Remedy: "write it: docs/providers/nova.md shows one; AUTOSCALER_GROUPS_FILE names the file"}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if string(raw) == p.text {
		return p.parsed, nil
	}
	s, err := section.Parse(raw)
	if err == nil && s.Cluster == "" {
		s.Cluster = p.cfg.ClusterName
	}
	if err == nil && s.Cluster == "" {
		err = errors.New("cluster: give the cluster a name here or in AUTOSCALER_NOVA_CLUSTER_NAME: the agent finds its servers by this name")
	}
	if err != nil {
		return section.Section{}, &provider.Error{Op: "read", Kind: provider.Invalid, Err: fmt.Errorf("section nova of groups.yaml: %w", err)}
	}
	if len(s.Clouds) == 0 {
		s.Clouds = []section.Cloud{{}}
	}
	for i := range s.Clouds {
		s.Clouds[i].DHCPDomain = cmp.Or(s.Clouds[i].DHCPDomain, s.DHCPDomain)
	}
	p.parsed, p.text = s, string(raw)
	return s, nil
}

// find returns a group and its site.
func (p *Provider) find(op string, id cluster.GroupID) (section.Section, *section.Group, *site, error) {
	s, err := p.settings()
	if err != nil {
		return s, nil, nil, openstack.Classify(op, id, err)
	}
	i := slices.IndexFunc(s.Groups, func(g section.Group) bool { return g.Name == string(id) })
	if i < 0 {
		return s, nil, nil, &provider.Error{Op: op, Group: id, Kind: provider.NotFound, Err: errors.New("section nova of groups.yaml has no such group")}
	}
	g := &s.Groups[i]
	c := slices.IndexFunc(s.Clouds, func(c section.Cloud) bool { return c.Name == g.Cloud })
	at, err := p.site(s.Clouds[c])
	if err != nil {
		return s, nil, nil, openstack.Classify(op, id, err)
	}
	return s, g, at, nil
}

// site returns the site of a cloud, which keeps its connection.
func (p *Provider) site(c section.Cloud) (*site, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s := p.sites[c]; s != nil {
		return s, nil
	}
	session := p.sessions[c.Cloud]
	if session == nil {
		access := p.access
		if c.Cloud != "" {
			access.Cloud, access.CloudConfig = c.Cloud, ""
		}
		var err error
		if session, err = openstack.NewSession(access, p.hook); err != nil {
			return nil, err
		}
		p.sessions[c.Cloud] = session
	}
	s := &site{cloud: c, session: session, now: p.now, seen: map[string]server{}, gone: map[string]goneServer{}, made: map[string]creation{}, short: map[groupPlacement]time.Time{}, facts: map[string]fact{}}
	p.sites[c] = s
	return s, nil
}
