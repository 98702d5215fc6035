package reaper

import "time"

// This file keeps the ledger of an agent that does not lead, and the time of installation.

// Learn is Decide for an agent that does not lead: it keeps the ledger without a decision.
func Learn(in Input, m Memory, p Policy) Memory {
	next := newMoment(in, m, p).memory
	m = m.Clone()
	m.Seen, m.Doubts, m.Installed = next.Seen, next.Doubts, next.Installed
	return m
}

// install begins the time of observing (M2). A ledger of an older version has no such time;
// its oldest record stands for it.
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
		m.Installed = now // the clock was ahead then
	}
}
