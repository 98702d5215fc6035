package await

import (
	"testing"
	"time"
)

// TestElapsed: a host with other work is waited for four times as long as an idle one, and no longer.
func TestElapsed(t *testing.T) {
	for _, c := range []struct{ wall, stalled, want time.Duration }{
		{4 * time.Minute, 0, 4 * time.Minute}, {16 * time.Minute, 16 * time.Minute, 4 * time.Minute}, {8 * time.Minute, 4 * time.Minute, 5 * time.Minute},
		{time.Minute, time.Hour, 15 * time.Second}, {time.Minute, -time.Hour, time.Minute},
	} {
		if got := counted(c.wall, c.stalled); got != c.want {
			t.Errorf("%s, of which %s stalled: %s, want %s", c.wall, c.stalled, got, c.want)
		}
	}
	for text, want := range map[string]time.Duration{
		"some avg10=98.29 avg60=97.98 avg300=96.87 total=46416035534\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=7\n": 46416035534 * time.Microsecond, "": 0, "some avg10=0.00\n": 0,
	} {
		if got := parseStalled(text); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
	for stalled, want := range map[time.Duration]string{
		time.Minute:     "4m0s",
		4 * time.Minute: "4m0s, of which processes waited for a processor 100 %: this host is too busy, try again when it has less to do",
	} {
		if got := said(4*time.Minute, stalled); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
