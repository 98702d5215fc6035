package magnum

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/servers"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/openstack"
)

// Provider is one Magnum cluster behind the house's contract. Its methods are safe for
// concurrent use.
type Provider struct {
	cfg         Config
	roles       []string
	names       []named
	reservation cluster.Reservation
	session     *openstack.Session
	now         func() time.Time

	flavors flavors
	// lock is held from the read to the write of a change. A cluster has one operation at
	// a time, so all of its groups share it.
	lock provider.Lock

	mu      sync.Mutex
	version string   // microversion that was agreed on; empty: not yet
	asked   *asked   // what Magnum accepted and does not show yet
	over    []*asked // finished ones, the oldest first, for reads that they have overtaken
	removed map[string]removed
	faults  map[string]servers.Fault // of failed servers, by ID
	places  map[string]place         // of the stacks of nodes, by the ID of their group's stack
	kept    map[string]*kept         // groups by UUID
}

var _ provider.Provider = (*Provider)(nil)

// New validates c and returns a Provider. It makes no request: Check and the first Groups
// find bad credentials, so that a cloud that is down does not keep the rest of the agent
// from starting.
//
// reservation is what the kubelets of the groups keep back. Magnum writes their
// configuration itself, so it has to be said what that is (AUTOSCALER_KUBELET_*).
func New(c Config, session *openstack.Session, reservation cluster.Reservation) (*Provider, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	roles, names, err := c.parse()
	if err != nil {
		return nil, err
	}
	return &Provider{cfg: c, roles: roles, names: names, reservation: reservation, session: session, now: time.Now, removed: map[string]removed{}}, nil
}

// Check reports whether the cloud can be logged in to and the cluster read, and whether
// it has a node group of ours. Its error carries a *provider.Error with a remedy.
func (p *Provider) Check(ctx context.Context) error {
	api, err := p.api(ctx)
	if err != nil {
		return openstack.Classify("read", "", err)
	}
	c, err := p.cluster(ctx, api, "read")
	if err != nil {
		return err
	}
	list, _, skipped, err := p.discover(ctx, api, c)
	if err != nil || len(list) > 0 {
		return err
	}
	e := &provider.Error{Op: "read", Kind: provider.NotFound,
		Err:    fmt.Errorf("cluster %s has no node group that the agent manages", p.cfg.Cluster),
		Remedy: "check AUTOSCALER_MAGNUM_AUTO_DISCOVERY and AUTOSCALER_MAGNUM_GROUPS against `openstack coe nodegroup list " + p.cfg.Cluster + "`"}
	if len(skipped) > 0 {
		e.Err = fmt.Errorf("cluster %s has no node group that the agent manages: %v match a role and have no max_node_count", p.cfg.Cluster, skipped)
		e.Remedy = "give them one: openstack coe nodegroup update " + p.cfg.Cluster + " " + skipped[0] + " replace max_node_count=10"
	}
	return e
}
