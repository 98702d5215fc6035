package schedule

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// TestAgainstTheLibrary: 400 drawn schedules, each played minute by minute over both changes of its zone's clock. A
// minute is a start when the library says that it is the next one after the minute before; a window is open for its length from
// each start on.
func TestAgainstTheLibrary(t *testing.T) {
	const seed = 43
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for n := range 400 {
		zone, changes := someZone(r)
		b := cluster.DisruptionBudget{Cron: someCron(r), For: time.Duration(1+r.IntN(12*60)) * time.Minute, Zone: zone}
		s, err := New(&b)
		if err != nil {
			t.Fatalf("%s: %v", &b, err)
		}
		for _, change := range changes {
			from := change.Add(-8 * time.Hour)
			if fault := compare(&s, &b, from, from.Add(24*time.Hour)); fault != "" {
				t.Fatalf("schedule %d, %s: %s", n, &b, fault)
			}
		}
	}
}

func pick[T any](r *rand.Rand, from ...T) T { return from[r.IntN(len(from))] }

// someZone is a time zone, whose clock is changed by an hour and not at midnight (else the library is wrong, see TestClockChanges), with the moments at which its clock changes in 2026 and 2027.
func someZone(r *rand.Rand) (string, []time.Time) {
	name := pick(r, "Europe/Berlin", "America/New_York", "Pacific/Auckland", "Australia/Adelaide", "UTC", "Asia/Kolkata")
	zone, err := time.LoadLocation(name)
	if err != nil {
		panic(err)
	}
	var out []time.Time
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for ; at.Year() < 2027; at = at.Add(time.Hour) {
		_, before := at.In(zone).Zone()
		if _, after := at.Add(time.Hour).In(zone).Zone(); before != after {
			out = append(out, at.Add(time.Hour))
		}
	}
	if len(out) == 0 {
		out = append(out, time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC))
	}
	return name, out
}

func someCron(r *rand.Rand) string {
	return fmt.Sprintf("%s %s %s %s %s",
		pick(r, "0", "30", "*/20", "15,45", fmt.Sprint(r.IntN(60))),
		pick(r, "*", "2", "0", "1-3", "22", "*/6", fmt.Sprint(r.IntN(24))),
		pick(r, "*", "*", "*", "1-15", "*/2"),
		pick(r, "*", "*", "*", "mar-apr,oct-nov"),
		pick(r, "*", "*", "*", "mon-fri", "sun", "0,6"))
}

// compare asks the schedule at each minute, and compares with the starts that the library tells for each minute since the
// longest window could have begun. It says the first difference.
func compare(s *Schedule, b *cluster.DisruptionBudget, from, to time.Time) string {
	parsed, err := cron.ParseStandard(b.Cron)
	if err != nil {
		return err.Error()
	}
	var end time.Time // of the window that is open
	var last bool
	var announced time.Time // by an answer that was closed: the next opening
	for at := from.Add(-b.For - time.Minute).In(s.zone); at.Before(to); at = at.Add(time.Minute) {
		start := parsed.Next(at.Add(-time.Minute)).Equal(at)
		if ends := at.Equal(end); at.Before(from) || !start && !ends && at.Minute()%10 != 9 { // the edges, and every tenth minute
			if start {
				end = at.Add(b.For)
			}
			continue
		}
		if start {
			end = at.Add(b.For)
		}
		want := at.Before(end)
		open, next := s.At(at)
		switch {
		case open != want:
			return fmt.Sprintf("at %s it is open: %v, and a window is there: %v", at, open, want)
		case open && !next.Equal(end):
			return fmt.Sprintf("at %s it tells the end %s, and it is %s", at, next, end)
		case open && !last && !announced.IsZero() && !announced.Equal(at):
			return fmt.Sprintf("it opened at %s, and told %s before", at, announced)
		case !open && !next.IsZero() && !next.After(at):
			return fmt.Sprintf("at %s it tells an opening that is over: %s", at, next)
		}
		last, announced = open, next
		if open {
			announced = time.Time{}
		}
	}
	return ""
}

// TestClockChanges says by example what a window does when the clock changes.
func TestClockChanges(t *testing.T) {
	for _, x := range []struct {
		name, cron, at string
		length         time.Duration
		open           bool
		next           string
	}{
		{"a day without midnight (the library takes 6 September for an odd day)", "0 1 */2 * *", "2026-09-06T04:00:00Z America/Santiago", time.Hour, false, "2026-09-07T04:00:00Z"},
		{"half an hour is shown twice (the library leaves the start out)", "0 2 * * *", "2026-04-04T15:31:00Z Australia/Lord_Howe", time.Hour, true, "2026-04-04T16:30:00Z"},
		{"and its first hour", "0 1 * * *", "2026-09-06T04:00:00Z America/Santiago", time.Hour, true, "2026-09-06T05:00:00Z"},
		{"a start that the clock skips is left out", "30 2 * * *", "2026-03-29T01:45:00Z", time.Hour, false, "2026-03-30T00:30:00Z"},
		{"a start that the clock shows twice begins twice", "30 2 * * *", "2026-10-25T01:40:00Z", 20 * time.Minute, true, "2026-10-25T01:50:00Z"},
		{"a window over the change is as long as ever", "0 22 * * *", "2026-03-29T03:59:00Z", 7 * time.Hour, true, "2026-03-29T04:00:00Z"},
		{"and is over then", "0 22 * * *", "2026-03-29T04:00:00Z", 7 * time.Hour, false, "2026-03-29T20:00:00Z"},
	} {
		moment, zone, _ := strings.Cut(x.at, " ")
		if zone == "" {
			zone = "Europe/Berlin"
		}
		s, err := New(&cluster.DisruptionBudget{Cron: x.cron, For: x.length, Zone: zone})
		if err != nil {
			t.Fatal(err)
		}
		at, err := time.Parse(time.RFC3339, moment)
		if err != nil {
			t.Fatal(err)
		}
		open, next := s.At(at)
		if open != x.open || next.Format(time.RFC3339) != x.next {
			t.Errorf("%s: open %v, next %s", x.name, open, next.Format(time.RFC3339))
		}
	}
}

