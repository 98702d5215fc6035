package jinja

import (
	"slices"
	"strings"

	"github.com/autoscaler-agent/autoscaler-agent/internal/lazyregexp"
)

var (
	// standardKeys are what cloud-init gives a template on every cloud, below v1 and at the top.
	standardKeys = strings.Fields(`availability_zone cloud_id cloud_name distro distro_release distro_version instance_id
		kernel_release local_hostname machine platform public_ssh_keys python_version region subplatform system_platform variant`)
	topKeys = strings.Fields(`ds v1 sys_info merged_cfg merged_system_cfg base64_encoded_keys sensitive_keys security_sensitive_keys userdata vendordata vendordata2 features
		range dict lipsum cycler joiner namespace loop self true false none True False None not`)

	jinjaToken = lazyregexp.New(`^(?:([A-Za-z_]\w*)|(\d[\d_]*(?:\.\d+)?)|("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|(\*\*|//|==|!=|<=|>=|[-+/*%~\[\](){}<>=.:|,;]))`)
	between    = strings.Fields("and or in is if else")
)

type jinjaWord struct {
	text    string
	operand bool // a name, number or string
	glued   bool // follows the one before without a blank
}

// words takes an expression apart; false: jinja would not.
func jinjaWords(body string) ([]jinjaWord, bool) {
	var out []jinjaWord
	glued := false
	for body != "" {
		if trimmed := strings.TrimLeft(body, " \t\r\n"); trimmed != body {
			body, glued = trimmed, false
			continue
		}
		m := jinjaToken.FindStringSubmatch(body)
		if m == nil {
			return nil, false
		}
		out = append(out, jinjaWord{m[0], m[4] == "" && !slices.Contains(between, m[0]), glued})
		body, glued = body[len(m[0]):], true
	}
	return out, true
}

// expression tells what keeps an expression from having a value.
func (t *template) expression(body string) error {
	list, ok := jinjaWords(body)
	if !ok || len(list) == 0 || !joined(list) {
		return t.errorf("jinja does not read the expression {{ %s }} and refuses the whole text", body)
	}
	if strings.Contains(body, "default") || strings.Contains(body, "defined") || strings.Contains(body, "d(") {
		return nil
	}
	for i, w := range list {
		name := w.operand && identifier.MatchString(w.text[:1]) && w.text != "not"
		dotted := i > 0 && (list[i-1].text == "." || list[i-1].text == "|" || list[i-1].text == "is")
		keyword := i+1 < len(list) && list[i+1].text == "=" // the name of an argument
		if i > 2 && name && list[i-1].text == "-" && list[i-1].glued && w.glued && list[i-3].text == "." {
			return t.errorf("jinja subtracts in {{ %s }}, and cloud-init ignores the whole text: write %s_%s", body, list[i-2].text, w.text)
		}
		if !name || dotted || keyword {
			continue
		}
		if !slices.Contains(topKeys, w.text) && !slices.Contains(standardKeys, w.text) && !t.own[w.text] {
			return t.errorf("{{ %s }}: cloud-init gives templates no %s: use v1, ds or | default(...)", body, w.text)
		}
		if w.text == "v1" && i+2 < len(list) && list[i+1].text == "." && !slices.Contains(standardKeys, list[i+2].text) {
			return t.errorf("{{ %s }}: v1 has no %s; it has %s", body, list[i+2].text, strings.Join(standardKeys, ", "))
		}
	}
	return nil
}

// joined tells whether operands and operators take turns; brackets are not counted.
func joined(list []jinjaWord) bool {
	after := false // an operand, or what ends one
	for _, w := range list {
		unary := !after && slices.Contains([]string{"not", "-", "+", "(", "[", "{", ":", ","}, w.text)
		switch ends := strings.Contains(")]}", w.text); {
		case w.text == "not" || unary:
			after = false
		case w.operand && after, !w.operand && !after && !ends:
			return false
		default:
			after = w.operand || ends
		}
	}
	return after
}
