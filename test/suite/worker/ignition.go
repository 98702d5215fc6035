package worker

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/controlplane"
)

// PrepareIgnition builds Ignition's own program, which applies a configuration to a directory, in the
// version whose parser test/go.mod pins (2 minutes of CPU once; cgo and libblkid's headers).
func PrepareIgnition(ctx context.Context, progress io.Writer) (program string, err error) {
	root, err := controlplane.CacheDir("worker")
	if err != nil {
		return "", err
	}
	out, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Version}}", "github.com/coreos/ignition/v2").Output()
	if err != nil {
		return "", fmt.Errorf("read the pinned version of Ignition: %w", err)
	}
	version := strings.TrimSpace(string(out))
	dir := filepath.Join(root, "ignition-"+version)
	err = whole(dir, func(to string) error {
		fmt.Fprintf(progress, "worker: building Ignition %s from its Go module (once, about 2 minutes of CPU)\n", version)
		if err := command(ctx, "", []string{"GOBIN=" + to, "CGO_ENABLED=1", "GOWORK=off", "GOFLAGS=-trimpath"}, "go", "install", "github.com/coreos/ignition/v2/internal@"+version); err != nil {
			return err
		}
		// The program goes by its name.
		return os.Rename(filepath.Join(to, "internal"), filepath.Join(to, "ignition-apply"))
	})
	return filepath.Join(dir, "ignition-apply"), err
}
