package rules

import (
	"strings"
	"unicode/utf8"
)

// This file bounds what a requester's own words take in a verdict, in the journal and in
// an Event. It is as pure as decide.go.

const (
	// whyBytes is the longest text of a verdict: a request of 64 KiB may be one name.
	whyBytes = 512
	// NameBytes is the longest that one name of somebody else takes in a text that ends
	// with a command, so that the command is never what is cut off.
	NameBytes = 64
	ellipsis  = "…"
)

// Clip cuts s to at most limit bytes at the start of a rune and says so by an ellipsis.
// Bytes that are no UTF-8, which no API object takes, are replaced.
func Clip(s string, limit int) string {
	s = strings.ToValidUTF8(s, string(utf8.RuneError))
	if len(s) <= limit {
		return s
	}
	end := limit - len(ellipsis)
	for !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + ellipsis
}
