package packaging

import (
	"strings"
	"testing"
)

// TestRemedy: a rule has its own line only, "-" is none, and the words of the journal's fields
// are those of a screen.
func TestRemedy(t *testing.T) {
	for rule, want := range map[string]string{
		"F6": "Lower the pod's requests, or offer a group with larger machines.",
		"G0": "Look at the cloud's answer in the reason above, and give the group back to the configuration.",
		"R0": "", "R": "", "": "", "#": "", "R777": "",
	} {
		if got := Remedy(rule); got != want {
			t.Errorf("%s: %q, want %q", rule, got, want)
		}
	}
	for line := range strings.Lines(remedies) {
		id, _, _ := strings.Cut(line, " ")
		if strings.Contains(Remedy(id), "WHY") {
			t.Errorf("%s names a field of the journal: %s", id, Remedy(id))
		}
	}
}
