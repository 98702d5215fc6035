package text

import (
	"strings"
	"testing"
)

// TestTable: columns are aligned by characters, not bytes, and no line ends with a blank.
func TestTable(t *testing.T) {
	var b strings.Builder
	table(&b, []string{"GROUP", "MAX", "WHY"}, [][]string{{"wörkers", "5", ""}, {"a", "100", "full"}})
	want := "GROUP    MAX  WHY\nwörkers  5\na        100  full\n"
	if b.String() != want {
		t.Errorf("%q, want %q", b.String(), want)
	}
}
