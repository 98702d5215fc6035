package provider_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
)

func TestLockIsPerGroup(t *testing.T) {
	var locks provider.Locks
	unlockA, err := locks.Lock(t.Context(), "resize", "a")
	if err != nil {
		t.Fatal(err)
	}
	defer unlockA()
	unlockB, err := locks.Lock(t.Context(), "resize", "b")
	if err != nil {
		t.Fatalf("group b waits for group a: %v", err)
	}
	unlockB()
}

// TestLockHasOneHolder counts the holders of one group's lock.
func TestLockHasOneHolder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var locks provider.Locks
		holders, turns := 0, 0
		for range 10 {
			go func() {
				unlock, err := locks.Lock(t.Context(), "resize", "a")
				if err != nil {
					t.Error(err)
					return
				}
				defer unlock()
				if holders++; holders != 1 {
					t.Errorf("%d holders", holders)
				}
				time.Sleep(time.Second) // the others run and wait meanwhile
				holders--
				turns++
			}()
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if turns != 10 {
			t.Errorf("%d of 10 had the lock", turns)
		}
	})
}

func TestLockEndsWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lock provider.Lock
		unlock, err := lock.Lock(t.Context(), "resize", "a")
		if err != nil {
			t.Fatal(err)
		}
		waiting, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = lock.Lock(waiting, "delete", "b")
		var e *provider.Error
		if !errors.As(err, &e) || e.Op != "delete" || e.Group != "b" || e.Kind != provider.Transient || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a wait that was cut short: %v", err)
		}
		unlock()
		// The lock is free and the context has ended: the context decides each time.
		for range 100 {
			if _, err := lock.Lock(waiting, "delete", "b"); !errors.Is(err, context.DeadlineExceeded) {
				t.Fatalf("an ended context was given the lock: %v", err)
			}
		}
		if unlock, err = lock.Lock(t.Context(), "resize", "a"); err != nil {
			t.Fatal(err)
		}
		unlock()
	})
}
