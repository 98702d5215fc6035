package atomicfile_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/internal/atomicfile"
)

type kept struct {
	Version int    `json:"version"`
	Name    string `json:"name"`
	Seldom  string `json:"seldom,omitempty"`
}

// TestLoad: a file is read whole or set aside whole; a missing one is empty; what a crash
// left beside it goes in each case.
func TestLoad(t *testing.T) {
	loose := func(data []byte, to *kept) error { return atomicfile.Versioned(data, 1, to) }
	exact := func(data []byte, to *kept) error { return atomicfile.Exactly(data, 1, to) }
	for name, c := range map[string]struct {
		text   string // "": no file; "/": a directory
		decode func([]byte, *kept) error
		want   string
		fault  string
	}{
		"whole":                 {`{"version":1,"name":"a"}`, loose, "a", ""},
		"missing":               {"", loose, "", ""},
		"torn":                  {`{"version":1,"name":"a`, loose, "", "unexpected end"},
		"of another version":    {`{"version":2,"name":"a"}`, loose, "", "version 2"},
		"half sound":            {`{"version":1,"name":"a","Name":7}`, loose, "", "cannot unmarshal"},
		"a directory":           {"/", loose, "", "is a directory"},
		"another file":          {`{"version":1,"memory":{}}`, loose, "", "it is another file"},
		"a new field":           {`{"version":1,"name":"a","b":2}`, loose, "a", ""},
		"a new field, strictly": {`{"version":1,"name":"a","b":2}`, exact, "", "unknown field"},
		"whole, strictly":       {`{"version":1,"name":"a"}`, exact, "a", ""},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "kept.json")
			left := filepath.Join(filepath.Dir(path), ".kept.json.123")
			var err error
			switch c.text {
			case "":
			case "/":
				err = os.Mkdir(path, 0o700)
			default:
				err = os.WriteFile(path, []byte(c.text), 0o600)
			}
			if err == nil {
				err = os.WriteFile(left, nil, 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
			got, err := atomicfile.Load(path, time.Unix(1700000000, 0), c.decode)
			if got.Name != c.want || (err == nil) != (c.fault == "") || err != nil && !strings.Contains(err.Error(), c.fault) {
				t.Errorf("%+v, %v: want %q and %q", got, err, c.want, c.fault)
			}
			if _, err := os.Lstat(left); err == nil {
				t.Error("what a crash left is still there")
			}
			_, there := os.Lstat(path)
			_, aside := os.Lstat(path + ".bad-1700000000")
			if moved := aside == nil; moved != (c.fault != "") || moved && there == nil {
				t.Errorf("set aside %v, in place %v", aside, there)
			}
			if c.fault != "" && !strings.Contains(err.Error(), "kept.json.bad-1700000000") {
				t.Errorf("%v does not say where the old bytes are", err)
			}
		})
	}
}

// TestLoadTimes: a time of the far future, which a thief of the file wrote, counts as now, and the rest of the file stands.
func TestLoadTimes(t *testing.T) {
	path, now := filepath.Join(t.TempDir(), "state.json"), time.Unix(1700000000, 0)
	if err := os.WriteFile(path, []byte(`{"version":1,"until":"2094-01-01T00:00:00Z","name":"n"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	type state struct {
		Version int       `json:"version"`
		Until   time.Time `json:"until"`
		Name    string    `json:"name"`
	}
	got, err := atomicfile.Load(path, now, func(data []byte, to *state) error { return atomicfile.Versioned(data, 1, to) })
	if !got.Until.Equal(now) || got.Name != "n" || err == nil || err.Error() != "1 times in it are more than 24h0m0s in the future: they count as now" {
		t.Errorf("%+v, %v", got, err)
	}
}
