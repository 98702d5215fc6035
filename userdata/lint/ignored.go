package lint

import (
	"encoding/base64"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// tellIgnored names the parts that no handler takes. One that does nothing for a join is a
// warning beside parts that are taken.
func (b *boot) tellIgnored() {
	for _, p := range b.ignored {
		blank := strings.TrimSpace(p.text) == ""
		if b.foreign || blank && b.handled > 0 {
			continue // another program may take it
		}
		fails := b.handled == 0 || kindOf(p.text) != "" || joins(p.text)
		if p.kind == notMultipart {
			p.add(Schema, fails, 1, "%s", whyIgnored(p.text))
			continue
		}
		p.add(Schema, fails, 1, "cloud-init has no handler for a part of type %s and ignores it: use %s or %s", p.kind, cloudConfig, shellScript)
	}
}

// whyIgnored tells the mistake behind a text whose beginning cloud-init does not know.
func whyIgnored(text string) string {
	trimmed := strings.TrimSpace(text)
	lower := strings.ToLower(trimmed)
	switch {
	case trimmed == "":
		return "empty: the machine would do nothing"
	case strings.HasPrefix(text, "\ufeff"):
		return "begins with a byte order mark, and the machine would ignore it: save it as UTF-8 without one"
	case strings.HasPrefix(text, "\xff\xfe"), strings.HasPrefix(text, "\xfe\xff"):
		return "is UTF-16, and the machine would ignore it: save it as UTF-8"
	case strings.HasPrefix(text, "\x1f\x8b"):
		return "gzip that does not unpack, or packed twice: the machine would ignore it"
	case strings.HasPrefix(lower, "#upstart-job"):
		return "cloud-init no longer reads #upstart-job and would ignore it: use #!"
	case strings.HasPrefix(lower, "<powershell>"), strings.HasPrefix(lower, "<script>"):
		return "is user data of Windows: the machine would ignore it"
	case strings.HasPrefix(lower, "##") && strings.Contains(strings.SplitN(lower, "\n", 2)[0], "template"):
		return "the first line must be \"## template: jinja\", with these blanks: the machine would ignore it"
	case strings.HasPrefix(lower, "content-type:"):
		return "MIME without the header MIME-Version: 1.0, and the machine would ignore it"
	case inner(trimmed) != "":
		return fmt.Sprintf("is base64 of %s, and the machine would ignore it: give the text itself, the tool or the cloud encodes it", inner(trimmed))
	}
	n := 0
	for line := range strings.Lines(text) {
		n++
		line = strings.TrimSpace(line)
		if kind := kindOf(line); kind != "" && !strings.HasPrefix(line, "#!") || n > 1 && strings.HasPrefix(line, "#!/") {
			return fmt.Sprintf("%s stands in line %d: it must come before any comment or text, or the machine ignores all", strings.Fields(line)[0], n)
		}
		if rest, ok := strings.CutPrefix(line, "#"); ok && kindOf("#"+strings.TrimSpace(strings.TrimLeft(rest, "#"))) != "" {
			return fmt.Sprintf("write #%s without a blank after #: the machine would ignore it", strings.Fields(rest)[0])
		}
	}
	return "neither #!, #cloud-config, MIME nor Ignition: the machine would ignore it"
}

// inner tells what base64 holds, where that is user data.
func inner(text string) string {
	raw, err := base64.StdEncoding.DecodeString(strings.Join(strings.FieldsFunc(text, unicode.IsSpace), ""))
	switch {
	case err != nil || len(raw) == 0:
		return ""
	case strings.HasPrefix(string(raw), "\x1f\x8b"):
		return "gzip"
	case utf8.Valid(raw) && kindOf(string(raw)) != "":
		return strings.Fields(string(raw))[0]
	case utf8.Valid(raw) && strings.Contains(strings.ToLower(string(raw)), "mime-version:"):
		return "MIME"
	}
	return ""
}
