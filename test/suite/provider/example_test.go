package provider_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/externalgrpc"
	"github.com/autoscaler-agent/autoscaler-agent/test/await"
)

// TestExamplePlugIn builds the example of docs/providers/externalgrpc.md and plays with it: from
// nothing to machines and back, and a machine that cannot be made.
func TestExamplePlugIn(t *testing.T) {
	dir, err := filepath.Abs("../../../examples/externalgrpc-server")
	if err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(t.TempDir(), "plugin")
	build := exec.Command("go", "build", "-o", binary, ".")
	build.Dir = dir
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	text, err := os.ReadFile(filepath.Join(dir, "plugin.json"))
	if err != nil {
		t.Fatal(err)
	}
	address := freeAddress(t)
	config := filepath.Join(t.TempDir(), "plugin.json")
	if err := os.WriteFile(config, []byte(strings.ReplaceAll(string(text), "127.0.0.1:8086", address)), 0o600); err != nil {
		t.Fatal(err)
	}
	machines := t.TempDir()
	run := exec.Command(binary, "-config", config)
	run.Dir, run.Env = dir, append(os.Environ(), "MACHINES_DIR="+machines)
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = run.Process.Kill(); _ = run.Wait() })

	p := connectPlugin(t, externalgrpc.Config{Address: address, Insecure: true}, externalgrpc.WithSection(func() json.RawMessage { return nil }))
	until := func(what string, ok func(cluster.NodeGroup) bool) cluster.NodeGroup {
		t.Helper()
		deadline := time.Now().Add(await.Limit)
		for {
			groups, err := readPlugin(t, p)
			if err == nil && ok(groups["workers"]) {
				return groups["workers"]
			}
			if time.Now().After(deadline) {
				t.Fatalf("%s: %+v, %v", what, groups["workers"], err)
			}
			<-time.After(20 * time.Millisecond)
		}
	}
	phases := func(g cluster.NodeGroup) string {
		var out []string
		for _, i := range g.Instances {
			out = append(out, string(i.Phase))
		}
		return fmt.Sprint(g.Target, out)
	}
	g := until("the plug-in starts", func(g cluster.NodeGroup) bool { return g.ID != "" })
	if g.Min != 0 || g.Max != 5 || g.Target != 0 || g.Template.Unknown != "" || g.Template.Allocatable.MilliCPU != 3930 || len(g.Warnings) > 0 {
		t.Errorf("%+v", g)
	}
	ctx := context.Background()
	if err := p.Resize(ctx, "workers", 0, 2); err != nil {
		t.Fatal(err)
	}
	g = until("two machines", func(g cluster.NodeGroup) bool { return phases(g) == "2 [running running]" })
	if i := g.Instances[0]; "example:///"+i.NodeNames[0] != string(i.ID) || len(i.Addresses) != 1 || i.Created.IsZero() {
		t.Errorf("%+v", i)
	}
	if err := os.WriteFile(filepath.Join(machines, ".fail"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := p.Resize(ctx, "workers", 2, 3); err != nil {
		t.Fatal(err)
	}
	g = until("a failure", func(g cluster.NodeGroup) bool { return len(g.Failures) == 1 })
	if !strings.Contains(g.Failures[0].Text, "no machine today") || g.Target != 3 {
		t.Errorf("%+v", g.Failures)
	}
	if err := p.Resize(ctx, "workers", 3, 2); provider.KindOf(err) != provider.Invalid {
		t.Errorf("%v", err)
	}
	for _, i := range g.Instances {
		if err := p.Delete(ctx, "workers", i.ID); err != nil {
			t.Error(err)
		}
	}
	until("nothing is left", func(g cluster.NodeGroup) bool { return g.Target == 0 && len(g.Instances) == 0 })
	if err := os.Remove(filepath.Join(machines, ".fail")); err != nil {
		t.Fatal(err)
	}
	playPlugIn(t, p, "workers", 20*time.Second)
}

// freeAddress is one that nobody listened to a moment ago.
func freeAddress(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}
