package lint

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/autoscaler-agent/autoscaler-agent/internal/lazyregexp"
	"github.com/autoscaler-agent/autoscaler-agent/userdata"

	"github.com/autoscaler-agent/autoscaler-agent/userdata/lint/internal/jinja"
	"github.com/autoscaler-agent/autoscaler-agent/userdata/lint/internal/mail"
	"github.com/autoscaler-agent/autoscaler-agent/userdata/lint/internal/yaml11"
)

// The types of parts that cloud-init has a handler for.
const (
	notMultipart  = "text/x-not-multipart"
	shellScript   = "text/x-shellscript"
	cloudConfig   = "text/cloud-config"
	jsonPatch     = "text/cloud-config-jsonp"
	bootHook      = "text/cloud-boothook"
	jinjaTemplate = "text/jinja2"
	partHandler   = "text/part-handler"
	archive       = "text/cloud-config-archive"
	includeURL    = "text/x-include-url"
	includeOnce   = "text/x-include-once-url"
)

// beginnings tell the type of a part, the longest first. Blank lines before them and capitals do
// not matter here; they do to some handlers.
var beginnings = []struct{ text, kind string }{
	{"#cloud-config-archive", archive}, {"#cloud-config-jsonp", jsonPatch}, {"## template: jinja", jinjaTemplate}, {"#cloud-boothook", bootHook},
	{"#cloud-config", cloudConfig}, {"#include-once", includeOnce}, {"#part-handler", partHandler}, {"#include", includeURL}, {"#!", shellScript},
}

func kindOf(text string) string {
	text = strings.TrimLeftFunc(text, unicode.IsSpace)
	text = strings.ToLower(text[:min(len(text), 40)])
	for _, b := range beginnings {
		if strings.HasPrefix(text, b.text) {
			return b.kind
		}
	}
	return ""
}

// gzipTypes are the types of a part that cloud-init unpacks.
var gzipTypes = strings.Fields(`application/gzip application/gzip-compressed application/gzipped application/x-compress
	application/x-compressed application/x-gunzip application/x-gzip application/x-gzip-compressed`)

// part is one piece of user data, as it reaches a handler.
type part struct {
	kind   string // content type
	name   string // of the file that a script becomes
	merge  string // how cloud-config is merged, from the part's header
	text   string
	branch bool // of a template's condition, beside the one that is judged with the rest
	*linter
}

// boot is what a first boot of cloud-init makes of user data.
type boot struct {
	*linter
	config  config
	scripts map[string]part // by the name of their file
	order   []string        // of scripts
	early   []part          // boothooks, which run before any file is written
	handled int             // parts that some handler took
	ignored []part          // parts without a handler
	foreign bool            // a part of the user data handles further types
}

// message takes user data apart: MIME where its first bytes say so, else one part.
func (b *boot) message(l *linter, data []byte) {
	if !bytes.Contains(bytes.ToLower(data[:min(len(data), 4096)]), []byte("mime-version:")) {
		b.typed(part{kind: notMultipart, text: string(data), linter: l})
		return
	}
	if b.System == "flatcar" {
		l.add(Schema, true, 0, "Flatcar does not read MIME: use ignition")
	}
	if !utf8.Valid(data) {
		l.add(Schema, true, 0, "MIME with bytes that are not UTF-8: cloud-init refuses the whole; encode the part with base64")
		return
	}
	list := mail.Leaves(string(data))
	for n, p := range list {
		what := ""
		var at func(int) int
		if p.Plain {
			at = func(n int) int { return p.Line + n - 1 }
		} else {
			what = fmt.Sprintf("part %d", n+1)
		}
		merge := p.Header["merge-type"]
		if merge == "" {
			merge = p.Header["x-merge-type"]
		}
		name := mail.Parameter(p.Header["content-disposition"], "filename")
		if name == "" {
			name = mail.Parameter(p.Header["content-type"], "name")
		}
		b.typed(part{kind: p.Kind, name: name, merge: merge, text: p.Body, linter: l.in(what, at)})
	}
	if len(list) == 0 {
		l.add(Schema, true, 0, "MIME without a part: name the boundary in the header Content-Type of the whole, before its first blank line")
	}
}

