package magnum

import (
	"context"
	"errors"
	"slices"

	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/servers"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/openstack"
)

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
	at := slices.IndexFunc(w.members.servers, func(s *servers.Server) bool { return openstack.UUID(s.ID) == uuid })
	if at >= 0 {
		if phase := phaseOf(w.members.servers[at]); phase == cluster.PhaseDeleting || phase == cluster.PhaseGone {
			return "", nil
		}
		return w.members.servers[at].ID, nil
	}
	if slices.ContainsFunc(w.members.gone, func(s string) bool { return openstack.UUID(s) == uuid }) {
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
