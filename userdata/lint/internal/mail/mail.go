// Package mail takes MIME messages apart as Python's email package does, with which cloud-init
// reads them. It refuses nothing: a line that is no header begins the body, and a multipart
// without its boundary has no part.
package mail

import (
	"encoding/base64"
	"io"
	"mime/quotedprintable"
	"slices"
	"strings"

	"github.com/autoscaler-agent/autoscaler-agent/internal/lazyregexp"
)

// Leaf is a part of a MIME message that holds no further parts.
type Leaf struct {
	Kind   string            // content type without parameters
	Header map[string]string // by lower-case name, the first of each
	Body   string
	Line   int  // of the first line of Body, from 1
	Plain  bool // Body stands in the message as it is, not encoded
}

var headerLine = lazyregexp.New(`^(From |[\x21-\x39\x3b-\x7e]*:|[\t ])`)

// mostNested bounds multiparts within multiparts.
const mostNested = 20

// Leaves are the parts of a message that hold no further parts.
func Leaves(text string) []Leaf { return leaves(slices.Collect(strings.Lines(text)), 1, 0) }

// leaves reads each line once a level, so the work grows with lines and nesting.
func leaves(lines []string, first, depth int) []Leaf {
	header, n := headers(lines)
	body := lines[n:]
	first += n
	kind := contentType(header["content-type"])
	if depth > mostNested {
		return nil
	}
	switch {
	case strings.HasPrefix(kind, "multipart/"):
		boundary := Parameter(header["content-type"], "boundary")
		var out []Leaf
		for _, s := range sections(body, boundary) {
			out = append(out, leaves(body[s[0]:s[1]], first+s[0], depth+1)...)
		}
		return out
	case strings.HasPrefix(kind, "message/"):
		return leaves(body, first, depth+1)
	}
	p := Leaf{Kind: kind, Header: header, Line: first}
	p.Body, p.Plain = decoded(strings.Join(body, ""), header["content-transfer-encoding"])
	return []Leaf{p}
}

// headers reads the header and returns how many lines it takes, with the blank one.
func headers(lines []string) (map[string]string, int) {
	header, last := map[string]string{}, ""
	for i, line := range lines {
		text := strings.TrimRight(line, "\r\n")
		switch {
		case text == "":
			return header, i + 1
		case !headerLine.MatchString(line):
			return header, i
		case line[0] == ' ' || line[0] == '\t':
			if last != "" {
				header[last] += text
			}
			continue
		}
		name, value, _ := strings.Cut(text, ":")
		last = strings.ToLower(name)
		if _, again := header[last]; again {
			last = ""
			continue
		}
		header[last] = strings.TrimLeft(value, " \t")
	}
	return header, len(lines)
}

func contentType(header string) string {
	kind, _, _ := strings.Cut(header, ";")
	kind = strings.ToLower(strings.TrimSpace(kind))
	if strings.Count(kind, "/") != 1 {
		return "text/plain"
	}
	return kind
}

// Parameter reads as Python does, which wants no quotes around characters like "=".
func Parameter(header, name string) string {
	for _, p := range strings.Split(header, ";")[1:] {
		key, value, _ := strings.Cut(p, "=")
		if strings.EqualFold(strings.TrimSpace(key), name) {
			value = strings.TrimSpace(value)
			if len(value) > 1 && value[0] == '"' && value[len(value)-1] == '"' {
				value = value[1 : len(value)-1]
			}
			return value
		}
	}
	return ""
}

// sections are the parts between the lines of a boundary; the last one may lack its end.
func sections(body []string, boundary string) [][2]int {
	if boundary == "" {
		return nil
	}
	var out [][2]int
	start := -1
	for i, line := range body {
		rest, ok := strings.CutPrefix(line, "--"+boundary)
		if !ok {
			continue
		}
		rest, end := strings.CutPrefix(rest, "--")
		if strings.Trim(rest, " \t\r\n") != "" {
			continue
		}
		if start >= 0 {
			out = append(out, [2]int{start, i})
		}
		if start = i + 1; end {
			return out
		}
	}
	if start >= 0 {
		out = append(out, [2]int{start, len(body)})
	}
	return out
}

func decoded(body, encoding string) (text string, plain bool) {
	switch strings.ToLower(strings.TrimSpace(encoding)) {
	case "base64":
		raw, err := Base64(body)
		if err != nil {
			return body, true
		}
		return string(raw), false
	case "quoted-printable":
		raw, err := io.ReadAll(quotedprintable.NewReader(strings.NewReader(body)))
		if err != nil {
			return body, true
		}
		return string(raw), false
	}
	return body, true
}

// Base64 leaves out what is not of the Alphabet, and wants no padding.
func Base64(text string) ([]byte, error) {
	return base64.RawStdEncoding.DecodeString(Alphabet(text))
}

// Alphabet is what base64 reads of a text, without its padding.
func Alphabet(text string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '+' || r == '/' {
			return r
		}
		return -1
	}, text)
}
