package wrap

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
)

// doubtFor is how long a change without an answer may still be carried out, from the time
// at which this process gave it up or inherited it. A server that has a whole request
// carries it out, or drops it, within its own time limit (of the order of 30 seconds),
// and a closed connection delivers nothing later. AWS refuses a signature that is older
// than five minutes; no shorter limit is documented.
const doubtFor = time.Minute

// Intent is a change of a group that was sent to a cloud and has no answer yet: it may
// still be carried out.
type Intent struct {
	Group cluster.GroupID `json:"group"`
	From  int             `json:"from"`
	To    int             `json:"to"`
	// Instances are those to be deleted; From and To have no meaning then.
	Instances []cluster.InstanceID `json:"instances,omitempty"`
	At        time.Time            `json:"at"`
}

// String describes the change.
func (i Intent) String() string {
	if len(i.Instances) > 0 {
		return fmt.Sprintf("the end of %d of its instances (first %s)", len(i.Instances), i.Instances[0])
	}
	return fmt.Sprintf("a target of %d in place of %d", i.To, i.From)
}

// WriteAhead records every change before it is sent to the cloud. While the outcome of a
// change is unknown, no other change of the same group is sent: not by this process, not
// after a restart, and not by another leader. SetDesiredCapacity is absolute and has no
// precondition: a late one would undo the changes after it.
//
// Groups returns a group with such a change as Busy and as if the change had been made,
// until a read shows the change or doubtFor has passed.
type WriteAhead struct {
	next provider.Provider
	keep func(context.Context) error

	mu   sync.Mutex
	open map[cluster.GroupID]*pending
}

// pending is one change whose outcome is not known.
type pending struct {
	Intent
	ended     time.Time // when it was given up or inherited; zero: it is in hand
	inherited bool
}

var _ provider.Provider = (*WriteAhead)(nil)

// NewWriteAhead makes a WriteAhead. keep stores the result of Open where the next leader
// reads it. It fails when this process may not write; nothing is sent to the cloud then.
func NewWriteAhead(next provider.Provider, keep func(context.Context) error) *WriteAhead {
	return &WriteAhead{next: next, keep: keep, open: map[cluster.GroupID]*pending{}}
}

// Open lists the changes whose outcome is not known, by group.
func (w *WriteAhead) Open() []Intent {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []Intent
	for id, p := range w.open {
		if p.over() {
			delete(w.open, id)
			continue
		}
		out = append(out, p.Intent)
	}
	slices.SortFunc(out, func(a, b Intent) int { return cmp.Compare(a.Group, b.Group) })
	return out
}

// Inherit takes over the unfinished changes of another process, or of this agent before
// its restart. Their time starts now: the other clock is not trusted.
func (w *WriteAhead) Inherit(list []Intent) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, i := range list {
		if w.open[i.Group] == nil {
			w.open[i.Group] = &pending{Intent: i, ended: time.Now(), inherited: true}
		}
	}
}

func (p *pending) over() bool { return !p.ended.IsZero() && time.Since(p.ended) >= doubtFor }

// why is the text of Busy.
func (p *pending) why() string {
	who := "this agent"
	if p.inherited {
		who = "the leader before this one"
	}
	until := "until it is answered"
	if !p.ended.IsZero() {
		until = "until the cloud shows it, or until " + p.ended.Add(doubtFor).UTC().Format(time.RFC3339)
	}
	return fmt.Sprintf("%s asked for %s at %s and has no answer: %s no other change is asked for", who, p.Intent, p.At.UTC().Format(time.RFC3339), until)
}

// Groups implements Provider.
func (w *WriteAhead) Groups(ctx context.Context) ([]cluster.NodeGroup, error) {
	began := time.Now()
	list, err := w.next.Groups(ctx)
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range list {
		g := &list[i]
		p := w.open[g.ID]
		switch {
		case p == nil:
		case p.over(), !p.ended.IsZero() && began.After(p.ended) && g.Stale == "" && p.made(g):
			delete(w.open, g.ID)
		default:
			p.lay(g)
		}
	}
	return list, err
}

// made reports whether a read shows the change.
func (p *pending) made(g *cluster.NodeGroup) bool {
	if len(p.Instances) == 0 {
		return g.Target == p.To
	}
	return !slices.ContainsFunc(g.Instances, p.lives)
}

// lives reports whether an instance that is to be deleted is still listed as a living
// member.
func (p *pending) lives(in cluster.Instance) bool {
	return in.Member && in.Phase != cluster.PhaseDeleting && in.Phase != cluster.PhaseGone && slices.Contains(p.Instances, in.ID)
}

// lay changes a group as if the change had been made: the scaler must neither count on a
// machine that the change removes, nor buy the same machines twice.
func (p *pending) lay(g *cluster.NodeGroup) {
	if g.Busy == "" {
		g.Busy = p.why()
	}
	if len(p.Instances) == 0 {
		g.Target = max(g.Target, p.To)
		return
	}
	for i := range g.Instances {
		if in := &g.Instances[i]; p.lives(*in) {
			in.Phase = cluster.PhaseDeleting
			g.Target--
		}
	}
	g.Target = max(g.Target, 0)
}

// Resize implements Provider.
func (w *WriteAhead) Resize(ctx context.Context, id cluster.GroupID, from, to int) error {
	return w.write(ctx, "resize", Intent{Group: id, From: from, To: to}, func() error { return w.next.Resize(ctx, id, from, to) })
}

// Delete implements Provider.
func (w *WriteAhead) Delete(ctx context.Context, id cluster.GroupID, ids ...cluster.InstanceID) error {
	if len(ids) == 0 {
		return w.next.Delete(ctx, id)
	}
	return w.write(ctx, "delete", Intent{Group: id, Instances: slices.Clone(ids)}, func() error { return w.next.Delete(ctx, id, ids...) })
}

// write makes one change: it is recorded first, and removed once its outcome is known.
func (w *WriteAhead) write(ctx context.Context, op string, i Intent, do func() error) error {
	i.At = time.Now()
	own := &pending{Intent: i}
	w.mu.Lock()
	if p := w.open[i.Group]; p != nil && !p.over() {
		defer w.mu.Unlock()
		return &provider.Error{Op: op, Group: i.Group, Kind: provider.Busy, Err: errors.New(p.why())}
	}
	w.open[i.Group] = own
	w.mu.Unlock()
	if err := w.keep(ctx); err != nil {
		w.end(own, nil)
		return &provider.Error{Op: op, Group: i.Group, Kind: provider.Transient, Err: fmt.Errorf("the cloud was not asked, for the change could not be written down first: %w", err)}
	}
	err := do()
	w.end(own, err)
	return err
}

// end removes a change, or notes that its outcome is unknown.
func (w *WriteAhead) end(own *pending, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	unsure, all := provider.Unsure(err)
	switch {
	case len(unsure) == 0 && !all:
		delete(w.open, own.Group)
		return
	case !all && len(own.Instances) > 0:
		own.Instances = unsure
	}
	own.ended = time.Now()
}
