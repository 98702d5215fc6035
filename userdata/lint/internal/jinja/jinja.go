// Package jinja renders templates of cloud-init as far as that goes without the machine, and
// tells what jinja or cloud-init would refuse. It refuses to evaluate an expression.
package jinja

import (
	"fmt"
	"slices"
	"strings"

	"github.com/autoscaler-agent/autoscaler-agent/internal/lazyregexp"
)

// Unknown stands for what a template is given on the machine. Text that holds it is not
// judged by its value.
const Unknown = "value-known-at-boot"

// Error is a mistake with its line of the template.
type Error struct {
	Line int
	Text string
}

func (e Error) Error() string { return e.Text }

// template renders as far as that goes without the machine: expressions become Unknown, the
// bodies of loops come once, and of a condition only one branch is taken.
type template struct {
	text   string
	pos    int
	branch string // of conditions that is taken: "if", "elif" or "else"
	out    strings.Builder
	lines  []int // of text, for each line of out
	seen   int   // how far lines were counted, and how many there are until then
	count  int
	blocks []block
	own    map[string]bool // names that the template itself makes
}

type block struct {
	name string
	emit bool
}

// Render returns the text without the line that makes it a template, and the line of the
// template for each of its lines.
func Render(text, branch string) (string, []int, error) {
	head, _, _ := strings.Cut(text, "\n")
	t := &template{text: text, pos: min(len(head)+1, len(text)), branch: branch, own: map[string]bool{}}
	for t.pos < len(t.text) {
		if err := t.next(); err != nil {
			return "", nil, err
		}
	}
	if n := len(t.blocks); n > 0 {
		return "", nil, t.errorf("%s without its end", t.blocks[n-1].name)
	}
	t.emit("", t.line())
	return t.out.String(), append(t.lines, t.line()), nil
}

// line is the one of pos. It counts on from the last asked, so a whole text is counted once.
func (t *template) line() int {
	if t.pos < t.seen {
		t.seen, t.count = 0, 0
	}
	t.count += strings.Count(t.text[t.seen:t.pos], "\n")
	t.seen = t.pos
	return 1 + t.count
}

func (t *template) errorf(format string, args ...any) error {
	return Error{t.line(), fmt.Sprintf(format, args...)}
}

func (t *template) emitting() bool { return len(t.blocks) == 0 || t.blocks[len(t.blocks)-1].emit }

// emit writes text that begins on a line of the template.
func (t *template) emit(text string, line int) {
	if !t.emitting() {
		return
	}
	for part := range strings.SplitAfterSeq(text, "\n") {
		t.out.WriteString(part)
		if strings.HasSuffix(part, "\n") {
			t.lines = append(t.lines, line)
			line++
		}
	}
}

func (t *template) next() error {
	rest := t.text[t.pos:]
	i := strings.IndexByte(rest, '{')
	for i >= 0 && (i+1 == len(rest) || !strings.ContainsRune("{%#", rune(rest[i+1]))) {
		next := strings.IndexByte(rest[i+1:], '{')
		if next < 0 {
			i = -1
		} else {
			i += 1 + next
		}
	}
	if i < 0 {
		i = len(rest)
	}
	line := t.line()
	literal := rest[:i]
	t.pos += i
	if i == len(rest) {
		t.emit(literal, line)
		return nil
	}
	if strings.HasPrefix(rest[i+2:], "-") {
		literal = strings.TrimRight(literal, " \t\r\n")
	}
	t.emit(literal, line)
	return t.tag(rest[i+1])
}

// tag reads what begins with a brace: an expression, a statement or a comment.
func (t *template) tag(kind byte) error {
	end := map[byte]string{'{': "}}", '%': "%}", '#': "#}"}[kind]
	n := ending(t.text[t.pos+2:], end, kind != '#')
	if n < 0 {
		return t.errorf("{%c without %s: jinja refuses the whole text (a shell's ${#name} wants {%% raw %%} around it)", kind, end)
	}
	inner := t.text[t.pos+2 : t.pos+2+n]
	body := strings.TrimSpace(strings.Trim(inner, "-+"))
	var err error
	switch kind {
	case '{':
		if err = t.expression(body); err == nil {
			t.emit(Unknown, t.line())
		}
	case '%':
		err = t.statement(body, t.pos+2+n+2)
	}
	if err != nil {
		return err
	}
	if body == "raw" && kind == '%' {
		return nil // statement has moved on
	}
	t.pos += 2 + n + 2
	rest := t.text[t.pos:]
	switch {
	case strings.HasSuffix(inner, "-"):
		t.pos += len(rest) - len(strings.TrimLeft(rest, " \t\r\n"))
	case kind != '{' && strings.HasPrefix(rest, "\n"):
		t.pos++
	case kind != '{' && strings.HasPrefix(rest, "\r\n"):
		t.pos += 2
	}
	return nil
}

// ending finds the end of a tag, outside of strings.
func ending(text, end string, quoted bool) int {
	var quote byte
	for i := range len(text) {
		switch c := text[i]; {
		case quote != 0 && c == '\\':
		case quote != 0 && c == quote && text[i-1] != '\\':
			quote = 0
		case quote != 0:
		case quoted && (c == '"' || c == '\''):
			quote = c
		case strings.HasPrefix(text[i:], end):
			return i
		}
	}
	return -1
}

var ends = map[string]string{"if": "endif", "for": "endfor", "macro": "endmacro", "call": "endcall", "filter": "endfilter", "block": "endblock", "with": "endwith", "autoescape": "endautoescape"}

func (t *template) statement(body string, after int) error {
	name, rest, _ := strings.Cut(body, " ")
	top := len(t.blocks) - 1
	switch {
	case name == "raw":
		raw := rawEnd.FindStringIndex(t.text[after:])
		if raw == nil {
			return t.errorf("raw without its end")
		}
		start := after
		if strings.HasPrefix(t.text[start:], "\n") {
			start++
		}
		text := t.text[start : after+raw[0]]
		t.pos = start
		t.emit(text, t.line())
		t.pos = after + raw[1]
	case name == "else" || name == "elif":
		if top < 0 || t.blocks[top].name != "if" && (name == "elif" || t.blocks[top].name != "for") {
			return t.errorf("%s without if", name)
		}
		parent := top == 0 || t.blocks[top-1].emit
		t.blocks[top].emit = parent && t.blocks[top].name == "if" && t.branch == name
	case ends[name] != "" || name == "set" && !strings.Contains(rest, "="):
		t.names(name, rest)
		t.blocks = append(t.blocks, block{name, t.emitting() && (name != "if" || t.branch == "if") && name != "macro" && name != "set"})
	case strings.HasPrefix(name, "end"):
		if top < 0 || "end"+t.blocks[top].name != name {
			return t.errorf("%s without its beginning", name)
		}
		t.blocks = t.blocks[:top]
	case name == "set":
		t.names(name, rest)
	case !slices.Contains([]string{"do", "include", "import", "from", "extends", "print"}, name):
		return t.errorf("jinja knows no statement %q and refuses the whole text", name)
	}
	return nil
}

var (
	rawEnd     = lazyregexp.New(`\{%[-+]?\s*endraw\s*[-+]?%\}\n?`)
	identifier = lazyregexp.New(`[A-Za-z_]\w*`)
)

// names remembers what for, set, with and macro give a value to.
func (t *template) names(statement, rest string) {
	if statement == "for" {
		rest, _, _ = strings.Cut(rest, " in ")
	}
	for _, name := range identifier.FindAllStringSubmatch(rest, -1) {
		t.own[name[0]] = true
	}
}
