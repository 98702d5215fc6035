// Package joinfile reads the join information that the agent publishes for workers, and finds
// out which version the cluster's API server has. It refuses a file without what a machine
// needs, and knows no format of user data.
package joinfile

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/autoscaler-agent/autoscaler-agent/internal/textfile"
)

// most is more than any join information has.
const most = 1 << 20

// Default is where the agent publishes.
const Default = "/etc/worker.env"

// Read reads the file that the agent publishes. Other names are ignored:
// operators add their own variables to that file. The token may be missing where the
// machine gets one of its own.
func Read(file string, needToken bool) (map[string]string, error) {
	text, err := textfile.Read(file, most)
	if err != nil {
		remedy := ""
		if errors.Is(err, fs.ErrNotExist) {
			remedy = ": start the agent, which publishes it, or name another file with --join-file"
		}
		return nil, fmt.Errorf("read join information: %w%s", err, remedy)
	}
	vars, err := parse(file, text)
	if err != nil {
		return nil, err
	}
	for _, name := range []string{"JOIN_TOKEN", "JOIN_CERT_HASH", "JOIN_ENDPOINT"} {
		if vars[name] != "" || name == "JOIN_TOKEN" && !needToken {
			continue
		}
		remedy := "wait until the agent has published it (journalctl -u autoscaler-agent), or write it by hand"
		if name == "JOIN_TOKEN" {
			remedy += "; with AUTOSCALER_BOOTSTRAP_TOKENS=none machines on AWS attest: give --attest"
		}
		return nil, fmt.Errorf("read join information: %s: %s is missing: %s", file, name, remedy)
	}
	return vars, nil
}

// apiServerVersion is the version of the API server that the agent found: "" where the file
// names none, and where there is no file that the caller may read.
func apiServerVersion(file string) (string, error) {
	text, err := textfile.Read(file, most)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read join information: %w", err)
	}
	vars, err := parse(file, text)
	return vars["JOIN_KUBERNETES_VERSION"], err
}

func parse(file string, text []byte) (map[string]string, error) {
	if err := textfile.Plain(string(text)); err != nil {
		return nil, fmt.Errorf("read join information: %s: %w", file, err)
	}
	vars := map[string]string{}
	for lines, n := bufio.NewScanner(bytes.NewReader(text)), 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		name, value, ok := strings.Cut(strings.TrimPrefix(line, "export "), "=")
		if !ok {
			return nil, fmt.Errorf("read join information: %s line %d: want NAME=VALUE", file, n)
		}
		value = unquote(strings.TrimSpace(value))
		if first, twice := vars[name]; twice && first != value {
			return nil, fmt.Errorf("read join information: %s line %d: %.60s is given twice with two values: keep one", file, n, name)
		}
		vars[name] = value
	}
	return vars, nil
}

// unquote removes one pair of quotes; join information has no character that needs more.
func unquote(s string) string {
	if n := len(s); n >= 2 && (s[0] == '"' || s[0] == '\'') && s[n-1] == s[0] {
		return s[1 : n-1]
	}
	return s
}
