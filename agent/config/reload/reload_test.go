package reload

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sirupsen/logrus"
	"github.com/sirupsen/logrus/hooks/test"

	"github.com/autoscaler-agent/autoscaler-agent/agent/config"
)

// TestReload: what can be taken is taken, and each thing that cannot is named.
func TestReload(t *testing.T) {
	env := filepath.Join(t.TempDir(), "agent.env")
	write := func(text string) {
		if err := os.WriteFile(env, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("AUTOSCALER_LISTEN=off\n")
	log, _ := test.NewNullLogger()
	fault, looks := "", 0
	r := &Reloader{Log: log, Env: config.SeeEnvFile(env), Look: func() { looks++ }, Fault: func() string { return fault }, Groups: "groups.yaml"}
	write("AUTOSCALER_LISTEN=:1\nAUTOSCALER_LOG_LEVEL=debug\n")
	fault = "groups.yaml:3: groups.w.prize: no such field"
	said, err := r.Tell()
	if log.GetLevel() != logrus.DebugLevel || strings.Join(said, "; ") != "the log level is debug" || looks != 1 {
		t.Errorf("level %s, said %q, %d looks", log.GetLevel(), said, looks)
	}
	for _, want := range []string{"groups.yaml:3: groups.w.prize", "the last good groups.yaml stays in force", "AUTOSCALER_LISTEN: a change takes a restart", "systemctl restart autoscaler-agent"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v lacks %q", err, want)
		}
	}
	fault = ""
	write("AUTOSCALER_LISTEN=off\n")
	if said, err := r.Tell(); err != nil || strings.Join(said, "; ") != "groups.yaml is in force; the log level is info" {
		t.Errorf("%q, %v", said, err)
	}
	if said, err := r.Tell(); err != nil || strings.Join(said, "; ") != "groups.yaml is in force" {
		t.Errorf("%q, %v", said, err)
	}
}
