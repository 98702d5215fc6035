package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestLicenceTexts: texts count beside the linked packages and above them alone, patents and notices are passed on and are no licence, and
// what nobody can identify is refused.
func TestLicenceTexts(t *testing.T) {
	mit, err := os.ReadFile("testdata/mit.txt")
	if err != nil {
		t.Fatal(err)
	}
	bsd, err := os.ReadFile("testdata/bsd.txt")
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		files   map[string]string
		linked  []string
		want    string // the expression, or a part of the error
		notices int
	}{
		"one text":                       {map[string]string{"LICENSE": string(mit)}, []string{"."}, "MIT", 1},
		"named as people name it":        {map[string]string{"Licence.md": string(mit), "license.go": "package x"}, []string{"."}, "MIT", 1},
		"two texts":                      {map[string]string{"LICENSE": string(mit), "third/LICENSE.BSD": string(bsd)}, []string{".", "third/party"}, "BSD-3-Clause AND MIT", 2},
		"a text of what is not linked":   {map[string]string{"COPYING": string(mit), "third/LICENSE": string(bsd)}, []string{"second"}, "MIT", 1},
		"notices go with it":             {map[string]string{"LICENSE": string(mit), "NOTICE": "made by us", "PATENTS": "no suits"}, []string{"."}, "MIT", 3},
		"a notice alone":                 {map[string]string{"NOTICE": "made by us"}, []string{"."}, "there is no licence", 1},
		"nothing":                        {nil, []string{"."}, "there is no licence", 0},
		"a text that nobody knows":       {map[string]string{"LICENSE": "You may look at this."}, []string{"."}, "teach identify", 0},
		"a known text with a new clause": {map[string]string{"LICENSE": string(mit) + strings.Repeat("\nNobody may use this on Sundays or holidays, nor sell what was made with it.", 12)}, []string{"."}, "teach identify", 0},
	} {
		root := t.TempDir()
		for _, dir := range append(slices.Clone(c.linked), "third/party", "second") {
			if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		for file, text := range c.files {
			if err := os.WriteFile(filepath.Join(root, file), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		dirs := []string{root}
		for _, dir := range c.linked {
			dirs = append(dirs, filepath.Join(root, dir))
		}
		l := licence{module: "example.net/x", version: "v1.2.3"}
		err := l.read(dirs)
		if err != nil && !strings.Contains(err.Error(), c.want) || err == nil && l.concluded != c.want {
			t.Errorf("%s: %q, %v; want %q", name, l.concluded, err, c.want)
		}
		if err == nil && len(l.texts) != c.notices {
			t.Errorf("%s: %d texts, want %d", name, len(l.texts), c.notices)
		}
		if err == nil && !strings.HasPrefix(l.copyright, "Copyright ") {
			t.Errorf("%s: copyright %q", name, l.copyright)
		}
	}
}

// TestNotices: a text that two modules share stands there once, below both names.
func TestNotices(t *testing.T) {
	same := licenceText{name: "LICENSE", data: []byte("the words\n")}
	out := notices([]licence{
		{module: "example.net/a", version: "v1.0.0", concluded: "MIT", texts: []licenceText{same}},
		{module: "example.net/b", version: "v2.0.0", concluded: "MIT", texts: []licenceText{same, {name: "NOTICE", data: []byte("made by b")}}},
	})
	for _, want := range []string{"example.net/a v1.0.0: LICENSE (MIT)\nexample.net/b v2.0.0: LICENSE (MIT)\n", "example.net/b v2.0.0: NOTICE (MIT)\n", "made by b"} {
		if !bytes.Contains(out, []byte(want)) {
			t.Errorf("it lacks %q:\n%s", want, out)
		}
	}
	if n := bytes.Count(out, []byte("the words")); n != 1 {
		t.Errorf("the shared text stands there %d times", n)
	}
}

// TestForeignBinary: a binary of other modules than those that go list names is refused.
func TestForeignBinary(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	b := build{out: t.TempDir(), from: command{".", []string{"errors"}}}
	data, err := os.ReadFile(self)
	if err == nil {
		err = os.WriteFile(filepath.Join(b.out, "autoscaler-agent-linux-amd64"), data, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.licences("amd64"); err == nil || !strings.Contains(err.Error(), "it was built from something else") {
		t.Errorf("%v", err)
	}
}
