package attest

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestForgedChallengesUseNothingUp: requests whose challenge this listener did not make take nothing of the allowance
// that all machines have together, and one that the allowance refuses may come again with its challenge.
func TestForgedChallengesUseNothingUp(t *testing.T) {
	s, err := New(Config{}, Deps{Clusters: func(context.Context) ([]string, error) { return []string{"mine"}, nil }})
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 11, 1, 8, 0, 0, 0, time.UTC)
	s.now = func() time.Time { return now }
	source := 0
	with := func(nonce string) Verdict { // each from an address of its own
		source++
		_, v := s.beforeSTS(t.Context(), Request{Cluster: "mine", Date: now.Format(dateFormat), Nonce: nonce}, fmt.Sprintf("10.0.%d.%d:1", source>>8, source&255))
		return v
	}
	for n := range 2 * burst {
		if v := with(fmt.Sprintf("%080x", n)); v.Rule != "A2" {
			t.Fatalf("a forged challenge: %+v, want A2", v)
		}
	}
	nonces := make([]string, burst+1)
	for n := range nonces {
		if nonces[n], err = s.challenges.issue(now); err != nil {
			t.Fatal(err)
		}
	}
	for n, nonce := range nonces {
		want := ""
		if n == burst {
			want = "A0"
		}
		if v := with(nonce); v.Rule != want {
			t.Fatalf("challenge %d of %d: %+v, want rule %q", n+1, len(nonces), v, want)
		}
	}
	now = now.Add(time.Second)
	if v := with(nonces[burst]); v.Rule != "" {
		t.Errorf("the challenge that was refused for the allowance, a second later: %+v", v)
	}
	if v := with(nonces[0]); v.Rule != "A2" || !strings.Contains(v.Why, "used before") {
		t.Errorf("a challenge for the second time: %+v, want A2", v)
	}
}
