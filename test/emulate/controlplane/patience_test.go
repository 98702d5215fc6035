package controlplane

import (
	"testing"
	"time"
)

// TestPatience: the environment says how long the parts may take, and a word that is no duration starts nothing.
func TestPatience(t *testing.T) {
	for set, want := range map[string]time.Duration{"": 2 * time.Minute, "10m": 10 * time.Minute, "0s": 0, "-1m": 0, "600": 0} {
		t.Setenv("AUTOSCALER_TEST_PATIENCE", set)
		if got, err := Patience(); got != want || (err == nil) != (want > 0) {
			t.Errorf("%q: %s, %v", set, got, err)
		}
		if want == 0 {
			if _, err := Start(t.Context(), Options{Dir: t.TempDir(), Bin: Bin{Dir: "none"}}); err == nil {
				t.Errorf("%q starts a control plane", set)
			}
		}
	}
}
