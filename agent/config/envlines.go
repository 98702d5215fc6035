package config

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/autoscaler-agent/autoscaler-agent/agent/groups"
)

// faultsOf joins the faults of the file path, nil where it has none, and names the variables
// that the faulty lines were likely written for.
func (p *envParser) faultsOf(path string) (meant []string, faults error) {
	list, meant := p.faults()
	for i, fault := range list {
		list[i] = fmt.Errorf("%s:%w", path, fault)
	}
	return meant, errors.Join(groups.First(list, func(rest int) error {
		return fmt.Errorf("%s: and %d more lines have faults: is it an environment file?", path, rest)
	})...)
}

// repeated tells which names stand in the environment file more than once: the last line of a name counts.
func repeated(path string) []string {
	data, err := readEnvFile(path)
	if err != nil {
		return nil // LoadEnvFile tells it
	}
	if path == "" {
		path = EnvFile
	}
	p, err := parseEnv(string(data))
	if err != nil {
		return nil // the same
	}
	lines := map[string][]string{}
	var out []string
	for _, l := range p.names {
		lines[l.text] = append(lines[l.text], strconv.Itoa(l.line))
	}
	for _, name := range slices.Sorted(maps.Keys(lines)) {
		if at := lines[name]; len(at) > 1 {
			rest, last := at[:len(at)-1], at[len(at)-1]
			out = append(out, fmt.Sprintf("%s: %s stands on the lines %s and %s: line %s counts, remove the others", path, name[:min(len(name), 60)], strings.Join(rest[:min(len(rest), 5)], ", "), last, last))
		}
	}
	return out
}

// faults are the lines that systemd skips, and the names that are no setting and were
// likely meant to be one. Each error starts with its line number.
func (p *envParser) faults() (errs []error, meant []string) {
	known := Variables()
	bad := func(l envLine, format string, args ...any) {
		errs = append(errs, fmt.Errorf("%d: %s", l.line, fmt.Sprintf(format, args...)))
	}
	for _, l := range p.skipped {
		what := "the line"
		if name := shown(l.text, known); name != "" {
			what += fmt.Sprintf(" %q...", name)
		}
		remedy := lineRemedy(l.text, known)
		bad(l, "systemd ignores %s: %s", what, remedy)
		for _, v := range known {
			if wordIn(l.text+" "+remedy, v.Name) {
				meant = append(meant, v.Name)
			}
		}
	}
	p.faulty = map[string]bool{}
	for _, l := range p.long {
		bad(l, "the assignment to %s is longer than %d bytes, with which no program can be started: shorten it", l.text[:min(len(l.text), 60)], longestVariable)
		p.faulty[l.text], meant = true, append(meant, l.text)
	}
	for _, l := range p.names {
		if slices.ContainsFunc(known, func(v Variable) bool { return v.Name == l.text }) {
			continue
		}
		as := meantFor(l.text, known)
		if answer := AnswerToFlag(l.text); answer != "" {
			bad(l, "%s %s", l.text, answer)
		} else if as != "" {
			bad(l, "%s is not a variable of this agent: did you mean %s?", l.text, as)
		} else {
			continue
		}
		p.faulty[l.text], meant = true, append(meant, l.text) // systemd may have set it already
		if as != "" {
			meant = append(meant, as)
		}
	}
	slices.SortStableFunc(errs, func(a, b error) int { return lineOf(a) - lineOf(b) })
	return errs, meant
}

func lineOf(err error) (n int) {
	_, _ = fmt.Sscanf(err.Error(), "%d:", &n) // faults writes it
	return n
}

// named is the name at the start of a line and what ends it. A digit is in none: a line may be
// the rest of a secret that was broken into two.
var named = regexp.MustCompile(`^(?:export[ \t]+|-{1,2})?[A-Za-z_.-]{1,60}(?:[=:]|[ \t])`)

// shown is what an error repeats of a line. It ends with the name, because the value may be
// secret; it is empty where the line has no name.
func shown(text string, known []Variable) string {
	if slices.ContainsFunc(known, func(v Variable) bool { return v.Name == text }) {
		return text
	}
	return strings.TrimRight(named.FindString(text), " \t")
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
	if answer := AnswerToFlag(name); answer != "" {
		return name + " " + answer
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
