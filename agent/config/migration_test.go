package config

import (
	stdflag "flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/autoscaler-agent/autoscaler-agent/agent/groups"
)

var updatePages = stdflag.Bool("update", false, "rewrite what tests keep in the manual")

// TestMigrationHasEveryFlag: docs/migration.md has each flag of Cluster Autoscaler (testdata/ca-flags.txt) with its
// variable, or the reason why there is none, as the errors about flags say it.
func TestMigrationHasEveryFlag(t *testing.T) {
	list, err := os.ReadFile("testdata/ca-flags.txt")
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, v := range Variables() {
		known[v.Name] = true
	}
	var withVariable strings.Builder
	withReason := map[string][]string{}
	flags := 0
	for line := range strings.Lines(string(list)) {
		fields := strings.Fields(line)
		if strings.HasPrefix(line, "#") || len(fields) != 3 {
			continue
		}
		flags++
		name := "`--" + fields[0] + "`"
		ours, why := caFlags[fields[0]], caElsewhere()[fields[0]]
		if (ours == "") == (why == "") {
			t.Errorf("%s has the variable %q and the reason %q: want one of them", name, ours, why)
		}
		if ours != "" && !known[Prefix+"_"+ours] {
			t.Errorf("%s: there is no %s_%s", name, Prefix, ours)
		}
		if ours != "" {
			fmt.Fprintf(&withVariable, "- %s: `%s_%s`\n", name, Prefix, ours)
		} else {
			withReason[why] = append(withReason[why], name)
		}
		if answer := AnswerToFlag("--" + fields[0]); !strings.HasPrefix(answer, "is Cluster Autoscaler's") || strings.HasSuffix(answer, "needed here; remove it") {
			t.Errorf("%s is answered %q: say why", name, answer)
		}
	}
	if flags < 140 {
		t.Errorf("only %d flags", flags)
	}
	for _, of := range []map[string]string{caFlags, caElsewhere()} {
		for name := range of {
			if !strings.Contains("\n"+string(list), "\n"+name+" ") {
				t.Errorf("--%s is no flag of Cluster Autoscaler", name)
			}
		}
	}
	comparePage(t, "\n"+withVariable.String()+"\nWithout a variable:\n\n"+reasons(withReason)+"\n")
}

// reasons lists the flags of each reason, "not needed" behind "no".
func reasons(flags map[string][]string) string {
	var out strings.Builder
	for _, why := range slices.Sorted(maps.Keys(flags)) {
		fmt.Fprintf(&out, "- %s: %s\n", strings.Join(flags[why], ", "), strings.Replace(why, "no: ", "", 1))
	}
	return out.String()
}

// comparePage compares the flags of docs/migration.md with text, or writes them.
func comparePage(t *testing.T, text string) {
	t.Helper()
	const page = "../../docs/migration.md"
	const begin, end = "<!-- the flags begin: go test ./agent/config -run TestMigrationHasEveryFlag -update -->\n", "<!-- the flags end -->\n"
	raw, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok := strings.Cut(string(raw), begin)
	old, tail, closed := strings.Cut(rest, end)
	switch {
	case !ok || !closed:
		t.Fatal("docs/migration.md lacks the marks of the flags")
	case old == text:
	case *updatePages:
		if err := os.WriteFile(page, []byte(head+begin+text+end+tail), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Error("the flags in docs/migration.md are not those of the source; run: go test ./agent/config -run TestMigrationHasEveryFlag -update")
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
