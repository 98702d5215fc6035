package report

import (
	"errors"
	"flag"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/bootstrap/attest"
	certificates "github.com/autoscaler-agent/autoscaler-agent/csrsigner/rules"
	"github.com/autoscaler-agent/autoscaler-agent/nodecleaner/reaper"
	"github.com/sirupsen/logrus"
)

var update = flag.Bool("update", false, "write packaging/autoscaler-agent.catalog")

const catalogFile = "../../packaging/autoscaler-agent.catalog"

// rules reads the rules of all services from the tables and lists of the docs: IDs in their order,
// and what each says. Rows of one ID are one rule of several parts.
func rules(t *testing.T) (ids []string, says map[string][]string) {
	t.Helper()
	says = map[string][]string{}
	row := regexp.MustCompile("(?m)^\\| `([A-Z][0-9]+)` \\| ([^|]+) \\|")
	item := regexp.MustCompile("(?m)^- `([A-Z][0-9]+)`: (.+)$") // of the engine's list
	for _, page := range []string{"../../docs/scaling-rules.md", "../../docs/security-rules.md", "../../docs/attested-join.md"} {
		data, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		found := row.FindAllStringSubmatch(string(data), -1)
		if strings.HasSuffix(page, "scaling-rules.md") {
			found = append(found, item.FindAllStringSubmatch(string(data), -1)...)
		}
		for _, m := range found {
			id, words := m[1], strings.TrimSpace(m[2])
			if says[id] == nil {
				ids = append(ids, id)
			}
			says[id] = append(says[id], words)
		}
	}
	if len(ids) < 100 {
		t.Fatalf("the docs list %d rules only", len(ids))
	}
	return ids, says
}

// remedies are those of the tables of rules.
func remedies() map[string]string {
	out := map[string]string{}
	for _, r := range decision.Rules {
		out[r.ID] = r.Remedy
	}
	maps.Copy(out, decision.FilterRemedies)
	for _, r := range certificates.Rules {
		out[r.ID] = r.Remedy
	}
	for _, r := range reaper.Rules() {
		if !strings.HasPrefix(r.Says, "proof") { // those hold nothing
			out[r.ID] = r.Remedy
		}
	}
	for _, c := range attest.Checks {
		out[c.Rule] = c.Remedy
	}
	return out
}

// TestCatalog: the journal catalog explains every rule, and says what to do.
func TestCatalog(t *testing.T) {
	ids, says := rules(t)
	remedy := remedies()
	page := map[byte]string{'A': "attested-join", 'R': "security-rules", 'J': "security-rules", 'L': "security-rules", 'E': "security-rules", 'N': "security-rules", 'G': "security-rules", 'B': "security-rules", 'C': "security-rules", 'M': "security-rules"}
	var out strings.Builder
	out.WriteString("# journalctl -x shows these texts. Made from docs and the tables of rules:\n# go test ./agent/report -run TestCatalog -update\n")
	seen := map[string]string{}
	for _, id := range ids {
		mid := MessageID(id)
		if other := seen[mid]; other != "" {
			t.Errorf("%s and %s have one MESSAGE_ID", id, other)
		}
		seen[mid] = id
		doc := page[id[0]]
		if doc == "" {
			doc = "scaling-rules"
		}
		out.WriteString("\n-- " + mid + "\nSubject: Rule " + id + ": " + says[id][0] + "\nDefined-By: autoscaler-agent\nSupport: https://github.com/autoscaler-agent/autoscaler-agent\nDocumentation: https://github.com/autoscaler-agent/autoscaler-agent/blob/main/docs/" + doc + ".md\n\n")
		for _, text := range says[id] {
			out.WriteString("Rule " + id + ": " + text + ".\n")
		}
		if text, there := remedy[id]; !there {
			t.Errorf("no table of rules has %s", id)
		} else if text == "" {
			out.WriteString("There is nothing to do.\n")
		} else {
			out.WriteString("\n" + text + "\n")
		}
		out.WriteString("\njournalctl -u autoscaler-agent RULE=" + id + " shows every line of this rule.\n")
	}
	for id := range remedy {
		if !slices.Contains(ids, id) {
			t.Errorf("a table of rules has %s, which is no rule of the docs", id)
		}
	}
	if *update {
		if err := os.WriteFile(catalogFile, []byte(out.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if have, err := os.ReadFile(catalogFile); err != nil || string(have) != out.String() {
		t.Errorf("%s is not what docs and remedies make (%v): run with -update", catalogFile, err)
	}
}

// TestRemediesName: what a remedy tells an operator to set is there.
func TestRemediesName(t *testing.T) {
	env, err := os.ReadFile("../../units/agent.env.example")
	if err != nil {
		t.Fatal(err)
	}
	for id, text := range remedies() {
		for _, name := range regexp.MustCompile(`AUTOSCALER_[A-Z_]+`).FindAllString(text, -1) {
			if !strings.Contains(string(env), name) {
				t.Errorf("%s: %s is no setting", id, name)
			}
		}
	}
}

// TestMessageID: a line that a rule decided carries the rule's ID, others none, and an ID
// never changes: operators match on it.
func TestMessageID(t *testing.T) {
	entry := func(fields logrus.Fields) *logrus.Entry { return &logrus.Entry{Data: fields} }
	if id := messageID(entry(logrus.Fields{"rule": "U5"})); id != "43b6698d59598a34bfe2d517f1ded6a1" {
		t.Errorf("U5: %s", id)
	}
	for _, fields := range []logrus.Fields{nil, {"rule": ""}, {"rule": nil}, {"why": "x"}} {
		if id := messageID(entry(fields)); id != "" {
			t.Errorf("%v: %s", fields, id)
		}
	}
	if !regexp.MustCompile(`^[0-9a-f]{12}8[0-9a-f]{3}[89ab][0-9a-f]{15}$`).MatchString(MessageID("U5")) {
		t.Errorf("%s is no UUID of version 8", MessageID("U5"))
	}
}

// TestCatalogCompiles: systemd's own compiler takes the file, and finds every entry.
func TestCatalogCompiles(t *testing.T) {
	if _, err := exec.LookPath("journalctl"); err != nil {
		t.Skip("journalctl is not here")
	}
	root := t.TempDir()
	dir := filepath.Join(root, "usr/lib/systemd/catalog")
	data, err := os.ReadFile(catalogFile)
	if err := errors.Join(err, os.MkdirAll(dir, 0o755), os.MkdirAll(filepath.Join(root, "var/lib/systemd/catalog"), 0o755), os.WriteFile(filepath.Join(dir, "autoscaler-agent.catalog"), data, 0o644)); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("journalctl", "--root="+root, "--update-catalog").CombinedOutput(); err != nil || len(out) > 0 {
		t.Fatalf("%v\n%s", err, out)
	}
	ids, _ := rules(t)
	for _, id := range ids {
		out, err := exec.Command("journalctl", "--root="+root, "--dump-catalog", MessageID(id)).CombinedOutput()
		if err != nil || !strings.Contains(string(out), "Subject: Rule "+id+": ") {
			t.Errorf("%s: %v\n%s", id, err, out)
		}
	}
}
