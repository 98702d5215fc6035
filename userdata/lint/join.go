package lint

import (
	"path"
	"slices"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/autoscaler-agent/autoscaler-agent/internal/lazyregexp"

	"github.com/autoscaler-agent/autoscaler-agent/userdata/lint/internal/jinja"
)

var joinCommand = lazyregexp.New(`kubeadm['"]?[ \t,]+(-\S+[ \t]+)*['"]?join\b`)

// joins tells whether a text runs kubeadm join.
func joins(text string) bool { return joinCommand.MatchString(text) }

// program judges the commands of a script.
func (l *linter) program(program *syntax.File, text string) {
	l.unreached(program, text)
	known := literals(program)
	syntax.Walk(program, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.CallExpr:
			l.call(n, known)
		case *syntax.Redirect:
			if n.Hdoc != nil {
				body, _ := known.text(n.Hdoc)
				first := int(n.Hdoc.Pos().Line())
				l.in("", func(k int) int { return first + k - 1 }).joinDocuments(body)
			}
		}
		return true
	})
}

// unreached finds a join after a command that ends the script in any case.
func (l *linter) unreached(program *syntax.File, text string) {
	if !joins(text) {
		return
	}
	for _, s := range program.Stmts {
		call, ok := s.Cmd.(*syntax.CallExpr)
		if !ok || s.Background || s.Negated || len(call.Args) == 0 {
			continue
		}
		word, _ := literal{}.text(call.Args[0])
		name := path.Base(word)
		second := ""
		if len(call.Args) > 1 {
			second = call.Args[1].Lit()
		}
		ends := slices.Contains([]string{"exit", "return", "reboot", "poweroff", "halt", "shutdown"}, name) || name == "exec" && len(call.Args) > 1 ||
			name == "systemctl" && slices.Contains([]string{"reboot", "poweroff", "halt", "kexec"}, second)
		if !ends {
			continue
		}
		begin, end := min(int(s.Pos().Offset()), len(text)), min(int(s.End().Offset()), len(text))
		if joins(commandLines(text[end:])) && !joins(text[begin:end]) {
			l.add(JoinInfo, true, int(s.Pos().Line()), "%s ends the script here, and kubeadm join below it is never run", name)
		}
		return
	}
}

// commandLines leaves out comments.
func commandLines(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(strings.TrimSpace(line), "#") {
			b.WriteString(line)
		}
	}
	return b.String()
}

// literal are variables with one value in the whole script.
type literal map[string]string

// literals finds variables that the script sets to one text and that nothing else can set.
func literals(program *syntax.File) literal {
	known, gone := literal{}, map[string]bool{}
	all := false
	syntax.Walk(program, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.CallExpr:
			if len(n.Args) > 0 && slices.Contains([]string{".", "source", "eval", "read"}, n.Args[0].Lit()) {
				all = true
			}
		case *syntax.ForClause:
			if w, ok := n.Loop.(*syntax.WordIter); ok {
				gone[w.Name.Value] = true
			}
		case *syntax.Assign:
			if n.Name == nil {
				return true
			}
			value, ok := "", !n.Append && n.Array == nil && !n.Naked
			if ok && n.Value != nil {
				value, ok = (literal{}).text(n.Value)
			}
			if old, again := known[n.Name.Value]; !ok || again && old != value {
				gone[n.Name.Value] = true
			}
			known[n.Name.Value] = value
		}
		return true
	})
	for name := range gone {
		delete(known, name)
	}
	for _, name := range []string{"JOIN_TOKEN", "JOIN_CERT_HASH", "JOIN_ENDPOINT"} {
		delete(known, name) // joinValues tells what is wrong where they are set
	}
	if all {
		return literal{}
	}
	return known
}

