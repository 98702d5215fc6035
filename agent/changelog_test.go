package agent

import (
	"cmp"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var versionHeading = regexp.MustCompile(`^## (\d+)\.(\d+)\.(\d+)(?:-rc\.(\d+))?( \(20\d\d-\d\d-\d\d\))?$`)

// lineLimit is how much somebody who upgrades reads of one change.
const lineLimit = 800

// TestChangelog: the heading for new lines is the first one, versions fall below it, only the
// newest has no day yet, and no line is longer than somebody who upgrades reads.
func TestChangelog(t *testing.T) {
	text, err := os.ReadFile("../CHANGELOG.md")
	if err != nil {
		t.Fatal(err)
	}
	var headings []string
	for i, line := range strings.Split(string(text), "\n") {
		switch {
		case strings.HasPrefix(line, "## "):
			headings = append(headings, line)
		case len(line) > lineLimit && len(headings) == 1:
			t.Errorf("line %d has %d characters, more than %d: say what changes for the user, the reasons are in the commit", i+1, len(line), lineLimit)
		case len(line) > 0 && line[0] != '-' && !strings.HasPrefix(line, "### ") && len(headings) == 1:
			t.Errorf("line %d: each change is one line that begins with a dash, under a heading of ###: %q", i+1, line)
		}
	}
	if len(headings) < 2 || headings[0] != "## Unreleased" {
		t.Fatalf("the headings are %q, want ## Unreleased first", headings)
	}
	var last []int
	for i, heading := range headings[1:] {
		m := versionHeading.FindStringSubmatch(heading)
		if m == nil || m[5] == "" && i > 0 {
			t.Errorf("%q is no version with its day, as ## 0.2.0 (2027-01-15)", heading)
			continue
		}
		var number []int
		if m[4] == "" {
			m[4] = "1000000" // a release is newer than its candidates
		}
		for _, part := range m[1:5] {
			n, err := strconv.Atoi(part)
			if err != nil {
				t.Fatal(err)
			}
			number = append(number, n)
		}
		if last != nil && slices.CompareFunc(number, last, cmp.Compare[int]) >= 0 {
			t.Errorf("%q is not older than the version above it", heading)
		}
		last = number
	}
}
