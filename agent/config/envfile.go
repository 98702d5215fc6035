package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/autoscaler-agent/autoscaler-agent/internal/textfile"
)

// EnvFile is the environment file of the unit (EnvironmentFile=), which every command reads
// where it exists and no other is named.
const EnvFile = "/etc/autoscaler-agent/agent.env"

// mostEnvFile is more than any environment file has.
const mostEnvFile = 4 << 20

// LoadEnvFile reads an environment file by systemd's EnvironmentFile= rules and sets its
// variables in the process. A variable that the environment has already keeps its value.
// A line that systemd would skip, and a name that is a misspelt setting, is an error: the
// agent would run without it. The empty path stands for EnvFile, which may be missing.
func LoadEnvFile(path string) error {
	faults, _, err := loadEnvFile(path)
	return errors.Join(err, faults)
}

// loadEnvFile is LoadEnvFile. Faults are the lines with mistakes, meant the variables that these
// lines were likely written for; the lines without mistakes are in force. The error says that
// the file could not be read whole.
func loadEnvFile(path string) (faults error, meant []string, err error) {
	data, err := readEnvFile(path)
	if err != nil || data == nil {
		return nil, nil, err
	}
	if path == "" {
		path = EnvFile
	}
	p, err := parseEnv(string(data))
	if err != nil {
		return nil, nil, fmt.Errorf("read environment file %s: %w", path, err)
	}
	meant, faults = p.faultsOf(path)
	before := map[string]bool{}
	for _, v := range p.out {
		if _, seen := before[v[0]]; !seen {
			before[v[0]] = os.Getenv(v[0]) != ""
		}
		if before[v[0]] || p.faulty[v[0]] {
			continue
		}
		if err := os.Setenv(v[0], v[1]); err != nil {
			return nil, nil, fmt.Errorf("read environment file %s: %s: %w", path, v[0], err)
		}
	}
	return faults, meant, nil
}

// readEnvFile returns nothing where the file of the unit is missing and no other was named.
func readEnvFile(path string) ([]byte, error) {
	asked := path != ""
	if !asked {
		path = EnvFile
	}
	data, err := textfile.Read(path, mostEnvFile)
	switch {
	case err == nil:
		return data, nil
	case errors.Is(err, fs.ErrNotExist) && !asked:
		return nil, nil
	case errors.Is(err, fs.ErrPermission):
		return nil, fmt.Errorf("read environment file: %w (use sudo, or join the group autoscaler-agent)", err)
	}
	return nil, fmt.Errorf("read environment file: %w (make it from agent.env.example, or name another with --env-file)", err)
}

// Readable returns an error when the environment file cannot be read. It does not judge the lines.
func Readable(envFile string) error {
	_, err := readEnvFile(envFile)
	return err
}

// SocketPath is the path of the running agent's socket. It needs no valid configuration:
// the environment's AUTOSCALER_SOCKET, the environment file's, or the default.
func SocketPath(envFile string) string {
	const name = Prefix + "_SOCKET"
	path := os.Getenv(name)
	if data, err := readEnvFile(envFile); path == "" && err == nil {
		vars, _ := ParseEnvFile(string(data)) // a file with faults may name its socket all the same
		for _, v := range vars {
			if v[0] == name {
				path = v[1]
			}
		}
	}
	if path != "" {
		return path
	}
	for _, v := range Variables() {
		if v.Name == name {
			return v.Default
		}
	}
	return ""
}

// ParseEnvFile parses text as systemd's parse_env_file_internal does
// (systemd/src/basic/env-file.c): shell-like assignments without expansion. Lines
// that start with # or ; are comments; a value may be bare, 'single' or "double"
// quoted, or pieces of each one after the other; a backslash at a line's end joins
// lines; in double quotes a backslash escapes only ", \, ` and $; in bare text it
// takes the next character as it is; white space around a bare value is dropped.
// Lines whose name is no variable name are skipped, as systemd skips them (it logs).
func ParseEnvFile(text string) ([][2]string, error) {
	p, err := parseEnv(text)
	return p.out, err
}

func parseEnv(text string) (envParser, error) {
	p := envParser{line: 1}
	text = strings.ReplaceAll(text, "\r\n", "\n")
	if err := textfile.Plain(text); err != nil { // systemd drops such a value
		return p, err
	}
	for i := 0; i < len(text); i++ {
		p.step(text[i])
		if text[i] == '\n' {
			p.line++
		}
	}
	p.finish()
	return p, nil
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
	line, from int       // of the character, of the key
	names      []envLine // in the order of the file
	skipped    []envLine
	long       []envLine       // assignments that no process can be started with
	faulty     map[string]bool // names of out that are told as mistakes
}

// longestVariable is Linux's MAX_ARG_STRLEN: NAME=VALUE and a NUL.
const longestVariable = 128 << 10

// envLine is a name of the file, or the start of a line that systemd skips.
type envLine struct {
	line int
	text string
}

func newline(c byte) bool { return c == '\n' || c == '\r' }
func white(c byte) bool   { return c == ' ' || c == '\t' || newline(c) }

func (p *envParser) step(c byte) {
	switch p.state {
	case preKey:
		if c == '#' || c == ';' {
			p.state = comment
		} else if !white(c) {
			p.state, p.key, p.lastWhite, p.from = inKey, append(p.key[:0], c), -1, p.line
		}
	case inKey:
		switch {
		case newline(c):
			p.state = preKey
			p.skipped = append(p.skipped, envLine{p.from, string(p.key)})
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
	case inKey:
		p.skipped = append(p.skipped, envLine{p.from, string(p.key)})
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
	if !validName(key) {
		p.skipped = append(p.skipped, envLine{p.from, key + "="})
		return
	}
	p.out = append(p.out, [2]string{key, string(value)})
	p.names = append(p.names, envLine{p.from, key})
	if len(key)+len(value)+2 > longestVariable {
		p.long = append(p.long, envLine{p.from, key})
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
