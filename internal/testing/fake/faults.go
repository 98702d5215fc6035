package fake

import (
	"context"
	"errors"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
)

// faults are what goes wrong because somebody asked for it. The cloud's mutex guards
// them.
type faults struct {
	next      []error
	reads     map[cluster.GroupID]error // of reads, per group
	templates map[cluster.GroupID]error // of reads of templates, per group
	down      error                     // of everything
	downIn    int                       // calls that succeed before down holds
	noDelete  error
	noOne     *provider.Error // of the next deletion of an instance
	lost      error           // instead of the next answer to a change
	frozen    []cluster.NodeGroup
	hang      chan struct{} // closed when it is over; nil: it does not
}

// Next makes the next call of a provider method fail with err before it does
// anything. Several queue up.
func (c *Cloud) Next(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.next = append(c.next, err)
}

// Down makes every call fail with err until it is called with nil.
func (c *Cloud) Down(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.down, c.downIn = err, 0
}

// BreakRead makes the read of one group fail with err until called with nil.
func (c *Cloud) BreakRead(id cluster.GroupID, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reads[id] = err
}

// BreakTemplate makes the read of one group's template fail with err until called with
// nil.
func (c *Cloud) BreakTemplate(id cluster.GroupID, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.templates[id] = err
}

// RefuseDelete makes every deletion fail with err until called with nil.
func (c *Cloud) RefuseDelete(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.noDelete = err
}

// Block makes launches in a group fail with f (its time is set) until called with
// nil.
func (c *Cloud) Block(id cluster.GroupID, f *cluster.Failure) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.groups[id].blocked = f
}

// DownAfter lets n more calls succeed and every later one fail with err, until Down.
func (c *Cloud) DownAfter(n int, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.down, c.downIn = err, n
}

// RefuseOne makes the next deletion of one instance fail with err, which is given the
// instance and the group.
func (c *Cloud) RefuseOne(err provider.Error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.noOne = &err
}

// LoseAnswer makes the next change be done and err be its answer.
func (c *Cloud) LoseAnswer(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lost = err
}

// Freeze lets every read show the world as it is now, until it is called with false.
func (c *Cloud) Freeze(on bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.frozen = nil
	if on {
		c.frozen, _ = c.readAll()
	}
}

// Hang lets every call wait for the end of its context, or for Hang with false.
func (c *Cloud) Hang(on bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.hang != nil {
		close(c.hang)
		c.hang = nil
	}
	if on {
		c.hang = make(chan struct{})
	}
}

// Spoil makes instances that are launched in a group fail with f (its time is set)
// until called with nil. They keep their place until they are deleted.
func (c *Cloud) Spoil(id cluster.GroupID, f *cluster.Failure) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.groups[id].spoiled = f
}

// Edit changes what is told of a group, as another client would; not its instances.
func (c *Cloud) Edit(id cluster.GroupID, edit func(*cluster.NodeGroup)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	edit(&c.groups[id].facts)
}

// enter begins a call: it returns the error that is due, if any, or with the mutex
// held.
func (c *Cloud) enter(ctx context.Context, op string) error {
	c.mu.Lock()
	hang := c.hang
	c.mu.Unlock()
	if hang != nil {
		select {
		case <-hang:
		case <-ctx.Done():
		}
	}
	c.mu.Lock()
	if err := c.fault(ctx, op); err != nil {
		c.mu.Unlock()
		return err
	}
	return nil
}

// answer is what a change that was done is answered with.
func (c *Cloud) answer() error {
	err := c.lost
	c.lost = nil
	return err
}

// fault returns the error that is due for a call, if any.
func (c *Cloud) fault(ctx context.Context, op string) error {
	if err := ctx.Err(); err != nil {
		kind := provider.Other
		if errors.Is(err, context.DeadlineExceeded) {
			kind = provider.Transient
		}
		return &provider.Error{Op: op, Kind: kind, Err: err}
	}
	if len(c.next) > 0 {
		err := c.next[0]
		c.next = c.next[1:]
		return err
	}
	if c.down != nil && c.downIn > 0 {
		c.downIn--
		return nil
	}
	return c.down
}
