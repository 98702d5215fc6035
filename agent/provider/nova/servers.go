package nova

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/openstack"
)

// The metadata of our servers. Nova takes no slash in a key.
const (
	metaCluster = "autoscaler-agent.cluster"
	metaGroup   = "autoscaler-agent.group"
	metaRequest = "autoscaler-agent.request"
	// For the user data: Nova's metadata service tells none of these.
	metaRegion     = "autoscaler-agent.region"
	metaType       = "autoscaler-agent.type"
	metaProviderID = "autoscaler-agent.provider-id" // what stands before the UUID
)

// tagOf is the tag of a cluster's servers, by which Nova itself filters lists.
func tagOf(cluster string) string { return "autoscaler-agent:" + cluster }

// server is what we read of one of Nova's.
type server struct {
	ID        string            `json:"id"`
	Name      string            `json:"name"`
	Status    string            `json:"status"`
	Task      string            `json:"OS-EXT-STS:task_state"`
	Created   time.Time         `json:"created"`
	Updated   time.Time         `json:"updated"`
	Launched  string            `json:"OS-SRV-USG:launched_at"`
	Zone      string            `json:"OS-EXT-AZ:availability_zone"`
	Hostname  string            `json:"OS-EXT-SRV-ATTR:hostname"` // from 2.90
	Metadata  map[string]string `json:"metadata"`
	Addresses map[string][]struct {
		Address string `json:"addr"`
	} `json:"addresses"`
	Flavor struct {
		ID   string `json:"id"`            // before 2.47
		Name string `json:"original_name"` // from 2.47
	} `json:"flavor"`
	Fault *fault `json:"fault"`
}

// leaving tells that a server is on its way out: its place is not counted.
func (s *server) leaving() bool {
	switch s.Status {
	case "DELETED", "SOFT_DELETED":
		return true
	}
	return s.Task == "deleting" || s.Task == "soft-deleting"
}

// failed tells that a server never ran and never will. One that ran and whose host was
// lost is in ERROR too, and may still run.
func (s *server) failed() bool { return s.Status == "ERROR" && s.Launched == "" && !s.leaving() }

// phases are those of Nova's statuses that are clear.
var phases = map[string]cluster.Phase{
	"BUILD": cluster.PhasePending, "REBUILD": cluster.PhasePending,
	"ACTIVE": cluster.PhaseRunning, "REBOOT": cluster.PhaseRunning, "HARD_REBOOT": cluster.PhaseRunning, "PASSWORD": cluster.PhaseRunning,
	"MIGRATING": cluster.PhaseRunning, "RESIZE": cluster.PhaseRunning, "VERIFY_RESIZE": cluster.PhaseRunning, "REVERT_RESIZE": cluster.PhaseRunning,
	"SHUTOFF": cluster.PhaseStopped, "SUSPENDED": cluster.PhaseStopped, "PAUSED": cluster.PhaseStopped, "SHELVED": cluster.PhaseStopped,
	"SHELVED_OFFLOADED": cluster.PhaseStopped, "RESCUE": cluster.PhaseStopped,
}

func (s *server) phase() cluster.Phase {
	switch {
	case s.leaving():
		return cluster.PhaseDeleting
	case s.failed():
		return cluster.PhaseFailed
	}
	return phases[s.Status]
}

// failure says why a server could not be started, in Nova's words.
func (s *server) failure() *cluster.Failure {
	f := &cluster.Failure{Cause: cluster.CauseOther, Text: "server " + s.Name + " went into ERROR, and Nova gives no reason", Zone: s.Zone, At: s.Updated}
	if s.Fault != nil && s.Fault.Message != "" {
		f.Text, f.Cause = s.Fault.Message, openstack.CauseOf(s.Fault.Message)
		if !s.Fault.Created.IsZero() {
			f.At = s.Fault.Created
		}
	}
	return f
}

