package world

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// putBack is a fault that the product once had, or might have had: changes of its files, and the stories in which it shows.
type putBack struct {
	name, about string
	plays       []string // SEED HOURS FAULTS, as in SEEDS, HOURS and PLAY; none: it is for drawn worlds alone
	changes     []edit
}

// edit replaces a text that is in a file once.
type edit struct{ file, old, new string }

// parsePutBack reads a file of testdata/faults: comment lines, "play SEED HOURS FAULTS" (see PLAY), and for each change "@@ FILE" with lines that go (-) and lines that come (+).
func parsePutBack(name, text string) (putBack, error) {
	out := putBack{name: name}
	for i, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		last := len(out.changes) - 1
		switch {
		case strings.HasPrefix(line, "# "):
			out.about += strings.TrimPrefix(line, "# ") + " "
		case strings.HasPrefix(line, "play "):
			out.plays = append(out.plays, strings.TrimPrefix(line, "play "))
		case strings.HasPrefix(line, "@@ "):
			out.changes = append(out.changes, edit{file: strings.TrimPrefix(line, "@@ ")})
		case strings.HasPrefix(line, "-") && last >= 0:
			out.changes[last].old += line[1:] + "\n"
		case strings.HasPrefix(line, "+") && last >= 0:
			out.changes[last].new += line[1:] + "\n"
		case line != "":
			return out, fmt.Errorf("line %d: %q is neither a comment, a play, a file nor a changed line", i+1, line)
		}
	}
	if len(out.changes) == 0 {
		return out, errors.New("no changes")
	}
	return out, nil
}

// apply returns the changed files, by path in the product.
func (f putBack) apply(root string) (map[string]string, error) {
	out := map[string]string{}
	for _, c := range f.changes {
		text, ok := out[c.file]
		if !ok {
			data, err := os.ReadFile(filepath.Join(root, c.file))
			if err != nil {
				return nil, err
			}
			text = string(data)
		}
		if n := strings.Count(text, c.old); n != 1 {
			return nil, fmt.Errorf("%s has the text %d times, want once:\n%s", c.file, n, c.old)
		}
		out[c.file] = strings.Replace(text, c.old, c.new, 1)
	}
	return out, nil
}

func putBacks(t *testing.T) (out []putBack, root string) {
	t.Helper()
	root, err := filepath.Abs("../..")
	files, globErr := filepath.Glob("testdata/faults/*.patch")
	if err = errors.Join(err, globErr); err != nil || len(files) == 0 {
		t.Fatal("no faults: ", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		f, err := parsePutBack(strings.TrimSuffix(filepath.Base(file), ".patch"), string(text))
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		out = append(out, f)
	}
	return out, root
}

// TestFaultsApply: the product still has the text that each fault changes. Whether the world finds them, make sim-faults tells.
func TestFaultsApply(t *testing.T) {
	list, root := putBacks(t)
	for _, f := range list {
		if _, err := f.apply(root); err != nil {
			t.Errorf("testdata/faults/%s.patch: %v", f.name, err)
		}
	}
}

// mostTime is how much processor time the drawn worlds have to find a fault (FAULTS_BUDGET).
func mostTime() string { return cmp.Or(os.Getenv("FAULTS_BUDGET"), "10m") }

// TestFaultsFound puts faults back, one at a time (FAULTS=all, or names with commas; make sim-faults): each of its plays must end in a violation, and
// with FAULTS_SEED, the first seed, also one of the drawn worlds from there on, within ten minutes of processor time. The same world
// without the fault must end well.
func TestFaultsFound(t *testing.T) {
	names := strings.Split(os.Getenv("FAULTS"), ",")
	list, root := putBacks(t) // without FAULTS that is all, and TestFaultsApply is the part of every run
	for _, f := range list {
		if !slices.Contains(names, f.name) && !slices.Contains(names, "all") {
			continue
		}
		t.Run(f.name, func(t *testing.T) {
			bin := f.build(t, root)
			for _, p := range f.plays {
				word := append(strings.SplitN(p, " ", 3), "", "")
				found, took := finds(t, bin, "SEEDS="+word[0]+"-"+word[0], "HOURS="+word[1], "PLAY="+word[2])
				if found == "" {
					t.Errorf("%snot found by play %s", f.about, p)
					continue
				}
				t.Logf("%sfound by play %s after %s of processor time: %s", f.about, p, took, found)
			}
			first := os.Getenv("FAULTS_SEED")
			if first == "" {
				return
			}
			found, took := finds(t, bin, "SEEDS="+first+"-1000000", "BUDGET="+mostTime())
			if found == "" {
				t.Errorf("%snot found by drawn worlds from seed %s on in %s of processor time", f.about, first, took)
				return
			}
			t.Logf("%sfound by drawn worlds after %s of processor time: %s", f.about, took, found)
			seed := strings.TrimSuffix(strings.Fields(found)[1], ":")
			if also, _ := finds(t, os.Args[0], "SEEDS="+seed+"-"+seed); also != "" {
				t.Errorf("%sseed %s ends in a violation without the fault, too: %s", f.about, seed, also)
			}
		})
	}
}

var violated = regexp.MustCompile(`seed \d+:\n *.*?\n`)

// finds plays worlds and returns the first violation.
func finds(t *testing.T, bin string, env ...string) (violation string, took time.Duration) {
	cmd := exec.Command(bin, "-test.run", "^TestSeeds$", "-test.count=1", "-test.timeout=3h")
	cmd.Env = append(append(os.Environ(), "SHRINK=0"), env...)
	out, err := cmd.CombinedOutput()
	took = (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Round(time.Second)
	if err == nil {
		return "", took
	}
	found := violated.Find(out)
	if found == nil {
		t.Fatalf("%v did not end as a seed does: %v\n%s", env, err, out)
	}
	return strings.Join(strings.Fields(string(found)), " "), took
}

// build makes the test's binary with the fault in the product.
func (f putBack) build(t *testing.T, root string) string {
	files, err := f.apply(root)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	replace := map[string]string{}
	for name, text := range files {
		own := filepath.Join(dir, strings.ReplaceAll(name, "/", "_"))
		if err := os.WriteFile(own, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		replace[filepath.Join(root, name)] = own
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "overlay.json"), overlay, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	bin := filepath.Join(dir, "world.test")
	if out, err := exec.Command("go", "test", "-overlay", filepath.Join(dir, "overlay.json"), "-c", "-o", bin, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return bin
}
