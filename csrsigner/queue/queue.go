// Package queue orders the requesters of certificates whose requests wait: one
// entry for each requester, an exponential backoff with a deterministic jitter for what is
// held, and turns for new requests before what is only tried again.
//
// What it refuses: it knows nothing of certificates, starts no goroutine and reads no
// clock. Each call is given the time.
package queue

import (
	"hash/fnv"
	"sync"
	"time"
)

// Queue says which requester is judged next. One requester is one entry, however
// many requests it has made, and is judged by one worker at a time.
type Queue struct {
	mu      sync.Mutex
	entries map[string]*entry
	changed chan struct{}
	turns   int
}

// oldestEvery is how often a turn goes to who has been due the longest, whether anything
// has happened for it or not.
const oldestEvery = 4

type entry struct {
	due     time.Time
	last    time.Time // end of the last judgement
	tries   int
	running bool
	dirty   bool   // something happened while running
	fresh   bool   // something happened since the last judgement
	rule    string // of the last verdict
	told    string // the last verdict that was reported
}

// Outcome is the end of a judgement.
type Outcome int

// The outcomes, and when the requester is judged again.
const (
	Progress Outcome = iota // a decision was written: at once
	Backoff                 // what is held may heal: ever more slowly
	Slowly                  // what is held is long overdue: now and then
)

// Pauses between two judgements.
const (
	FirstRetry   = 250 * time.Millisecond // of what is held; doubles ...
	LastRetry    = time.Minute            // ... up to this
	settledRetry = 5 * time.Minute        // after the Warning event
	pauseBetween = 50 * time.Millisecond  // for one requester
)

// New is an empty queue.
func New() *Queue {
	return &Queue{entries: map[string]*entry{}, changed: make(chan struct{}, 1)}
}

func (q *Queue) signal() {
	select {
	case q.changed <- struct{}{}:
	default:
	}
}

// Add judges key now; a new request starts its backoff afresh.
func (q *Queue) Add(key string, now time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	e := q.entries[key]
	if e == nil {
		e = &entry{}
		q.entries[key] = e
	}
	e.tries = 0
	q.soon(e, now)
}

// Hurry judges key now if it waits.
func (q *Queue) Hurry(key string, now time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if e := q.entries[key]; e != nil {
		q.soon(e, now)
	}
}

// HurryHeld judges now what waits by a rule: O(entries).
func (q *Queue) HurryHeld(rule string, now time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, e := range q.entries {
		if e.rule == rule {
			q.soon(e, now)
		}
	}
}

func (q *Queue) soon(e *entry, now time.Time) {
	if e.running {
		e.dirty = true
		return
	}
	e.fresh = true
	due := now
	if pause := e.last.Add(pauseBetween); pause.After(due) {
		due = pause
	}
	if e.due.IsZero() || due.Before(e.due) {
		e.due = due
	}
	q.signal()
}

// Ensure makes sure that key has an entry.
func (q *Queue) Ensure(key string, now time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.entries[key] == nil {
		q.entries[key] = &entry{due: now}
		q.signal()
	}
}

// Changed receives after each call that may have made somebody due earlier.
func (q *Queue) Changed() <-chan struct{} { return q.changed }

// Len is the number of requesters.
func (q *Queue) Len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.entries)
}

// Take returns the requester that has been due the longest, of those for which something
// has happened before all others: a retry gives way to a new request. Every
// few turns it is the one that has been due the longest of all. When nobody is due, next
// is when the next one will be (zero: none). O(entries).
func (q *Queue) Take(now time.Time) (key string, next time.Time, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	var news string // of what is fresh, the one that has been due the longest
	for k, e := range q.entries {
		if e.running {
			continue
		}
		if next.IsZero() || e.due.Before(next) {
			key, next = k, e.due
		}
		if e.fresh && !e.due.After(now) && (news == "" || e.due.Before(q.entries[news].due)) {
			news = k
		}
	}
	if next.IsZero() || next.After(now) {
		return "", next, false
	}
	if q.turns++; news != "" && q.turns%oldestEvery != 0 {
		key = news
	}
	e := q.entries[key]
	e.running, e.fresh = true, false
	return key, e.due, true
}

// Done forgets key, unless something happened meanwhile.
func (q *Queue) Done(key string, now time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if e := q.entries[key]; e != nil && e.dirty {
		e.running, e.dirty, e.fresh, e.due = false, false, true, now
		q.signal()
		return
	}
	delete(q.entries, key)
}

// Again puts key back.
func (q *Queue) Again(key string, now time.Time, r Outcome) {
	q.mu.Lock()
	defer q.mu.Unlock()
	e := q.entries[key]
	if e == nil {
		return
	}
	e.running, e.last = false, now
	switch {
	case r == Progress:
		e.tries = 0
		e.due = now.Add(pauseBetween)
	case r == Slowly:
		e.due = now.Add(settledRetry)
	default:
		e.due = now.Add(spread(key, min(FirstRetry<<min(e.tries, 10), LastRetry)))
		e.tries++
	}
	if e.dirty {
		e.dirty, e.fresh = false, true
		e.due = now.Add(pauseBetween)
	}
	q.signal()
}

// spread shortens a pause by up to a quarter, by the key: requests that were held in the
// same second are not all judged again in one.
func spread(key string, pause time.Duration) time.Duration {
	h := fnv.New32a()
	_, _ = h.Write([]byte(key))
	return pause - pause/4*time.Duration(h.Sum32()%1024)/1024
}

// News tells whether verdict, which is by a rule, differs from the last one reported for key.
func (q *Queue) News(key, rule, verdict string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	e := q.entries[key]
	if e == nil {
		return false
	}
	if e.rule = rule; e.told == verdict {
		return false
	}
	e.told = verdict
	return true
}
