package openstack

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// resizable are the states of a cluster in which the conductor takes up a resize. That of
// Zed takes up one in UPDATE_IN_PROGRESS as well (test/suite/openstack), and starts it into the
// one that is under way; here it is lost as in releases before.
var resizable = []string{"CREATE_COMPLETE", "UPDATE_COMPLETE", "RESUME_COMPLETE", "RESTORE_COMPLETE", "ROLLBACK_COMPLETE",
	"SNAPSHOT_COMPLETE", "CHECK_COMPLETE", "ADOPT_COMPLETE", "UPDATE_FAILED"}

// conduct does what Magnum's conductor does about a resize that the API accepted.
// Everything here runs with the cloud locked.
func (m *magnum) conduct(c *MagnumCluster, g *nodeGroup, count int, remove []string) {
	if !slices.Contains(resizable, c.Status) || strings.HasSuffix(g.Status, "_IN_PROGRESS") {
		c.Lost++
		return
	}
	m.resizes = append(m.resizes, Resize{At: time.Now(), Group: g.Name, From: g.Count, To: count, Named: slices.Clone(remove)})
	g.Count, g.Status, g.Updated = count, "UPDATE_IN_PROGRESS", time.Now()
	m.scale(g, remove)
	shows := func() {
		c.Status, c.StatusReason, c.Updated, c.held = "UPDATE_IN_PROGRESS", "", time.Now(), false
	}
	if m.driverDelay <= 0 {
		shows()
		return
	}
	m.begun++
	m.cloud.after(m.driverDelay, func() {
		m.begun--
		shows()
	})
}

// scale makes a group's servers what its count says.
func (m *magnum) scale(g *nodeGroup, remove []string) {
	switch g.cluster.Driver {
	case HeatDriver:
		m.scaleStack(g, remove)
	case CAPIHelmDriver:
		m.scaleList(g, nil)
	default:
		m.scaleList(g, remove)
	}
}

// scaleStack is Heat's resource group: the first indices that are not excluded, as many
// as the count says. A name for removal excludes the index that it means, for ever; an
// empty one means some index (kubernetes/autoscaler#7776).
func (m *magnum) scaleStack(g *nodeGroup, remove []string) {
	for _, ref := range remove {
		for _, s := range g.slots {
			if ref == "" || ref == s.server || ref == strconv.Itoa(s.index) {
				g.removed[s.index] = true
				if ref == "" {
					break
				}
			}
		}
	}
	var wanted []int
	for index := 0; len(wanted) < g.Count; index++ {
		if !g.removed[index] {
			wanted = append(wanted, index)
		}
	}
	g.slots = slices.DeleteFunc(g.slots, func(s *slot) bool {
		if slices.Contains(wanted, s.index) {
			return false
		}
		m.drop(s)
		return true
	})
	for _, index := range wanted {
		at := slices.IndexFunc(g.slots, func(s *slot) bool { return s.index == index })
		if at < 0 {
			g.slots = append(g.slots, &slot{index: index})
			at = len(g.slots) - 1
		}
		s := g.slots[at]
		if failed := m.cloud.Region.server(s.server); s.server == "" || failed != nil && failed.Status == "ERROR" {
			m.drop(s)
			m.fill(g, s, fmt.Sprintf("%s-%s-%d", g.stackName, cmp.Or(g.cluster.NodeWord, "node"), index), nil)
		}
	}
}

// scaleList is a driver without indices: what is named goes, then the oldest as far as
// there are more than the count says, then new ones come.
func (m *magnum) scaleList(g *nodeGroup, remove []string) {
	g.slots = slices.DeleteFunc(g.slots, func(s *slot) bool {
		lives := m.cloud.Region.server(s.server) != nil
		if lives && !slices.Contains(remove, s.server) {
			return false
		}
		m.drop(s)
		return true
	})
	for len(g.slots) > g.Count {
		m.drop(g.slots[0])
		g.slots = g.slots[1:]
	}
	next := 0
	for _, s := range g.slots {
		next = max(next, s.index+1)
	}
	for ; len(g.slots) < g.Count; next++ {
		s := &slot{index: next}
		g.slots = append(g.slots, s)
		if g.cluster.Driver == MetadataDriver {
			m.fill(g, s, fmt.Sprintf("%s-%s-%d", g.cluster.Name, g.Name, next),
				map[string]string{"magnum_cluster": g.cluster.UUID, "magnum_nodegroup": g.UUID, "magnum_index": strconv.Itoa(next)})
		} else {
			m.fill(g, s, fmt.Sprintf("%s-%s-%s-%s", g.cluster.StackID, g.Name, shortID(9), shortID(5)), nil)
		}
	}
}

