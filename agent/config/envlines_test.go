package config

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestEnvFileLines: a line that would be without effect is an error that names its line, the
// name that was meant and no value.
func TestEnvFileLines(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want []string // none: it is right
	}{
		"right":            {"# x\nAUTOSCALER_LISTEN=off\nAWS_REGION=eu-west-1\nHTTPS_PROXY=http://p:1\n", nil},
		"export":           {"\nexport AUTOSCALER_LISTEN=off\n", []string{":2: ", "without export"}},
		"foreign export":   {"export AWS_SECRET_ACCESS_KEY=s3cret\n", []string{":1: ", "without export"}},
		"colon":            {"AUTOSCALER_LISTEN: off\n", []string{":1: ", `"AUTOSCALER_LISTEN:"`, "with = after the name"}},
		"colon and equals": {"AUTOSCALER_OBSERVE_SCHEDULERS: a=b\n", []string{"AUTOSCALER_OBSERVE_SCHEDULERS=VALUE"}},
		"lower case":       {"autoscaler_listen=off\n", []string{"autoscaler_listen", "did you mean AUTOSCALER_LISTEN?"}},
		"short prefix":     {"AUTOSCALE_LISTEN=off\n", []string{"did you mean AUTOSCALER_LISTEN?"}},
		"wrong prefix":     {"AUTOSCALAR_AWS_REGION=x\n", []string{"did you mean AUTOSCALER_AWS_REGION?"}},
		"dashes":           {"AUTOSCALER-LISTEN=off\n", []string{"write AUTOSCALER_LISTEN=VALUE"}},
		"word":             {"hello\n", []string{"write NAME=VALUE"}},
		"flag":             {"--scale-down-unneeded-time=10m\n", []string{"write AUTOSCALER_SCALING_UNNEEDED_FOR=VALUE"}},
		"flag's name":      {"SCALE_DOWN_UNNEEDED_TIME=10m\n", []string{"write AUTOSCALER_SCALING_UNNEEDED_FOR"}},
		"after a quote":    {"AUTOSCALER_NODE_NAME=\"a\nb\"\nhello\n", []string{":3: "}},
		"two":              {"hello\nAUTOSCALE_LISTEN=off\n", []string{":1: ", ":2: "}},
		"no end":           {"hello", []string{":1: "}},
		"NUL":              {"A=\x00", []string{"NUL byte"}},
		"BOM":              {"\ufeffAUTOSCALER_LISTEN=off\n", []string{"byte order mark"}},
		"not UTF-8":        {"# x\nAUTOSCALER_LISTEN=\xe9\n", []string{"line 2 is not UTF-8"}},
		"rest of a secret": {"OS_PASSWORD=a\ns3cret/+==\ns3cret\n", []string{":2: systemd ignores the line: ", ":3: systemd ignores the line: "}},
		"after a blank":    {"OS_PASSWORD s3cret\n", []string{`"OS_PASSWORD"...`}},
		"long value":       {"AUTOSCALER_LISTEN=" + strings.Repeat("s3cret", 30_000) + "\n", []string{":1: the assignment to AUTOSCALER_LISTEN is longer than 131072 bytes"}},
		"long name":        {"AUTOSCALER_" + strings.Repeat("A", 300_000) + "=1\n", []string{":1: the assignment to AUTOSCALER_AAA"}},
		"another kind":     {strings.Repeat("x y\n", 100), []string{":20: ", "80 more lines have faults"}},
	} {
		t.Run(name, func(t *testing.T) {
			clean(t)
			for _, v := range []string{"AWS_REGION", "HTTPS_PROXY", "AUTOSCALER_LISTEN"} {
				t.Setenv(v, os.Getenv(v)) // restored at the end of the test
			}
			path := filepath.Join(t.TempDir(), "agent.env")
			if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
			err := LoadEnvFile(path)
			if (err == nil) != (c.want == nil) {
				t.Fatalf("error %v, want %q", err, c.want)
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error %v, want %q in it", err, want)
				}
			}
			if err != nil && (strings.Contains(err.Error(), "s3cret") || !strings.Contains(err.Error(), path)) {
				t.Errorf("error %v names no file, or a value", err)
			}
		})
	}
}

