package reaper

import "time"

// This file holds what an agent learns that does not lead, and when it was installed.

// Learn is Decide for an agent that does not lead: it keeps the ledger and judges nothing.
func Learn(in Input, m Memory, p Policy) Memory {
	next := newMoment(in, m, p).memory
	m = m.Clone()
	m.Seen, m.Doubts, m.Installed = next.Seen, next.Doubts, next.Installed
	return m
}

// install begins the time of observing. A ledger that was kept by an older version tells
// how long it has been at work.
func (m *Memory) install(now time.Time) {
	if m.Installed.IsZero() {
		m.Installed = now
		for _, r := range m.Seen {
			if !r.First.IsZero() && r.First.Before(m.Installed) {
				m.Installed = r.First
			}
		}
	}
	if m.Installed.After(now) {
		m.Installed = now // a clock that was ahead
	}
}
