package clusterapi

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/clusterapi/capi"
)

// ourMark begins the value of a delete-machine annotation that this agent wrote.
const ourMark = "autoscaler-agent "

// marks has the live machines of a group with a delete-machine annotation.
type marks struct {
	ours, foreign []*capi.Machine
	// surplus is the number of live machines above the target. Their controller deletes as
	// many, marked ones first.
	surplus int
	// going has the UIDs of machines for which replicas have been lowered.
	going map[string]bool
}

func (p *Provider) markOf(m *capi.Machine) (value string, ok bool) {
	for _, key := range []string{p.set.keys.deleteMachine(), oldDeleteMachine} {
		if v, has := m.Annotations[key]; has {
			value, ok = v, true
			if strings.HasPrefix(v, ourMark) {
				return v, true
			}
		}
	}
	return value, ok
}

func (p *Provider) marks(g *source) marks {
	out := marks{going: map[string]bool{}}
	live := g.live()
	if g.Kind == kindDeployment && g.rolling() {
		return out // a rollout has machines above the target that nobody means to end
	}
	out.surplus = max(len(live)-g.Target(), 0)
	for _, m := range live {
		switch value, ok := p.markOf(m); {
		case ok && strings.HasPrefix(value, ourMark):
			out.ours = append(out.ours, m)
		case ok:
			out.foreign = append(out.foreign, m)
		}
	}
	if out.surplus > 0 {
		for _, m := range slices.Concat(out.ours, out.foreign) {
			out.going[m.UID] = true
		}
	}
	return out
}

func (m marks) count() int { return len(m.ours) + len(m.foreign) }

// deletion is the state of one call of Delete.
type deletion struct {
	p       *Provider
	id      cluster.GroupID
	version string
	g       *source
	marks   marks
	min     int
	errs    []error
	victims []*victim
}

type victim struct {
	id      cluster.InstanceID
	machine *capi.Machine
	lowers  bool // the target is lowered for it
	counted bool // the target was lowered for it by an earlier call
}

func (d *deletion) fail(id cluster.InstanceID, kind provider.Kind, remedy, format string, args ...any) {
	d.errs = append(d.errs, fail("delete", d.id, id, kind, remedy, format, args...))
}

// Delete marks machines with the delete-machine annotation, checks in the responses that
// the marks are set, lowers replicas once for all of them, and then deletes the Machine
// objects. See provider.Provider.
//
// The marks make the controller delete these machines and no others: a MachineSet deletes
// marked machines first, in every deletion order. The Machine objects are deleted as well,
// because the controller deletes fewer machines when another one is already being deleted
// or was never created. Without the right to delete Machines (Cluster Autoscaler's own
// rights), the marks alone select the machines, and Delete refuses such a state. In any
// case it refuses, as a Conflict, a rollout and a mark of another writer: another machine
// would be deleted.
func (p *Provider) Delete(ctx context.Context, id cluster.GroupID, ids ...cluster.InstanceID) error {
	if len(ids) == 0 {
		return ctx.Err()
	}
	unlock, err := p.locks.Lock(ctx, "delete", id)
	if err != nil {
		return err
	}
	defer unlock()
	g, version, err := p.one(ctx, "delete", id, true)
	if err != nil {
		return err
	}
	d := &deletion{p: p, id: id, version: version, g: g, marks: p.marks(g)}
	p.facts.saw(id, p.seen(g), p.now())
	d.choose(ids)
	if len(d.victims) == 0 {
		return errors.Join(d.errs...)
	}
	if d.refused(ctx) {
		return errors.Join(d.errs...)
	}
	d.spread()
	d.mark(ctx)
	if d.lower(ctx) {
		d.end(ctx)
	}
	return errors.Join(d.errs...)
}

func (p *Provider) seen(g *source) []cluster.Instance {
	var out []cluster.Instance
	for _, m := range g.machines {
		out = append(out, cluster.Instance{ID: instanceID(m)})
	}
	return out
}

