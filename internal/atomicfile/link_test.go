package atomicfile

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestFollows: a link that a stranger has put where everybody may write is not followed.
func TestFollows(t *testing.T) {
	const root, agent, stranger, operator = 0, 991, 1001, 1000
	for name, c := range map[string]struct {
		by, dir uint32
		mode    fs.FileMode
		want    bool
	}{
		"root's in /etc":                            {root, root, 0o755, true},
		"root's in /tmp":                            {root, root, fs.ModeSticky | 0o777, true},
		"the agent's in /tmp":                       {agent, root, fs.ModeSticky | 0o777, true},
		"a stranger's in /tmp":                      {stranger, root, fs.ModeSticky | 0o777, false},
		"a stranger's where everybody may write":    {stranger, operator, 0o777, false},
		"an operator's in a directory of his":       {operator, operator, 0o755, true},
		"an operator's in a directory of his, open": {operator, operator, 0o777, true},
		"an operator's in a directory of root's":    {operator, root, 0o775, true},
	} {
		if got := follows(c.by, c.dir, agent, c.mode); got != c.want {
			t.Errorf("%s: followed %v", name, got)
		}
	}
}

// TestWriteLeavesAStrangersLink plays it where this process may give a link away, as root may.
func TestWriteLeavesAStrangersLink(t *testing.T) {
	dir := t.TempDir()
	link, target := filepath.Join(dir, "worker.env"), filepath.Join(dir, "elsewhere")
	if err := os.Symlink(target, link); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, fs.ModeSticky|0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := Write(link, []byte("mine"), 0o600); err != nil {
		t.Errorf("a link of this process's own user: %v", err)
	}
	if os.Lchown(link, 1001, 1001) != nil {
		return // TestFollows has the rule
	}
	if err := os.Remove(target); err != nil {
		t.Fatal(err)
	}
	_, err := Write(link, []byte("token"), 0o600)
	if _, there := os.Lstat(target); err == nil || !strings.Contains(err.Error(), "is of user 1001") || there == nil {
		t.Errorf("written through a stranger's link: %v, %v", err, there)
	}
	if _, err := Sweep(link); err == nil {
		t.Error("swept through a stranger's link")
	}
}
