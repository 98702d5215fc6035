package cases

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// pending are the cases that the agent does not get right yet, each with the part of it that is
// wrong. A case that comes right fails the test until its line is gone from here.
var pending = map[string]string{}

// TestCases plays every file of cluster/ on one control plane.
func TestCases(t *testing.T) {
	files, err := filepath.Glob("cluster/*.yaml")
	if err != nil || len(files) < 24 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	left := map[string]bool{}
	for name := range pending {
		left[name] = true
	}
	table, err := Open(t.Context(), Options{Dir: t.TempDir(), Progress: os.Stderr})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := table.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	for _, file := range files {
		c, err := Read(file)
		if err != nil {
			t.Fatal(err)
		}
		if c.Want == nil {
			t.Errorf("%s: a case without want judges nothing", file)
			continue
		}
		delete(left, c.Name)
		t.Run(c.Name, func(t *testing.T) {
			var out bytes.Buffer
			faults, err := table.Play(t.Context(), c, &out)
			part, waits := pending[c.Name]
			switch {
			case err != nil:
				t.Fatalf("%v\n%s", err, out.String())
			case waits && len(faults) == 0:
				t.Errorf("it is right now (%s): take it off the list pending\n%s", part, out.String())
			case !waits && len(faults) > 0:
				t.Errorf("%s\n%s", strings.Join(faults, "\n"), out.String())
			case waits:
				t.Logf("not right yet (%s): %s", part, strings.Join(faults, "; "))
			}
		})
	}
	for name := range left {
		t.Errorf("pending names %s, which has no file", name)
	}
}

// TestReadmeHasEveryCase: the table of reports names every file, and its report.
func TestReadmeHasEveryCase(t *testing.T) {
	page, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]string{}
	for line := range strings.Lines(string(page)) {
		if cells := strings.Split(line, " | "); len(cells) == 4 && strings.Contains(cells[3], "`") {
			rows[strings.Split(cells[3], "`")[1]] += line // several reports may have one test
		}
	}
	files, _ := filepath.Glob("cluster/*.yaml")
	for _, file := range files {
		c, err := Read(file)
		if err != nil {
			t.Error(err)
		}
		if row := rows[file]; row == "" || !strings.Contains(row, c.Report) {
			t.Errorf("README.md has no row of %s with its report %q", file, c.Report)
		}
		delete(rows, file)
	}
	for file := range rows {
		if _, err := os.Stat(file); err != nil && !strings.Contains(file, "Test") {
			t.Errorf("README.md: %v", err)
		}
	}
}

// TestUnknownWords: a word that the format does not have is refused by name and line.
func TestUnknownWords(t *testing.T) {
	const head = "kind: Case\ntitle: t\n"
	for text, want := range map[string]string{
		head + "groups:\n- {name: a, type: m5.large, mx: 5}\n": `unknown field "mx" (line 4)`,
		head + "group: []\n":                                                                       `unknown field "group" (line 3)`,
		head + "groups: []\nwant: {targets: {a: 1}}\n":                                             `unknown field "targets" (line 4)`,
		head + "groups: []\nnodes:\n- {group: b}\n":                                                `nodes[0].group: there is no group "b"`,
		head + "groups: [{name: a, type: t}]\nnodes:\n- {group: a}\n":                              "groups[0].desired: 0, and the file has 1 nodes of it",
		head + "groups: []\nexplain: [volume x]\n":                                                 "write pod NAME",
		head + "groups: []\nwant: {explain: {pod web: [x]}}\n":                                     `want.explain: "pod web" is not in the case's own explain list`,
		head + "groups: []\n---\nkind: Pod\n":                                                      "document 2: a Kubernetes object has",
		head + "groups: []\n---\n{apiVersion: v1, kind: Pod, metadata: {name: a}, stage: later}\n": "document 2: stage: later",
		head + "groups: []\n---\napiVersion: v1\nkind: Pod\nkind: Pod\nmetadata: {name: a}\n":      `key "kind" already set`,
		"kind: Pod\n": `kind: "Pod": the first document is a Case`,
		head + "groups: []\nsteps: [{after: soon}]\n":        "invalid duration",
		head + "groups: []\nsteps: [{look: {goes: [{}]}}]\n": "cannot unmarshal",
	} {
		if _, err := parse([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\n got %v\nwant %s", text, err, want)
		}
	}
}
