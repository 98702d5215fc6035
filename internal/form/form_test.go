package form

import (
	"testing"

	"github.com/autoscaler-agent/autoscaler-agent/internal/testing/oddvalues"
)

// TestForms: each form takes and refuses what the dictionary says of it, and says what to write.
func TestForms(t *testing.T) {
	for name := range forms {
		if len(oddvalues.Taken(name)) == 0 || len(oddvalues.Refused(name)) == 0 {
			t.Errorf("%s is not in the dictionary of package oddvalues", name)
		}
		for _, text := range oddvalues.Taken(name) {
			if remedy := Judge(name, text); remedy != "" {
				t.Errorf("%s %q: write %s", name, text, remedy)
			}
		}
		for _, text := range oddvalues.Refused(name) {
			if Judge(name, text) == "" {
				t.Errorf("%s takes %q", name, text)
			}
		}
	}
}
