package nova

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/servers"

	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/nova/section"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/openstack"
)

// site is one region of one OpenStack: its services, and the facts that are kept of it.
type site struct {
	cloud   section.Cloud
	session *openstack.Session
	now     func() time.Time

	mu      sync.Mutex
	compute *gophercloud.ServiceClient
	minor   int // of the microversion that is spoken
	others  map[string]*gophercloud.ServiceClient
	facts   map[string]fact
	// seen are our servers of the last list; a server that a list no longer shows is read
	// by ID before it is returned as gone.
	seen map[string]server
	gone map[string]goneServer
	// made are our servers that no list has shown yet, with the time of their creation.
	made   map[string]creation
	faults map[string]servers.Fault // of failed servers that are listed
	// short are the placements for which Nova found no host, with the time.
	short map[groupPlacement]time.Time
}

// groupPlacement is a placement of one group's servers.
type groupPlacement struct{ group, flavor, zone string }

// creation is a server that Nova has just answered 202 for.
type creation struct {
	group string
	at    time.Time
}

// goneServer is a server that Nova has answered 404 for.
type goneServer struct {
	server server
	at     time.Time
}

// The microversions that matter: 2.26 filters by tags, 2.52 creates with tags, 2.47 shows
// a server's flavor by its numbers, 2.61 a flavor's extra specs, 2.64 a server group's one
// policy, 2.67 a volume's type, 2.90 the host name. No later one is requested: its
// changes are not known here.
const newest = 90

// nova returns the compute service, with the highest microversion that both sides know.
// No lock is held during the request: two callers at once get the same answer.
func (s *site) nova(ctx context.Context) (*gophercloud.ServiceClient, int, error) {
	s.mu.Lock()
	c, minor := s.compute, s.minor
	s.mu.Unlock()
	if c != nil {
		return c, minor, nil
	}
	c, err := s.session.Service(ctx, "compute", s.cloud.Region)
	if err != nil {
		return nil, 0, err
	}
	var doc struct {
		Version struct {
			Highest string `json:"version"`
		} `json:"version"`
	}
	if _, err := c.Get(ctx, c.Endpoint, &doc, nil); err != nil {
		return nil, 0, err
	}
	minor = 1
	if text, ok := strings.CutPrefix(doc.Version.Highest, "2."); ok {
		if n, err := strconv.Atoi(text); err == nil {
			minor = min(n, newest)
		}
	}
	c.Microversion = fmt.Sprintf("2.%d", minor)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.compute, s.minor = c, minor
	return c, minor, nil
}

// service returns Neutron or Glance.
func (s *site) service(ctx context.Context, name string) (*gophercloud.ServiceClient, error) {
	s.mu.Lock()
	c := s.others[name]
	s.mu.Unlock()
	if c != nil {
		return c, nil
	}
	c, err := s.session.Service(ctx, name, s.cloud.Region)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.others == nil {
		s.others = map[string]*gophercloud.ServiceClient{}
	}
	s.others[name] = c
	return c, nil
}

// region is the name that Nodes carry; empty: not known.
func (s *site) region() string {
	if s.cloud.Region != "" {
		return s.cloud.Region
	}
	return s.session.Region()
}

// outdated drops the compute service if err shows that this Nova is older than the one
// that answered with its versions. It returns err.
func (s *site) outdated(err error) error {
	if statusOf(err) == http.StatusNotAcceptable {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.compute = nil
	}
	return err
}
