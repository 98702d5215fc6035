package lint

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// reported are inputs of public bug reports, by their file in testdata/reported. Each has the
// findings that a machine's boot justifies; cloud-init is asked in test/suite/cloudinit.
var reported = map[string]string{
	"u07-runcmd-dict.yaml":          "W6f:3",
	"u08-owner.yaml":                "W10w:9 W6f:6",
	"u11-jinja-capi.yaml":           "",
	"u17-boothook.txt":              "W3w:0",
	"v01-newline-cloud-config.yaml": "",
	"v04-jinja-script.sh":           "",
	"v10-mime-jinja.txt":            "",
	"v11-literal-empty-hash.sh":     "W10f:3 W10f:3",
	"v13-write-files-octal.yaml":    "",
	"w01-cabpk-shape.yaml":          "",
	"w04-perm-0644-int.yaml":        "",
}

func TestReported(t *testing.T) {
	files, err := filepath.Glob("testdata/reported/*")
	if err != nil || len(files) != len(reported) {
		t.Fatalf("%d files, want %d: %v", len(files), len(reported), err)
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		want, ok := reported[filepath.Base(f)]
		if found := Check(text, Options{}); !ok || rules(found) != want {
			t.Errorf("%s: %q, want %q: %+v", f, rules(found), want, found)
		}
	}
}

type tableCase struct{ name, want, text string }

// cases reads testdata/cases.txt.
func cases(t testing.TB) []tableCase {
	t.Helper()
	table, err := os.ReadFile("testdata/cases.txt")
	if err != nil {
		t.Fatal(err)
	}
	var out []tableCase
	for line := range strings.Lines(string(table)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		column := strings.SplitN(strings.TrimSuffix(line, "\n"), "\t", 3)
		if len(column) != 3 {
			t.Fatalf("not three columns: %s", line)
		}
		text, err := strconv.Unquote(column[2])
		if err != nil {
			t.Fatalf("%s: %v", column[0], err)
		}
		out = append(out, tableCase{column[0], strings.TrimPrefix(column[1], "accepted"), text})
	}
	return out
}

func TestCases(t *testing.T) {
	list := cases(t)
	if len(list) < 400 {
		t.Fatalf("%d cases: the table is cut", len(list))
	}
	for _, c := range list {
		found := Check([]byte(c.text), Options{})
		if rules(found) != c.want {
			t.Errorf("%s: %q, want %q: %+v", c.name, rules(found), c.want, found)
		}
		for _, f := range found {
			if strings.Contains(f.Text, "0123456789abcdef") {
				t.Errorf("%s: a finding repeats a token: %s", c.name, f.Text)
			}
		}
	}
}

// TestFormsAreLookedInto: a form that is accepted is not one that is passed over. The join of each
// accepted input gets its token in its arguments, and that is found.
func TestFormsAreLookedInto(t *testing.T) {
	const join = "kubeadm join --config /run/join.yaml"
	n := 0
	for _, c := range cases(t) {
		if strings.Contains(c.want, "f:") || strings.Contains(c.want, "W7w") || !strings.Contains(c.text, join) {
			continue
		}
		n++
		text := strings.ReplaceAll(c.text, join, "kubeadm join --token abcdef.0123456789abcdef")
		if got := rules(Check([]byte(text), Options{})); !strings.Contains(got, "W8f") {
			t.Errorf("%s: a token in the arguments is not found: %q", c.name, got)
		}
	}
	if n < 60 {
		t.Errorf("%d accepted inputs with a join, want 60 or more", n)
	}
}
