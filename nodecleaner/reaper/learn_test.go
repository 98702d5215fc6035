package reaper

import (
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// TestInstalled: the first start is kept, an older version's ledger tells of its own, and a
// clock that was ahead does not hold for ever.
func TestInstalled(t *testing.T) {
	for name, c := range map[string]struct{ was, first, want time.Time }{
		"a new memory":       {time.Time{}, time.Time{}, noon},
		"kept":               {noon.Add(-time.Hour), noon.Add(-2 * time.Hour), noon.Add(-time.Hour)},
		"an older version's": {time.Time{}, noon.Add(-48 * time.Hour), noon.Add(-48 * time.Hour)},
		"ahead":              {noon.Add(time.Hour), time.Time{}, noon},
	} {
		m := Memory{Installed: c.was}
		if !c.first.IsZero() {
			m.Seen = map[cluster.InstanceID]Record{id(0): {First: c.first}, id(1): {First: c.first.Add(time.Minute)}, id(2): {}}
		}
		if m.install(noon); !m.Installed.Equal(c.want) {
			t.Errorf("%s: %s, want %s", name, m.Installed, c.want)
		}
	}
}