// TestRepeated: a name that stands twice is told once with the line that counts, which is the last one, and without a value.
func TestRepeated(t *testing.T) {
	for text, want := range map[string]string{
		"AWS_REGION=a\nAUTOSCALER_LISTEN=off\nAWS_REGION=s3cret\n": "AWS_REGION stands on the lines 1 and 3: line 3 counts, remove the others",
		"A=1\nA=\\\n2\n A =\n":                     "A stands on the lines 1, 2 and 4: line 4 counts, remove the others",
		"A=1\r\nA=1\r\n":                           "A stands on the lines 1 and 2: line 2 counts, remove the others",
		strings.Repeat("A=1\n", 100):               "A stands on the lines 1, 2, 3, 4, 5 and 100: line 100 counts, remove the others",
		"A=1\na=1\n# A=2\nA_B=3\nB=\"A=1\nA=2\"\n": "",
		"A=1\nA=\x00":                              "", // the file is not read at all
	} {
		path := filepath.Join(t.TempDir(), "agent.env")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if want != "" {
			want = path + ": " + want
		}
		if got := strings.Join(repeated(path), "\n"); got != want {
			t.Errorf("%.40q: %q, want %q", text, got, want)
		}
	}
	if got := repeated(filepath.Join(t.TempDir(), "none")); got != nil {
		t.Errorf("no file: %q", got)
	}
}

// TestManyUnknownNames: of many names that are no variable the first are told, and how many more there are.
func TestManyUnknownNames(t *testing.T) {
	var environ []string
	for i := range 300 {
		environ = append(environ, fmt.Sprintf("AUTOSCALER_NOTHING_%03d=1", i))
	}
	list := Flatten(unknown(environ))
	if n := len(list); n != 21 || !strings.Contains(list[20].Error(), "and 280 more names") {
		t.Errorf("%d errors, the last one %v", n, list[n-1])
	}
}

// TestClusterAutoscalersNames: each flag of the table leads to a variable that exists.
func TestClusterAutoscalersNames(t *testing.T) {
	known := map[string]bool{}
	for _, v := range Variables() {
		known[v.Name] = true
	}
	for flag := range caFlags {
		if got := FromClusterAutoscaler("--" + flag); !known[got] {
			t.Errorf("--%s leads to %q, which is no variable", flag, got)
		}
	}
	for _, name := range []string{"EXPANDER", "NODES", "PATH", "", "KUBECONFIG"} {
		if got := FromClusterAutoscaler(name); got != "" {
			t.Errorf("%q leads to %s", name, got)
		}
	}
	clean(t)
	t.Setenv("AUTOSCALER_SCALE_DOWN_UNNEEDED_TIME", "10m")
	if _, err := Load(); err == nil || !strings.Contains(err.Error(), "AUTOSCALER_SCALE_DOWN_UNNEEDED_TIME is Cluster Autoscaler's name: write AUTOSCALER_SCALING_UNNEEDED_FOR") {
		t.Errorf("error %v", err)
	}
}

// TestSocketPath: the running agent is found whatever else is wrong.
func TestSocketPath(t *testing.T) {
	path := filepath.Join(t.TempDir(), "agent.env")
	if err := os.WriteFile(path, []byte("AUTOSCALER_LISTEN=nowhere\nhello\nAUTOSCALER_SOCKET=/run/x.sock\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	clean(t)
	for _, c := range [][3]string{{"", path, "/run/x.sock"}, {"/e.sock", path, "/e.sock"}, {"", path + ".missing", "/run/autoscaler-agent/agent.sock"}} {
		t.Setenv("AUTOSCALER_SOCKET", c[0])
		if got := SocketPath(c[1]); got != c[2] {
			t.Errorf("environment %q, file %s: %q, want %q", c[0], c[1], got, c[2])
		}
	}
}
