package systemd

import (
	"os"
	"strings"
	"testing"
)

// block is the first fenced block of commands behind a heading of a document.
func block(t *testing.T, page, heading string) []string {
	t.Helper()
	text, err := os.ReadFile("../../../" + page)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(text), "\n"+heading+"\n")
	if !found {
		t.Fatalf("%s has no heading %q", page, heading)
	}
	rest, _, _ = strings.Cut(rest, "\n#") // the next heading; a comment in a block is indented by its command
	_, rest, found = strings.Cut(rest, "\n```\n")
	lines, _, closed := strings.Cut(rest, "\n```\n")
	if !found || !closed {
		t.Fatalf("%s has no commands behind %q", page, heading)
	}
	return strings.Split(lines, "\n")
}

// verbatim is a command of a document, run where a reader would run it. The placeholder VERSION
// is what the file is called by.
func (h *host) verbatim(line string) string {
	return "cd /root && " + strings.ReplaceAll(line, "VERSION", h.version)
}

// elsewhere are commands of the documents that need what a container does not have.
var elsewhere = map[string]string{"aws ": "the AWS command line and an account"}

// documents: the commands of the README and of docs/install.md work as they are written.
func (h *host) documents() {
	readme := block(h.t, "README.md", "## Install it on a cluster")
	if len(readme) > 6 {
		h.t.Errorf("the README installs with %d commands, at most 6", len(readme))
	}
	done := 0
	for _, lines := range [][]string{readme, block(h.t, "docs/install.md", "## 2. The cloud"), block(h.t, "docs/install.md", "## 3. Install and start"), block(h.t, "docs/install.md", "## 4. The workers' user data"), block(h.t, "docs/install.md", "## 5. Changes")} {
		for _, line := range lines {
			why := ""
			for start, needs := range elsewhere {
				if strings.HasPrefix(line, start) {
					why = needs
				}
			}
			if why != "" {
				h.t.Logf("not here, it needs %s: %s", why, line)
				continue
			}
			if out, err := h.try(h.verbatim(line)); err != nil {
				h.t.Errorf("%s: %v\n%s", line, err, out)
			}
			done++
		}
	}
	if done < 9 {
		h.t.Errorf("only %d commands were run", done)
	}
	h.until("acting", "autoscaler-agent status | grep -q 'acting *yes'")
}
