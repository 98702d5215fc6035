package csrsigner

import (
	"fmt"
	"testing"
	"time"
)

// TestQueueNewsFirst: a request that has just come is judged before hundreds that are
// only tried again, and these are not forgotten over a stream of new ones.
func TestQueueNewsFirst(t *testing.T) {
	q, now := newQueue(), noon
	for n := range 200 {
		q.add(fmt.Sprint("held-", n), now)
	}
	for {
		key, _, ok := q.take(now)
		if !ok {
			break
		}
		q.again(key, now, backoff)
	}
	now = now.Add(time.Minute) // all are due again
	q.add("new", now)
	for turn := 1; ; turn++ {
		key, _, ok := q.take(now)
		if !ok || turn > 2 {
			t.Fatalf("the new request is not judged within two turns (%q)", key)
		}
		q.again(key, now, backoff)
		if key == "new" {
			break
		}
	}
	retried := 0
	for n := range 400 {
		q.add(fmt.Sprint("stream-", n), now)
		key, _, ok := q.take(now)
		if !ok {
			t.Fatal("nobody is due")
		}
		if key[0] == 'h' {
			retried++
		}
		q.again(key, now, backoff)
	}
	if retried < 90 {
		t.Errorf("%d of 400 turns went to what is tried again", retried)
	}
}

// TestQueueSpreadsRetries: requests that were held in the same second are tried again over
// a quarter of the pause, and never later than the pause.
func TestQueueSpreadsRetries(t *testing.T) {
	q, began := newQueue(), noon
	const held = 600
	for n := range held {
		key := fmt.Sprint("join:ip-10-0-0-", n, ".ec2.internal")
		q.add(key, began)
		q.entries[key].tries = 10 // the longest pause
	}
	for range held {
		key, _, ok := q.take(began)
		if !ok {
			t.Fatal("nobody is due")
		}
		q.again(key, began, backoff)
	}
	seconds := map[int]int{}
	for key, e := range q.entries {
		pause := e.due.Sub(began)
		if pause > lastRetry || pause < lastRetry*3/4 {
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
		q, now := newQueue(), noon
		q.add("a", now)
		if key, _, ok := q.take(now); !ok || key != "a" {
			t.Fatal("a is not due")
		}
		q.add("a", now)
		q.done("a", now)
		q.add("b", now)
		judged := map[string]bool{}
		for range 2 {
			key, next, ok := q.take(now)
			if !ok {
				t.Fatalf("nobody is due before %s, and %v were judged", next, judged)
			}
			judged[key] = true
			q.done(key, now)
		}
		if !judged["a"] || !judged["b"] {
			t.Fatalf("judged: %v", judged)
		}
	}
}
