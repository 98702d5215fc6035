package days

import (
	"container/heap"
	"time"
)

// clock is simulated time: things to do, in order of time and then of asking.
type clock struct {
	Now  time.Time
	todo events
	seq  int
}

type event struct {
	at  time.Time
	seq int
	do  func()
}

// At has do called at a time, or now where that has passed.
func (c *clock) At(t time.Time, do func()) {
	if t.Before(c.Now) {
		t = c.Now
	}
	c.seq++
	heap.Push(&c.todo, event{t, c.seq, do})
}

// After has do called when some time has passed.
func (c *clock) After(d time.Duration, do func()) { c.At(c.Now.Add(d), do) }

// Run lets time pass until end, or until stop says so; nil: it never does.
func (c *clock) Run(end time.Time, stop func() bool) {
	for len(c.todo) > 0 && !c.todo[0].at.After(end) && (stop == nil || !stop()) {
		e := heap.Pop(&c.todo).(event)
		c.Now = e.at
		e.do()
	}
	c.Now = end
}

type events []event

func (e events) Len() int { return len(e) }
func (e events) Less(i, j int) bool {
	if e[i].at.Equal(e[j].at) {
		return e[i].seq < e[j].seq
	}
	return e[i].at.Before(e[j].at)
}
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)   { *e = append(*e, x.(event)) }
func (e *events) Pop() any {
	old := *e
	x := old[len(old)-1]
	*e = old[:len(old)-1]
	return x
}
