package worker

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"testing"

	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/controlplane"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/world"
)

const gate = "AUTOSCALER_TEST_WORKER"

// TestMain builds what needs the network, and runs the tests in a network namespace of their
// own: the machine's addresses, its metadata service and the kubelet's port are the real ones.
func TestMain(m *testing.M) {
	if os.Getenv(gate) == "" || os.Getenv(gate) == "inside" {
		os.Exit(m.Run())
	}
	if err := outside(); err != nil {
		fmt.Fprintf(os.Stderr, "worker: %v\n", err)
		os.Exit(1)
	}
}

func outside() error {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt)
	defer cancel()
	if os.Geteuid() != 0 {
		return fmt.Errorf("boots containers: run it as root")
	}
	if _, err := Prepare(ctx, os.Stderr); err != nil {
		return err
	}
	if _, err := PrepareIgnition(ctx, os.Stderr); err != nil {
		return err
	}
	for _, minor := range []string{os.Getenv(controlplane.KubernetesEnv), newerMinor()} {
		if _, err := controlplane.BinariesOf(ctx, minor, os.Stderr); err != nil {
			return err
		}
	}
	dir, err := os.MkdirTemp("", "worker-agent-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	agent := dir + "/autoscaler-agent"
	if err := world.BuildAgent(ctx, agent); err != nil {
		return err
	}
	return Inside(ctx, "ip addr add 169.254.169.254/32 dev lo", gate+"=inside", "AUTOSCALER_TEST_AGENT="+agent)
}

func TestPreparedFilesAreNamed(t *testing.T) {
	for _, name := range []string{"tree.sh", "install.sh", "init.sh"} {
		if out, err := exec.CommandContext(t.Context(), "sh", "-n", name).CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
}
