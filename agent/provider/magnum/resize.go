package magnum

import (
	"context"
	"net/http"
	"slices"

	"github.com/gophercloud/gophercloud/v2"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/openstack"
)

// write is a change of one group under way.
type write struct {
	p       *Provider
	op      string
	id      cluster.GroupID
	api     *gophercloud.ServiceClient
	cluster *magnumCluster
	reading
	view
	lo, hi int
	now    int // the target
	alive  int // servers that are there and stay
}

// begin reads everything that a change of a group depends on.
func (p *Provider) begin(ctx context.Context, op string, id cluster.GroupID) (*write, error) {
	api, err := p.api(ctx)
	if err != nil {
		return nil, openstack.Classify(op, id, err)
	}
	began := p.now()
	w := &write{p: p, op: op, id: id, api: api}
	if w.cluster, err = p.cluster(ctx, api, op); err != nil {
		return nil, openstack.Classify(op, id, err)
	}
	g, err := p.one(ctx, api, w.cluster, op, id)
	if err != nil {
		return nil, err
	}
	w.nodeGroup = *g
	// Where names are the evidence, those of the other groups are part of it.
	list, err := p.list(ctx, api, w.cluster)
	if err != nil {
		return nil, openstack.Classify(op, id, err)
	}
	w.others = others(list, g.Name)
	all, err := p.inventory(ctx)
	if err != nil {
		return nil, openstack.Classify(op, id, err)
	}
	w.members = p.membersOf(ctx, w.cluster, &w.reading, all)
	if w.members.err != nil {
		return nil, openstack.Classify(op, id, w.members.err)
	}
	read := []*nodeGroup{g}
	if other := p.open(); other != "" && other != g.UUID {
		// The operation of another group may be over; only a read of that group shows it.
		switch o, err := group(ctx, api, w.cluster, other); {
		case gophercloud.ResponseCodeIs(err, http.StatusNotFound):
			p.forget(other)
		case err != nil:
			return nil, openstack.Classify(op, id, err)
		default:
			read = append(read, o)
		}
	}
	w.view = p.look(began, w.cluster, list, read...)
	w.lo, w.hi, _ = p.bounds(g)
	w.now, w.alive = w.target(g), w.members.living(w.view)
	if p.delivered(&w.reading, w.view) {
		w.now = min(w.now, w.alive)
	}
	return w, nil
}

// Resize sends a node count to Magnum. See provider.Provider. The answer means that
// Magnum has accepted it, and no more: later reads show the outcome.
func (p *Provider) Resize(ctx context.Context, id cluster.GroupID, from, to int) error {
	const op = "resize"
	unlock, err := p.lock.Lock(ctx, op, id)
	if err != nil {
		return err
	}
	defer unlock()
	w, err := p.begin(ctx, op, id)
	if err != nil {
		return err
	}
	switch {
	case to < w.lo || to > w.hi:
		return w.refuse(provider.Invalid, "change the group's min_node_count and max_node_count, or its bounds in AUTOSCALER_MAGNUM_GROUPS", "%d is outside %d..%d", to, w.lo, w.hi)
	case w.now == to:
		return nil
	case w.now != from:
		return w.refuse(provider.Conflict, "", "target is %d, not %d", w.now, from)
	case to < w.alive:
		return w.refuse(provider.Invalid, "", "%d is below its %d instances, and Resize never removes one", to, w.alive)
	}
	if err := w.open(to); err != nil {
		return err
	}
	// What the stack counts without a server behind it is named, so that it is replaced
	// and no living node goes in its place.
	if to < w.NodeCount && !w.exact() {
		return w.refuse(provider.Invalid, "let the credentials read Heat's stacks", "lowering the node count from %d to %d could end a running machine: without Heat the agent cannot tell which nodes never started", w.NodeCount, to)
	}
	return w.ask(ctx, to, nil, w.members.vacant)
}

// exact reports whether lowering the node count to the number of living nodes, with what is
// vacant named, ends none of them.
func (w *write) exact() bool {
	switch w.members.by {
	case heat:
		return w.NodeCount <= w.alive+len(w.members.vacant)
	case metadata, stackName:
		return w.members.sure
	}
	return false
}

// open reports whether Magnum may be asked for a change to a node count now.
func (w *write) open(to int) error {
	if why := shut(w.cluster, &w.nodeGroup); why != "" {
		return w.refuse(provider.Invalid, "", "%s", why)
	}
	if w.busy != "" {
		return w.refuse(provider.Busy, "", "%s: it is asked again when that is over", w.busy)
	}
	if to == 0 && minor(w.api.Microversion) < toZeroMinor {
		return w.refuse(provider.Invalid, "upgrade Magnum, or set min_node_count of the group to 1", "Magnum's API %s cannot go down to zero nodes, which needs 1.%d", w.api.Microversion, toZeroMinor)
	}
	return nil
}

func (w *write) refuse(kind provider.Kind, remedy, format string, args ...any) *provider.Error {
	return fail(w.op, w.id, kind, remedy, format, args...)
}

// ask sends the resize and remembers it.
func (w *write) ask(ctx context.Context, count int, remove, vacant []string) error {
	err := w.p.resize(ctx, w.api, w.cluster, &w.nodeGroup, count, slices.Concat(remove, vacant))
	switch {
	case err == nil:
		w.p.remember(&w.nodeGroup, count, remove, true)
		return nil
	case unanswered(err):
		w.p.remember(&w.nodeGroup, count, remove, false)
	}
	e := openstack.Classify(w.op, w.id, err)
	e.Unsure = unanswered(err)
	return e
}
