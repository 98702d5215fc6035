package install

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	"github.com/autoscaler-agent/autoscaler-agent/agent/config"
)

// UnitEnvironment is what the unit's files give the agent beside agent.env, which the agent's
// commands read themselves: Environment=, further files of EnvironmentFile=, and the credentials
// of LoadCredential= that stand for variables. It reads what root may read.
func (h Host) UnitEnvironment() []string {
	text, _ := h.Run(context.Background(), "", "systemctl", "cat", unit) // a unit that is not there sets nothing
	var direct, files, credentials []string
	for line := range strings.Lines(strings.ReplaceAll(text, "\\\n", " ")) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		list := map[string]*[]string{"Environment": &direct, "EnvironmentFile": &files, "LoadCredential": &credentials}[name]
		switch value = strings.TrimSpace(value); {
		case list == nil:
		case value == "": // forget what came before
			*list = nil
		case name == "Environment":
			*list = append(*list, words(value)...)
		default:
			*list = append(*list, value)
		}
	}
	out := direct
	for _, file := range files {
		if file = strings.TrimPrefix(file, "-"); file != envFile {
			out = append(out, h.variablesOf(file)...)
		}
	}
	for _, c := range credentials {
		id, file, ok := strings.Cut(c, ":")
		if !ok || !config.IsCredential(id) || !filepath.IsAbs(file) {
			continue
		}
		if data, err := os.ReadFile(h.path(file)); err == nil { // where it is missing the unit does not start, and says so
			out = append(out, id+"="+strings.TrimRight(string(data), "\r\n"))
		}
	}
	return out
}

// variablesOf reads an environment file; nothing where it cannot be read.
func (h Host) variablesOf(file string) (out []string) {
	data, err := h.readIf(file)
	if err != nil {
		return nil
	}
	vars, _ := config.ParseEnvFile(string(data)) // what it understands is what systemd does
	for _, v := range vars {
		out = append(out, v[0]+"="+v[1])
	}
	return out
}

// words splits a line of a unit file as systemd does: at white space outside of quotes.
func words(line string) (out []string) {
	var word strings.Builder
	quote, begun := rune(0), false
	for _, c := range line + " " {
		switch {
		case quote == 0 && (c == ' ' || c == '\t'):
			if begun {
				out = append(out, word.String())
			}
			word.Reset()
			begun = false
		case quote == 0 && (c == '"' || c == '\''):
			quote, begun = c, true
		case c == quote:
			quote = 0
		default:
			word.WriteRune(c)
			begun = true
		}
	}
	return out
}