// choose returns the machines of the IDs, each once.
func (d *deletion) choose(ids []cluster.InstanceID) {
	done := map[string]bool{}
	for _, id := range ids {
		at := slices.IndexFunc(d.g.machines, func(m *capi.Machine) bool { return names(id, m) })
		switch {
		case at < 0 && slices.Contains(d.g.Spec.ProviderIDList, string(id)):
			d.fail(id, provider.Invalid, "use an infrastructure provider with MachinePool Machines, or a MachineDeployment",
				"its MachinePool has no Machine object for it, so it cannot be named to the cloud")
		case at < 0 && d.p.facts.wasMember(d.id, id):
		case at < 0:
			d.fail(id, provider.NotFound, "", "no Machine of the group has this provider ID")
		case done[d.g.machines[at].UID]:
		case d.g.machines[at].DeletionTimestamp != nil:
		case slices.IndexFunc(d.g.machines[at+1:], func(m *capi.Machine) bool { return names(id, m) }) >= 0:
			d.fail(id, provider.Invalid, "", "two Machines have this provider ID")
		default:
			done[d.g.machines[at].UID] = true
			d.victims = append(d.victims, &victim{id: id, machine: d.g.machines[at]})
		}
	}
}

// refused tells whether the controllers could delete a machine that is not named, and
// records an error for each named one then. First it removes the marks of an earlier call
// that did not lower replicas (a crash in between).
func (d *deletion) refused(ctx context.Context) bool {
	refuse := func(kind provider.Kind, remedy, format string, args ...any) bool {
		for _, v := range d.victims {
			d.fail(v.id, kind, remedy, format, args...)
		}
		return true
	}
	if why := d.p.paused(d.g.Scalable, d.p.clusterOf(ctx, d.version, d.g)); why != "" {
		return refuse(provider.Conflict, "", "%s", why)
	}
	lo, _, why := d.p.bounds(d.g.Scalable)
	if why != "" {
		return refuse(provider.Invalid, "", "%s", why)
	}
	d.min = lo
	if d.g.Kind == kindDeployment && d.g.rolling() {
		return refuse(provider.Conflict, "wait until the rollout is over", "a rollout of the MachineDeployment decides which machines go")
	}
	if live, target := len(d.g.live()), d.g.Target(); live < target && d.p.facts.mayNotDelete() {
		return refuse(provider.Conflict, "allow delete on machines in the ClusterRole autoscaler-agent-clusterapi",
			"%d of its %d Machines are there: another would be made in its place", live, target)
	}
	named := func(m *capi.Machine) bool {
		return slices.ContainsFunc(d.victims, func(v *victim) bool { return v.machine == m })
	}
	switch {
	case d.marks.surplus >= d.marks.count():
	case d.marks.surplus > 0:
		return refuse(provider.Conflict, "", "retry: %d machines are marked, and only %d are leaving", d.marks.count(), d.marks.surplus)
	default:
		for _, m := range d.marks.foreign {
			if !named(m) {
				return refuse(provider.Conflict, "remove that annotation, or lower replicas for it",
					"Machine %s carries %s, which this agent did not write: it would be ended in its place", m.Name, d.p.set.keys.deleteMachine())
			}
		}
		for _, m := range d.marks.ours {
			if named(m) {
				continue
			}
			if _, err := d.p.annotate(ctx, d.version, m, nil); err != nil {
				return refuse(classify("delete", d.id, err).Kind, "", "take back the mark of Machine %s: %v", m.Name, err)
			}
		}
		d.marks.ours, d.marks.foreign = nil, nil
	}
	return false
}

// spread decides for which machines the target is lowered: not for machines for which it
// was lowered before, not for a surplus without marks, and never below the minimum.
func (d *deletion) spread() {
	free, room := d.marks.surplus-d.marks.count(), d.g.Target()-d.min
	d.victims = slices.DeleteFunc(d.victims, func(v *victim) bool {
		switch {
		case d.marks.going[v.machine.UID]:
			v.counted = true
		case free > 0:
			free--
		case room > 0:
			room--
			v.lowers = true
		default:
			d.fail(v.id, provider.Invalid, "lower the annotation "+d.p.set.keys.minSize(), "the target is %d, which is the group's minimum", d.min)
			return true
		}
		return false
	})
}

// mark writes the annotations. A machine whose mark is not set is not deleted.
func (d *deletion) mark(ctx context.Context) {
	value := ourMark + d.p.now().UTC().Format(time.RFC3339)
	d.victims = slices.DeleteFunc(d.victims, func(v *victim) bool {
		if v.counted {
			return false
		}
		got, err := d.p.annotate(ctx, d.version, v.machine, &value)
		switch {
		case err != nil && capi.NotFound(err):
			return true // it went by itself
		case err != nil:
			// A mark that is written late would select this machine at the next lowering.
			e := unsure(classify("delete", d.id, err), err)
			e.Instance = v.id
			d.errs = append(d.errs, e)
			return true
		case got.DeletionTimestamp != nil:
			return true
		case got.Annotations[d.p.set.keys.deleteMachine()] != value:
			d.fail(v.id, provider.Conflict, "", "the annotation %s is not set on Machine %s", d.p.set.keys.deleteMachine(), got.Name)
			return true
		}
		return false
	})
}

