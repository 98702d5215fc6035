package worker

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	ignition "github.com/coreos/ignition/v2/config/v3_3"

	"github.com/autoscaler-agent/autoscaler-agent/userdata"
)

// TestIgnition: Ignition's own parser takes what is rendered for each cloud, architecture
// and minor of Kubernetes, without a warning.
func TestIgnition(t *testing.T) {
	for _, cloud := range userdata.Clouds() {
		for _, arch := range append([]string{""}, userdata.Arches...) {
			for _, version := range []string{"v1.30.14", "v1.31.14", "v1.32.13", "v1.33.13", "v1.34.11", "v1.35.8", "v1.36.4"} {
				s := (&rig{parts: Parts{Kubernetes: version}}).spec()
				s.Cloud, s.System, s.Arch = cloud, "flatcar", arch
				out, err := userdata.Render(s)
				if err != nil {
					t.Fatal(err)
				}
				config, report, err := ignition.Parse(out)
				if err != nil || len(report.Entries) > 0 {
					t.Errorf("%s %s %s: %v\n%s", cloud, arch, version, err, report.String())
				}
				if len(config.Storage.Files) != 2 || len(config.Systemd.Units) != 1 {
					t.Errorf("%s %s %s: files %v, units %v", cloud, arch, version, config.Storage.Files, config.Systemd.Units)
				}
			}
		}
	}
}

// TestCloudInitSchema: cloud-init's own schema takes the cloud-config.
func TestCloudInitSchema(t *testing.T) {
	if os.Getenv(gate) != "inside" {
		t.Skip("needs the root file system with cloud-init: make e2e-worker")
	}
	parts, err := Prepare(t.Context(), t.Output())
	if err != nil {
		t.Fatal(err)
	}
	s := (&rig{parts: parts}).spec()
	s.Format = "cloud-config"
	out, err := userdata.Render(s)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(parts.Tree, "tmp", "user-data")
	if err := os.WriteFile(file, out, 0o600); err != nil {
		t.Fatal(err)
	}
	defer os.Remove(file)
	said, err := exec.Command("chroot", parts.Tree, "cloud-init", "schema", "--config-file", "/tmp/user-data").CombinedOutput()
	if err != nil || !strings.Contains(string(said), "Valid cloud-config") {
		t.Errorf("%v\n%s", err, said)
	}
}
