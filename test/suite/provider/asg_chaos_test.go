package provider_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
	"github.com/autoscaler-agent/autoscaler-agent/internal/testing/drawn"
	"github.com/autoscaler-agent/autoscaler-agent/internal/testing/providertest"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/cloud/aws"
)

var faultKinds = []aws.Kind{
	aws.Throttle, aws.ServerError500, aws.Unavailable503, aws.ConnectionReset, aws.Forbidden, aws.ExpiredCredentials,
	aws.PartialPage, aws.EmptyList, aws.ShortList, aws.TruncatedBody, aws.AnswerLost,
}

// TestASGFaultKinds: whatever the network does to any single call, a method either
// does its work or returns an *Error that is sorted.
func TestASGFaultKinds(t *testing.T) {
	for _, kind := range faultKinds {
		t.Run(string(kind), func(t *testing.T) {
			w := newWorld(t)
			p := w.connect(t, byTag)
			w.put(t, aws.Group{Name: "third", Max: 3, Desired: 1, ProtectNew: true}, nil)
			w.settle(t)
			w.fault("f", true, aws.Fault{Kind: kind})
			_, err := p.Groups(ctx)
			victim := w.Alive(providertest.Workers)[0]
			for what, err := range map[string]error{
				"read": err, "resize": p.Resize(ctx, providertest.Workers, 2, 3), "delete": p.Delete(ctx, providertest.Workers, victim),
			} {
				if err != nil && (len(provider.Errors(err)) == 0 || provider.KindOf(err) == provider.Other) {
					t.Errorf("%s: kind %q: %v", what, provider.KindOf(err), err)
				}
			}
		})
	}
}

// chaos is a random game against Workers, and what it knows of it.
type chaos struct {
	*testing.T
	w            *world
	p            provider.Provider
	r            *rand.Rand
	known, named map[cluster.InstanceID]bool // machines seen, machines given to Delete
}

// TestASGChaos does random things under random faults, by a seed, and holds what
// must never happen: a machine that ends without having been named, a target
// outside the bounds or lowered without a deletion, an error of no kind.
func TestASGChaos(t *testing.T) {
	seed := drawn.Seed(t)
	w := newWorld(t)
	c := &chaos{T: t, w: w, p: w.connect(t, byTag), r: rand.New(rand.NewPCG(seed, 1)),
		known: map[cluster.InstanceID]bool{}, named: map[cluster.InstanceID]bool{}}
	for range 80 {
		c.step()
	}
	w.ClearFaults()
	w.settle(t)
	alive := w.Alive(providertest.Workers)
	for id := range c.known {
		if !c.named[id] && !slices.Contains(alive, id) {
			t.Errorf("%s ended and nobody had named it", id)
		}
	}
	if len(alive) != w.Target(providertest.Workers) {
		t.Errorf("%d alive, target %d", len(alive), w.Target(providertest.Workers))
	}
	t.Logf("%d machines came, %d were named, %d are alive", len(c.known), len(c.named), len(alive))
}

func (c *chaos) step() {
	for _, id := range c.w.Alive(providertest.Workers) {
		c.known[id] = true
	}
	c.w.ClearFaults()
	if c.r.IntN(3) > 0 {
		c.w.Inject(aws.Fault{Kind: faultKinds[c.r.IntN(len(faultKinds))], Probability: 0.5, Times: 1 + c.r.IntN(3)})
	}
	var err error
	switch c.r.IntN(3) {
	case 0:
		_, err = c.p.Groups(ctx)
	case 1:
		err = c.resize()
	case 2:
		err = c.delete()
	}
	if err != nil && len(provider.Errors(err)) == 0 {
		c.Errorf("an error of no kind: %v", err)
	}
	if n := c.w.Target(providertest.Workers); n < 0 || n > 10 {
		c.Fatalf("target %d is outside the bounds", n)
	}
	if c.r.IntN(4) == 0 {
		c.w.settle(c)
	}
}

func (c *chaos) resize() error {
	before, members := c.w.Target(providertest.Workers), len(c.w.Alive(providertest.Workers))
	from, to := before, c.r.IntN(13)-1
	if c.r.IntN(4) == 0 {
		from = c.r.IntN(11)
	}
	err := c.p.Resize(ctx, providertest.Workers, from, to)
	now := c.w.Target(providertest.Workers)
	if now != before && (now != to || from != before) {
		c.Fatalf("resize %d to %d took the target from %d to %d", from, to, before, now)
	}
	if now < before && now < members {
		c.Fatalf("resize lowered the target to %d, below %d instances", now, members)
	}
	return err
}

func (c *chaos) delete() error {
	ids := c.w.Alive(providertest.Workers)
	if len(ids) == 0 {
		return nil
	}
	id := ids[c.r.IntN(len(ids))]
	c.named[id] = true
	before := c.w.Target(providertest.Workers)
	err := c.p.Delete(ctx, providertest.Workers, id, id)
	if now := c.w.Target(providertest.Workers); now < before-1 || now > before {
		c.Fatalf("one deletion took the target from %d to %d", before, now)
	}
	return err
}
