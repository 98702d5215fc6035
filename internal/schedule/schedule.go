// Package schedule says when a time that an operator wrote as a cron expression is open, by the clock that it is
// given. It answers for a moment and keeps nothing.
//
// It refuses to read the clock and to run anything. Of github.com/robfig/cron/v3 it uses the parser; a minute is a start when its
// fields match the minute on the zone's clock, which is what the library's Next says of it when it is asked from the minute before. Asked from farther
// away Next leaves out starts after a clock was changed by half an hour (Australia/Lord_Howe), and where a clock is changed at
// midnight (America/Santiago) it takes one day for another, so that it is not asked. Time zones are those of the host, and where it has none those that the
// Go distribution embeds (time/tzdata, 0.4 MB): an agent on a bare host knows the same zones.
package schedule

import (
	"errors"
	"fmt"
	"strings"
	"time"
	_ "time/tzdata" // a bare host may have no zoneinfo

	"github.com/robfig/cron/v3"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

var parser = cron.NewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.Descriptor)

// Schedule is the times at which a window opens, and how long it stays open.
type Schedule struct {
	fields *cron.SpecSchedule
	zone   *time.Location
	length time.Duration
}

// New reads the schedule of a budget that has one.
func New(b *cluster.DisruptionBudget) (Schedule, error) {
	zone, err := time.LoadLocation(b.Zone)
	if err != nil || b.Zone == "Local" {
		return Schedule{}, fmt.Errorf("%q is no time zone: write for example Europe/Berlin or UTC", b.Zone)
	}
	parsed, err := parser.Parse(b.Cron)
	if strings.Contains(b.Cron, "TZ=") {
		err = errors.New("the zone stands behind in")
	}
	if err != nil {
		return Schedule{}, fmt.Errorf("%q is no schedule: %w; write for example 0 22 * * mon-fri (minute, hour, day of the month, month, day of the week)", b.Cron, err)
	}
	fields, ok := parsed.(*cron.SpecSchedule)
	if !ok {
		return Schedule{}, fmt.Errorf("%q has no time of day: write for example 0 22 * * mon-fri", b.Cron)
	}
	return Schedule{fields, zone, b.For}, nil
}

// Check tells whether the schedules of budgets can be read.
func Check(list cluster.DisruptionBudgets) error {
	for i := range list {
		if list[i].Cron == "" {
			continue
		}
		if _, err := New(&list[i]); err != nil {
			return err
		}
	}
	return nil
}

// Parse reads budgets, their schedules included.
func Parse(text string) (cluster.DisruptionBudgets, error) {
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
	last := s.next(now.Add(-s.length))
	if last.IsZero() || last.After(now) {
		return false, s.next(now).UTC()
	}
	for n := 0; n < mostStarts; n++ {
		after := s.next(last)
		if after.IsZero() || after.After(now) {
			break
		}
		last = after
	}
	return true, last.Add(s.length).UTC()
}

// farthest is how far ahead a start is looked for, as in the library.
const farthest = 5 * 366 * 24 * time.Hour

// next is the first start after a moment; zero: none in five years. It costs three steps for each day without a start.
func (s *Schedule) next(after time.Time) time.Time {
	t := after.In(s.zone).Truncate(time.Minute).Add(time.Minute)
	for end := t.Add(farthest); t.Before(end); {
		hour := t.Hour()
		switch {
		case !s.matchesDay(t) && hour < 22: // no change of a clock is larger than the two hours that are left
			t = t.Add(time.Duration(22-hour) * time.Hour)
		case !s.matchesDay(t) || s.fields.Hour&(1<<hour) == 0:
			t = t.Add(time.Duration(60-t.Minute()) * time.Minute)
		case s.fields.Minute&(1<<t.Minute()) == 0:
			t = t.Add(time.Minute)
		default:
			return t
		}
	}
	return time.Time{}
}

// matchesDay is cron's rule: where both the day of the month and the day of the week are named, one of them is enough.
func (s *Schedule) matchesDay(t time.Time) bool {
	const star = 1 << 63 // the library's mark of a field that names nothing
	f := s.fields
	ofMonth, ofWeek := f.Dom&(1<<t.Day()) != 0, f.Dow&(1<<t.Weekday()) != 0
	if f.Month&(1<<t.Month()) == 0 {
		return false
	}
	if (f.Dom|f.Dow)&star != 0 {
		return ofMonth && ofWeek
	}
	return ofMonth || ofWeek
}

// mostStarts bounds the starts that are looked at within one window. After them the end that is told is too early, which
// costs a round and changes no answer.
const mostStarts = 100