// annotate writes both names of the mark, or removes both (nil). The UID is a
// precondition.
func (p *Provider) annotate(ctx context.Context, version string, m *capi.Machine, value *string) (*capi.Machine, error) {
	patch := map[string]any{"metadata": map[string]any{
		"uid":         m.UID,
		"annotations": map[string]*string{p.set.keys.deleteMachine(): value, oldDeleteMachine: value},
	}}
	return capi.MergePatch[capi.Machine](ctx, p.management, "patch machines", patch, capi.Path(p.set.keys.group, version, m.Namespace, "machines", m.Name)...)
}

// lower writes the new replicas and returns whether they were lowered. After a refusal the
// marks are removed. After an unknown outcome they stay, so that replicas that were lowered
// do not select another machine; the surplus of the next read shows the outcome.
func (d *deletion) lower(ctx context.Context) bool {
	n := 0
	for _, v := range d.victims {
		if v.lowers {
			n++
		}
	}
	if n == 0 {
		return true
	}
	d.lead(ctx)
	o, target := d.g.Scalable, d.g.Target()
	var err error
	for try := 1; ; try++ {
		if err = ctx.Err(); err != nil {
			break // nothing was sent
		}
		err = d.p.setReplicas(ctx, d.version, o, target-n)
		if err == nil {
			return true
		}
		if capi.StatusCode(err) != 409 || try == attempts {
			break
		}
		again, readErr := capi.Get[capi.Scalable](ctx, d.p.management, "get "+resources[o.Kind], capi.Path(d.p.set.keys.group, d.version, o.Namespace, resources[o.Kind], o.Name)...)
		if readErr != nil {
			err = readErr
			break
		}
		if d.p.identify(again, o.Kind).Target() != target {
			err = &capi.MissingError{Text: fmt.Sprintf("target is %d, not %d", again.Target(), target)}
			break
		}
		o = again
	}
	var changed *capi.MissingError
	code := capi.StatusCode(err)
	var called *capi.CallError
	refused := code >= 400 && code < 500 && code != 408 && code != 429 || errors.As(err, &changed) || !errors.As(err, &called)
	for _, v := range d.victims {
		if !v.lowers {
			continue
		}
		e := unsure(classify("delete", d.id, err), err)
		if e.Instance = v.id; errors.As(err, &changed) {
			e.Kind, e.Remedy = provider.Conflict, ""
		}
		if refused {
			undo, cancel := context.WithTimeout(context.WithoutCancel(ctx), d.p.cfg.Timeout)
			if _, undone := d.p.annotate(undo, d.version, v.machine, nil); undone != nil {
				e.Err = fmt.Errorf("%w; the mark on Machine %s could not be removed: %w", e.Err, v.machine.Name, undone)
			}
			cancel()
		}
		d.errs = append(d.errs, e)
	}
	return false
}

// lead waits between the marks and the write of replicas (reason: Config.MarkLead). It is
// the only wait of this package. It ends with ctx, and the write after it reports the end.
func (d *deletion) lead(ctx context.Context) {
	t := time.NewTimer(d.p.cfg.MarkLead)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// end deletes the Machine objects of marked machines, each with its UID as a precondition.
// The marks alone suffice unless there are fewer machines than the target, so only then is
// a refusal an error.
func (d *deletion) end(ctx context.Context) {
	short := len(d.g.live()) < d.g.Target()
	for _, v := range d.victims {
		if d.p.facts.mayNotDelete() && !short {
			continue
		}
		m := v.machine
		err := d.p.management.Remove(ctx, "delete machines", m.UID, capi.Path(d.p.set.keys.group, d.version, m.Namespace, "machines", m.Name)...)
		if capi.StatusCode(err) == 403 {
			d.p.facts.denyDelete()
		}
		if err != nil && !capi.NotFound(err) && short {
			e := classify("delete", d.id, err)
			e.Instance = v.id
			d.errs = append(d.errs, e)
		}
	}
}

// clusterOf returns the group's Cluster; nil when it cannot be read: then only the pause of
// the object itself is known.
func (p *Provider) clusterOf(ctx context.Context, version string, g *source) *capi.Cluster {
	if g.Cluster == "" {
		return nil
	}
	c, err := capi.Get[capi.Cluster](ctx, p.management, "get clusters", capi.Path(p.set.keys.group, version, g.Namespace, "clusters", g.Cluster)...)
	if err != nil {
		return nil
	}
	return c
}
