package externalgrpc

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
)

// The methods of the service that are called.
const (
	methodRefresh    = "Refresh"
	methodNodeGroups = "NodeGroups"
	methodTargetSize = "NodeGroupTargetSize"
	methodNodes      = "NodeGroupNodes"
	methodIncrease   = "NodeGroupIncreaseSize"
	methodDelete     = "NodeGroupDeleteNodes"
	methodTemplate   = "NodeGroupTemplateNodeInfo"
	methodOptions    = "NodeGroupGetOptions"
	methodPrice      = "PricingNodePrice"
)

// Provider is a plug-in behind the house's contract. Its methods are safe for
// concurrent use.
type Provider struct {
	client      *client
	reservation cluster.Reservation
	section     func() json.RawMessage
	defaults    cluster.Options
	now         func() time.Time

	// writing holds one place per group: between the read and the write of a
	// compare-and-set no other write of this process may come.
	mu      sync.Mutex
	writing map[cluster.GroupID]chan struct{}
	seen    map[cluster.InstanceID]sight
	surplus map[cluster.GroupID]time.Time // since when a group has listed more machines than its target
	lacks   map[string]time.Time          // methods that the plug-in does not have, and until when that is believed
}

var _ provider.Provider = (*Provider)(nil)

// sight is what the protocol does not tell of an instance and this process has seen.
type sight struct {
	group  cluster.GroupID
	first  time.Time // when it was first listed
	last   time.Time // when it was last listed
	told   time.Time // when the plug-in was told to end it, with success
	failed time.Time // when it was first listed with an error
}

const (
	// toldFor is how long a plug-in may go on listing an instance as if nothing were
	// the matter after it took the order to end it: in that time it is not told again,
	// for it would lower the target again.
	toldFor = 2 * time.Minute
	// seenFor is how long an instance that is no longer listed is known to have been one.
	seenFor = 24 * time.Hour
	// lacksFor is how long an optional method that was UNIMPLEMENTED is not asked for.
	lacksFor = 10 * time.Minute
)

// Option changes a Provider while it is made.
type Option func(*Provider)

// WithCallHook has f told of every call ("externalgrpc:NodeGroups"). f must be safe for
// concurrent use.
func WithCallHook(f func(method string, took time.Duration, err error)) Option {
	return func(p *Provider) { p.client.hook = f }
}

// WithSection has the section externalgrpc of groups.yaml read from f at every read.
func WithSection(f func() json.RawMessage) Option {
	return func(p *Provider) { p.section = f }
}

// WithDefaults tells what holds for groups that say nothing else. Plug-ins get it with
// every question for a group's options, as the protocol has it.
func WithDefaults(o cluster.Options) Option {
	return func(p *Provider) { p.defaults = o }
}

// New validates c and returns a Provider. It asks the plug-in nothing, so that one that
// comes up late does not keep the rest of the agent from starting.
//
// reservation is what the kubelets of the groups keep back; allocatable is computed with
// it where a plug-in's template tells only the capacity.
func New(c Config, reservation cluster.Reservation, opts ...Option) (*Provider, error) {
	s, err := c.settings()
	if err != nil {
		return nil, err
	}
	p := &Provider{
		client: newClient(s), reservation: reservation, now: time.Now,
		section: func() json.RawMessage { return nil },
		writing: map[cluster.GroupID]chan struct{}{}, seen: map[cluster.InstanceID]sight{}, surplus: map[cluster.GroupID]time.Time{}, lacks: map[string]time.Time{},
	}
	for _, o := range opts {
		o(p)
	}
	return p, nil
}

// Close ends the connections to the plug-in. The provider can still be used.
func (p *Provider) Close() { p.client.transport.CloseIdleConnections() }

// call makes one call that every plug-in must have.
func (p *Provider) call(ctx context.Context, op string, id cluster.GroupID, method string, request []byte) ([]byte, error) {
	answer, err := p.client.call(ctx, method, request)
	if err != nil {
		return nil, classify(op, id, err)
	}
	return answer, nil
}

// read makes one call and hands the answer to the function that reads it.
func read[T any](ctx context.Context, p *Provider, op string, id cluster.GroupID, method string, request []byte, parse func([]byte) (T, error)) (T, error) {
	var none T
	answer, err := p.call(ctx, op, id, method, request)
	if err != nil {
		return none, err
	}
	out, err := parse(answer)
	if err != nil {
		return none, &provider.Error{Op: op, Group: id, Kind: provider.Transient, Err: fmt.Errorf("%s: %w", method, err)}
	}
	return out, nil
}

// lock waits for its turn to write to a group, no longer than ctx lasts. The caller
// calls unlock when err is nil.
func (p *Provider) lock(ctx context.Context, op string, id cluster.GroupID) (unlock func(), err error) {
	p.mu.Lock()
	turn := p.writing[id]
	if turn == nil {
		turn = make(chan struct{}, 1)
		p.writing[id] = turn
	}
	p.mu.Unlock()
	// Asked for first: with both ready, select would toss a coin.
	if err := ctx.Err(); err != nil {
		return nil, &provider.Error{Op: op, Group: id, Err: err}
	}
	select {
	case turn <- struct{}{}:
		return func() { <-turn }, nil
	case <-ctx.Done():
		return nil, &provider.Error{Op: op, Group: id, Kind: provider.Transient, Err: ctx.Err()}
	}
}
