package groups

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// Schedule is some hours on some days of the week, in a time zone.
type Schedule struct {
	Days     [7]bool // by time.Weekday
	From, To int     // minutes since midnight; To at or before From is on the next day
	Zone     *time.Location
}

// horizon is how far ahead windows are worked out: the farthest that a round could
// have to wake for is a week away.
const horizon = 8

// windows are the schedule's times from the day before now on. A clock that is put
// forward or back moves them as it moves the operator's day.
func (s *Schedule) windows(now time.Time) []cluster.Window {
	var out []cluster.Window
	y, m, d := now.In(s.Zone).Date()
	for i := -1; i <= horizon; i++ {
		from := time.Date(y, m, d+i, s.From/60, s.From%60, 0, 0, s.Zone)
		if !s.Days[time.Date(y, m, d+i, 12, 0, 0, 0, s.Zone).Weekday()] {
			continue
		}
		next := 0
		if s.To <= s.From {
			next = 1
		}
		to := time.Date(y, m, d+i+next, s.To/60, s.To%60, 0, 0, s.Zone)
		if to.After(now) && to.After(from) {
			out = append(out, cluster.Window{From: from.UTC(), To: to.UTC()})
		}
	}
	return out
}

var dayNames = []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}

// parseDays reads "mon-fri", "sat,sun", "daily" or "fri-mon".
func parseDays(text string) (days [7]bool, err error) {
	day := func(name string) (int, error) {
		for i, n := range dayNames {
			if name = strings.ToLower(strings.TrimSpace(name)); name == n || len(name) > 3 && strings.HasPrefix(strings.ToLower(time.Weekday(i).String()), name) {
				return i, nil
			}
		}
		return 0, fmt.Errorf("%q is no day: write for example mon-fri, or sat,sun, or daily", name)
	}
	for item := range strings.SplitSeq(text, ",") {
		if strings.TrimSpace(strings.ToLower(item)) == "daily" {
			return [7]bool{true, true, true, true, true, true, true}, nil
		}
		first, last, isRange := strings.Cut(item, "-")
		from, err := day(first)
		if err != nil {
			return days, err
		}
		to := from
		if isRange {
			if to, err = day(last); err != nil {
				return days, err
			}
		}
		for i := from; ; i = (i + 1) % 7 {
			days[i] = true
			if i == to {
				break
			}
		}
	}
	return days, nil
}

// parseHours reads "07:30-19:00"; the end may be on the next day, and 24:00 is
// midnight.
func parseHours(text string) (from, to int, err error) {
	a, b, ok := strings.Cut(text, "-")
	if from, err = parseClock(a); err == nil && ok {
		to, err = parseClock(b)
	}
	if err != nil || !ok || from == 24*60 {
		return 0, 0, fmt.Errorf("%q are no hours: write for example 07:30-19:00", text)
	}
	if from == to {
		return 0, 0, fmt.Errorf("%q has no length: write for example 07:30-19:00, or 00:00-24:00 for the whole day", text)
	}
	return from, to % (24 * 60), nil
}

func parseClock(text string) (int, error) {
	h, m, ok := strings.Cut(strings.TrimSpace(text), ":")
	hour, err1 := strconv.Atoi(h)
	minute, err2 := strconv.Atoi(m)
	if !ok || err1 != nil || err2 != nil || len(m) != 2 || hour < 0 || minute < 0 || minute > 59 || hour*60+minute > 24*60 {
		return 0, fmt.Errorf("%q is no time of day", text)
	}
	return hour*60 + minute, nil
}
