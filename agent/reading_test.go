package agent

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// tenMinutes is how many words a reader takes in ten minutes, at 250 a minute.
const tenMinutes = 2500

// lookedUp are the pages longer than that, and how somebody finds what he looks for in one without reading the rest.
var lookedUp = map[string]string{
	"configuration.md":  "by the name of a setting",
	"scaling-rules.md":  "for developers: by rule ID",
	"security-rules.md": "for developers: by rule ID",
}

var targets = regexp.MustCompile(`\]\([^)]*\)`)

// wordsToRead counts what is read of a page: no examples, no addresses of links, no bars of tables.
func wordsToRead(page string) int {
	n := 0
	for word := range strings.FieldsSeq(targets.ReplaceAllString(fence.ReplaceAllString(page, ""), "]")) {
		if strings.ContainsFunc(word, func(r rune) bool { return notInIDs.FindString(string(r)) == "" && r != '-' }) {
			n++
		}
	}
	return n
}

// TestPagesFitTenMinutes: every page of the manual is read in ten minutes, or is one of the few in which a reader looks
// something up (issue 45, item 7).
func TestPagesFitTenMinutes(t *testing.T) {
	pages, err := filepath.Glob("../docs/*.md")
	providers, bad := filepath.Glob("../docs/providers/*.md")
	if err != nil || bad != nil || len(pages) < 20 || len(providers) < 5 {
		t.Fatalf("%d and %d pages: %v, %v", len(pages), len(providers), err, bad)
	}
	for _, page := range append(pages, providers...) {
		raw, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		n, name := wordsToRead(string(raw)), filepath.Base(page)
		switch why, listed := lookedUp[name]; {
		case n > tenMinutes && !listed:
			t.Errorf("%s has %d words, more than %d: move what only developers need to a page of theirs (docs/changing.md)", name, n, tenMinutes)
		case n <= tenMinutes && listed:
			t.Errorf("%s has %d words and needs no exception (%s)", name, n, why)
		}
	}
}

func TestWordsToRead(t *testing.T) {
	page := "# One heading\n\n| `three` | four |\n|---|---|\n\n```\nnot read\n```\n[five](not-read.md) - six.\n"
	if n := wordsToRead(page); n != 6 {
		t.Errorf("%d words", n)
	}
}