// typed unpacks a part and finds its type where its header does not tell it.
func (b *boot) typed(p part) {
	if slices.Contains(gzipTypes, p.kind) {
		raw, err := userdata.Gunzip(strings.NewReader(p.text))
		if err != nil {
			p.add(Schema, true, 0, "%s that does not unpack, and cloud-init refuses the whole user data: %v; give it base64 in MIME", p.kind, err)
			return
		}
		p.kind, p.text, p.linter = "text/plain", string(raw), p.in("unpacked", nil)
	}
	if slices.Contains([]string{"text/plain", notMultipart, shellScript}, p.kind) {
		if kind := kindOf(p.text); kind != "" {
			p.kind = kind
		}
	}
	switch p.kind {
	case includeURL, includeOnce:
		b.include(p)
	case archive:
		b.archive(p)
	default:
		b.handle(p)
	}
}

// include names the addresses: what they bring is not known here.
func (b *boot) include(p part) {
	n, found := 0, 0
	for line := range strings.Lines(p.text) {
		n++
		line = strings.TrimSpace(line)
		for _, word := range []string{"#include-once", "#include"} {
			if len(line) >= len(word) && strings.EqualFold(line[:len(word)], word) {
				line = strings.TrimSpace(line[len(word):])
				break
			}
		}
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		found++
		lower := strings.ToLower(line)
		if !strings.HasPrefix(lower, "http://") && !strings.HasPrefix(lower, "https://") && !strings.HasPrefix(lower, "file://") && !strings.HasPrefix(line, "/") {
			p.add(Schema, true, n, "is no address that cloud-init fetches, and it refuses the whole user data: begin with http:// or https://")
			continue
		}
		p.add(Unchecked, false, n, "is fetched at boot, and nothing of it was looked at: lint that file too")
	}
	if found == 0 {
		p.add(Schema, true, 0, "#include without an address: nothing would be fetched")
	}
	b.handled++
	b.foreign = true // it may bring a handler, and what a join needs
}

// archive is a YAML list of parts.
func (b *boot) archive(p part) {
	root, err := yaml11.Load(p.text)
	if err != nil || root == nil || root.Kind != yaml.SequenceNode {
		p.notYAML(err, "#cloud-config-archive is no list: write each part as a list item with type and content")
		return
	}
	for _, item := range root.Content {
		item = yaml11.Target(item)
		content, kind, header := item, "", func(string) string { return "" }
		if item.Kind == yaml.MappingNode {
			content = yaml11.Get(item, "content")
			header = func(name string) string {
				if n := yaml11.Get(item, name); n != nil {
					return n.Value
				}
				return ""
			}
			kind = header("type")
		}
		text, ok := "", content == nil
		if content != nil {
			text, ok = plainOrBinary(content)
		}
		switch {
		case !ok && item == content:
			p.add(Altered, false, item.Line, "cloud-init skips an entry that is neither text nor a mapping")
			continue
		case !ok:
			p.add(Schema, true, content.Line, "content is no text, and cloud-init refuses the whole user data: write it with a | block")
			return
		case kind != "" && !strings.Contains(kind, "/"):
			p.add(Schema, true, item.Line, "type %q is no MIME type, and cloud-init refuses the whole user data: use %s or %s", kind, cloudConfig, shellScript)
			return
		}
		if kind == "" {
			if kind = kindOf(text); kind == "" {
				kind = cloudConfig
			}
		}
		merge := header("Merge-Type")
		if merge == "" {
			merge = header("X-Merge-Type")
		}
		b.handle(part{kind: kind, name: header("filename"), merge: merge, text: text, linter: p.block(content, fmt.Sprintf("line %d", item.Line))})
	}
}

// block is the place of a text that stands in a YAML scalar.
func (l *linter) block(n *yaml.Node, what string) *linter {
	if n != nil && n.Style&yaml.LiteralStyle != 0 {
		return l.in("", func(k int) int { return n.Line + k })
	}
	return l.in(what, nil)
}

