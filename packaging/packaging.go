// Package packaging holds what an operator does about each rule, by the file from which the
// journal catalog is made, so that the page and status give the same remedy as the journal.
// Small and apart: go:embed reads files of its own directory only. It refuses to hold any other
// file of a package: those are tools/dist's.
package packaging

import (
	_ "embed"
	"strings"
)

//go:embed remedies.txt
var remedies string

// Remedy is what an operator does about a rule, in words for a screen that shows the reason
// above; empty: the rule asks for nothing, or there is no such rule.
func Remedy(rule string) string {
	for line := range strings.Lines(remedies) {
		id, text, _ := strings.Cut(strings.TrimSpace(line), " ")
		if id == rule && rule != "#" && text != "-" {
			return strings.ReplaceAll(text, "field WHY", "reason above")
		}
	}
	return ""
}
