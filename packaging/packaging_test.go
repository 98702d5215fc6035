package packaging

import (
	"strings"
	"testing"
)

// TestRemedy: a rule has its own line only, "-" is none, and the words of the journal's fields
// are those of a screen.
func TestRemedy(t *testing.T) {
	for rule, want := range map[string]string{
		"U7": "Raise the group's maximum, if it is meant to be larger.",
		"U9": "The cause is in the reason above. The group is tried again by itself when the backoff ends.",
		"U1": "", "U": "", "": "", "#": "", "U777": "",
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
