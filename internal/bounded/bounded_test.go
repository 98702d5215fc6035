package bounded

import (
	"testing"
	"time"
)

func TestIn(t *testing.T) {
	for value, want := range map[int32]int32{0: 15, 1: 1, 600: 600, 601: 15, 1<<31 - 1: 15, -5: 15} {
		if got, wrong := In("x", value, 1, 600, 15); got != want || (wrong == "") != (value >= 1 && value <= 600) {
			t.Errorf("%d counts as %d: %q", value, got, wrong)
		}
	}
}

// TestTimes: a time of the far future counts as now, wherever it is; others stay.
func TestTimes(t *testing.T) {
	now := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	far, soon := now.Add(Ahead+1), now.Add(Ahead)
	type inner struct{ At, Zero time.Time }
	v := struct {
		Far, Soon, Past time.Time
		List            []time.Time
		In              map[string]inner
		Deep            map[string]map[string][]inner
		To              *inner
		Nothing         *inner
		Any             any
		Wait            time.Duration
	}{far, soon, now.Add(-time.Hour), []time.Time{far, soon}, map[string]inner{"a": {At: far}, "b": {At: soon}},
		map[string]map[string][]inner{"a": {"b": {{At: far}}}}, &inner{At: far}, nil, far, time.Hour}
	if wrong := Times(&v, now); wrong != "5 times in it are more than 24h0m0s in the future: they count as now" {
		t.Error(wrong)
	}
	for what, at := range map[string]time.Time{"field": v.Far, "list": v.List[0], "map": v.In["a"].At, "deep": v.Deep["a"]["b"][0].At, "pointer": v.To.At} {
		if !at.Equal(now) {
			t.Errorf("%s: %s", what, at)
		}
	}
	if !v.Soon.Equal(soon) || !v.List[1].Equal(soon) || !v.In["b"].At.Equal(soon) || !v.In["a"].Zero.IsZero() || !v.Past.Equal(now.Add(-time.Hour)) {
		t.Errorf("%+v", v)
	}
	if wrong := Times(&v, now); wrong != "" {
		t.Error(wrong)
	}
}
