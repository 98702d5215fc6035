package config

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/autoscaler-agent/autoscaler-agent/agent/groups"
)

// faults are the lines that systemd skips, and the names that are no setting and were
// likely meant to be one. Each error starts with its line number.
func (p *envParser) faults() []error {
	known := Variables()
	var errs []error
	bad := func(l envLine, format string, args ...any) {
		errs = append(errs, fmt.Errorf("%d: %s", l.line, fmt.Sprintf(format, args...)))
	}
	for _, l := range p.skipped {
		bad(l, "systemd ignores the line %q...: %s", shortened(l.text), lineRemedy(l.text, known))
	}
	for _, l := range p.names {
		if meant := meantFor(l.text, known); meant != "" {
			bad(l, "%s is not a variable of this agent: did you mean %s?", l.text, meant)
		}
	}
	slices.SortStableFunc(errs, func(a, b error) int { return lineOf(a) - lineOf(b) })
	return errs
}

func lineOf(err error) (n int) {
	_, _ = fmt.Sscanf(err.Error(), "%d:", &n) // faults writes it
	return n
}

// shortened keeps values, which may be secret, out of an error: it ends with the name.
func shortened(text string) string {
	if end := strings.IndexAny(text, "=:"); end >= 0 {
		text = text[:end+1]
	}
	return text[:min(len(text), 60)]
}

var exported = regexp.MustCompile(`^export[ \t]+`)

// lineRemedy says how a line that is no assignment has to be written.
func lineRemedy(text string, known []Variable) string {
	if exported.MatchString(text) {
		return "write it without export"
	}
	name := strings.TrimSpace(text[:strings.IndexAny(text+"=", "=: ")])
	if meant := meantFor(name, known); meant != "" {
		return "write " + meant + "=VALUE"
	}
	if slices.ContainsFunc(known, func(v Variable) bool { return v.Name == name }) {
		return "write " + name + "=VALUE, with = after the name"
	}
	return "write NAME=VALUE, or # before a comment"
}

// meantFor is the setting that a name was likely meant to be; empty: it is a setting, or
// another program's variable. The prefix counts: every other program's names are its own.
func meantFor(name string, known []Variable) string {
	if slices.ContainsFunc(known, func(v Variable) bool { return v.Name == name }) {
		return ""
	}
	if ours := FromClusterAutoscaler(name); ours != "" {
		return ours
	}
	upper := strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
	prefix, _, _ := strings.Cut(upper, "_")
	if strings.HasPrefix(name, Prefix+"_") || groups.Edits(prefix, Prefix) > 2 {
		return "" // Load judges the names with the prefix
	}
	near, distance := "", 5
	for _, v := range known {
		if d := groups.Edits(upper, v.Name); d < distance {
			near, distance = v.Name, d
		}
	}
	return near
}
