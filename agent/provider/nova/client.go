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

	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/openstack"
)

// site is one region of one OpenStack: its services, and what is remembered of it.
type site struct {
	cloud   Cloud
	session *openstack.Session
	now     func() time.Time

	mu      sync.Mutex
	compute *gophercloud.ServiceClient
	minor   int // of the microversion that is spoken
	others  map[string]*gophercloud.ServiceClient
	facts   map[string]fact
	// seen are our servers of the last list; one that a list no longer shows is asked
	// for by ID before it is told as gone.
	seen map[string]server
	gone map[string]departed
	// made are our servers that no list has shown yet, with the time of their making.
	made   map[string]born
	faults map[string]servers.Fault // of failed servers that are listed
	// short is where Nova lately found no host.
	short map[spot]time.Time
}

// spot is where a server may be asked for.
type spot struct{ group, flavor, zone string }

// born is a server that Nova has just answered 202 for.
type born struct {
	group string
	at    time.Time
}

// departed is a server that Nova has answered 404 for.
type departed struct {
	server server
	at     time.Time
}

// The microversions that matter: 2.26 filters by tags, 2.52 creates with tags, 2.47 shows
// a server's flavor by its numbers, 2.61 a flavor's extra specs, 2.64 a server group's one
// policy, 2.67 a volume's type, 2.90 the host name. No later one is asked for: what
// it would change is not known here.
const newest = 90

// nova returns the compute service, with the highest microversion that both sides know.
// Nothing is held while the cloud is asked: two that ask at once learn the same.
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

// outdated forgets the compute service if err is the answer of an older Nova than the one
// that was asked for its versions. It returns err.
func (s *site) outdated(err error) error {
	if answered(err) == http.StatusNotAcceptable {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.compute = nil
	}
	return err
}
