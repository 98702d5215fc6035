package queue

import (
	"fmt"
	"testing"
	"time"
)

var at = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

// TestQueueNewsFirst: a request that has just come is judged before hundreds that are
// only tried again, and these are not forgotten over a stream of new ones.
func TestQueueNewsFirst(t *testing.T) {
	q, now := New(), at
	for n := range 200 {
		q.Add(fmt.Sprint("held-", n), now)
	}
	for {
		key, _, ok := q.Take(now)
		if !ok {
			break
		}
		q.Again(key, now, Backoff)
	}
	now = now.Add(time.Minute) // all are due again
	q.Add("new", now)
	for turn := 1; ; turn++ {
		key, _, ok := q.Take(now)
		if !ok || turn > 2 {
			t.Fatalf("the new request is not judged within two turns (%q)", key)
		}
		q.Again(key, now, Backoff)
		if key == "new" {
			break
		}
	}
	retried := 0
	for n := range 400 {
		q.Add(fmt.Sprint("stream-", n), now)
		key, _, ok := q.Take(now)
		if !ok {
			t.Fatal("nobody is due")
		}
		if key[0] == 'h' {
			retried++
		}
		q.Again(key, now, Backoff)
	}
	if retried < 90 {
		t.Errorf("%d of 400 turns went to what is tried again", retried)
	}
}

// TestQueueSpreadsRetries: requests that were held in the same second are tried again over
// a quarter of the pause, and never later than the pause.
func TestQueueSpreadsRetries(t *testing.T) {
	q, began := New(), at
	const held = 600
	for n := range held {
		key := fmt.Sprint("join:ip-10-0-0-", n, ".ec2.internal")
		q.Add(key, began)
		q.entries[key].tries = 10 // the longest pause
	}
	for range held {
		key, _, ok := q.Take(began)
		if !ok {
			t.Fatal("nobody is due")
		}
		q.Again(key, began, Backoff)
	}
	seconds := map[int]int{}
	for key, e := range q.entries {
		pause := e.due.Sub(began)
		if pause > LastRetry || pause < LastRetry*3/4 {
			t.Errorf("%s waits %s", key, pause)
		}
		seconds[int(pause/time.Second)]++
	}
	for second, n := range seconds {
		if n > held/5 {
			t.Errorf("%d of %d are tried again in second %d", n, held, second)
		}
	}
}

// TestQueueKeepsWhatHappenedMeanwhile: something happens for a requester while its last
// request is judged; it is judged again, and delays nobody else.
func TestQueueKeepsWhatHappenedMeanwhile(t *testing.T) {
	for range 20 { // a map has no order
		q, now := New(), at
		q.Add("a", now)
		if key, _, ok := q.Take(now); !ok || key != "a" {
			t.Fatal("a is not due")
		}
		q.Add("a", now)
		q.Done("a", now)
		q.Add("b", now)
		judged := map[string]bool{}
		for range 2 {
			key, next, ok := q.Take(now)
			if !ok {
				t.Fatalf("nobody is due before %s, and %v were judged", next, judged)
			}
			judged[key] = true
			q.Done(key, now)
		}
		if !judged["a"] || !judged["b"] {
			t.Fatalf("judged: %v", judged)
		}
	}
}
