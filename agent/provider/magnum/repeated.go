package magnum

import (
	"context"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/servers"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/openstack"
)

// complete is the end of the states in which nothing is done to a cluster or a group.
const complete = "_COMPLETE"

// kept is a group at rest as it was last read, for provider.WithRepeated.
type kept struct {
	at     time.Time
	listed nodeGroup // as the list had it
	whole  nodeGroup
	refs   map[string]string // what its stack counts; nil: Heat was not asked, or did not tell
	why    string
}

// atRest reports whether nothing is done to any group of the cluster, by Magnum's own account
// and by this process's.
func (p *Provider) atRest(c *magnumCluster, list []nodeGroup) bool {
	return p.open() == "" && strings.HasSuffix(c.Status, complete) &&
		!slices.ContainsFunc(list, func(g nodeGroup) bool { return !strings.HasSuffix(g.Status, complete) })
}

// keptOf is a group that need not be read by itself: the list has it as it was, and it was
// read long enough ago at most. Groups that are waited for are always read.
func (p *Provider) keptOf(ctx context.Context, listed *nodeGroup) *kept {
	if slices.Contains(provider.Only(ctx), cluster.GroupID(listed.Name)) {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	k := p.kept[listed.UUID]
	if k == nil || p.now().Sub(k.at) >= provider.Repeated(ctx) || !reflect.DeepEqual(k.listed, *listed) {
		return nil
	}
	return k
}

// keep remembers a group that was read at rest. A group that has changed since it was listed
// is not kept.
func (p *Provider) keep(at time.Time, listed, whole *nodeGroup) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if whole.Status != listed.Status || whole.NodeCount != listed.NodeCount {
		delete(p.kept, listed.UUID)
		return
	}
	if p.kept == nil {
		p.kept = map[string]*kept{}
	}
	p.kept[listed.UUID] = &kept{at: at, listed: *listed, whole: *whole}
}

// dropKept forgets groups that are no more; all of them where the cluster is not at rest.
func (p *Provider) dropKept(rest bool, list []nodeGroup) {
	p.mu.Lock()
	defer p.mu.Unlock()
	maps.DeleteFunc(p.kept, func(uuid string, _ *kept) bool {
		return !rest || !slices.ContainsFunc(list, func(g nodeGroup) bool { return g.UUID == uuid })
	})
}

// refsOf is what the stack of a group counts: as it was read with the group, where that is
// kept and Nova lists a server for each of its nodes; else as Heat tells now.
func (p *Provider) refsOf(ctx context.Context, r *reading, stack string, all []servers.Server) (refs map[string]string, why string, err error) {
	if r.kept != nil {
		p.mu.Lock()
		refs, why = r.kept.refs, r.kept.why
		p.mu.Unlock()
		if refs != nil && len(refs) == r.NodeCount && allListed(refs, all) {
			return refs, why, nil
		}
	}
	refs, why, err = p.stackRefs(ctx, stack)
	p.mu.Lock()
	defer p.mu.Unlock()
	if k := p.kept[r.UUID]; k != nil && err == nil {
		k.refs, k.why = refs, why
	}
	return refs, why, err
}

// allListed reports whether each node of a stack is a server that Nova lists.
func allListed(refs map[string]string, all []servers.Server) bool {
	for _, ref := range refs {
		uuid := openstack.UUID(ref)
		if uuid == "" || !slices.ContainsFunc(all, func(s servers.Server) bool { return openstack.UUID(s.ID) == uuid }) {
			return false
		}
	}
	return true
}
