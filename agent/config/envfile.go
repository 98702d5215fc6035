package config

import (
	"fmt"
	"os"
	"regexp"
	"strings"
)

// exported is a line of a shell's habit, which systemd skips without the agent's
// knowing.
var exported = regexp.MustCompile(`(?m)^[ \t]*export[ \t]+` + Prefix + `_\w+`)

// LoadEnvFile reads an environment file by systemd's EnvironmentFile= rules and sets
// its variables in the process, as systemd does for the unit: a variable of the
// file wins over one of the process.
func LoadEnvFile(path string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("read environment file: %w (make it from agent.env.example, or name another with --env-file)", err)
	}
	if line := exported.FindString(string(data)); line != "" {
		return fmt.Errorf("read environment file %s: systemd ignores the line %q...: write it without export", path, strings.TrimSpace(line))
	}
	vars, err := ParseEnvFile(string(data))
	if err != nil {
		return fmt.Errorf("read environment file %s: %w", path, err)
	}
	for _, v := range vars {
		if err := os.Setenv(v[0], v[1]); err != nil {
			return fmt.Errorf("read environment file %s: %s: %w", path, v[0], err)
		}
	}
	return nil
}

// ParseEnvFile parses text as systemd's parse_env_file_internal does
// (systemd/src/basic/env-file.c): shell-like assignments without expansion. Lines
// that start with # or ; are comments; a value may be bare, 'single' or "double"
// quoted, or pieces of each one after the other; a backslash at a line's end joins
// lines; in double quotes a backslash escapes only ", \, ` and $; in bare text it
// takes the next character as it is; white space around a bare value is dropped.
// Lines whose name is no variable name are skipped, as systemd skips them (it logs).
func ParseEnvFile(text string) ([][2]string, error) {
	p := envParser{}
	text = strings.ReplaceAll(text, "\r\n", "\n")
	if strings.ContainsRune(text, 0) {
		return nil, fmt.Errorf("a NUL byte at offset %d", strings.IndexByte(text, 0))
	}
	for i := 0; i < len(text); i++ {
		p.step(text[i])
	}
	p.finish()
	return p.out, nil
}

type envState int

const (
	preKey envState = iota
	inKey
	preValue
	inValue
	valueEscape
	singleQuote
	doubleQuote
	doubleQuoteEscape
	comment
	commentEscape
)

// envParser is systemd's state machine, state for state.
type envParser struct {
	state      envState
	key, value []byte
	lastWhite  int // length of value before trailing white space; -1: none
	out        [][2]string
}

func newline(c byte) bool { return c == '\n' || c == '\r' }
func white(c byte) bool   { return c == ' ' || c == '\t' || newline(c) }

func (p *envParser) step(c byte) {
	switch p.state {
	case preKey:
		if c == '#' || c == ';' {
			p.state = comment
		} else if !white(c) {
			p.state, p.key, p.lastWhite = inKey, append(p.key[:0], c), -1
		}
	case inKey:
		switch {
		case newline(c):
			p.state = preKey
		case c == '=':
			p.state, p.value, p.lastWhite = preValue, p.value[:0], -1
		default:
			p.key = append(p.key, c)
		}
	case preValue, inValue:
		p.stepValue(c)
	case valueEscape:
		p.state = inValue
		if !newline(c) {
			p.value = append(p.value, c)
		}
	case singleQuote:
		if c == '\'' {
			p.state = preValue
		} else {
			p.value = append(p.value, c)
		}
	case doubleQuote:
		switch c {
		case '"':
			p.state = preValue
		case '\\':
			p.state = doubleQuoteEscape
		default:
			p.value = append(p.value, c)
		}
	case doubleQuoteEscape:
		p.state = doubleQuote
		if strings.IndexByte("\"\\`$", c) >= 0 {
			p.value = append(p.value, c)
		} else if c != '\n' {
			p.value = append(p.value, '\\', c)
		}
	case comment:
		if c == '\\' {
			p.state = commentEscape
		} else if newline(c) {
			p.state = preKey
		}
	case commentEscape:
		p.state = comment
		if newline(c) { // systemd 254 and later: a comment does not continue
			p.state = preKey
		}
	}
}

func (p *envParser) stepValue(c byte) {
	switch {
	case newline(c):
		p.push()
		p.state = preKey
	case c == '\'' && p.state == preValue:
		p.state, p.lastWhite = singleQuote, -1
	case c == '"' && p.state == preValue:
		p.state, p.lastWhite = doubleQuote, -1
	case c == '\\':
		p.state, p.lastWhite = valueEscape, -1
	case p.state == preValue && white(c):
	case p.state == preValue:
		p.state = inValue
		p.value = append(p.value, c)
	default:
		if !white(c) {
			p.lastWhite = -1
		} else if p.lastWhite < 0 {
			p.lastWhite = len(p.value)
		}
		p.value = append(p.value, c)
	}
}

func (p *envParser) finish() {
	switch p.state {
	case preValue, inValue, valueEscape, singleQuote, doubleQuote, doubleQuoteEscape:
		p.push()
	}
}

func (p *envParser) push() {
	key := strings.TrimRight(string(p.key), " \t\r\n")
	value := p.value
	if p.state == inValue && p.lastWhite >= 0 {
		value = value[:p.lastWhite]
	}
	if validName(key) {
		p.out = append(p.out, [2]string{key, string(value)})
	}
}

func validName(s string) bool {
	for i := 0; i < len(s); i++ {
		c := s[i]
		if !(c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || i > 0 && c >= '0' && c <= '9') {
			return false
		}
	}
	return s != ""
}
