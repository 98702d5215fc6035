package magnum

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/servers"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/openstack"
)

// evidence is by what servers are known to belong to a node group.
type evidence int

const (
	none      evidence = iota // the group has no servers, or they cannot be identified
	metadata                  // the driver wrote the group's UUID into the servers' metadata
	heat                      // the group's stack lists them
	stackName                 // Cluster API drivers: the stack ID, which is unique, begins their names
	address                   // Heat drivers without Heat: a name in their form, and an address that Magnum reports
)

// membership is the knowledge about the servers of one node group.
type membership struct {
	by      evidence
	servers []*servers.Server
	// gone are UUIDs of servers that the stack still counts and Nova knows no more.
	gone []string
	// vacant are what the stack counts without a server behind it, as resize names
	// them: UUIDs of servers that are no more, and indices that never got one.
	vacant []string
	// why is the stack's own account of what failed.
	why string
	// unproven is how many servers have a name in the group's form and nothing else that
	// shows them to be its own.
	unproven int
	// sure is true if two different reads agree on the servers.
	sure bool
	err  *provider.Error
}

// metadataGroup is the metadata key of drivers that write it.
const metadataGroup = "magnum_nodegroup"

// inventory lists the project's servers.
func (p *Provider) inventory(ctx context.Context) ([]servers.Server, error) {
	nova, err := p.session.Service(ctx, "compute", "")
	if err != nil {
		return nil, err
	}
	pages, err := servers.List(nova, nil).AllPages(ctx)
	if err != nil {
		return nil, err
	}
	return servers.ExtractServers(pages)
}

// server reads one server; nil: Nova knows of none.
func (p *Provider) server(ctx context.Context, uuid string) (*servers.Server, error) {
	nova, err := p.session.Service(ctx, "compute", "")
	if err != nil {
		return nil, err
	}
	s, err := servers.Get(ctx, nova, uuid).Extract()
	if gophercloud.ResponseCodeIs(err, http.StatusNotFound) {
		return nil, nil
	}
	if err == nil && (s == nil || openstack.UUID(s.ID) != uuid) {
		return nil, errHollow
	}
	return s, err
}

// confirm reports whether Nova's short list has the same servers as the long one.
func (p *Provider) confirm(ctx context.Context, all []servers.Server) bool {
	nova, err := p.session.Service(ctx, "compute", "")
	if err != nil {
		return false
	}
	pages, err := servers.ListSimple(nova, nil).AllPages(ctx)
	if err != nil {
		return false
	}
	short, err := servers.ExtractServers(pages)
	if err != nil || len(short) != len(all) {
		return false
	}
	known := map[string]bool{}
	for _, s := range all {
		known[s.ID] = true
	}
	return !slices.ContainsFunc(short, func(s servers.Server) bool { return !known[s.ID] })
}

// membersOf finds the servers of one group, and confirms them by a second read where
// fewer than Magnum counts are to be believed in.
func (p *Provider) membersOf(ctx context.Context, c *magnumCluster, r *reading, all []servers.Server) membership {
	m := p.memberList(ctx, c, r, all)
	if (m.by == metadata || m.by == stackName) && len(m.servers) < r.NodeCount && strings.HasSuffix(r.Status, failedSuffix) {
		m.sure = p.confirm(ctx, all)
	}
	p.explain(ctx, m.servers, all)
	return m
}

