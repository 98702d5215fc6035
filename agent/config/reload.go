package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
)

// EnvSeen is what an environment file said when the agent started.
type EnvSeen struct {
	path string
	vars [][2]string
	err  error // it may not be read
}

// SeeEnvFile reads the environment file that is in force, so that Changes can tell later what
// has changed. A missing one says nothing.
func SeeEnvFile(path string) *EnvSeen {
	data, err := readEnvFile(path)
	if path == "" {
		path = EnvFile
	}
	vars, bad := ParseEnvFile(string(data))
	return &EnvSeen{path: path, vars: vars, err: errors.Join(err, bad)}
}

// Changes reads the file anew. It returns the log level where that has changed since the last
// call, and the names of the other variables that have since the start. A file with a mistake is an error: a restart would fail.
func (e *EnvSeen) Changes() (level string, others []string, err error) {
	data, err := readEnvFile(e.path)
	switch {
	case errors.Is(err, fs.ErrPermission) && errors.Is(e.err, fs.ErrPermission):
		return "", nil, nil // systemd reads it as root; only a restart can
	case errors.Is(err, fs.ErrNotExist) && len(e.vars) == 0:
		return "", nil, nil
	case err != nil:
		return "", nil, err
	}
	p, err := parseEnv(string(data))
	if err != nil {
		return "", nil, fmt.Errorf("%s: %w", e.path, err)
	}
	if _, faults := p.faultsOf(e.path); faults != nil {
		return "", nil, faults
	}
	before, now := last(e.vars), last(p.out)
	for _, vars := range []map[string]string{before, now} {
		if vars[levelVariable] == "" {
			vars[levelVariable] = "info"
		}
	}
	for _, name := range changed(before, now) {
		if name != levelVariable {
			others = append(others, name)
			continue
		}
		level = now[name]
		if remedy := faultOf(name, level); remedy != "" {
			return "", others, fmt.Errorf("%s: %s is %q: %s", e.path, name, level, remedy)
		}
	}
	if level != "" {
		e.vars = append(e.vars, [2]string{levelVariable, level})
	}
	return level, others, nil
}

const levelVariable = Prefix + "_LOG_LEVEL"

// last is the value of each name that holds: the last line.
func last(vars [][2]string) map[string]string {
	out := map[string]string{}
	for _, v := range vars {
		out[v[0]] = v[1]
	}
	return out
}

func changed(before, now map[string]string) []string {
	var out []string
	for name, value := range now {
		if was, known := before[name]; !known || was != value {
			out = append(out, name)
		}
	}
	for name := range before {
		if _, still := now[name]; !still {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// IsCredential tells whether a credential of the unit stands for the variable of its name.
func IsCredential(name string) bool {
	return validName(name) && slices.ContainsFunc([]string{Prefix + "_", "AWS_", "OS_"}, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}

// LoadCredentials takes secrets from the files of systemd's LoadCredential=: a file of
// $CREDENTIALS_DIRECTORY whose name is that of a variable of this agent, of AWS or of OpenStack
// sets it. So they stand neither in agent.env nor in the environment that /proc shows. A
// variable that the environment has already keeps its value.
func LoadCredentials() error {
	dir := os.Getenv("CREDENTIALS_DIRECTORY")
	if dir == "" {
		return nil
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("read credentials of the unit: %w", err)
	}
	for _, e := range entries {
		name := e.Name()
		if !IsCredential(name) || os.Getenv(name) != "" {
			continue
		}
		data, err := os.ReadFile(dir + "/" + name)
		if err != nil {
			return fmt.Errorf("read credential %s of the unit: %w", name, err)
		}
		value := strings.TrimRight(string(data), "\r\n")
		if strings.ContainsAny(value, "\r\n\x00") {
			return fmt.Errorf("credential %s of the unit has several lines: write the value alone into the file", name)
		}
		if err := os.Setenv(name, value); err != nil {
			return fmt.Errorf("credential %s of the unit: %w", name, err)
		}
	}
	return nil
}
