// Package heartbeat monitors the progress of services: each service beats after a round,
// from the goroutine that did the work, and a service that has not beaten within its own
// budget is late. The systemd watchdog is fed only while no service is late.
//
// It refuses to start goroutines, to judge whether a round went well (a failed round is a
// round; a hung one is not) and to know what a service is.
package heartbeat

import (
	"fmt"
	"sort"
	"sync"
	"time"
)

// Monitor holds the last beat of every registered service. The zero value is ready
// for use; all methods are safe for concurrent use.
type Monitor struct {
	mu    sync.Mutex
	beats map[string]*entry
}

type entry struct {
	last   time.Time
	budget time.Duration
}

// Late names one service that has not beaten within its budget.
type Late struct {
	Name   string
	Silent time.Duration // since its last beat
	Budget time.Duration
}

// String renders "scaler silent for 2m0s (budget 1m0s)".
func (l Late) String() string {
	return fmt.Sprintf("%s silent for %s (budget %s)", l.Name, l.Silent.Round(time.Second), l.Budget)
}

// Register adds a service that must beat at least once per budget, counts its
// registration as the first beat, and returns its beat. Registering a name again
// replaces the budget.
func (m *Monitor) Register(name string, budget time.Duration) (beat func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.beats == nil {
		m.beats = map[string]*entry{}
	}
	e := &entry{last: time.Now(), budget: budget}
	m.beats[name] = e
	return func() {
		m.mu.Lock()
		e.last = time.Now()
		m.mu.Unlock()
	}
}

// Late returns the services that are late at now, by name. Empty means that all
// services make progress.
func (m *Monitor) Late(now time.Time) []Late {
	m.mu.Lock()
	defer m.mu.Unlock()
	var late []Late
	for name, e := range m.beats {
		if silent := now.Sub(e.last); silent > e.budget {
			late = append(late, Late{Name: name, Silent: silent, Budget: e.budget})
		}
	}
	sort.Slice(late, func(i, j int) bool { return late[i].Name < late[j].Name })
	return late
}
