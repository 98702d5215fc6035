package agent

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestDependenciesAreArgued: every module that the product requires itself has its
// line in docs/dependencies.md.
func TestDependenciesAreArgued(t *testing.T) {
	mod, err := os.ReadFile("../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../docs/dependencies.md")
	if err != nil {
		t.Fatal(err)
	}
	require := regexp.MustCompile(`(?m)^\t(\S+) v\S+$`)
	found := 0
	for _, m := range require.FindAllStringSubmatch(string(mod), -1) {
		found++
		name := m[1]
		// The SDK's many modules are argued for as one.
		if rest, ok := strings.CutPrefix(name, "github.com/aws/aws-sdk-go-v2/"); ok {
			name = "`" + rest[strings.LastIndex(rest, "/")+1:] + "`"
		}
		if !strings.Contains(string(page), name) {
			t.Errorf("docs/dependencies.md does not argue for %s", m[1])
		}
	}
	if found < 10 {
		t.Errorf("only %d requirements found: the pattern no longer fits go.mod", found)
	}
}
