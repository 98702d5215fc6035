package wrap

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
)

// patience is how long Groups waits for slow providers once another one has answered.
// Clouds answer within a second or two; a cloud that hangs delays the others by this much
// at most.
const patience = 5 * time.Second

// readLimit ends a background read whose Groups had a context without a deadline.
const readLimit = time.Minute

// Join makes one provider of several, by name. A group's ID is its only key: an ID that
// two providers have leaves both groups out, and an instance in groups of two providers
// makes both groups stale, each with an error that names them.
//
// A provider that cannot be read, or does not answer in time, hides nothing of the
// others: its groups are returned as last read and with Stale, so that no caller takes
// their machines for gone. Every error carries the provider's name.
func Join(parts map[string]provider.Provider) provider.Provider {
	if len(parts) == 1 {
		for _, p := range parts {
			return p
		}
	}
	j := &joined{}
	for _, name := range slices.Sorted(maps.Keys(parts)) {
		j.parts = append(j.parts, &part{name: name, cloud: parts[name]})
	}
	return j
}

type joined struct {
	parts []*part // by name
	mu    sync.Mutex
}

// part is one provider with the groups that it last listed. They tell which provider owns
// a group, and are returned as stale while the cloud cannot be read. The mutex of joined
// guards all but the first two fields.
type part struct {
	name  string
	cloud provider.Provider

	last   []cluster.NodeGroup
	writes int      // counts changes, as they begin and as they end
	under  *reading // the read that is under way; nil: none
	late   *reading // came too late for its Groups; valid if nothing was written since
}

// reading is one read of one provider; list and err are valid once done is closed.
type reading struct {
	done   chan struct{}
	until  time.Time // the read is given up then
	writes int       // part.writes when the read began
	list   []cluster.NodeGroup
	err    error
}

func (r *reading) over() bool {
	select {
	case <-r.done:
		return true
	default:
		return false
	}
}

// begin starts a read of p, or joins the one that is under way if nothing was written
// since it began and it has time left. The read has the deadline of ctx and outlives its
// cancellation, so that a slow answer serves the next call.
func (j *joined) begin(ctx context.Context, p *part) *reading {
	j.mu.Lock()
	defer j.mu.Unlock()
	if u := p.under; u != nil && u.writes == p.writes && time.Until(u.until) > patience {
		return u
	}
	deadline, ok := ctx.Deadline()
	if !ok {
		deadline = time.Now().Add(readLimit)
	}
	behind, cancel := context.WithDeadline(context.WithoutCancel(ctx), deadline)
	r := &reading{done: make(chan struct{}), until: deadline, writes: p.writes}
	p.under = r
	go func() {
		defer cancel()
		list, err := p.cloud.Groups(behind)
		j.mu.Lock()
		defer j.mu.Unlock()
		r.list, r.err = list, err
		if p.under == r {
			p.under = nil
		}
		p.late = r
		close(r.done)
	}()
	return r
}

