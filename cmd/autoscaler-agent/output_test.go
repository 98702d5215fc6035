package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/spf13/cobra"
	yaml "go.yaml.in/yaml/v3"
)

// TestOutputFlag: every command whose result a program may read has --output. The others are
// listed here with what they print.
func TestOutputFlag(t *testing.T) {
	without := map[string]string{
		"run": "the journal", "completion": "a script", "help": "text",
		"iam-policy": "JSON", "openstack-rules": "JSON",
		"leader-config": "a script; -o is its file", "userdata render": "user data; -o is its file",
	}
	seen := 0
	var walk func(c *cobra.Command, path string)
	walk = func(c *cobra.Command, path string) {
		for _, sub := range c.Commands() {
			walk(sub, strings.TrimSpace(path+" "+sub.Name()))
		}
		if c.HasSubCommands() || c.Hidden {
			return
		}
		f := c.Flags().Lookup("output")
		switch why, exempt := without[path]; {
		case exempt && f != nil:
			t.Errorf("%s has --output, and the list of this test says that it prints %s", path, why)
		case !exempt && (f == nil || f.Shorthand != "o"):
			t.Errorf("%s has no -o, --output", path)
		case !exempt:
			seen++
		}
	}
	walk(newRoot(), "")
	if seen < 12 {
		t.Errorf("only %d commands have --output", seen)
	}
}

// TestUserdataOutput: what lint and downloads print is the same in json and yaml, and the exit
// code does not depend on the form.
func TestUserdataOutput(t *testing.T) {
	plain(t)
	file := filepath.Join(t.TempDir(), "worker.sh")
	if err := os.WriteFile(file, []byte("#!/bin/sh\nif true; then\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		code int
		keys []string
	}{
		{[]string{"userdata", "lint", file}, exitFailed, []string{"file", "bytes", "faults", "findings"}},
		{[]string{"userdata", "downloads", "--kubernetes-version", "v1.36.3", "--arch", "amd64"}, exitOK, []string{"name", "url", "sha256", "path"}},
	} {
		for format, decode := range map[string]func([]byte, any) error{"json": json.Unmarshal, "yaml": yaml.Unmarshal} {
			var out, errout bytes.Buffer
			if code := execute(t.Context(), append(c.args, "-o", format), &out, &errout); code != c.code {
				t.Errorf("%q as %s: code %d, want %d: %s", c.args, format, code, c.code, errout.String())
			}
			var v any
			if err := decode(out.Bytes(), &v); err != nil {
				t.Fatalf("%q as %s: %v\n%s", c.args, format, err, out.String())
			}
			if list, ok := v.([]any); ok && len(list) > 0 {
				v = list[0]
			}
			for _, key := range c.keys {
				if value, there := v.(map[string]any)[key]; !there || value == "" {
					t.Errorf("%q as %s has no %s: %v", c.args, format, key, v)
				}
			}
		}
	}
}

// full is a disk without room.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

// TestFullDisk: a result that could not be written is one line and an exit code.
func TestFullDisk(t *testing.T) {
	plain(t)
	for _, line := range []string{"iam-policy leader --cluster a", "openstack-rules", "check --print-env", "check --print-schema", "version", "version -o json",
		"userdata downloads --kubernetes-version v1.36.3", "completion bash", "help", "check --offline", "leader-config --endpoint k8s.example.net:6443 --kubernetes-version v1.36.3"} {
		var errout bytes.Buffer
		code := execute(t.Context(), strings.Fields(line), full{}, &errout)
		if code != exitFailed || strings.Count(errout.String(), "\n") != 1 || !strings.Contains(errout.String(), "no space left on device") {
			t.Errorf("%s: code %d, %q", line, code, errout.String())
		}
	}
}
