package install

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestUnitEnvironment: what drop-ins give the unit is what the check after an installation gets.
func TestUnitEnvironment(t *testing.T) {
	h := bare(t)
	for name, text := range map[string]string{"/etc/more.env": "MORE=1\nQUOTED=\"a b\"\n", "/root/key": "s3cret\n", "/root/other": "x"} {
		if err := os.MkdirAll(filepath.Dir(h.path(name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(h.path(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	h.Run = func(_ context.Context, _ string, words ...string) (string, error) {
		return `# /usr/lib/systemd/system/autoscaler-agent.service
[Service]
EnvironmentFile=-/etc/autoscaler-agent/agent.env
Environment=FORGOTTEN=1
# /etc/systemd/system/autoscaler-agent.service.d/a.conf
[Service]
Environment=
Environment="HTTPS_PROXY=http://proxy.example.net:3128" 'TWO=a b' THREE=c
EnvironmentFile=/etc/more.env
EnvironmentFile=-/etc/not-there.env
LoadCredential=AWS_SECRET_ACCESS_KEY:/root/key
LoadCredential=certificate:/root/other
LoadCredential=OS_PASSWORD:/root/not-there
`, nil
	}
	want := []string{"HTTPS_PROXY=http://proxy.example.net:3128", "TWO=a b", "THREE=c", "MORE=1", "QUOTED=a b", "AWS_SECRET_ACCESS_KEY=s3cret"}
	if got := h.UnitEnvironment(); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
