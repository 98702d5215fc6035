package config

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/autoscaler-agent/autoscaler-agent/agent/groups"
)

var (
	flagRow  = regexp.MustCompile("(?m)^\\| `--([a-z0-9-]+)` \\| ([0-9.]+) to ([0-9.]+) \\| (.*) \\|$")
	link     = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	variable = regexp.MustCompile("`(AUTOSCALER_[A-Z0-9_]+)`")
)

// TestMigrationHasEveryFlag: the table of docs/cluster-autoscaler-flags.md has one row for each flag of
// Cluster Autoscaler (testdata/ca-flags.txt), each variable in it exists, and the errors about
// flags name the same one.
func TestMigrationHasEveryFlag(t *testing.T) {
	page, err := os.ReadFile("../../docs/cluster-autoscaler-flags.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string][]string{}
	for _, m := range flagRow.FindAllStringSubmatch(string(page), -1) {
		if rows[m[1]] != nil {
			t.Errorf("--%s has two rows", m[1])
		}
		rows[m[1]] = m[2:]
	}
	list, err := os.ReadFile("testdata/ca-flags.txt")
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, v := range Variables() {
		known[v.Name] = true
	}
	flags := 0
	for line := range strings.Lines(string(list)) {
		fields := strings.Fields(line)
		if strings.HasPrefix(line, "#") || len(fields) != 3 {
			continue
		}
		flags++
		row := rows[fields[0]]
		delete(rows, fields[0])
		if len(row) != 3 || row[0] != fields[1] || row[1] != fields[2] {
			t.Errorf("docs/cluster-autoscaler-flags.md has no row of --%s, releases %s to %s", fields[0], fields[1], fields[2])
			continue
		}
		names := variable.FindAllStringSubmatch(row[2], -1)
		for _, name := range names {
			if !known[name[1]] {
				t.Errorf("--%s: there is no %s", fields[0], name[1])
			}
		}
		if ours := FromClusterAutoscaler("--" + fields[0]); ours != "" && !strings.Contains(row[2], "`"+ours+"`") {
			t.Errorf("--%s: an error says %s, the page %s", fields[0], ours, row[2])
		} else if first := strings.HasPrefix(row[2], "`AUTOSCALER_"); ours == "" && first {
			t.Errorf("--%s: an error about the flag does not say %s", fields[0], names[0][1])
		}
		words := link.ReplaceAllString(strings.ReplaceAll(row[2], "`", ""), "docs/$1")
		if why := caElsewhere()[fields[0]]; (caFlags[fields[0]] == "") != (why == words) {
			t.Errorf("--%s: an error says %q, the page %q: caflags.txt has the page's words", fields[0], why, words)
		}
		if answer := AnswerToFlag("--" + fields[0]); !strings.HasPrefix(answer, "is Cluster Autoscaler's") || strings.HasSuffix(answer, "needed here; remove it") {
			t.Errorf("--%s is answered %q: say why", fields[0], answer)
		}
	}
	for flag := range rows {
		t.Errorf("--%s is no flag of Cluster Autoscaler", flag)
	}
	if flags < 140 {
		t.Errorf("only %d flags", flags)
	}
	for flag := range caElsewhere() {
		if caFlags[flag] != "" || !strings.Contains("\n"+string(list), "\n"+flag+" ") {
			t.Errorf("--%s: caflags.txt has a flag with a variable, or one that is no flag", flag)
		}
	}
	for flag := range caFlags {
		if !strings.Contains("\n"+string(list), "\n"+flag+" ") {
			t.Errorf("--%s is answered and is no flag of Cluster Autoscaler", flag)
		}
	}
}

// TestExamplesAreRight: the files in examples are YAML, their settings are variables of the
// agent, and a groups.yaml in them is one.
func TestExamplesAreRight(t *testing.T) {
	known := map[string]bool{}
	for _, v := range Variables() {
		known[v.Name] = true
	}
	for _, name := range []string{"ansible/leader.yml", "cloud-init/leader.yaml"} {
		text, err := os.ReadFile(filepath.Join("../../examples", name))
		if err != nil {
			t.Fatal(err)
		}
		var doc any
		if err := yaml.UnmarshalStrict(text, &doc); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		used := regexp.MustCompile(`AUTOSCALER_[A-Z0-9_]+`).FindAllString(string(text), -1)
		if len(used) == 0 || slices.ContainsFunc(used, func(v string) bool { return !known[v] }) {
			t.Errorf("%s sets %q", name, used)
		}
	}
	var boot struct {
		Files []struct{ Path, Content string } `json:"write_files"`
	}
	text, err := os.ReadFile("../../examples/cloud-init/leader.yaml")
	if err == nil {
		err = yaml.Unmarshal(text, &boot)
	}
	if err != nil || len(boot.Files) != 1 {
		t.Fatalf("%+v, %v", boot, err)
	}
	if _, err := groups.Parse([]byte(boot.Files[0].Content), sections()); err != nil {
		t.Error(err)
	}
}