// explain asks for the faults of a group's failed servers, each once: Nova's lists do not
// show those of servers that found no host. Where it fails, the reason stays unknown.
func (p *Provider) explain(ctx context.Context, group []*servers.Server, all []servers.Server) {
	for _, s := range group {
		if s.Status != "ERROR" || s.Fault.Message != "" {
			continue
		}
		p.mu.Lock()
		fault, known := p.faults[s.ID]
		p.mu.Unlock()
		if !known {
			whole, err := p.server(ctx, openstack.UUID(s.ID))
			if err != nil || whole == nil {
				continue
			}
			fault = whole.Fault
			p.mu.Lock()
			if p.faults == nil {
				p.faults = map[string]servers.Fault{}
			}
			p.faults[s.ID] = fault
			p.mu.Unlock()
		}
		s.Fault = fault
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	maps.DeleteFunc(p.faults, func(id string, _ servers.Fault) bool {
		return !slices.ContainsFunc(all, func(s servers.Server) bool { return s.ID == id })
	})
}

// memberList finds the servers of one group: by metadata, by Heat, by name.
func (p *Provider) memberList(ctx context.Context, c *magnumCluster, r *reading, all []servers.Server) membership {
	var m membership
	for i := range all {
		if all[i].Metadata[metadataGroup] == r.UUID {
			m.by, m.servers = metadata, append(m.servers, &all[i])
		}
	}
	if m.by == metadata {
		return m
	}
	stack := r.StackID
	if stack == "" {
		stack = c.StackID
	}
	if stack != "" && openstack.UUID(stack) == "" {
		m.by = stackName
		for i := range all {
			if byStack(all[i].Name, stack, r.Name, r.others) {
				m.servers = append(m.servers, &all[i])
			}
		}
		return m
	}
	if stack != "" && p.cfg.Heat != "never" {
		refs, why, err := p.refsOf(ctx, r, stack, all)
		if err != nil {
			m.err = openstack.Classify("read the stack of", cluster.GroupID(r.Name), err)
			return m
		}
		if refs != nil {
			return p.byHeat(ctx, cluster.GroupID(r.Name), refs, why, all)
		}
	}
	return byAddress(c, r, all)
}

// byHeat joins the stack's map from index to server with Nova's servers. One that the
// list lacks is asked for by itself: a list that is cut short must not make it vanish.
func (p *Provider) byHeat(ctx context.Context, id cluster.GroupID, refs map[string]string, why string, all []servers.Server) membership {
	m := membership{by: heat, why: why, sure: true}
	for index, ref := range refs {
		uuid := openstack.UUID(ref)
		if uuid == "" {
			m.vacant = append(m.vacant, index)
			continue
		}
		at := slices.IndexFunc(all, func(s servers.Server) bool { return openstack.UUID(s.ID) == uuid })
		if at < 0 {
			s, err := p.server(ctx, uuid)
			switch {
			case err != nil:
				m.err = openstack.Classify("read a server of", id, err)
			case s == nil:
				m.vacant, m.gone = append(m.vacant, ref), append(m.gone, ref)
			default:
				m.servers = append(m.servers, s)
			}
			continue
		}
		m.servers = append(m.servers, &all[at])
	}
	slices.Sort(m.vacant)
	slices.Sort(m.gone)
	return m
}

var machineForm = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+){0,3}$`)

// byStack reports whether a server's name is that of a machine of a group in the form of
// the Cluster API drivers: "<stack ID>-<group>-<generated>". others are the cluster's
// other groups, whose name may begin with this one's.
func byStack(name, stack, group string, others []string) bool {
	rest, ok := strings.CutPrefix(strings.ToLower(name), strings.ToLower(stack)+"-"+sanitize(group)+"-")
	if !ok || !machineForm.MatchString(rest) {
		return false
	}
	for _, other := range others {
		if longer := sanitize(other); strings.HasPrefix(longer, sanitize(group)+"-") && strings.HasPrefix(strings.ToLower(name), strings.ToLower(stack)+"-"+longer+"-") {
			return false
		}
	}
	return true
}

var notInNames = regexp.MustCompile(`[^a-z0-9]+`)

func sanitize(s string) string {
	return strings.Trim(notInNames.ReplaceAllString(strings.ToLower(s), "-"), "-")
}

// byAddress recognizes the servers of Magnum's Heat drivers without Heat. Their names
// are "<stack>-node-<index>" (older releases: minion), the stack's name is made of the
// cluster's, the group's and 12 random characters. A name proves nothing, so one of the
// stack's servers must have an address that Magnum reports for the group, or for the
// master nodes where the group shares their stack.
func byAddress(c *magnumCluster, r *reading, all []servers.Server) membership {
	m := membership{by: none}
	base := heatBase(cut(c.Name, 30))
	if !r.IsDefault {
		base = heatBase(cut(c.Name, 20) + "-" + cut(r.Name, 9))
	}
	form := regexp.MustCompile(`^(` + regexp.QuoteMeta(base) + `-[a-z0-9]{12})-(node|minion|master)-[0-9]+$`)
	proven := map[string]bool{}
	stacks := map[string][]*servers.Server{}
	for i := range all {
		s := &all[i]
		parts := form.FindStringSubmatch(strings.ToLower(s.Name))
		if parts == nil {
			continue
		}
		reported := r.NodeAddresses
		if parts[2] == masterRole {
			reported = nil
			if r.IsDefault {
				reported = c.MasterAddresses
			}
		} else {
			stacks[parts[1]] = append(stacks[parts[1]], s)
		}
		for _, a := range openstack.Addresses(s) {
			proven[parts[1]] = proven[parts[1]] || slices.Contains(reported, a.String())
		}
	}
	for stack, list := range stacks {
		if proven[stack] {
			m.by, m.servers = address, append(m.servers, list...)
		} else {
			m.unproven += len(list)
		}
	}
	for stack := range proven {
		if proven[stack] {
			m.by = address
		}
	}
	return m
}

func cut(s string, n int) string { return s[:min(len(s), n)] }

var notInStack = regexp.MustCompile(`[^a-zA-Z0-9-]`)

// heatBase is the name of a stack without its random end.
func heatBase(s string) string {
	return strings.ToLower(notInStack.ReplaceAllString(strings.NewReplacer("_", "-", ".", "-").Replace(s), ""))
}

// removesByName reports whether the driver of a group removes the node that is named.
// magnum-capi-helm ignores names: it would remove whichever node Cluster API picks.
func (p *Provider) removesByName(c *magnumCluster, g *nodeGroup) bool {
	switch p.cfg.RemovesByName {
	case "yes":
		return true
	case "no":
		return false
	}
	stack := g.StackID
	if stack == "" {
		stack = c.StackID
	}
	return stack == "" || openstack.UUID(stack) != "" || capiName.MatchString(stack)
}

// capiName is the form of the stack ID of magnum-cluster-api, which marks the machines
// that are named before it lowers the count.
var capiName = regexp.MustCompile(`^kube-[a-z0-9]{5}$`)

// untold is the error of a group whose servers cannot be told from others.
func untold(r *reading) error {
	return fmt.Errorf("%d servers have names like the group's nodes, and nothing shows which of them are among the %d that Magnum counts: let the credentials read Heat's stacks", r.members.unproven, r.NodeCount)
}