// wait returns when all reads are over, when ctx is over, or when patience has run out and
// at least one provider has answered.
func wait(ctx context.Context, reads []*reading) {
	over, stop := make(chan bool, len(reads)), make(chan struct{})
	defer close(stop)
	for _, r := range reads {
		go func() {
			select {
			case <-r.done:
				over <- r.list != nil
			case <-stop:
			}
		}()
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	told, impatient := false, false
	for left := len(reads); left > 0 && (!impatient || !told); {
		select {
		case good := <-over:
			left, told = left-1, told || good
		case <-timer.C:
			impatient = true
		case <-ctx.Done():
			return
		}
	}
}

// Groups implements Provider.
func (j *joined) Groups(ctx context.Context) ([]cluster.NodeGroup, error) {
	if err := ctx.Err(); err != nil {
		return nil, &provider.Error{Op: "read", Err: err}
	}
	parts := j.owners(provider.Only(ctx))
	ctx = provider.WithOnly(ctx, nil) // a reading is shared, and is whole
	reads := make([]*reading, len(parts))
	for i, p := range parts {
		reads[i] = j.begin(ctx, p)
	}
	wait(ctx, reads)
	j.mu.Lock()
	defer j.mu.Unlock()
	var out []cluster.NodeGroup
	var errs []error
	told := false
	for i, p := range parts {
		list, err, good := p.take(ctx, reads[i])
		out, errs, told = append(out, list...), append(errs, err), told || good
	}
	if !told {
		return nil, errors.Join(errs...)
	}
	return settle(out, errs)
}

// owners are the providers of the named groups. All of them are asked without names, and for
// a group that none has listed.
func (j *joined) owners(only []cluster.GroupID) []*part {
	j.mu.Lock()
	defer j.mu.Unlock()
	var out []*part
	found := 0
	for _, p := range j.parts {
		n := 0
		for _, g := range p.last {
			if slices.Contains(only, g.ID) {
				n++
			}
		}
		if n > 0 {
			out = append(out, p)
		}
		found += n
	}
	if len(only) == 0 || found < len(only) {
		return j.parts
	}
	return out
}

// take returns the groups and the error of one provider for a Groups; good is false if
// nothing new was read. The caller holds the mutex.
func (p *part) take(ctx context.Context, r *reading) (list []cluster.NodeGroup, err error, good bool) {
	late := p.late
	p.late = nil
	if !r.over() {
		if late == nil || late.writes != p.writes || late.list == nil && ctx.Err() != nil {
			err = fmt.Errorf("no answer within %s", patience)
			if ctx.Err() != nil {
				err = ctx.Err()
			}
			err = &provider.Error{Op: "read", Provider: p.name, Kind: provider.Transient, Err: err}
			return p.stale("cannot be read", err), err, false
		}
		r = late
	}
	err = attribute(p.name, "read", r.err)
	if r.list == nil && r.err != nil {
		return p.stale("cannot be read", err), err, false
	}
	list = cloneAll(r.list)
	for i := range list {
		list[i].Provider = p.name
	}
	if err != nil { // a group that is not listed may not have been read
		listed := map[cluster.GroupID]bool{}
		for _, g := range r.list {
			listed[g.ID] = true
		}
		for _, g := range p.stale("was not read whole", err) {
			if !listed[g.ID] {
				list = append(list, g)
			}
		}
	}
	p.last = cloneAll(list)
	return list, err, true
}

// stale returns the groups that p last listed, with Stale.
func (p *part) stale(what string, err error) []cluster.NodeGroup {
	why := strings.ReplaceAll(err.Error(), "\n", "; ")
	out := cloneAll(p.last)
	for i := range out {
		out[i].Stale = "provider " + p.name + " " + what + ": " + strings.TrimPrefix(why, p.name+": ")
	}
	return out
}

// settle drops groups that two providers have, and freezes groups that share an instance.
func settle(list []cluster.NodeGroup, errs []error) ([]cluster.NodeGroup, error) {
	owners := map[cluster.GroupID][]string{}
	for _, g := range list {
		owners[g.ID] = append(owners[g.ID], g.Provider)
	}
	for _, id := range slices.Sorted(maps.Keys(owners)) {
		if by := owners[id]; len(by) > 1 {
			errs = append(errs, &provider.Error{Op: "read", Group: id, Kind: provider.Invalid, Err: provider.Duplicate{Providers: by},
				Remedy: "rename one of them: until then neither is scaled"})
		}
	}
	out := []cluster.NodeGroup{}
	for _, g := range list {
		if len(owners[g.ID]) == 1 {
			out = append(out, g)
		}
	}
	return out, errors.Join(append(errs, freezeShared(out)...)...)
}

// freezeShared makes groups of two providers stale if they have an instance in common:
// both would buy for it, and one would delete it without the other.
func freezeShared(list []cluster.NodeGroup) (errs []error) {
	holder := map[cluster.InstanceID]*cluster.NodeGroup{}
	for i := range list {
		g := &list[i]
		for _, in := range g.Instances {
			first := holder[in.ID]
			switch {
			case in.Phase == cluster.PhaseGone:
			case first == nil:
				holder[in.ID] = g
			case first.Provider == g.Provider || first.Stale != "" && g.Stale != "": // one provider may list it twice; or both are stale already
			default:
				why := fmt.Errorf("instance %s is in %s of provider %s and in %s of provider %s", in.ID, first.ID, first.Provider, g.ID, g.Provider)
				errs = append(errs, &provider.Error{Op: "read", Group: g.ID, Instance: in.ID, Kind: provider.Invalid, Err: why,
					Remedy: "let one provider alone see these machines: until then neither group is scaled"})
				for _, both := range []*cluster.NodeGroup{first, g} {
					if both.Stale == "" {
						both.Stale = why.Error()
					}
				}
			}
		}
	}
	return errs
}

// of finds the provider of a group. A group that none has listed yet is read first.
func (j *joined) of(ctx context.Context, op string, id cluster.GroupID) (*part, error) {
	fail := func(kind provider.Kind, err error) error {
		return &provider.Error{Op: op, Group: id, Kind: kind, Err: err}
	}
	if err := ctx.Err(); err != nil {
		return nil, fail(provider.Other, err)
	}
	var err error
	for look := range 2 {
		var owners []*part
		var names []string
		j.mu.Lock()
		for _, p := range j.parts {
			if slices.ContainsFunc(p.last, func(g cluster.NodeGroup) bool { return g.ID == id }) {
				owners, names = append(owners, p), append(names, p.name)
			}
		}
		j.mu.Unlock()
		switch {
		case len(owners) == 1:
			return owners[0], nil
		case len(owners) > 1:
			return nil, fail(provider.Invalid, provider.Duplicate{Providers: names})
		case look == 0:
			_, err = j.Groups(ctx)
		}
	}
	if err != nil {
		return nil, fail(provider.KindOf(err), fmt.Errorf("no provider that can be read has such a node group: %w", err))
	}
	return nil, fail(provider.NotFound, errors.New("no provider has such a node group"))
}

// write makes one change. The result of a read that began before its end is dropped.
func (j *joined) write(ctx context.Context, op string, id cluster.GroupID, do func(provider.Provider) error) error {
	p, err := j.of(ctx, op, id)
	if err != nil {
		return err
	}
	count := func() {
		j.mu.Lock()
		defer j.mu.Unlock()
		p.writes++
	}
	count()
	defer count()
	return attribute(p.name, op, do(p.cloud))
}

// Resize implements Provider.
func (j *joined) Resize(ctx context.Context, id cluster.GroupID, from, to int) error {
	return j.write(ctx, "resize", id, func(p provider.Provider) error { return p.Resize(ctx, id, from, to) })
}

// Delete implements Provider.
func (j *joined) Delete(ctx context.Context, id cluster.GroupID, ids ...cluster.InstanceID) error {
	return j.write(ctx, "delete", id, func(p provider.Provider) error { return p.Delete(ctx, id, ids...) })
}

// attribute writes a provider's name on each of its errors.
func attribute(name, op string, err error) error {
	switch e := err.(type) {
	case nil:
		return nil
	case *provider.Error:
		named := *e
		named.Provider = name
		return &named
	case interface{ Unwrap() []error }:
		var all []error
		for _, child := range e.Unwrap() {
			all = append(all, attribute(name, op, child))
		}
		return errors.Join(all...)
	}
	if inner := provider.Errors(err); len(inner) > 0 && errors.Unwrap(err) != nil {
		return attribute(name, op, errors.Unwrap(err))
	}
	return &provider.Error{Op: op, Provider: name, Err: err}
}
