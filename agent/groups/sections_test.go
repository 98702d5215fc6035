package groups

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	"github.com/sirupsen/logrus/hooks/test"
)

// readers are two providers with a section: "nova" wants flavors, "plain" takes anything.
func readers(got map[string]string) map[string]Section {
	return map[string]Section{
		"nova": func(section json.RawMessage) error {
			var s struct{ Groups []struct{ Flavor string } }
			if err := json.Unmarshal(section, &s); err != nil {
				return err
			}
			var errs []error
			for i, g := range s.Groups {
				if g.Flavor == "" {
					errs = append(errs, fmt.Errorf("groups[%d].flavor: name one, for example m1.large", i))
				}
			}
			return errors.Join(errs...)
		},
		"plain": func(section json.RawMessage) error { got["plain"] = string(section); return nil },
	}
}

func TestSections(t *testing.T) {
	got := map[string]string{}
	f, err := Parse([]byte("groups: {w: {price: 1}}\nnova:\n  groups: [{flavor: m1.large}]\nplain: {count: 3, big: 12345678901234567890, on: true, text: \"007\"}\n"), readers(got))
	if err != nil {
		t.Fatal(err)
	}
	if string(f.Clouds["nova"]) != `{"groups":[{"flavor":"m1.large"}]}` || len(f.Groups) != 1 {
		t.Errorf("%s, %v", f.Clouds["nova"], f.Groups)
	}
	// Numbers and texts arrive as they were written, so that the provider decides what they are.
	var plain map[string]any
	if err := json.Unmarshal([]byte(got["plain"]), &plain); err != nil || plain["text"] != "007" || !strings.Contains(got["plain"], "12345678901234567890") {
		t.Errorf("%s", got["plain"])
	}
}

func TestMistakesInSections(t *testing.T) {
	for text, want := range map[string][]string{
		"nova: {groups: [{}, {flavor: a}, {}]}": {"nova.groups[0].flavor: name one", "groups[2].flavor"},
		"nova: [a]":                             {"nova: ", "cannot unmarshal array"},
		"nvoa: {groups: []}":                    {"nvoa", "did you mean nova?"},
		"nova: {groups: [{flavor: a, labels: {\"a b\": c}}]}": {"nova.groups[0].labels.a b", "cannot be the key of a label"},
		"magnum: {}": {"magnum"},
		"nova: {groups: [{}]}\ngroups: {w: {prize: 1}}": {"nova.groups[0].flavor", "groups.w.prize"},
		"nova: {a: 1}\nnova: {b: 2}":                    {"already set"},
	} {
		f, err := Parse([]byte(text), readers(map[string]string{}))
		if err == nil || f.Clouds != nil {
			t.Errorf("%s: %v, %v: a file with a mistake says nothing at all", text, err, f.Clouds)
			continue
		}
		for _, w := range want {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%s: %q lacks %q", text, err, w)
			}
		}
	}
	for _, text := range []string{"nova:", "nova: {}", ""} {
		if _, err := Parse([]byte(text), readers(map[string]string{})); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// TestLiveSection: a provider asks at each read and gets what is in force; a mistake in
// another part of the file keeps its last good section too.
func TestLiveSection(t *testing.T) {
	path := filepath.Join(t.TempDir(), "groups.yaml")
	version := 0
	write := func(text string) {
		version++
		at := time.Now().Add(time.Duration(version) * time.Second) // file systems stamp coarsely
		if err := errors.Join(os.WriteFile(path, []byte(text), 0o600), os.Chtimes(path, at, at)); err != nil {
			t.Fatal(err)
		}
	}
	write("nova: {groups: [{}]}")
	log, _ := test.NewNullLogger()
	if _, err := Open(path, readers(map[string]string{}), PricesComputed, logrus.NewEntry(log)); err == nil || !strings.Contains(err.Error(), "groups[0].flavor") {
		t.Errorf("the agent starts with a wrong section: %v", err)
	}
	write("nova: {groups: [{flavor: a}]}")
	live, err := Open(path, readers(map[string]string{}), PricesComputed, logrus.NewEntry(log))
	if err != nil {
		t.Fatal(err)
	}
	changes := 0
	live.OnChange(func() { changes++ })
	flavor := func() string {
		live.Look()
		return string(live.Section("nova"))
	}
	if got := flavor(); !strings.Contains(got, `"a"`) || live.Section("plain") != nil {
		t.Errorf("%s", got)
	}
	write("nova: {groups: [{flavor: b}]}")
	if got := flavor(); !strings.Contains(got, `"b"`) || changes != 1 {
		t.Errorf("%s, %d changes", got, changes)
	}
	write("nova: {groups: [{flavor: c}]}\ngroups: {w: {prize: 1}}")
	if got := flavor(); !strings.Contains(got, `"b"`) || changes != 1 || live.Fault() == "" {
		t.Errorf("%s, %d changes, fault %q", got, changes, live.Fault())
	}
	write("groups: {}")
	if got := flavor(); got != "" || changes != 2 || live.Fault() != "" {
		t.Errorf("%s, %d changes, fault %q", got, changes, live.Fault())
	}
}