// TestAt: on which days and at which hours a window opens (2026-01-05 is a Monday), and when the one that is open ends.
func TestAt(t *testing.T) {
	for name, x := range map[string]struct {
		cron, at string
		length   time.Duration
		open     bool
		next     string // empty: never
	}{
		"a day of the week":                 {"0 9 * * mon", "2026-01-05T09:30:00Z", time.Hour, true, "2026-01-05T10:00:00Z"},
		"another day of the week":           {"0 9 * * mon", "2026-01-06T09:30:00Z", time.Hour, false, "2026-01-12T09:00:00Z"},
		"another day of the week, late":     {"0 23 * * mon", "2026-01-06T23:30:00Z", time.Hour, false, "2026-01-12T23:00:00Z"},
		"another day of the month":          {"0 9 1 * *", "2026-01-05T09:30:00Z", time.Hour, false, "2026-02-01T09:00:00Z"},
		"either day, and it is the month's": {"0 9 6 * mon", "2026-01-06T09:30:00Z", time.Hour, true, "2026-01-06T10:00:00Z"},
		"either day, and it is the week's":  {"0 9 6 * mon", "2026-01-05T09:30:00Z", time.Hour, true, "2026-01-05T10:00:00Z"},
		"either day, and it is none":        {"0 9 6 * mon", "2026-01-07T09:30:00Z", time.Hour, false, "2026-01-12T09:00:00Z"},
		"another month":                     {"0 9 * mar *", "2026-02-05T09:30:00Z", time.Hour, false, "2026-03-01T09:00:00Z"},
		"no such day":                       {"0 9 30 2 *", "2026-01-05T09:30:00Z", time.Hour, false, ""},
		"no other one for eight years":      {"0 9 29 2 *", "2096-02-29T09:30:00Z", time.Hour, true, "2096-02-29T10:00:00Z"},
		"the last of several that are open": {"*/20 * * * *", "2026-01-05T09:50:00Z", time.Hour, true, "2026-01-05T10:40:00Z"},
	} {
		s, err := New(&cluster.DisruptionBudget{Cron: x.cron, For: x.length})
		if err != nil {
			t.Fatal(err)
		}
		at, err := time.Parse(time.RFC3339, x.at)
		if err != nil {
			t.Fatal(err)
		}
		open, next := s.At(at)
		told := ""
		if !next.IsZero() {
			told = next.Format(time.RFC3339)
		}
		if open != x.open || told != x.next {
			t.Errorf("%s: open %v, next %q; want %v and %q", name, open, told, x.open, x.next)
		}
	}
}

// TestParse reads what an operator may write, and says what is wrong with the rest.
func TestParse(t *testing.T) {
	for _, good := range []string{"", "10%", "0", "2 of drifted,expired", "20% at 0 22 * * mon-fri for 6h0m0s in Europe/Berlin",
		"10%; 0 of idle at 0 9 * * mon-fri for 8h0m0s", "100% of requested at @daily for 1h0m0s"} {
		list, err := Parse(good)
		if err != nil {
			t.Errorf("%s: %v", good, err)
		}
		var again []string
		for i := range list {
			again = append(again, list[i].String())
		}
		if got := strings.Join(again, "; "); got != good {
			t.Errorf("%q is read as %q", good, got)
		}
	}
	for bad, want := range map[string]string{
		"ten": "begins with a number", "-1": "begins with a number", "101%": "up to 100%",
		"1 of lazy": "no reason; the reasons are requested, sick", "1 at 0 9 * * *": "a schedule and a duration", "1 for 8h": "a schedule and a duration",
		"1 in UTC": "a zone only beside them", "1 at 0 9 * * * for 8": "no duration", "1 at 0 9 * * * for 1s": "no duration",
		"1 at 0 9 * * for 8h": "no schedule", "1 at 0 25 * * * for 8h": "no schedule", "1 at @every 1h for 8h": "no time of day",
		"1 at 0 9 * * * for 8h in Berlin": "no time zone", "1 at 0 9 * * * for 8h in Local": "no time zone",
		"1 at TZ=UTC 0 9 * * * for 8h":                  "behind in",
		"1 at TZ=Berlin 0 9 * * * for 8h":               "behind in",
		"1 at 0 9 * * * for 8h; 1 at 0 25 * * * for 8h": "no schedule",
		"0 of idle at 0 9 * * mon-fri for 8h":           "no node would ever go because it is idle",
	} {
		if _, err := Parse(bad); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", bad, err, want)
		}
	}
}
