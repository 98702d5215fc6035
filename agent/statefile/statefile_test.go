package statefile

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/config"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
)

func TestStateSurvivesARestart(t *testing.T) {
	f := In(t.TempDir())
	if s, err := f.Load(time.Now()); err != nil || s.Version != 0 {
		t.Fatalf("a missing file gives %+v, %v", s, err)
	}
	at := time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
	want := State{Memory: decision.Memory{Unneeded: map[cluster.NodeName]time.Time{"n": at}}, Specs: map[cluster.InstanceID]string{"i": "lt-1@3"}}
	if err := f.Save(want); err != nil {
		t.Fatal(err)
	}
	got, err := f.Load(time.Now())
	if err != nil || !got.Memory.Unneeded["n"].Equal(at) || got.Specs["i"] != "lt-1@3" {
		t.Errorf("read back %+v, %v", got, err)
	}
	if info, err := os.Stat(f.path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
}

func TestBadStateIsSetAside(t *testing.T) {
	for name, text := range map[string]string{
		"torn":    `{"version":1,"memory":{"unnee`,
		"empty":   ``,
		"foreign": `{"hello":"world"}`,
		"newer":   `{"version":99,"memory":{}}`,
		"binary":  "\x00\x01\x02",
	} {
		t.Run(name, func(t *testing.T) {
			f := In(t.TempDir())
			if err := os.WriteFile(f.path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			s, err := f.Load(time.Unix(1234, 0))
			if err == nil || !strings.Contains(err.Error(), "state.json.bad-1234") || len(s.Memory.Unneeded) != 0 {
				t.Fatalf("load gives %+v, %v", s, err)
			}
			kept, err := os.ReadFile(filepath.Join(filepath.Dir(f.path), "state.json.bad-1234"))
			if err != nil || string(kept) != text {
				t.Errorf("set aside %q, %v", kept, err)
			}
			if _, err := f.Load(time.Now()); err != nil {
				t.Errorf("the next start is not empty: %v", err)
			}
		})
	}
}

// TestStateSweepsWhatACrashLeft: temporary files go with the next start, a directory in
// the file's place is set aside, and of what was set aside the last three stay.
func TestStateSweepsWhatACrashLeft(t *testing.T) {
	dir := t.TempDir()
	f := In(dir)
	for n := range 5 {
		if err := os.WriteFile(filepath.Join(dir, ".state.json."+strconv.Itoa(n)), []byte("{"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(f.path, []byte("torn"), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := f.Load(time.Unix(int64(n), 0)); err == nil {
			t.Error("a torn state is not told of")
		}
	}
	if err := os.Mkdir(f.path, 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Load(time.Unix(9, 0)); err == nil || !strings.Contains(err.Error(), "state.json.bad-9") {
		t.Errorf("a directory: %v", err)
	}
	if err := f.Save(State{}); err != nil {
		t.Errorf("after the directory: %v", err)
	}
	var names []string
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if want := []string{"state.json", "state.json.bad-2", "state.json.bad-3", "state.json.bad-4", "state.json.bad-9"}; !slices.Equal(names, want) {
		t.Errorf("left are %v, want %v", names, want)
	}
}

// TestInstance: a process that is started again is the same instance, one with another state directory is another one.
func TestInstance(t *testing.T) {
	here, there := t.TempDir(), t.TempDir()
	if got := (config.Config{StateDir: here}).Instance(); got != "" {
		t.Errorf("without a lock file: %s", got)
	}
	var seen []string
	for _, dir := range []string{here, there, here} {
		unlock, err := Lock(dir)
		if err != nil {
			t.Fatal(err)
		}
		seen = append(seen, config.Config{StateDir: dir}.Instance())
		unlock()
	}
	if seen[0] == "" || seen[0] != seen[2] || seen[0] == seen[1] {
		t.Errorf("instances %v", seen)
	}
}

func TestASecondAgentOnTheSameStateIsRefused(t *testing.T) {
	dir := t.TempDir()
	unlock, err := Lock(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Lock(dir); err == nil || !strings.Contains(err.Error(), "AUTOSCALER_STATE_DIR") {
		t.Errorf("the second: %v", err)
	}
	unlock()
	again, err := Lock(dir)
	if err != nil {
		t.Fatalf("after the first ended: %v", err)
	}
	again()
	none, err := Lock(filepath.Join(dir, "missing"))
	if err != nil {
		t.Errorf("a directory that is not there: %v", err)
	}
	none()
}
