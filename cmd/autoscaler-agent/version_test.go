package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const builtVersion, builtCommit, builtDate = "v9.8.7-test", "0123456789abcdef0123456789abcdef01234567", "2026-11-22T12:00:00Z"

// TestBuild: what the Makefile gives the linker is what the binary says, and with the
// tag of `make man` it writes a page for every command.
func TestBuild(t *testing.T) {
	tool, err := exec.LookPath("make")
	if err != nil {
		t.Skip("make is not installed: the Makefile's linker flags are not tried")
	}
	dry := exec.CommandContext(t.Context(), tool, "-n", "-C", "../..", "build", "VERSION="+builtVersion, "COMMIT="+builtCommit, "DATE="+builtDate)
	said, err := dry.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	flags := regexp.MustCompile(`-ldflags '([^']+)'`).FindSubmatch(said)
	if flags == nil {
		t.Fatalf("no -ldflags in %s", said)
	}
	binary := filepath.Join(t.TempDir(), "autoscaler-agent")
	build := exec.CommandContext(t.Context(), "go", "build", "-tags", "man", "-ldflags", string(flags[1]), "-o", binary, ".")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	t.Run("version", func(t *testing.T) { builtVersions(t, binary) })
	t.Run("man", func(t *testing.T) { manPages(t, binary) })
}

func builtVersions(t *testing.T, binary string) {
	out, err := exec.CommandContext(t.Context(), binary, "version").CombinedOutput()
	if err != nil || !strings.HasPrefix(string(out), "autoscaler-agent "+builtVersion+" go1.") || !strings.HasSuffix(string(out), "\ncommit "+builtCommit+" of "+builtDate+"\n") {
		t.Errorf("%v: %q", err, out)
	}
	page, err := os.ReadFile("../../docs/commands.md")
	if err != nil {
		t.Fatal(err)
	}
	if example := regexp.MustCompile(`(?m)^autoscaler-agent v\S+ go1\.\S+ linux/amd64\ncommit [0-9a-f]{40} of 20\S+Z\n`); !example.Match(page) || !regexp.MustCompile(`^autoscaler-agent v\S+ go1\.\S+ \S+/\S+\ncommit [0-9a-f]{40} of 20\S+Z\n$`).Match(out) {
		t.Errorf("docs/commands.md shows another form of version than %q", out)
	}
	out, err = exec.CommandContext(t.Context(), binary, "version", "--output", "json").Output()
	if err != nil {
		t.Fatal(err)
	}
	var v map[string]string
	if err := json.Unmarshal(out, &v); err != nil || v["version"] != builtVersion || v["commit"] != builtCommit || v["date"] != builtDate || v["go"] == "" || v["platform"] == "" {
		t.Errorf("%v: %s", err, out)
	}
}

func manPages(t *testing.T, binary string) {
	dir := filepath.Join(t.TempDir(), "new", "man8")
	if out, err := exec.CommandContext(t.Context(), binary, "man", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.8"))
	if err != nil || len(files) < 14 {
		t.Errorf("%d pages, %v", len(files), err)
	}
	for _, name := range []string{"autoscaler-agent", "autoscaler-agent-explain", "autoscaler-agent-node-restore", "autoscaler-agent-userdata-render"} {
		text, err := os.ReadFile(filepath.Join(dir, name+".8"))
		if err != nil || !strings.Contains(string(text), ".SH EXAMPLE") || !strings.Contains(string(text), `"Nov 2026" "autoscaler-agent `+builtVersion) {
			t.Errorf("%s.8: %v: no example, or not the build's version and date:\n%s", name, err, text)
		}
	}
	if out, err := exec.CommandContext(t.Context(), binary, "man").CombinedOutput(); err == nil || !strings.Contains(string(out), "say where to") {
		t.Errorf("%v: %s", err, out)
	}
}
