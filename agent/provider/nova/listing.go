package nova

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/servers"

	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/nova/section"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/openstack"
)

// listed reads a list of servers to its end.
func (s *site) listed(ctx context.Context, opts servers.ListOptsBuilder) ([]server, error) {
	c, _, err := s.nova(ctx)
	if err != nil {
		return nil, err
	}
	list, err := openstack.List[server](ctx, servers.List(c, opts), "servers")
	return list, s.outdated(err)
}

// buildOrError lists servers in two states; servers.ListOpts holds one.
type buildOrError struct{}

// ToServerListQuery implements servers.ListOptsBuilder.
func (buildOrError) ToServerListQuery() (string, error) { return "?status=BUILD&status=ERROR", nil }

// owned reads the servers of a cluster. Servers in BUILD or ERROR are listed first and
// without the tag: a server gets its tags on its way from the API to a cell, and a server
// that found no host may never have reached one.
func (s *site) owned(ctx context.Context, of string) ([]server, error) {
	_, minor, err := s.nova(ctx)
	if err != nil {
		return nil, err
	}
	queries := []servers.ListOptsBuilder{servers.ListOpts{}}
	if minor >= 52 {
		queries = []servers.ListOptsBuilder{buildOrError{}, servers.ListOpts{Tags: tagOf(of)}}
	}
	at := map[string]int{}
	var out []server
	for _, q := range queries {
		list, err := s.listed(ctx, q)
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

// explain asks for the faults of failed servers, each once: Nova's lists do not show
// those of servers that found no host.
func (s *site) explain(ctx context.Context, list []server) error {
	faults := map[string]servers.Fault{}
	for i := range list {
		one := &list[i]
		if !one.failed() || one.Fault.Message != "" {
			continue
		}
		s.mu.Lock()
		one.Fault = s.faults[one.ID]
		s.mu.Unlock()
		if one.Fault.Message == "" {
			whole, err := s.one(ctx, one.ID)
			switch {
			case missing(err):
				one.TaskState = "deleting" // it went between the list and the read
				continue
			case err != nil:
				return err
			}
			one.Fault = whole.Fault
		}
		if one.Fault.Message != "" {
			faults[one.ID] = one.Fault
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = faults
	return nil
}

// one reads a server by its ID.
func (s *site) one(ctx context.Context, id string) (server, error) {
	c, _, err := s.nova(ctx)
	if err != nil {
		return server{}, err
	}
	found, err := servers.Get(ctx, c, id).Extract()
	if err == nil && (found == nil || found.ID == "") {
		err = errHollow
	}
	if err != nil {
		return server{}, s.outdated(err)
	}
	return server{*found}, nil
}

// lagFor is how long a list may fail to show a server that was just made.
const lagFor = 30 * time.Second

// lags reports whether a list is older than the last creations: servers of the group that
// Nova has accepted are not in it. Nova may read from a replica of its database.
func (s *site) lags(g *section.Group, list []server) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, one := range list {
		delete(s.made, one.ID)
	}
	maps.DeleteFunc(s.made, func(_ string, b creation) bool { return s.now().Sub(b.at) > lagFor })
	for _, b := range s.made {
		if b.group == g.Name {
			return true
		}
	}
	return false
}

// Limits of the reads of servers that a list no longer shows.
const (
	askAtMost  = 40
	rememberIt = 15 * time.Minute // how long a server that is gone is returned as gone
)

// missed reads the servers that the last list had and this one has not. A server that Nova
// answers with 404 is gone; a server that it still has is added to the list. The error is
// the reason why the list cannot be believed.
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
		problem = fmt.Errorf("%d servers are missing from the list, and not every one has been looked up by its ID yet", len(lost))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range min(len(lost), askAtMost) {
		switch {
		case missing(errs[i]):
			s.gone[lost[i].ID] = goneServer{lost[i], s.now()}
			delete(s.seen, lost[i].ID)
		case errs[i] != nil:
			problem = errs[i]
		case answers[i].Metadata[metaCluster] == of:
			list = append(list, answers[i])
		default:
			delete(s.seen, lost[i].ID) // our metadata was removed from it
		}
	}
	for _, one := range list {
		s.seen[one.ID] = one
	}
	maps.DeleteFunc(s.gone, func(id string, d goneServer) bool { return here[id] || s.now().Sub(d.at) > rememberIt })
	return list, problem
}