// text is a word as the command gets it. What is known at boot alone becomes jinja.Unknown, and
// ok is false.
func (known literal) text(w *syntax.Word) (text string, ok bool) {
	var b strings.Builder
	ok = true
	var parts func(list []syntax.WordPart, quoted bool)
	parts = func(list []syntax.WordPart, quoted bool) {
		for _, p := range list {
			switch p := p.(type) {
			case *syntax.Lit:
				v := p.Value
				if !quoted {
					v = strings.ReplaceAll(strings.ReplaceAll(v, "\\\n", ""), `\`, "")
				}
				b.WriteString(v)
			case *syntax.SglQuoted:
				b.WriteString(p.Value)
			case *syntax.DblQuoted:
				parts(p.Parts, true)
			case *syntax.ParamExp:
				v, set := "", false
				if p.Exp == nil && p.Repl == nil && p.Slice == nil && !p.Length && !p.Excl && p.Index == nil && p.Param != nil {
					v, set = known[p.Param.Value]
				}
				if !set {
					v, ok = jinja.Unknown, false
				}
				b.WriteString(v)
			default:
				b.WriteString(jinja.Unknown)
				ok = false
			}
		}
	}
	parts(w.Parts, false)
	return b.String(), ok && !strings.Contains(b.String(), jinja.Unknown)
}

// call judges kubeadm join, and what a shell is given as a text.
func (l *linter) call(c *syntax.CallExpr, known literal) {
	var words []string
	for _, w := range c.Args {
		text, _ := known.text(w)
		words = append(words, text)
	}
	line := int(c.Pos().Line())
	l.hostNameCommand(words, line)
	at := func(k int) int { return line + k - 1 }
	for i, w := range words {
		if i > 0 && strings.HasPrefix(words[i-1], "-") && strings.HasSuffix(words[i-1], "c") && strings.HasSuffix(words[0], "sh") && (joins(w) || strings.Contains(w, "hostname")) {
			if inner := l.in("", at).parse(w); inner != nil {
				l.in("", at).program(inner, w)
			}
			return
		}
		if path.Base(w) != "kubeadm" {
			continue
		}
		rest := words[i+1:]
		for len(rest) > 0 && strings.HasPrefix(rest[0], "-") {
			rest = rest[1:]
		}
		if len(rest) > 0 && rest[0] == "join" {
			l.joinFlags(rest[1:], line)
		}
		return
	}
}

// hostNameCommand judges hostnamectl and hostname.
func (l *linter) hostNameCommand(words []string, line int) {
	if len(words) > 0 && path.Base(words[0]) == "sudo" {
		words = words[1:]
	}
	words = slices.DeleteFunc(slices.Clone(words), func(w string) bool { return strings.HasPrefix(w, "--") })
	switch {
	case len(words) == 3 && path.Base(words[0]) == "hostnamectl" && (words[1] == "set-hostname" || words[1] == "hostname"):
		l.hostName(words[2], "hostnamectl", line)
	case len(words) == 2 && path.Base(words[0]) == "hostname":
		l.hostName(words[1], "hostname", line)
	}
}

type joinFlags struct {
	values map[string][]string
	args   []string
	odd    bool // not all flags are known: one that seems to be missing may be there
}

func (l *linter) joinFlags(words []string, line int) {
	f, table := joinFlags{values: map[string][]string{}}, kubeletTables().joins
	for i := 0; i < len(words); i++ {
		w := words[i]
		if !strings.HasPrefix(w, "-") || w == "-" {
			f.args = append(f.args, w)
			continue
		}
		name, value, given := strings.Cut(strings.TrimLeft(w, "-"), "=")
		switch {
		case strings.Contains(name, jinja.Unknown):
			return // flags of a variable
		case table[name].kind == "switch":
		case table[name].kind == "":
			l.add(JoinInfo, true, line, "kubeadm join knows no flag --%s and ends", name)
			if f.odd = true; !given && i+1 < len(words) && !strings.HasPrefix(words[i+1], "-") {
				i++
			}
			continue
		case !given && i+1 == len(words):
			l.add(JoinInfo, true, line, "kubeadm join: --%s without a value", name)
			continue
		case !given:
			i++
			value = words[i]
		}
		f.values[name] = append(f.values[name], value)
	}
	if slices.ContainsFunc(f.args, func(a string) bool { return a == jinja.Unknown || a == "" }) {
		f.odd = true // one word may be several
	}
	l.discovery(f, line)
}

// discovery judges the flags together, as kubeadm validates them.
func (l *linter) discovery(f joinFlags, line int) {
	for _, name := range f.values["node-name"] {
		l.nodeName(name, "--node-name", line)
	}
	bad := func(format string, args ...any) { l.add(JoinInfo, true, line, "kubeadm join: "+format, args...) }
	if f.values["control-plane"] != nil {
		bad("--control-plane makes a control-plane node of each machine of the group: leave it out")
	}
	for _, socket := range f.values["cri-socket"] {
		if why := badSocket(socket); why != "" {
			bad("--cri-socket %s", why)
		}
	}
	if v, ok := f.values["config"]; ok {
		if v[0] == "" {
			bad("--config is empty")
		}
		l.seen.later = append(l.seen.later, func() {
			if joins, known := l.seen.joinFiles[v[0]]; known && !joins {
				bad("%s has no JoinConfiguration", v[0])
			}
		})
		for name := range f.values {
			if !kubeletTables().joins[name].beside {
				bad("--%s does not go beside --config: write it into the file", name)
			}
		}
		return
	}
	if v, ok := f.values["discovery-file"]; ok {
		if v[0] == "" {
			bad("--discovery-file is empty")
		}
		return
	}
	for _, hash := range f.values["discovery-token-ca-cert-hash"] {
		for h := range strings.SplitSeq(hash, ",") {
			if why := badHash(h); why != "" {
				bad("--discovery-token-ca-cert-hash %s", why)
			}
		}
	}
	for _, name := range []string{"token", "discovery-token", "tls-bootstrap-token"} {
		for _, t := range f.values[name] {
			l.add(Exposed, true, line, tokenInArguments)
			if why := badToken(t); why != "" {
				bad("--%s %s", name, why)
			}
		}
	}
	if f.odd {
		return
	}
	_, skip := f.values["discovery-token-unsafe-skip-ca-verification"]
	switch {
	case f.values["token"] == nil && f.values["discovery-token"] == nil:
		bad("neither --config nor a token nor --discovery-file: it knows no cluster")
	case f.values["discovery-token-ca-cert-hash"] == nil && !skip:
		bad("--discovery-token-ca-cert-hash is missing")
	}
	if len(f.args) == 0 {
		bad("no address of the API server: give host:port")
	}
	for _, a := range f.args[:min(len(f.args), 1)] {
		if why := badAddress(a); why != "" {
			bad("the address of the API server %s: give host:port", why)
		}
	}
}

var (
	exactToken = lazyregexp.New(`^[a-z0-9]{6}\.[a-z0-9]{16}$`)
	exactHash  = lazyregexp.New(`^(?i:sha256:[0-9a-f]{64})$`)
)

// open tells that a value is filled in on the way to the machine.
func open(v string) bool {
	return strings.Contains(v, jinja.Unknown) || strings.Contains(v, "$") || strings.Contains(v, "{{")
}

func badHash(v string) string {
	switch {
	case strings.TrimSpace(v) == "":
		return "is empty: give sha256: and 64 hex digits"
	case !open(v) && !exactHash.MatchString(v):
		return "is not \"sha256:\" and 64 hex digits"
	}
	return ""
}

func badToken(v string) string {
	switch {
	case strings.TrimSpace(v) == "":
		return "is empty: give the token that kubeadm token create prints"
	case !open(v) && !exactToken.MatchString(v):
		return "has not the form of a token: 6 letters or digits, a dot, 16 more"
	}
	return ""
}

func badSocket(v string) string {
	if strings.Contains(v, "dockershim") {
		return "is dockershim's, which went with 1.24: give containerd's (unix:///run/containerd/containerd.sock), or leave it out"
	}
	return ""
}

func badAddress(v string) string {
	port := strings.LastIndexByte(v, ':')
	switch {
	case strings.TrimSpace(v) == "":
		return "is empty"
	case open(v):
		return ""
	case strings.Contains(v, "://"):
		return "begins with a scheme"
	case port <= 0:
		return "has no port"
	case strings.Count(v, ":") > 1 && (v[0] != '[' || v[port-1] != ']'):
		return "has an IPv6 address without brackets"
	}
	if n, err := strconv.ParseUint(v[port+1:], 10, 16); err != nil || n == 0 {
		return "has no valid port"
	}
	return ""
}
