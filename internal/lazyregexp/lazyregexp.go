// Package lazyregexp has regular expressions that are compiled when they are first used: a
// package variable of regexp.MustCompile costs every process its memory, also one that
// never uses it. Go's own commands do the same (internal/lazyregexp).
//
// Small and apart: packages of layers 1 to 4 use it. It refuses expressions that are not constants of the program: a wrong one panics.
package lazyregexp

import (
	"regexp"
	"sync"
)

// Regexp is a regular expression that is compiled when it is first used.
type Regexp func() *regexp.Regexp

// New returns the Regexp of an expression, which it does not read.
func New(expression string) Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expression) })
}

// MatchString is (*regexp.Regexp).MatchString.
func (r Regexp) MatchString(s string) bool { return r().MatchString(s) }

// FindStringSubmatch is (*regexp.Regexp).FindStringSubmatch.
func (r Regexp) FindStringSubmatch(s string) []string { return r().FindStringSubmatch(s) }

// Match is (*regexp.Regexp).Match.
func (r Regexp) Match(b []byte) bool { return r().Match(b) }

// FindStringIndex is (*regexp.Regexp).FindStringIndex.
func (r Regexp) FindStringIndex(s string) []int { return r().FindStringIndex(s) }

// FindAllStringSubmatch is (*regexp.Regexp).FindAllStringSubmatch.
func (r Regexp) FindAllStringSubmatch(s string, n int) [][]string {
	return r().FindAllStringSubmatch(s, n)
}

// FindAllStringSubmatchIndex is (*regexp.Regexp).FindAllStringSubmatchIndex.
func (r Regexp) FindAllStringSubmatchIndex(s string, n int) [][]int {
	return r().FindAllStringSubmatchIndex(s, n)
}
