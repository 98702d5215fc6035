package provider_test

import (
	"errors"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/providertest"
	"github.com/autoscaler-agent/autoscaler-agent/test/cloud/aws"
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

// TestASGChaos does random things under random faults, by a seed, and holds what
// must never happen: a machine that ends without having been named, a target
// outside the bounds or lowered without a deletion, an error of no kind.
func TestASGChaos(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	if s := os.Getenv("AUTOSCALER_TEST_SEED"); s != "" {
		var err error
		if seed, err = strconv.ParseUint(s, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("seed %d (repeat with AUTOSCALER_TEST_SEED=%d)", seed, seed)
	r := rand.New(rand.NewPCG(seed, 1))
	w := newWorld(t)
	p := w.connect(t, byTag)
	named := map[cluster.InstanceID]bool{}
	known := map[cluster.InstanceID]bool{}
	target, deletions := 2, 0
	for step := range 80 {
		for _, id := range w.Alive(providertest.Workers) {
			known[id] = true
		}
		w.ClearFaults()
		if r.IntN(3) > 0 {
			w.Inject(aws.Fault{Kind: faultKinds[r.IntN(len(faultKinds))], Probability: 0.5, Times: 1 + r.IntN(3)})
		}
		before := w.Target(providertest.Workers)
		var err error
		switch r.IntN(3) {
		case 0:
			_, err = p.Groups(ctx)
		case 1:
			from, to := before, r.IntN(13)-1
			if r.IntN(4) == 0 {
				from = r.IntN(11)
			}
			members := len(w.Alive(providertest.Workers))
			err = p.Resize(ctx, providertest.Workers, from, to)
			now := w.Target(providertest.Workers)
			if now != before && (now != to || from != before) {
				t.Fatalf("step %d: resize %d to %d took the target from %d to %d", step, from, to, before, now)
			}
			if now < members && now < before {
				t.Fatalf("step %d: resize lowered the target to %d, below %d instances", step, now, members)
			}
			target = now
		case 2:
			ids := w.Alive(providertest.Workers)
			if len(ids) > 0 {
				id := ids[r.IntN(len(ids))]
				named[id] = true
				deletions++
				err = p.Delete(ctx, providertest.Workers, id, id)
				if now := w.Target(providertest.Workers); now < target-1 || now > target {
					t.Fatalf("step %d: one deletion took the target from %d to %d", step, target, now)
				} else {
					target = now
				}
			}
		}
		if err != nil && len(provider.Errors(err)) == 0 && !errors.Is(err, ctx.Err()) {
			t.Errorf("step %d: an error of no kind: %v", step, err)
		}
		if n := w.Target(providertest.Workers); n < 0 || n > 10 {
			t.Fatalf("step %d: target %d", step, n)
		}
		if r.IntN(4) == 0 {
			w.settle(t)
		}
	}
	w.ClearFaults()
	w.settle(t)
	alive := w.Alive(providertest.Workers)
	for id := range known {
		if !named[id] && !slices.Contains(alive, id) {
			t.Errorf("%s ended and nobody had named it", id)
		}
	}
	if len(alive) != w.Target(providertest.Workers) {
		t.Errorf("%d alive, target %d", len(alive), w.Target(providertest.Workers))
	}
	t.Logf("%d machines came, %d deletions asked, %d alive", len(known), deletions, len(alive))
}
