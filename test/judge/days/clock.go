package days

import (
	"container/heap"
	"time"
)

// clock is simulated time: things to do, in order of time and then of asking.
type clock struct {
	now  time.Time
	todo events
	seq  int
}

type event struct {
	at  time.Time
	seq int
	do  func()
}

func (c *clock) at(t time.Time, do func()) {
	if t.Before(c.now) {
		t = c.now
	}
	c.seq++
	heap.Push(&c.todo, event{t, c.seq, do})
}

func (c *clock) after(d time.Duration, do func()) { c.at(c.now.Add(d), do) }

// run lets time pass until end, or until stop says so.
func (c *clock) run(end time.Time, stop func() bool) {
	for len(c.todo) > 0 && !c.todo[0].at.After(end) && !stop() {
		e := heap.Pop(&c.todo).(event)
		c.now = e.at
		e.do()
	}
	c.now = end
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
