package doctor

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/config"
)

// TestCheckReadsGroupsFile: every mistake is a finding of its own, a file that is right
// is one, and a name that no group has is a warning.
func TestCheckReadsGroupsFile(t *testing.T) {
	cfg := config.Config{GroupsFile: filepath.Join(t.TempDir(), "groups.yaml")}
	write := func(text string) {
		if err := os.WriteFile(cfg.GroupsFile, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got := checkGroupsFile(cfg); len(got) != 0 {
		t.Errorf("no file: %+v", got)
	}
	write("groups: {w: {prise: 1, max: 3}}")
	if got := checkGroupsFile(cfg); len(got) != 2 || got[0].Level != LevelError || !strings.Contains(got[0].Text+got[1].Text, "did you mean price?") {
		t.Errorf("two mistakes: %+v", got)
	}
	write("groups: {w: {price: 1}, x: {price: 2}}")
	if got := checkGroupsFile(cfg); len(got) != 1 || got[0].Level != LevelOK {
		t.Errorf("a good file: %+v", got)
	}
	groups := []cluster.NodeGroup{{ID: "w"}}
	if got := layFile(cfg, groups, nil); len(got) != 1 || got[0].Level != LevelWarning || !strings.Contains(got[0].Text, "called x") || groups[0].Price != 1 {
		t.Errorf("a name that no group has: %+v, %+v", got, groups)
	}
	if got := layFile(cfg, groups, os.ErrDeadlineExceeded); len(got) != 0 {
		t.Errorf("a cloud that was not read: %+v", got)
	}
}
