package leader

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"testing"

	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/controlplane"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/world"
	"github.com/autoscaler-agent/autoscaler-agent/test/suite/worker"
)

const gate = "AUTOSCALER_TEST_LEADER"

// TestMain builds what needs the network, and runs the tests in a network namespace of their
// own.
func TestMain(m *testing.M) {
	if os.Getenv(gate) == "" || os.Getenv(gate) == "inside" {
		os.Exit(m.Run())
	}
	if err := outside(); err != nil {
		fmt.Fprintf(os.Stderr, "leader: %v\n", err)
		os.Exit(1)
	}
}

func outside() error {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt)
	defer cancel()
	if os.Geteuid() != 0 {
		return fmt.Errorf("boots containers: run it as root")
	}
	if _, err := worker.Prepare(ctx, os.Stderr); err != nil {
		return err
	}
	if _, err := controlplane.Binaries(ctx, os.Stderr); err != nil {
		return err
	}
	etcd, err := etcdTools(ctx)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "leader-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := world.BuildAgent(ctx, dir+"/autoscaler-agent"); err != nil {
		return err
	}
	for name, in := range map[string]string{"pause": ".", "image": "../../../tools"} {
		build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", dir+"/"+name, "./"+name)
		build.Dir, build.Env = in, append(os.Environ(), "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			return fmt.Errorf("build %s: %w: %s", name, err, out)
		}
	}
	return worker.Inside(ctx, "ip addr add 169.254.169.254/32 dev lo; ip addr add "+router+"/32 dev lo",
		gate+"=inside", "AUTOSCALER_TEST_PROGRAMS="+dir, "AUTOSCALER_TEST_ETCD="+etcd)
}
