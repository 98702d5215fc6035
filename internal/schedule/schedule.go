// Package schedule says when a time that an operator wrote as a cron expression is open, by the clock that it is
// given. It answers for a moment and keeps nothing.
//
// It refuses to read the clock and to run anything: of github.com/robfig/cron/v3 it uses the parser and Next. Time zones
// are those of the host, and where it has none those that the Go distribution embeds (time/tzdata, 0.4 MB): an agent on
// a bare host knows the same zones.
package schedule

import (
	"fmt"
	"time"
	_ "time/tzdata" // a bare host may have no zoneinfo

	"github.com/robfig/cron/v3"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

var parser = cron.NewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.Descriptor)

// Schedule is the times at which a window opens, and how long it stays open.
type Schedule struct {
	starts cron.Schedule
	zone   *time.Location
	length time.Duration
}

// Of reads the schedule of a budget that has one.
func Of(b *cluster.DisruptionBudget) (Schedule, error) {
	zone, err := time.LoadLocation(b.Zone)
	if err != nil || b.Zone == "Local" {
		return Schedule{}, fmt.Errorf("%q is no time zone: write for example Europe/Berlin or UTC", b.Zone)
	}
	starts, err := parser.Parse(b.Cron)
	if err != nil {
		return Schedule{}, fmt.Errorf("%q is no schedule: %w; write for example 0 22 * * mon-fri (minute, hour, day of the month, month, day of the week)", b.Cron, err)
	}
	if _, every := starts.(cron.ConstantDelaySchedule); every {
		return Schedule{}, fmt.Errorf("%q has no time of day: write for example 0 22 * * mon-fri", b.Cron)
	}
	return Schedule{starts, zone, b.For}, nil
}

// Check tells whether the schedules of budgets can be read.
func Check(list []cluster.DisruptionBudget) error {
	for i := range list {
		if list[i].Cron == "" {
			continue
		}
		if _, err := Of(&list[i]); err != nil {
			return err
		}
	}
	return nil
}

// Parse reads budgets, their schedules included.
func Parse(text string) ([]cluster.DisruptionBudget, error) {
	list, err := cluster.ParseDisruptionBudgets(text)
	if err != nil {
		return nil, err
	}
	return list, Check(list)
}

// At tells whether a window is open, and when that may change: when the next one opens, or when the one that is open
// ends, unless another one has opened by then. Zero: never.
//
// A start at a time of day that a clock skips when it is put forward is left out, and one that it shows twice when it is
// put back is two starts: a window that is still open goes on from the second.
func (s *Schedule) At(now time.Time) (open bool, next time.Time) {
	now = now.In(s.zone)
	last := s.starts.Next(now.Add(-s.length))
	if last.IsZero() || last.After(now) {
		return false, s.starts.Next(now).UTC()
	}
	for n := 0; n < mostStarts; n++ {
		after := s.starts.Next(last)
		if after.IsZero() || after.After(now) {
			break
		}
		last = after
	}
	return true, last.Add(s.length).UTC()
}

// mostStarts bounds the starts that are looked at within one window. After them the end that is told is too early, which
// costs a round and changes no answer.
const mostStarts = 100
