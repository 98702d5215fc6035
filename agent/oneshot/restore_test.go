package oneshot

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sirupsen/logrus"

	"github.com/autoscaler-agent/autoscaler-agent/agent/config"
)

// TestRestoreReadsEverySection: a groups.yaml with the operator's own inventory is no fault
// of the file, and the cloud is asked. The provider of this test does not exist.
func TestRestoreReadsEverySection(t *testing.T) {
	log := logrus.New()
	log.SetOutput(io.Discard)
	cfg := config.Config{Provider: "none", GroupsFile: filepath.Join(t.TempDir(), "groups.yaml")}
	if err := os.WriteFile(cfg.GroupsFile, []byte("machines: []\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if ok, why := lives(t.Context(), cfg, log, "aws:///z/i-1", "n"); ok || !strings.HasPrefix(why, "provider none: ") {
		t.Errorf("%t %q", ok, why)
	}
}
