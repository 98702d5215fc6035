package config

import (
	"regexp"
	"slices"
	"strings"
)

// SetInEnvFile returns the text of an environment file with a variable set: in the place of
// its commented line, or else at the end. A variable that the text sets stays as it is.
func SetInEnvFile(text, name, value string) (string, error) {
	vars, err := ParseEnvFile(text)
	if err != nil || slices.ContainsFunc(vars, func(v [2]string) bool { return v[0] == name }) {
		return text, err
	}
	line := name + "=" + quoteEnv(value)
	commented := regexp.MustCompile(`(?m)^#[ \t]*` + regexp.QuoteMeta(name) + `=.*$`)
	if at := commented.FindStringIndex(text); at != nil {
		return text[:at[0]] + line + text[at[1]:], nil
	}
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	return text + line + "\n", nil
}
