package agent

import (
	"go/ast"
	"go/token"
	"os"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// converted are the packages whose identifiers follow docs/vocabulary.md. The list grows.
var converted = []string{
	"agent/binpack", "agent/decision", "agent/fit", "agent/plan",
	"agent/plan/internal/round", "agent/plan/internal/growth",
	"agent/plan/internal/purchase", "agent/plan/internal/scaleup",
	"agent/plan/internal/disruption", "agent/plan/internal/scaledown", "agent/plan/internal/explain",
}

// retired are words that have given way to a term of docs/vocabulary.md.
var retired = []string{
	"answer", "apart", "arriving", "asks", "atrest", "awaited", "axes", "axis", "believe", "blend", "blender", "bonds",
	"cargo", "cell", "cells", "company", "desk", "desks", "division", "doomed", "evacuate", "even", "feeds", "flees", "fluid",
	"forget", "gate", "goes", "greedily", "greedy", "ground", "herald", "hole", "homeless", "houses", "kept", "kinds", "lading", "ladder",
	"leaving", "lend", "lends", "leveled", "memo", "memos", "mend", "offers", "outlay", "owes", "passengers", "pin",
	"pledge", "pledged", "pledges", "programme", "promise", "promised", "promises", "promising", "raises", "relieved", "rides", "rungs",
	"seeker", "shelf", "slab", "soften", "spot", "spots", "stance", "steady", "stock", "stocks", "stride",
	"tally", "teller", "tied", "tie", "ties", "unmade", "unsteady", "vacate", "waiter", "want", "wants", "whole", "world",
}

// TestRetiredWords keeps retired words out of the names of the converted packages: of
// types, functions, methods, fields, constants and package variables.
func TestRetiredWords(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range sources(t) {
		if !slices.Contains(converted, s.pkg) {
			continue
		}
		seen[s.pkg] = true
		for _, id := range declared(s.ast) {
			if w := retiredIn(id.Name); w != "" {
				t.Errorf("%s declares %s: the word %q is retired, see docs/vocabulary.md", s.file, id.Name, w)
			}
		}
	}
	for _, pkg := range converted {
		if !seen[pkg] {
			t.Errorf("package %s has no files: the test looks in the wrong place", pkg)
		}
	}
}

// mostTerms bounds the page: more words of its own nobody learns.
const mostTerms = 30

// TestVocabularyPage: no retired word has become a term, and the page is short.
func TestVocabularyPage(t *testing.T) {
	page, err := os.ReadFile("../docs/vocabulary.md")
	if err != nil {
		t.Fatal(err)
	}
	terms := 0
	for line := range strings.Lines(string(page)) {
		cells := strings.Split(line, "|")
		if len(cells) < 4 || !strings.HasPrefix(strings.TrimSpace(cells[1]), "`") {
			continue
		}
		terms++
		for name := range strings.SplitSeq(strings.Trim(strings.TrimSpace(cells[1]), "`"), "`, `") {
			if w := retiredIn(name); w != "" {
				t.Errorf("docs/vocabulary.md: the term %s uses the retired word %q", name, w)
			}
		}
	}
	if terms < 20 {
		t.Errorf("only %d terms were found: the pattern no longer fits the page", terms)
	}
	if terms > mostTerms {
		t.Errorf("docs/vocabulary.md has %d rows, more than %d: use a word of the field, or say the meaning in a doc comment", terms, mostTerms)
	}
}

func TestRetiredWordsBite(t *testing.T) {
	for name, want := range map[string]string{"deskOf": "desk", "newShelf": "shelf", "TiedPods": "tied", "constrained": "", "wantsRoom": "wants", "unwanted": ""} {
		if got := retiredIn(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

// declared are the names that a file declares at package level, and those of fields and
// methods.
func declared(f *ast.File) (out []*ast.Ident) {
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			out = append(out, d.Name)
		case *ast.GenDecl:
			if d.Tok == token.IMPORT {
				continue
			}
			for _, s := range d.Specs {
				switch s := s.(type) {
				case *ast.ValueSpec:
					out = append(out, s.Names...)
				case *ast.TypeSpec:
					out = append(out, s.Name)
					ast.Inspect(s.Type, func(n ast.Node) bool {
						if st, ok := n.(*ast.StructType); ok {
							for _, field := range st.Fields.List {
								out = append(out, field.Names...)
							}
						}
						return true
					})
				}
			}
		}
	}
	return out
}

// retiredIn is the first retired word of a name in camel case; empty: there is none.
func retiredIn(name string) string {
	var words []string
	for i, r := range name {
		if i == 0 || unicode.IsUpper(r) {
			words = append(words, "")
		}
		words[len(words)-1] += string(unicode.ToLower(r))
	}
	for _, w := range words {
		if slices.Contains(retired, w) {
			return w
		}
	}
	return ""
}