// pages reads a list of servers to its end.
func (s *site) pages(ctx context.Context, query url.Values) ([]server, error) {
	var all []server
	query = maps.Clone(query)
	for {
		var page struct {
			Servers *[]server           `json:"servers"`
			Links   []map[string]string `json:"servers_links"`
		}
		if err := s.get(ctx, "compute", "servers/detail", query, &page); err != nil {
			return nil, err
		}
		if page.Servers == nil {
			return nil, &provider.Error{Kind: provider.Transient, Err: errors.New("the answer of Nova has no list of servers")}
		}
		all = append(all, *page.Servers...)
		if len(page.Links) == 0 || len(*page.Servers) == 0 {
			return all, nil
		}
		query.Set("marker", all[len(all)-1].ID)
	}
}

// owned reads the servers of a cluster. Those that build or are in ERROR are asked for
// without the tag, and first: a server gets its tags on its way from the API to a cell,
// and one that found no host may never have got there.
func (s *site) owned(ctx context.Context, of string) ([]server, error) {
	_, minor, err := s.nova(ctx)
	if err != nil {
		return nil, err
	}
	queries := []url.Values{{}}
	if minor >= 52 {
		queries = []url.Values{{"status": {"BUILD", "ERROR"}}, {"tags": {tagOf(of)}}}
	}
	at := map[string]int{}
	var out []server
	for _, q := range queries {
		list, err := s.pages(ctx, q)
		if err != nil {
			return nil, err
		}
		for _, one := range list {
			if one.Metadata[metaCluster] != of || one.Metadata[metaGroup] == "" {
				continue
			}
			if i, twice := at[one.ID]; twice {
				out[i] = one
				continue
			}
			at[one.ID] = len(out)
			out = append(out, one)
		}
	}
	return out, s.explain(ctx, out)
}

// fault is why a server is in ERROR.
type fault struct {
	Message string    `json:"message"`
	Created time.Time `json:"created"`
}

