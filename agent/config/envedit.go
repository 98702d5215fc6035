package config

import (
	"errors"
	"os"
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

// JudgeSet tells what is wrong with values that are to be added to the environment file of the
// unit. The process's environment is as before.
func JudgeSet(pairs [][2]string) error {
	before := os.Environ()
	defer func() {
		os.Clearenv()
		for _, pair := range before {
			name, value, _ := strings.Cut(pair, "=")
			_ = os.Setenv(name, value) // it was set
		}
	}()
	_, _, _ = loadEnvFile("") // what is wrong with the file is told by check
	for _, p := range pairs {
		if os.Getenv(p[0]) == "" {
			_ = os.Setenv(p[0], p[1]) // a name that cannot be set is refused by its form
		}
	}
	_, err := Load()
	var errs []error
	for _, e := range Flatten(err) {
		if slices.ContainsFunc(pairs, func(p [2]string) bool { return strings.HasPrefix(e.Error(), p[0]+" is ") }) {
			errs = append(errs, e)
		}
	}
	return errors.Join(errs...)
}
