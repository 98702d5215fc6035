package magnum

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/servers"

	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/openstack"
)

// removed is a server that this process had removed from a group. Nova forgets servers:
// it lists none as deleted. So that the others need not wait until a server that is not
// listed any more counts as gone, those that were removed by name are asked for once, and
// Nova's 404 is believed for ever: no UUID comes twice.
type removed struct {
	group string // UUID
	at    time.Time
	gone  bool
}

// toldFor is how long a server is listed as gone.
const toldFor = time.Hour

// noteRemoved notes a server that is to go. The caller holds p.mu.
func (p *Provider) noteRemoved(uuid, group string) {
	if p.removed == nil {
		p.removed = map[string]removed{}
	}
	p.removed[uuid] = removed{group: group, at: p.now()}
}

// bury adds to a membership the servers that were removed by name and are gone. A read
// that fails is no evidence about a server, and is repeated by the next one.
func (p *Provider) bury(ctx context.Context, group string, m *membership) {
	p.mu.Lock()
	maps.DeleteFunc(p.removed, func(_ string, r removed) bool { return p.now().Sub(r.at) > toldFor })
	var ours []string
	known := map[string]bool{}
	for uuid, r := range p.removed {
		if r.group == group {
			ours = append(ours, uuid)
			known[uuid] = r.gone
		}
	}
	p.mu.Unlock()
	for _, uuid := range ours {
		if slices.ContainsFunc(m.servers, func(s *servers.Server) bool { return openstack.UUID(s.ID) == uuid }) || slices.Contains(m.gone, uuid) {
			continue
		}
		if !known[uuid] {
			if s, err := p.server(ctx, uuid); err != nil || s != nil {
				continue
			}
			p.mu.Lock()
			if r, ok := p.removed[uuid]; ok {
				r.gone = true
				p.removed[uuid] = r
			}
			p.mu.Unlock()
		}
		m.gone = append(m.gone, uuid)
	}
}