// explain asks for the faults of failed servers, each once: Nova's lists do not show
// those of servers that found no host.
func (s *site) explain(ctx context.Context, list []server) error {
	faults := map[string]*fault{}
	for i := range list {
		one := &list[i]
		if !one.failed() || one.Fault != nil {
			continue
		}
		s.mu.Lock()
		one.Fault = s.faults[one.ID]
		s.mu.Unlock()
		if one.Fault == nil {
			whole, err := s.one(ctx, one.ID)
			switch {
			case missing(err):
				one.Task = "deleting" // it went between the list and the question
				continue
			case err != nil:
				return err
			}
			one.Fault = whole.Fault
		}
		if one.Fault != nil {
			faults[one.ID] = one.Fault
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = faults
	return nil
}

// lagFor is how long a list may fail to show a server that was just made.
const lagFor = 30 * time.Second

// lags tells that a list is older than what was made: servers of the group that Nova
// took in lately are not in it. The database behind Nova may be several that follow one
// another.
func (s *site) lags(g *Group, list []server) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, one := range list {
		delete(s.made, one.ID)
	}
	maps.DeleteFunc(s.made, func(_ string, b born) bool { return s.now().Sub(b.at) > lagFor })
	for _, b := range s.made {
		if b.group == g.Name {
			return true
		}
	}
	return false
}

// Bounds of the asking after servers that a list no longer shows.
const (
	askAtMost  = 40
	rememberIt = 15 * time.Minute // how long one that is gone is told as gone
)

// missed asks after the servers that the last list had and this one has not. Those that
// Nova answers 404 for are gone; those that it still knows are added to the list. err
// says why the list cannot be believed.
func (s *site) missed(ctx context.Context, of string, list []server) ([]server, error) {
	here := map[string]bool{}
	for _, one := range list {
		here[one.ID] = true
	}
	s.mu.Lock()
	var lost []server
	for id, one := range s.seen {
		if !here[id] && one.Metadata[metaCluster] == of {
			lost = append(lost, one)
		}
	}
	s.mu.Unlock()
	slices.SortFunc(lost, func(a, b server) int { return strings.Compare(a.ID, b.ID) })
	answers, errs := make([]server, len(lost)), make([]error, len(lost))
	var wait sync.WaitGroup
	turn := make(chan struct{}, 8)
	for i := range min(len(lost), askAtMost) {
		wait.Go(func() {
			turn <- struct{}{}
			defer func() { <-turn }()
			answers[i], errs[i] = s.one(ctx, lost[i].ID)
		})
	}
	wait.Wait()
	var problem error
	if len(lost) > askAtMost {
		problem = fmt.Errorf("%d servers are no longer listed, and not all of them were asked for one by one yet", len(lost))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range min(len(lost), askAtMost) {
		switch {
		case missing(errs[i]):
			s.gone[lost[i].ID] = departed{lost[i], s.now()}
			delete(s.seen, lost[i].ID)
		case errs[i] != nil:
			problem = errs[i]
		case answers[i].Metadata[metaCluster] == of:
			list = append(list, answers[i])
		default:
			delete(s.seen, lost[i].ID) // somebody took our metadata from it
		}
	}
	for _, one := range list {
		s.seen[one.ID] = one
	}
	maps.DeleteFunc(s.gone, func(id string, d departed) bool { return here[id] || s.now().Sub(d.at) > rememberIt })
	return list, problem
}

// one reads a server by its ID.
func (s *site) one(ctx context.Context, id string) (server, error) {
	var doc struct {
		Server server `json:"server"`
	}
	err := s.get(ctx, "compute", "servers/"+id, nil, &doc)
	return doc.Server, err
}

var uuidForm = regexp.MustCompile(`\A[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\z`)

// uuidOf is the UUID in s as Nova writes it; empty: s is none.
func uuidOf(s string) string {
	s = strings.ToLower(s)
	if digits := strings.ReplaceAll(s, "-", ""); len(digits) == 32 {
		s = digits[:8] + "-" + digits[8:12] + "-" + digits[12:16] + "-" + digits[16:20] + "-" + digits[20:]
	}
	if !uuidForm.MatchString(s) {
		return ""
	}
	return s
}

// serverID is the server of a provider ID in any form that OpenStack's parts write:
// openstack:///uuid, openstack://region/uuid, openstack://uuid; empty: it is none.
func serverID(id cluster.InstanceID) string {
	rest, ok := strings.CutPrefix(string(id), "openstack://")
	if !ok {
		return ""
	}
	return uuidOf(rest[strings.LastIndexByte(rest, '/')+1:])
}

// providerID is what the kubelet of a server writes.
func (s *site) providerID(id string) cluster.InstanceID {
	if s.cloud.ProviderIDRegion {
		return cluster.InstanceID("openstack://" + s.region() + "/" + id)
	}
	return cluster.InstanceID("openstack:///" + id)
}

// idOf is the provider ID in the form that the server was told to use when it was made:
// a change of the section does not change what its kubelet has written.
func (s *site) idOf(one *server) cluster.InstanceID {
	if form := one.Metadata[metaProviderID]; strings.HasPrefix(form, "openstack://") {
		return cluster.InstanceID(form + one.ID)
	}
	return s.providerID(one.ID)
}

// metadataDomain is the default of Nova's [api]dhcp_domain.
const metadataDomain = "novalocal"

// instance is a server as the contract tells it.
func (s *site) instance(one *server, names map[string]string) cluster.Instance {
	in := cluster.Instance{ID: s.idOf(one), Phase: one.phase(), Created: one.Created, Type: one.Flavor.Name, Zone: one.Zone, Member: !one.leaving()}
	if in.Type == "" {
		in.Type = names[one.Flavor.ID]
	}
	for _, name := range []string{one.Name, one.Hostname} {
		name = strings.ToLower(name)
		if name != "" && !slices.Contains(in.NodeNames, name) {
			in.NodeNames = append(in.NodeNames, name)
			in.Names = append(in.Names, name)
		}
	}
	// What the metadata service tells as the host name has the domain of Nova's DHCP.
	if host := strings.ToLower(cmp.Or(one.Hostname, one.Name)); host != "" && !strings.Contains(host, ".") {
		full := host + "." + cmp.Or(s.cloud.DHCPDomain, metadataDomain)
		in.NodeNames, in.Names = append(in.NodeNames, full), append(in.Names, full)
	}
	for _, network := range slices.Sorted(maps.Keys(one.Addresses)) {
		for _, a := range one.Addresses[network] {
			if ip, err := netip.ParseAddr(a.Address); err == nil {
				in.Addresses = append(in.Addresses, ip.Unmap().WithZone(""))
			}
		}
	}
	if one.failed() {
		in.Failure = one.failure()
	}
	return in
}
