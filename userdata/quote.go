package userdata

import (
	"encoding/json"
	"strings"
)

// shellQuote returns s as one POSIX shell word. Inside single quotes nothing is
// special but the quote itself.
func shellQuote(s string) string {
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// yamlQuote returns s as a double-quoted scalar. Every JSON string is a YAML one,
// and an encoded line break cannot end a here-document.
func yamlQuote(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		return `""` // a string always marshals
	}
	return string(b)
}

// hereQuote returns s as text for an unquoted here-document, in which the shell
// still expands $, ` and \.
func hereQuote(s string) string {
	return strings.NewReplacer(`\`, `\\`, "`", "\\`", "$", `\$`).Replace(s)
}
