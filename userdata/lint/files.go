package lint

import (
	"bytes"
	"encoding/base64"
	"errors"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/autoscaler-agent/autoscaler-agent/internal/lazyregexp"
	"github.com/autoscaler-agent/autoscaler-agent/userdata"

	"github.com/autoscaler-agent/autoscaler-agent/userdata/lint/internal/mail"
	"github.com/autoscaler-agent/autoscaler-agent/userdata/lint/internal/yaml11"
)

// file is one that write_files writes.
type file struct {
	path     string
	deferred bool
}

// writeFiles judges write_files. cloud-init stops at the first file that it cannot write, and
// those after it are missing.
func (b *boot) writeFiles() []file {
	values := b.config.values["write_files"]
	if len(values) == 0 {
		return nil
	}
	items, ok := b.config.list("write_files")
	if !ok {
		values[0].add(Schema, true, values[0].Line, "write_files is %s and no list, and cloud-init writes no file: begin each file with a dash", yaml11.Describe(values[0].Node))
		return nil
	}
	var out []file
	known := b.readAccounts()
	for i, item := range items {
		if item.Kind != yaml.MappingNode {
			item.add(Schema, true, item.Line, "write_files item %d is %s, and cloud-init writes no file: give it path and content", i+1, yaml11.Describe(item.Node))
			continue
		}
		f := file{deferred: yaml11.IsTrue(yaml11.Get(item.Node, "defer"))}
		p := yaml11.Get(item.Node, "path")
		switch {
		case p == nil || p.Value == "" || yaml11.Kind(p) == "null":
			item.add(Schema, true, item.Line, "write_files item %d has no path, and cloud-init skips it", i+1)
			continue
		case yaml11.Kind(p) != "str":
			item.add(Schema, true, p.Line, "write_files: path is %s, and cloud-init stops there: put it in quotes", yaml11.Describe(p))
			continue
		case !strings.HasPrefix(p.Value, "/"):
			item.add(Schema, false, p.Line, "write_files: path %q is not absolute: it is taken below /", p.Value)
		}
		f.path = p.Value
		mode := b.permissions(item, f.path)
		known.owner(item, f)
		if body, place, ok := b.content(item, f.path); ok {
			place.file(f.path, body, mode)
		}
		out = append(out, f)
	}
	return out
}

var octal = lazyregexp.New(`^\s*[-+]?(0[oO])?_?[0-7]+(_[0-7]+)*\s*$`)

// permissions are octal as text; as a number of YAML they are what the number is.
func (b *boot) permissions(item value, path string) int64 {
	const otherwise = 0o644
	n := yaml11.Get(item.Node, "permissions")
	if n == nil || yaml11.Kind(n) == "null" {
		return otherwise
	}
	digits := strings.ReplaceAll(strings.ToLower(strings.TrimSpace(n.Value)), "_", "")
	mode, ok := int64(0), false
	switch kind := yaml11.Kind(n); {
	case kind == "int":
		v, err := yaml11.Number(n.Value)
		mode, ok = 0, err == nil && v.IsInt64()
		if ok {
			mode = v.Int64()
		}
		asOctal, err := strconv.ParseInt(digits, 8, 64)
		decimal := strings.Trim(digits, "0123456789") == "" && digits[0] != '0'
		if ok && decimal && (err == nil && sane(asOctal) || !sane(mode)) || mode < 0 {
			item.add(Altered, true, n.Line, "%s: permissions %s without quotes is a decimal number, the mode %04o: write octal digits in quotes, '0%s'", path, n.Value, mode, digits)
		}
	case kind == "str" && octal.MatchString(n.Value):
		mode, _ = strconv.ParseInt(strings.Replace(digits, "0o", "0", 1), 8, 64)
		if ok = true; mode < 0 {
			item.add(Altered, true, n.Line, "%s: permissions %s are negative: write '0600'", path, n.Value)
		}
	case kind == "float" || kind == "bool":
		item.add(Altered, true, n.Line, "%s: permissions %s is not octal, and cloud-init makes another mode of it: write '0600'", path, n.Value)
		return otherwise
	}
	if !ok {
		item.add(Schema, true, n.Line, "%s: permissions are no octal number, and cloud-init takes 0644: write '0600'", path)
	}
	if mode == 0 { // cloud-init leaves the mode as the system makes it
		return otherwise
	}
	return mode
}

