package config

import (
	"strings"
	"testing"
	"time"
)

// TestManPages: each variable and each field of the schema has its entry, and no line of a text is
// taken for a request.
func TestManPages(t *testing.T) {
	pages := ManPages(time.Unix(0, 0).UTC(), "autoscaler-agent 1.2.3")
	if len(pages) != 2 {
		t.Fatalf("%d pages", len(pages))
	}
	for _, v := range Variables() {
		if !strings.Contains(pages["agent.env.5"], "\n.TP\n\\fB"+v.Name+"\\fP=") {
			t.Errorf("%s has no entry", v.Name)
		}
	}
	for _, f := range groupsFields() {
		if !strings.Contains(pages["groups.yaml.5"], "\\fB"+roff(f.Path)+"\\fP (") {
			t.Errorf("%s has no entry", f.Path)
		}
	}
	for name, page := range pages {
		for line := range strings.Lines(page) {
			if request := strings.TrimSpace(line); strings.HasPrefix(request, ".") && !strings.HasPrefix(request, ".SH ") && !strings.HasPrefix(request, ".TH ") && request != ".TP" && request != ".nh" && request != ".ad l" {
				t.Errorf("%s: %q", name, line)
			}
		}
	}
}