// fill makes the server of a slot, or notes why Nova refused it.
func (m *magnum) fill(g *nodeGroup, s *slot, name string, metadata map[string]string) {
	r, f := m.cloud.Region, m.flavor(g.Flavor)
	if s.server, s.why = "", m.refusal; s.why != "" {
		return
	}
	used := r.used(demoProjectID)
	for _, one := range []struct {
		name              string
		want, used, limit int
	}{{"instances", 1, used.Instances, r.quota.Instances}, {"cores", f.VCPUs, used.Cores, r.quota.Cores}, {"ram", f.RAM, used.RAM, r.quota.RAM}} {
		if one.limit >= 0 && one.used+one.want > one.limit {
			s.why = fmt.Sprintf("Resource CREATE failed: Forbidden: resources[%d].resources.kube-minion: Quota exceeded for %s: Requested %d, but already used %d of %d %s (HTTP 403) (Request-ID: req-%s)",
				s.index, one.name, one.want, one.used, one.limit, one.name, newID())
			return
		}
	}
	server := r.spawn(&Server{Name: name, Flavor: *f, Project: demoProjectID, Metadata: maps.Clone(metadata), UserData: g.UserData, Zone: g.Labels["availability_zone"]})
	s.server = server.ID
}

// spawn makes a server on the first network. Its name may be a template's.
func (r *Region) spawn(s *Server) *Server {
	s.ImageID, s.SecurityGroups = ImageID, []string{"default"}
	if s.Metadata == nil {
		s.Metadata = map[string]string{}
	}
	p := r.newPort(r.networks[0], s.Project)
	p.byNova = true
	s.ports = []string{p.ID}
	r.launch(s)
	return s
}

// drop deletes a slot's server.
func (m *magnum) drop(s *slot) {
	if server := m.cloud.Region.server(s.server); server != nil {
		m.cloud.Region.remove(server)
	}
}

// servers are those of a group that are not gone.
func (m *magnum) servers(g *nodeGroup) []*Server {
	var out []*Server
	for _, s := range g.slots {
		if server := m.cloud.Region.server(s.server); server != nil {
			out = append(out, server)
		}
	}
	return out
}

// ill tells that a group lacks a server that was made.
func (m *magnum) ill(g *nodeGroup) bool {
	return slices.ContainsFunc(g.slots, func(s *slot) bool {
		server := m.cloud.Region.server(s.server)
		return s.server != "" && (server == nil || server.TaskState == "deleting")
	})
}

// watch looks at a cluster's operations from time to time, as Magnum's periodic task
// does.
func (m *magnum) watch(c *MagnumCluster) {
	m.cloud.after(m.pollDelay, func() {
		m.poll(c)
		m.watch(c)
	})
}

func (m *magnum) poll(c *MagnumCluster) {
	if m.ending {
		return
	}
	if m.begun > 0 { // it looks at clusters whose own status says that something is under way
		return
	}
	if c.Healing && slices.Contains(resizable, c.Status) {
		for _, g := range c.groups {
			if m.ill(g) && !strings.HasSuffix(g.Status, "_IN_PROGRESS") {
				m.heal(c, g)
			}
		}
	}
	busy, failed := false, []string(nil)
	for _, g := range c.groups {
		if strings.HasSuffix(g.Status, "_IN_PROGRESS") {
			m.settle(g)
		}
		busy = busy || strings.HasSuffix(g.Status, "_IN_PROGRESS")
		if strings.HasSuffix(g.Status, "_FAILED") {
			failed = append(failed, g.Name+" failed")
		}
	}
	if busy || c.held || !strings.HasSuffix(c.Status, "_IN_PROGRESS") {
		return
	}
	c.Status, c.StatusReason, c.Updated = strings.TrimSuffix(c.Status, "_IN_PROGRESS")+"_COMPLETE", strings.Join(failed, ", "), time.Now()
	if failed != nil {
		c.Status = "UPDATE_FAILED"
	}
}

// heal makes servers anew that somebody deleted.
func (m *magnum) heal(c *MagnumCluster, g *nodeGroup) {
	for _, s := range g.slots {
		if server := m.cloud.Region.server(s.server); s.server != "" && (server == nil || server.TaskState == "deleting") {
			s.server = ""
		}
	}
	m.conduct(c, g, g.Count, nil)
}

// settle ends a group's operation once its servers have come, failed or gone.
func (m *magnum) settle(g *nodeGroup) {
	why, addresses := "", []string(nil)
	for _, s := range g.slots {
		server := m.cloud.Region.server(s.server)
		switch {
		case server == nil && s.why != "":
			why = s.why
		case server == nil:
		case server.Status == "BUILD" || server.TaskState == "deleting":
			return
		case server.Status == "ERROR":
			why = fmt.Sprintf("Resource CREATE failed: ResourceInError: resources[%d].resources.kube-minion: Went to status ERROR due to \"Message: %s, Code: %d\"", s.index, server.Fault.Message, server.Fault.Code)
		default:
			for _, a := range m.cloud.Region.addresses(server) {
				if !strings.Contains(a.IP, ":") {
					addresses = append(addresses, a.IP)
				}
			}
		}
	}
	verb := strings.TrimSuffix(g.Status, "_IN_PROGRESS")
	g.Status, g.StatusReason, g.Updated = verb+"_COMPLETE", "", time.Now()
	if why != "" {
		g.Status, g.StatusReason = verb+"_FAILED", why
		return
	}
	if g.cluster.Driver == HeatDriver || g.cluster.Driver == MetadataDriver {
		g.Addresses = addresses // the drivers on Cluster API report none
	}
}
