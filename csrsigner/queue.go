package csrsigner

import (
	"hash/fnv"
	"strings"
	"sync"
	"time"
)

// queue says which requester is judged next. One requester is one entry, however
// many requests it has made, and is judged by one worker at a time.
type queue struct {
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
	told    string // the last verdict that was reported (report writes it): UID/decision/rule/overdue
}

// retry tells the queue what a judgement came to.
type retry int

const (
	progress retry = iota // a decision was written: look for the next request at once
	backoff               // may heal: look again, ever more slowly
	slowly                // long overdue: look again now and then
)

func newQueue() *queue {
	return &queue{entries: map[string]*entry{}, changed: make(chan struct{}, 1)}
}

func (q *queue) signal() {
	select {
	case q.changed <- struct{}{}:
	default:
	}
}

// add judges key now; a new request starts its backoff afresh.
func (q *queue) add(key string, now time.Time) {
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

// hurry judges key now if it waits.
func (q *queue) hurry(key string, now time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if e := q.entries[key]; e != nil {
		q.soon(e, now)
	}
}

// hurryHeld judges now what waits by a rule. It looks at each entry.
func (q *queue) hurryHeld(rule string, now time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, e := range q.entries {
		if strings.Contains(e.told, "/"+rule+"/") {
			q.soon(e, now)
		}
	}
}

func (q *queue) soon(e *entry, now time.Time) {
	if e.running {
		e.dirty = true
		return
	}
	e.fresh = true
	due := now
	if pause := e.last.Add(sameNodePause); pause.After(due) {
		due = pause
	}
	if e.due.IsZero() || due.Before(e.due) {
		e.due = due
	}
	q.signal()
}

// ensure makes sure that key has an entry.
func (q *queue) ensure(key string, now time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.entries[key] == nil {
		q.entries[key] = &entry{due: now}
		q.signal()
	}
}

// take returns the requester that has been due the longest, of those for which something
// has happened before all others: what is only tried again gives way to what is new. Every
// few turns it is the one that has been due the longest of all. When nobody is due, next
// is when the next one will be (zero: none).
func (q *queue) take(now time.Time) (key string, next time.Time, ok bool) {
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

// done forgets key, unless something happened meanwhile.
func (q *queue) done(key string, now time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if e := q.entries[key]; e != nil && e.dirty {
		e.running, e.dirty, e.fresh, e.due = false, false, true, now
		q.signal()
		return
	}
	delete(q.entries, key)
}

// again puts key back.
func (q *queue) again(key string, now time.Time, r retry) {
	q.mu.Lock()
	defer q.mu.Unlock()
	e := q.entries[key]
	if e == nil {
		return
	}
	e.running, e.last = false, now
	switch {
	case r == progress:
		e.tries = 0
		e.due = now.Add(sameNodePause)
	case r == slowly:
		e.due = now.Add(settledRetry)
	default:
		e.due = now.Add(spread(key, min(firstRetry<<min(e.tries, 10), lastRetry)))
		e.tries++
	}
	if e.dirty {
		e.dirty, e.fresh = false, true
		e.due = now.Add(sameNodePause)
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

// news tells whether verdict differs from the last one reported for key.
func (q *queue) news(key, verdict string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	e := q.entries[key]
	if e == nil || e.told == verdict {
		return false
	}
	e.told = verdict
	return true
}

// bucket is a token bucket; the zero time fills it.
type bucket struct {
	tokens float64
	at     time.Time
}

// refill adds what perHour has earned since the last call, up to burst.
func (b *bucket) refill(now time.Time, burst, perHour float64) {
	if b.at.IsZero() {
		b.tokens, b.at = burst, now
	}
	if d := now.Sub(b.at); d > 0 {
		b.tokens = min(burst, b.tokens+perHour*d.Hours())
		b.at = now
	}
}

// allowance is a bucket of decisions that fills within an hour.
type allowance struct {
	bucket
	perHour float64
}

func (a *allowance) refill(now time.Time) { a.bucket.refill(now, a.perHour, a.perHour) }

func (a *allowance) full(now time.Time) bool {
	a.refill(now)
	return a.tokens >= a.perHour
}
