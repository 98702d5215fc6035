package machine

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
)

// Fleet boots machines and keeps them by instance ID. Its methods may be called from
// any goroutine.
type Fleet struct {
	ctx    context.Context
	cancel context.CancelFunc
	tools  Tools
	tune   func(*Config)
	wg     sync.WaitGroup

	mu       sync.Mutex
	machines map[string]*Machine
}

// NewFleet makes the machines' tools and returns an empty fleet. tune (nil: none) may
// change the configuration of each machine before it boots: its behaviour, its
// speed, its log. The machines die with ctx, or by Close.
func NewFleet(ctx context.Context, tune func(*Config)) (*Fleet, error) {
	tools, err := BuildTools(ctx, false)
	if err != nil {
		return nil, fmt.Errorf("make fleet: %w", err)
	}
	f := &Fleet{tools: tools, tune: tune, machines: map[string]*Machine{}}
	f.ctx, f.cancel = context.WithCancel(ctx)
	return f, nil
}

// Boot boots a machine. One instance boots once.
func (f *Fleet) Boot(cfg Config) (*Machine, error) {
	if cfg.Tools.Dir == "" {
		cfg.Tools = f.tools
	}
	if f.tune != nil {
		f.tune(&cfg)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.machines[cfg.InstanceID] != nil {
		return nil, fmt.Errorf("boot machine %s: it runs already", cfg.InstanceID)
	}
	m, err := Boot(f.ctx, cfg)
	if err != nil {
		return nil, err
	}
	f.machines[cfg.InstanceID] = m
	return m, nil
}

// Machine returns a machine that has not been terminated, or nil.
func (f *Fleet) Machine(instance string) *Machine {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.machines[instance]
}

// Machines returns all that have not been terminated, by instance ID.
func (f *Fleet) Machines() []*Machine {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := make([]*Machine, 0, len(f.machines))
	for _, m := range f.machines {
		out = append(out, m)
	}
	slices.SortFunc(out, func(a, b *Machine) int { return strings.Compare(a.cfg.InstanceID, b.cfg.InstanceID) })
	return out
}

// Terminate ends a machine as Die does, without waiting for it. One that is not there
// is no error: clouds tell of an instance's end more than once.
func (f *Fleet) Terminate(instance string) {
	f.mu.Lock()
	m := f.machines[instance]
	delete(f.machines, instance)
	f.mu.Unlock()
	if m != nil {
		f.wg.Go(m.Die)
	}
}

// Close ends every machine and returns when nothing of any is left.
func (f *Fleet) Close() {
	f.cancel()
	for _, m := range f.Machines() {
		f.Terminate(m.cfg.InstanceID)
	}
	f.wg.Wait()
}
