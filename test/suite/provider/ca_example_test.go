package provider_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/externalgrpc"
	"github.com/autoscaler-agent/autoscaler-agent/internal/testing/providertest"
	"github.com/autoscaler-agent/autoscaler-agent/test/await"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/cloud/aws"
)

// TestClusterAutoscalersExample plays with Cluster Autoscaler's own example of a plug-in:
// its wrapper around its own AWS provider, which serves the emulated AWS. The binary is
// built from a checkout of Cluster Autoscaler (docs/providers/externalgrpc.md says how), because its Go
// module cannot be required beside ours; AUTOSCALER_TEST_CA_EXAMPLE names it.
func TestClusterAutoscalersExample(t *testing.T) {
	binary := os.Getenv("AUTOSCALER_TEST_CA_EXAMPLE")
	if binary == "" {
		t.Skip("AUTOSCALER_TEST_CA_EXAMPLE names no built example of Cluster Autoscaler: make e2e-ca-example runs this")
	}
	w := newWorld(t)
	must(t, w.PutGroup(aws.Group{Name: "wishes", Max: 2, LaunchTemplate: "worker", Tags: map[string]string{
		"k8s.io/cluster-autoscaler/node-template/autoscaling-options/scaledownutilizationthreshold": "0.7",
	}}))
	address := freeAddress(t)
	run := exec.Command(binary, "--cloud-provider=aws", "--address="+address, "--cloud-config="+overrides(t, w),
		"--nodes=0:10:"+string(providertest.Workers), "--nodes=1:3:"+string(providertest.Others), "--nodes=0:2:wishes")
	var log strings.Builder
	run.Stdout, run.Stderr = &log, &log
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = run.Process.Kill()
		_ = run.Wait()
		if t.Failed() {
			t.Logf("Cluster Autoscaler's example said:\n%s", log.String())
		}
	})
	own, gpu, short, long := 0.4, 0.6, 10*time.Minute, 20*time.Minute
	p := connectPlugin(t, externalgrpc.Config{Address: address, Insecure: true, Timeout: await.Limit}, externalgrpc.WithSection(func() json.RawMessage { return nil }),
		externalgrpc.WithDefaults(cluster.Options{ScaleDownUtilization: &own, ScaleDownGPUUtilization: &gpu,
			ScaleDownUnneededTime: &short, ScaleDownUnreadyTime: &long, MaxNodeProvisionTime: &short}))
	for deadline := time.Now().Add(await.Limit); ; <-time.After(100 * time.Millisecond) {
		groups, err := readPlugin(t, p)
		if err == nil && len(groups[providertest.Workers].Instances) == 2 {
			if o := groups[providertest.Workers].Options; o != (cluster.Options{}) {
				t.Errorf("the wrapper's own defaults are taken for wishes: %+v", o)
			}
			if o := groups["wishes"].Options; o.ScaleDownUtilization == nil || *o.ScaleDownUtilization != 0.7 || o.ScaleDownUnneededTime != nil {
				t.Errorf("of a group that wishes a threshold of 0.7: %+v", o)
			}
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the example does not answer: %v", err)
		}
	}
	playPlugIn(t, p, providertest.Workers, await.Limit)
	if got := w.Target(providertest.Workers); got != 2 {
		t.Errorf("in the end AWS itself has the target %d, want 2", got)
	}
	if got := len(w.Alive(providertest.Workers)); got != 2 {
		t.Errorf("in the end %d machines live on AWS, want 2", got)
	}
}

// overrides is a configuration of Cluster Autoscaler's AWS provider that leads to the
// emulated cloud.
func overrides(t *testing.T, w *world) string {
	t.Helper()
	var text strings.Builder
	for i, service := range []string{"autoscaling", "ec2"} {
		fmt.Fprintf(&text, "[ServiceOverride \"%d\"]\nService = %s\nRegion = %s\nURL = %s\nSigningRegion = %s\n", i, service, w.Region(), w.Endpoint(), w.Region())
	}
	file := filepath.Join(t.TempDir(), "aws.conf")
	if err := os.WriteFile(file, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}