// sane tells that others may do no more than the group, and the group no more than the owner.
func sane(mode int64) bool {
	owner, group, others := mode>>6, mode>>3&7, mode&7
	return mode > 0 && mode <= 0o777 && group&^owner == 0 && others&^group == 0
}

// content is what is written, and where its lines stand.
func (b *boot) content(item value, path string) (string, *linter, bool) {
	n := yaml11.Get(item.Node, "content")
	if s := yaml11.Get(item.Node, "source"); s != nil {
		item.add(Unchecked, false, s.Line, "%s: source is fetched at boot and was not looked at; cloud-init before 24.3 writes an empty file", path)
	}
	if n == nil {
		return "", item.in(path, nil), true
	}
	body, ok := plainOrBinary(n)
	if !ok {
		item.add(Schema, true, n.Line, "%s: content is %s and no text, and cloud-init stops there: write it with a | block", path, yaml11.Describe(n))
		return "", nil, false
	}
	encoding := ""
	if e := yaml11.Get(item.Node, "encoding"); e != nil && yaml11.Kind(e) != "null" {
		encoding = strings.ToLower(strings.TrimSpace(e.Value))
		if yaml11.Kind(e) != "str" {
			item.add(Schema, true, e.Line, "%s: encoding is %s, and cloud-init stops there: use b64, gz or gz+b64", path, yaml11.Describe(e))
			return "", nil, false
		}
	}
	place := item.block(n, path)
	switch encoding {
	case "", "text/plain":
		return body, place, true
	case "gz", "gzip", "gz+base64", "gzip+base64", "gz+b64", "gzip+b64", "b64", "base64":
	default:
		fails := strings.Contains(encoding, "64") || strings.Contains(encoding, "gz")
		item.add(Schema, fails, n.Line, "%s: cloud-init knows no encoding %s and writes the text as it is: use b64, gz or gz+b64", path, encoding)
		return body, place, !fails
	}
	raw, err := fileContent(body, encoding)
	if err != nil {
		item.add(Schema, true, n.Line, "%s: content is not %s, and cloud-init stops there: %v", path, encoding, err)
		return "", nil, false
	}
	return raw, item.in(path, nil), true
}

// plainOrBinary is the text of a scalar that Python writes to a file; false: it cannot.
func plainOrBinary(n *yaml.Node) (string, bool) {
	switch yaml11.Kind(n) {
	case "str":
		return n.Value, true
	case "binary":
		raw, err := mail.Base64(n.Value)
		return string(raw), err == nil
	}
	return "", false
}

// fileContent decodes as cloud-init does, which skips what is not base64's alphabet.
func fileContent(text, encoding string) (string, error) {
	raw := []byte(text)
	if strings.Contains(encoding, "64") {
		letters := mail.Alphabet(text)
		if head, rest, ok := strings.Cut(text, "="); ok && len(mail.Alphabet(head))%4 > 1 { // padding ends it
			letters, text = mail.Alphabet(head), "="+rest
		}
		if n := len(letters) % 4; n == 1 || n > 0 && strings.Count(text, "=") < 4-n {
			return "", errors.New("the base64 is cut")
		}
		var err error
		if raw, err = base64.RawStdEncoding.DecodeString(letters); err != nil {
			return "", err
		}
	}
	if !strings.Contains(encoding, "gz") {
		return string(raw), nil
	}
	out, err := userdata.Gunzip(bytes.NewReader(raw))
	return string(out), err
}
