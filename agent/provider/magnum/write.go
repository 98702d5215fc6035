package magnum

import (
	"context"
	"errors"
	"net/http"
	"slices"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/servers"

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
		// What was asked for another group may be over; only that group tells.
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

// Resize asks Magnum for a node count. See provider.Provider. The answer says that
// Magnum understood, and no more: what becomes of it is told by later reads.
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
		return w.refuse(provider.Invalid, "let the credentials read Heat's stacks", "lowering the node count from %d to %d could end a running machine: without Heat nobody knows which nodes never came", w.NodeCount, to)
	}
	return w.ask(ctx, to, nil, w.members.vacant)
}

// exact tells that lowering the node count to the number of living nodes, with what is
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

// open tells whether Magnum may be asked for a change to a node count now.
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

// Delete removes nodes by their servers' UUIDs, all in one resize. See
// provider.Provider.
func (p *Provider) Delete(ctx context.Context, id cluster.GroupID, ids ...cluster.InstanceID) error {
	const op = "delete"
	if len(ids) == 0 {
		return ctx.Err()
	}
	unlock, err := p.lock.Lock(ctx, op, id)
	if err != nil {
		return err
	}
	defer unlock()
	w, err := p.begin(ctx, op, id)
	if err != nil {
		return err
	}
	var errs []error
	var victims []string
	names := map[string]cluster.InstanceID{}
	for _, instance := range ids {
		uuid, err := w.victim(ctx, instance)
		if err != nil {
			err.Instance = instance
			errs = append(errs, err)
			continue
		}
		if _, twice := names[uuid]; uuid != "" && !twice {
			victims, names[uuid] = append(victims, uuid), instance
		}
	}
	if len(victims) == 0 {
		return errors.Join(errs...)
	}
	errs = append(errs, w.remove(ctx, victims, names)...)
	return errors.Join(errs...)
}

// victim finds the server of an instance that is to go. Neither a UUID nor an error: it
// is gone or going already.
func (w *write) victim(ctx context.Context, id cluster.InstanceID) (string, *provider.Error) {
	uuid, ok := parseProviderID(id)
	if !ok {
		return "", w.refuse(provider.NotFound, "", "it names no OpenStack server")
	}
	if w.going(uuid) {
		return "", nil
	}
	at := slices.IndexFunc(w.members.servers, func(s *servers.Server) bool { return normalUUID(s.ID) == uuid })
	if at >= 0 {
		if phase := phaseOf(w.members.servers[at]); phase == cluster.PhaseDeleting || phase == cluster.PhaseGone {
			return "", nil
		}
		return w.members.servers[at].ID, nil
	}
	if slices.ContainsFunc(w.members.gone, func(s string) bool { return normalUUID(s) == uuid }) {
		return "", nil
	}
	s, err := w.p.server(ctx, uuid)
	switch {
	case err != nil:
		return "", openstack.Classify(w.op, w.id, err)
	case s == nil:
		return "", nil // Nova forgets servers: one that it does not know is gone
	}
	if phase := phaseOf(s); phase == cluster.PhaseDeleting || phase == cluster.PhaseGone {
		return "", nil // the group lets go of a server before Nova does
	}
	return "", w.refuse(provider.NotFound, "", "the server is not in this node group")
}

// remove asks for the victims' removal, as far as the minimum allows it.
func (w *write) remove(ctx context.Context, victims []string, names map[string]cluster.InstanceID) []error {
	each := func(list []string, err *provider.Error) (errs []error) {
		for _, uuid := range list {
			one := *err
			one.Instance = names[uuid]
			errs = append(errs, &one)
		}
		return errs
	}
	if !w.p.removesByName(w.cluster, &w.nodeGroup) {
		return each(victims, w.refuse(provider.Invalid, "use the provider clusterapi, or AUTOSCALER_MAGNUM_REMOVES_BY_NAME=yes where the driver is known to honour names",
			"the driver of this cluster ignores which node is to be removed and would remove any"))
	}
	surplus := max(0, w.alive-w.now)
	var errs []error
	if room := max(0, w.now-w.lo) + surplus; len(victims) > room {
		errs = each(victims[room:], w.refuse(provider.Invalid, "lower the group's min_node_count, or its min in AUTOSCALER_MAGNUM_GROUPS", "the target is %d, the group's minimum is %d", w.now, w.lo))
		victims = victims[:room]
	}
	if len(victims) == 0 {
		return errs
	}
	count := w.now - max(0, len(victims)-surplus)
	var vacant []string
	if w.exact() {
		vacant = w.members.vacant
	} else if count < w.NodeCount-len(victims) {
		count = w.NodeCount - len(victims) // what is vacant cannot be named: it stays counted
	}
	if err := w.open(count); err != nil {
		return append(errs, each(victims, openstack.Classify(w.op, w.id, err))...)
	}
	if err := w.ask(ctx, count, victims, vacant); err != nil {
		return append(errs, each(victims, openstack.Classify(w.op, w.id, err))...)
	}
	return errs
}
