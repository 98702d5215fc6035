package magnum

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/openstack"
)

// Magnum answers a resize before its conductor has taken it up: for a moment the
// cluster looks as if nothing had been requested. The operation is remembered until a read
// shows it, until it is over, or until it is lost.
const (
	shownWithin  = time.Minute      // an accepted request that does not show by then is lost
	unsureWithin = 15 * time.Second // the same for one whose answer did not come
	// overtakenWithin is the age at which a finished operation is dropped: no read takes that long.
	overtakenWithin = 10 * time.Minute
)

// asked is the last operation that this process requested.
type asked struct {
	group         string // UUID
	name          string
	count, before int
	stamp         time.Time // when Magnum had last changed the group
	removed       map[string]bool
	at            time.Time
	sure          bool // Magnum answered that it accepts it
	shown         bool // the group shows it
	shownAt       time.Time
}

// remember notes an operation.
func (p *Provider) remember(g *nodeGroup, count int, removed []string, sure bool) {
	a := &asked{group: g.UUID, name: g.Name, count: count, before: g.NodeCount, stamp: g.UpdatedAt, removed: map[string]bool{}, at: p.now(), sure: sure}
	for _, id := range removed {
		a.removed[id] = true
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked = a
	for _, id := range removed {
		p.noteRemoved(openstack.UUID(id), g.UUID)
	}
}

// open is the group of the operation that is not over; empty: none.
func (p *Provider) open() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.asked == nil {
		return ""
	}
	return p.asked.group
}

// forget drops the operation of a group that is no more.
func (p *Provider) forget(group string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.asked != nil && p.asked.group == group {
		p.asked = nil
	}
}

// view is the state of operations as one read shows it.
type view struct {
	busy  string // why no operation may be sent to Magnum now; empty: one may
	asked *asked // a copy; nil: nothing is open
	lost  string // an operation that Magnum accepted and never began
}

// look compares the operation with a read of the cluster and its groups that began
// at a time. listed are all groups of the cluster: Magnum's conductor writes an operation
// to its group first, and to the cluster when its driver has taken it, so that one of a
// group that is not ours may show there alone.
func (p *Provider) look(began time.Time, c *magnumCluster, listed []nodeGroup, groups ...*nodeGroup) view {
	p.mu.Lock()
	defer p.mu.Unlock()
	var v view
	working := strings.HasSuffix(c.Status, inProgress)
	if working {
		v.busy = fmt.Sprintf("cluster %s is %s, and Magnum does one operation at a time", c.Name, c.Status)
	}
	for _, g := range append(pointers(listed), groups...) {
		if strings.HasSuffix(g.Status, inProgress) && v.busy == "" {
			working = true
			v.busy = fmt.Sprintf("node group %s is %s, and Magnum does one operation at a time", g.Name, g.Status)
		}
	}
	if v.behind(append(slices.Clip(p.over), p.asked), began, groups) {
		return v
	}
	a := p.asked
	if a == nil {
		return v
	}
	at := slices.IndexFunc(groups, func(g *nodeGroup) bool { return g.UUID == a.group })
	if at >= 0 && !a.shown {
		g := groups[at]
		if a.shown = !a.unchanged(began, g); a.shown {
			a.shownAt = p.now()
		}
	}
	age := p.now().Sub(a.at)
	switch {
	case a.shown && !working:
		p.asked, p.over = nil, append(slices.DeleteFunc(p.over, func(o *asked) bool { return p.now().Sub(o.shownAt) > overtakenWithin }), a)
		return v
	case !a.shown && (age > shownWithin || !a.sure && age > unsureWithin):
		p.asked = nil
		if a.sure {
			v.lost = fmt.Sprintf("Magnum accepted %d nodes for %s and never started them; the agent asks again when they are needed", a.count, a.name)
		}
		return v
	}
	copied := *a
	copied.removed = maps.Clone(a.removed)
	v.asked = &copied
	if v.busy == "" {
		v.busy = fmt.Sprintf("the resize of %s to %d has not begun yet, and Magnum does one operation at a time", a.name, a.count)
	}
	return v
}

func pointers(list []nodeGroup) []*nodeGroup {
	out := make([]*nodeGroup, len(list))
	for i := range list {
		out[i] = &list[i]
	}
	return out
}

// unchanged reports whether a read that began at a time has the group as it was before the
// operation, or as it was earlier still: a slow read ends after later ones. Magnum's times are
// whole seconds in some databases, so that an equal time proves nothing by itself.
func (a *asked) unchanged(began time.Time, g *nodeGroup) bool {
	if !g.UpdatedAt.Equal(a.stamp) {
		return g.UpdatedAt.Before(a.stamp)
	}
	return began.Before(a.at) || g.NodeCount == a.before && !strings.HasSuffix(g.Status, inProgress)
}

// unseen reports whether a read has the operation's group as it was before.
func (a *asked) unseen(began time.Time, groups []*nodeGroup) bool {
	return slices.ContainsFunc(groups, func(g *nodeGroup) bool { return g.UUID == a.group && a.unchanged(began, g) })
}

// behind reports whether a read was overtaken: it began before another read saw one of the
// operations (the oldest first), and has the group as it was before that. The newest operation
// of that group that Magnum accepted counts in it, so that no target goes back: a slow read can
// be overtaken by several.
func (v *view) behind(operations []*asked, began time.Time, groups []*nodeGroup) bool {
	at := slices.IndexFunc(operations, func(a *asked) bool {
		return a != nil && a.shown && began.Before(a.shownAt) && a.unseen(began, groups)
	})
	if at < 0 {
		return false
	}
	newest := *operations[at]
	newest.removed = maps.Clone(newest.removed)
	for _, a := range operations[at+1:] {
		if a != nil && a.group == newest.group && a.sure {
			newest.count, newest.sure = a.count, true
			maps.Copy(newest.removed, a.removed)
		}
	}
	newest.shown = false
	v.asked, v.busy = &newest, fmt.Sprintf("this read is older than the resize of %s to %d", newest.name, newest.count)
	return true
}

// target is the node count of a group; what Magnum has accepted and does not show yet
// counts.
func (v view) target(g *nodeGroup) int {
	if a := v.asked; a != nil && a.group == g.UUID && a.sure && (!a.shown || !g.UpdatedAt.After(a.stamp) && g.NodeCount == a.before) {
		return a.count
	}
	return g.NodeCount
}

// going reports whether a server was named for removal in the operation under way.
func (v view) going(uuid string) bool { return v.asked != nil && v.asked.removed[uuid] }

// resizable are the states in which Magnum's conductor takes up a resize; in others it
// answers 202 all the same and then does nothing.
var resizable = []string{"CREATE_COMPLETE", "UPDATE_COMPLETE", "RESUME_COMPLETE", "RESTORE_COMPLETE", "ROLLBACK_COMPLETE",
	"SNAPSHOT_COMPLETE", "CHECK_COMPLETE", "ADOPT_COMPLETE", "UPDATE_FAILED"}

// shut is the reason why Magnum would resize no group; empty: it would.
func shut(c *magnumCluster, g *nodeGroup) string {
	switch {
	case strings.HasPrefix(c.Status, "DELETE_"):
		return "cluster " + c.Name + " is " + c.Status
	case strings.HasPrefix(g.Status, "DELETE_"):
		return "the node group is " + g.Status
	case strings.HasSuffix(c.Status, inProgress) || slices.Contains(resizable, c.Status):
		return ""
	}
	return fmt.Sprintf("cluster %s is %s, in which Magnum resizes nothing: mend it (`openstack coe cluster show %s` says why)", c.Name, c.Status, c.Name)
}
