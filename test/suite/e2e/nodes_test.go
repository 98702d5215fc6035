package e2e

import (
	"encoding/json"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/world"
)

// TestNodes: a machine that was started before a new version of its group's launch template is
// listed with what differs, and one that was started after it without. explain node and check tell
// the same.
func TestNodes(t *testing.T) {
	t.Parallel() // it mostly waits
	s := newScene(t, nil)
	s.start("AUTOSCALER_SCALING_UNNEEDED_FOR=1h", "AUTOSCALER_SCALING_CONSOLIDATE=off")
	s.workers(world.Workers{Name: "workers", Max: 5})
	s.deploy("first", 1, "3", "64Mi")
	s.until("first Running", func() bool { return s.running("first") == 1 })
	old := string(s.nodes()[0].Name)

	list := func(args ...string) map[string]decision.NodeRow {
		t.Helper()
		out, code := s.command(append([]string{"nodes", "--output", "json"}, args...)...)
		var found decision.Nodes
		if err := json.Unmarshal([]byte(out), &found); err != nil || code != 0 {
			t.Fatalf("code %d, %v: %s", code, err, out)
		}
		rows := map[string]decision.NodeRow{}
		for _, r := range found.Nodes {
			rows[string(r.Node)] = r
		}
		return rows
	}
	if r := list()[old]; r.Group != "workers" || r.State != decision.NodeReady || r.Kubelet == "" || r.MinorsBehind != 0 || len(r.Drift) > 0 {
		t.Errorf("%+v", r)
	}
	lt, ok := s.w.Cloud.LatestVersion("workers")
	if !ok {
		t.Fatal("no launch template")
	}
	lt.ImageID, lt.HopLimit = "ami-00000000000000002", 2
	s.w.Cloud.PutLaunchTemplate(lt)
	s.until("the old machine differs", func() bool { return len(list("--group", "workers")[old].Drift) == 2 })
	if d := list()[old].Drift; d[0].Property != "image" || d[0].Wanted != lt.ImageID || d[1].Property != "metadata options" {
		t.Errorf("%v", d)
	}
	s.explains("explain node "+old, "differs from what its group starts today", "wanted ami-00000000000000002", "metadata options")

	s.deploy("second", 1, "3", "64Mi")
	s.until("second Running", func() bool { return s.running("second") == 1 })
	for name, r := range list() {
		if name != old && (r.Group != "workers" || len(r.Drift) > 0) {
			t.Errorf("a new machine: %+v", r)
		}
	}
	if out, code := s.command("check"); code != 0 || !strings.Contains(out, "1 of its 2 machines differ from what it starts today: in image 1, in metadata options 1") {
		t.Errorf("code %d: %s", code, out)
	}
	s.lonely("keeper", "10m")
	s.until("keeper Running", func() bool { return s.phase("keeper") == corev1.PodRunning })
	held := func() (n int) {
		for _, r := range list() {
			if r.Rule != "" && r.Held != "" {
				n++
			}
		}
		return n
	}
	s.until("a reason why a node stays", func() bool { return held() > 0 })
	if out, code := s.command("nodes", "--group", "nobody"); code != 1 || !strings.Contains(out, "there is no node group nobody") {
		t.Errorf("code %d: %s", code, out)
	}
}
