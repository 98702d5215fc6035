package agent

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	fence    = regexp.MustCompile("(?ms)^ *```.*?^ *```")
	inline   = regexp.MustCompile("`[^`\n]*`")
	toPage   = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading  = regexp.MustCompile(`(?m)^#{1,6} +(.+?)\s*$`)
	notInIDs = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
	named    = regexp.MustCompile(`\bdocs/[a-z0-9/_-]+(?:\.md\b)(?:#[a-z0-9-]+)?`)
)

// anchors are the IDs that a reader of Markdown gives to a page's headings.
func anchors(page string) map[string]bool {
	ids := map[string]bool{}
	for _, m := range heading.FindAllStringSubmatch(fence.ReplaceAllString(page, ""), -1) {
		text := regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`).ReplaceAllString(m[1], "$1")
		id := strings.ReplaceAll(notInIDs.ReplaceAllString(strings.ToLower(text), ""), " ", "-")
		for n, base := 1, id; ids[id]; n++ {
			id = base + "-" + string(rune('0'+n))
		}
		ids[id] = true
	}
	return ids
}

// fault says what is wrong with a link from one file of the repository: "" where the file and the
// anchor exist.
func fault(root, from, link string) string {
	path, anchor, _ := strings.Cut(link, "#")
	target := filepath.Join(root, from)
	if path != "" {
		target = filepath.Join(root, filepath.Dir(from), path)
	}
	text, err := os.ReadFile(target)
	if st, bad := os.Stat(target); bad == nil && st.IsDir() && anchor == "" {
		return ""
	}
	switch {
	case err != nil:
		return "there is no such file"
	case anchor != "" && strings.HasSuffix(target, ".md") && !anchors(string(text))[anchor]:
		return "the page has no such heading"
	}
	return ""
}

// TestLinks: each link of each page leads to a file and a heading that exist, and each page that
// a program's text, a unit or an example names is there.
func TestLinks(t *testing.T) {
	const root = ".."
	out, err := exec.Command("git", "-C", root, "ls-files").Output()
	if err != nil {
		t.Fatal(err)
	}
	links, names := 0, 0
	for _, file := range strings.Fields(string(out)) {
		data, err := os.ReadFile(filepath.Join(root, file))
		if err != nil || strings.Contains(file, "testdata/") || strings.HasSuffix(file, "_test.go") {
			continue // a file that was just removed; a text of a test
		}
		if strings.HasSuffix(file, ".md") {
			text := inline.ReplaceAllString(fence.ReplaceAllString(string(data), ""), "")
			for _, m := range toPage.FindAllStringSubmatch(text, -1) {
				if strings.Contains(m[1], "://") || strings.HasPrefix(m[1], "mailto:") {
					continue
				}
				links++
				if why := fault(root, file, m[1]); why != "" {
					t.Errorf("%s links to %s: %s", file, m[1], why)
				}
			}
		}
		for _, name := range named.FindAllString(string(data), -1) {
			names++
			if why := fault(root, "x", name); why != "" {
				t.Errorf("%s names %s: %s", file, name, why)
			}
		}
	}
	if links < 100 || names < 30 {
		t.Errorf("only %d links and %d names were looked at", links, names)
	}
}

// TestLinkFaults: the test above finds what is wrong.
func TestLinkFaults(t *testing.T) {
	for link, want := range map[string]bool{
		"docs/install.md": false, "docs/install.md#1-the-package": false, "docs": false, "README.md": false,
		"docs/instal.md": true, "docs/install.md#the-package": true, "docs/nowhere": true,
	} {
		if why := fault("..", "x", link); (why != "") != want {
			t.Errorf("%s: %q", link, why)
		}
	}
}
