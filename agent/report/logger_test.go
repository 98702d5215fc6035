package report

import (
	"bytes"
	"encoding/binary"
	"errors"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/coreos/go-systemd/v22/journal"
	"github.com/sirupsen/logrus"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
)

// hostile are texts by which a name would forge a line, a field or a series, or hide its own.
var hostile = []string{
	"a\nautoscaler-agent[1]: certificate approved", "a\nRULE=R0-R20\nPRIORITY=7", "a\r\nb", "a\x1b[2Jb", "a\x00b", "a\x9bb", "a\u202eb", "a\xff\xfeb",
	"a\",rule=\"R0", "a\\", "a\u2028b", "\n", "a\n" + strings.Repeat("x", 100_000) + "\n",
}

// TestHostileTextStaysInItsLine: whatever a field holds, journalctl shows one line that is no blob, and
// a value that is fine stays as it is.
func TestHostileTextStaysInItsLine(t *testing.T) {
	for _, text := range hostile {
		e := logrus.NewEntry(nil).WithFields(logrus.Fields{"why": text, "node": text, "rule": "R11"})
		e.Message = "held " + text
		got := sentence(e)
		if strings.ContainsAny(got, "\n\r\x00\x1b\u202e\u2028") || !utf8.ValidString(got) || !strings.HasPrefix(got, "held ") || printable(got) != got && !strings.ContainsRune(got, '\\') {
			t.Errorf("%q became %q", text, got)
		}
	}
	for text, want := range map[string]string{
		"pod default/web has no room: größer":                 "pod default/web has no room: größer",
		`C:\dir "x"`:                                          `C:\dir "x"`,
		errors.Join(errors.New("a"), errors.New("b")).Error(): "a; b",
		"a\x1b[2Jb\n":                                         `a\x1b[2Jb`,
	} {
		if got := printable(text); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
}

// TestHostileFieldsStayInTheirField reads the journal's protocol back: no value adds a field.
func TestHostileFieldsStayInTheirField(t *testing.T) {
	for _, text := range hostile {
		raw := datagram("m", journal.PriInfo, map[string]string{"NODE": text}, map[string]Names{"POD": {text, "b"}})
		got := map[string][]string{}
		for len(raw) > 0 {
			line, rest, _ := bytes.Cut(raw, []byte("\n"))
			if name, value, one := bytes.Cut(line, []byte("=")); one {
				got[string(name)], raw = append(got[string(name)], string(value)), rest
				continue
			}
			size := binary.LittleEndian.Uint64(rest)
			got[string(line)] = append(got[string(line)], string(rest[8:8+size]))
			raw = rest[8+size+1:]
		}
		if len(got) != 4 || got["NODE"][0] != text || got["POD"][0] != text || got["POD"][1] != "b" {
			t.Errorf("%.40q: %d fields, %.200q", text, len(got), got)
		}
	}
}

// TestHostileLabels: a group's name is the label of one series, whatever it holds, and the page of metrics
// reads back.
func TestHostileLabels(t *testing.T) {
	for _, text := range hostile {
		m := watched()
		now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
		m.Round(cluster.Snapshot{Now: now, Groups: []cluster.NodeGroup{{ID: cluster.GroupID(text), Max: 9, Target: 3}}}, decision.Plan{}, decision.Memory{}, decision.Policy{}, true, true)
		families, err := m.registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		found := 0
		for _, f := range families {
			for _, x := range f.Metric {
				for _, l := range x.Label {
					if strings.HasSuffix(l.GetName(), "group") {
						if found++; l.GetValue() != strings.ToValidUTF8(text, "\uFFFD") {
							t.Errorf("%s: %q in place of %q", f.GetName(), l.GetValue(), text)
						}
					}
				}
			}
		}
		if found == 0 {
			t.Errorf("%q is in no metric", text)
		}
	}
}
