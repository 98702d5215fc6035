package agent

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestDocsNameRealFiles keeps the file and folder names in the manual true: every
// `word` in back quotes that starts with a folder of this repository must exist.
func TestDocsNameRealFiles(t *testing.T) {
	root := ".."
	pages, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil || len(pages) == 0 {
		t.Fatalf("no pages: %v", err)
	}
	pages = append(pages, filepath.Join(root, "README.md"))
	quoted := regexp.MustCompile("`([a-z.]+/[A-Za-z0-9_./-]+)`")
	checked := 0
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range quoted.FindAllStringSubmatch(string(text), -1) {
			top, _, _ := strings.Cut(m[1], "/")
			if st, err := os.Stat(filepath.Join(root, top)); err != nil || !st.IsDir() || top == "dist" || top == "bin" {
				continue // not a path of ours: a module, a Kubernetes object, a tag; or what make builds
			}
			checked++
			if _, err := os.Stat(filepath.Join(root, m[1])); err != nil {
				t.Errorf("%s names %s, which does not exist", filepath.Base(page), m[1])
			}
		}
	}
	if checked < 30 {
		t.Errorf("only %d names were checked: the pattern no longer fits the pages", checked)
	}
}