// handle gives a part to the handler of its type.
func (b *boot) handle(p part) {
	if b.System == "flatcar" && p.kind != shellScript && p.kind != cloudConfig && p.kind != notMultipart {
		p.add(Schema, true, 0, "Flatcar does not read %s: use ignition", p.kind)
	}
	b.handled++
	if p.name == "" {
		p.name = fmt.Sprintf("part-%03d", b.handled+len(b.ignored))
	}
	if p.kind != notMultipart && strings.HasPrefix(p.kind, "text/") && !utf8.ValidString(p.text) {
		p.add(Schema, true, 0, "holds bytes that are not UTF-8, and cloud-init refuses it: save it as UTF-8")
		return
	}
	switch p.kind {
	case cloudConfig:
		b.config.add(p)
	case jsonPatch:
		b.config.patch(p)
	case shellScript, "text/x-shellscript-per-boot", "text/x-shellscript-per-instance", "text/x-shellscript-per-once":
		b.script(p)
	case bootHook:
		b.bootHook(p)
	case jinjaTemplate:
		b.jinja(p)
	case partHandler:
		b.foreign = true
		p.add(Unchecked, false, 1, "a program in Python handles parts of the user data: what it does was not looked at")
	default:
		b.handled--
		b.ignored = append(b.ignored, p)
	}
}

func (b *boot) script(p part) {
	if !strings.HasPrefix(p.text, "#!") {
		why := "its first line is not #!"
		if kindOf(p.text) == shellScript {
			why = "the blank before #! makes that no first line"
		}
		p.add(Schema, true, 1, "the kernel does not run the script (Exec format error): %s", why)
	}
	key := strings.TrimPrefix(p.kind, shellScript) + "/" + p.name
	if old, again := b.scripts[key]; again {
		old.add(Altered, joins(old.text) && !joins(p.text), 1, "a later part has the same file name %s: cloud-init keeps only that one", p.name)
	} else {
		b.order = append(b.order, key)
	}
	b.scripts[key] = p
}

func (b *boot) bootHook(p part) {
	text, prefixed := strings.CutPrefix(dos2unix(p.text), "#cloud-boothook")
	script := strings.TrimLeftFunc(text, unicode.IsSpace)
	if !strings.HasPrefix(script, "#!") {
		why := "give it #!/bin/sh in its second line"
		if !prefixed && kindOf(p.text) == bootHook {
			why = "nothing may stand before #cloud-boothook, which is written in small letters"
		}
		p.add(Schema, true, 1, "the kernel does not run the boothook (Exec format error): %s", why)
		return
	}
	skipped := strings.Count(dos2unix(p.text), "\n") - strings.Count(script, "\n")
	p.linter, p.text = p.in("", func(n int) int { return n + skipped }), script
	p.linter.script(script, everyBoot)
	b.early = append(b.early, p)
}

var templateLine = lazyregexp.New(`(?i)^##\s*template:\s*jinja\s*$`)

// jinja renders a template and gives it to the handler of what is below its first line.
func (b *boot) jinja(p part) {
	if head, _, _ := strings.Cut(p.text, "\n"); !templateLine.MatchString(head) {
		p.add(Schema, true, 1, "cloud-init renders a template only where \"## template: jinja\" is the first line: remove what is before it and beside it")
		return
	}
	done := map[string]bool{}
	for _, branch := range []string{"if", "else", "elif"} {
		if branch != "if" && !strings.Contains(p.text, branch) {
			continue
		}
		text, lines, err := jinja.Render(p.text, branch)
		if err != nil {
			f := err.(jinja.Error)
			p.add(Schema, true, f.Line, "%s", f.Text)
			return
		}
		if done[text] {
			continue
		}
		done[text] = true
		q := p
		q.text, q.linter = text, p.in("", func(n int) int { return lines[max(0, min(n, len(lines))-1)] })
		switch q.kind = kindOf(text); {
		case q.kind != cloudConfig && q.kind != shellScript:
			if branch == "if" {
				p.add(Schema, true, 2, "below \"## template: jinja\" cloud-init takes #cloud-config or #!, and ignores this")
			}
		case branch == "if":
			b.handled-- // counted once
			b.handle(q)
		default: // the other branches are judged by themselves
			other := newBoot(q.linter)
			other.foreign = true
			q.branch = true
			other.handle(q)
			other.finish()
		}
	}
}

// dos2unix follows cloud-init, which looks at the first line alone.
func dos2unix(text string) string {
	if head, _, _ := strings.Cut(text, "\n"); strings.HasSuffix(head, "\r") {
		return strings.ReplaceAll(text, "\r\n", "\n")
	}
	return text
}
