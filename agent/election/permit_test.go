package election

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestPermit: a write passes with a renewal of the Lease and ends with the right to act; an
// agent that does not lead, or whose renewal fails, asks no cloud.
func TestPermit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, cut := &leaseStore{}, false
		g, end := elect("a", store, func() bool { return cut })
		defer end()
		time.Sleep(time.Second)
		before := store.written()
		ctx, cancel, err := g.Permit(t.Context())
		if err != nil || store.written() != before+1 {
			t.Fatalf("%d renewals, %v", store.written()-before, err)
		}
		defer cancel()
		time.Sleep(30 * time.Second)
		if ctx.Err() != nil {
			t.Error("the write has ended although the Lease is renewed")
		}
		store.mu.Lock()
		cut = true
		store.mu.Unlock()
		if _, _, err := g.Permit(t.Context()); err == nil || !strings.HasPrefix(err.Error(), "the cloud was not asked: lease kube-system/autoscaler-agent: ") {
			t.Errorf("without a renewal: %v", err)
		}
		time.Sleep(11 * time.Second)
		if ctx.Err() == nil {
			t.Error("the write goes on without the right to act")
		}
		if _, _, err := g.Permit(t.Context()); err == nil || !strings.HasPrefix(err.Error(), "the cloud was not asked: ") {
			t.Errorf("without the Lease: %v", err)
		}
	})
}

// TestTurn: who waits for the Lease while a call of the API server hangs waits no longer than his own time.
func TestTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lock := make(turn, 1)
		lock.Lock()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := lock.within(ctx); err == nil {
			t.Error("two hold it at once")
		}
		lock.Unlock()
		if err := lock.within(t.Context()); err != nil {
			t.Errorf("it is free, and cannot be had: %v", err)
		}
	})
}
