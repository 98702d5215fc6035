package aws

import (
	"container/heap"
	"time"
)

// alarm is something that the cloud will do later.
type alarm struct {
	at  time.Time
	seq int
	do  func()
}

type alarms []alarm

func (a alarms) Len() int { return len(a) }
func (a alarms) Less(i, j int) bool {
	if a[i].at.Equal(a[j].at) {
		return a[i].seq < a[j].seq
	}
	return a[i].at.Before(a[j].at)
}
func (a alarms) Swap(i, j int) { a[i], a[j] = a[j], a[i] }
func (a *alarms) Push(v any)   { *a = append(*a, v.(alarm)) }
func (a *alarms) Pop() any {
	old := *a
	last := old[len(old)-1]
	*a = old[:len(old)-1]
	return last
}

// after schedules do, which will run with c.mu held. The caller holds c.mu.
func (c *Cloud) after(d time.Duration, do func()) {
	c.alarmSeq++
	heap.Push(&c.alarms, alarm{at: time.Now().Add(d), seq: c.alarmSeq, do: do})
	select {
	case c.rearm <- struct{}{}:
	default:
	}
}

// jittered spreads a delay by Options.Jitter, from the seed.
func (c *Cloud) jittered(d time.Duration) time.Duration {
	if c.opts.Jitter <= 0 {
		return d
	}
	return time.Duration(float64(d) * (1 + c.opts.Jitter*(2*c.rng.Float64()-1)))
}

// runClock is the one goroutine in which time passes for the whole cloud.
func (c *Cloud) runClock() {
	defer c.background.Done()
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		c.mu.Lock()
		wait := time.Hour
		for len(c.alarms) > 0 {
			if wait = time.Until(c.alarms[0].at); wait > 0 {
				break
			}
			wait = time.Hour
			heap.Pop(&c.alarms).(alarm).do()
			c.changed()
		}
		c.mu.Unlock()
		timer.Reset(wait)
		select {
		case <-c.done:
			return
		case <-c.rearm:
		case <-timer.C:
		}
	}
}
