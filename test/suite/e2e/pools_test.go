package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/cloud/openstack"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/world"
)

// TestPools: one entry of groups.yaml names types and zones. Pods make the groups that are needed, of the cheapest type; where AWS has none of it the next
// type is bought; the pool's maximum holds for all groups together; and everything goes again.
func TestPools(t *testing.T) {
	t.Parallel() // it mostly waits
	s := newScene(t, nil)
	subnets := map[string]string{}
	for _, zone := range s.w.Cloud.Zones()[:2] {
		subnets[zone] = s.w.Cloud.Subnet(zone)
	}
	pool := map[string]any{"name": "general", "launchTemplate": "workers", "types": []string{"c5.large", "m5.large"}, "subnets": subnets, "max": 4}
	for section, value := range map[string]any{"groups": map[string]any{"workers": map[string]any{"pause": true}}, "asg": map[string]any{"pools": []any{pool}}} {
		if err := s.w.PutSection(section, value); err != nil {
			t.Fatal(err)
		}
	}
	s.start("AUTOSCALER_SCALING_UNNEEDED_FOR=2s", "AUTOSCALER_SCALING_DELAY_AFTER_ADD=2s")
	s.workers(world.Workers{Name: "workers", Max: 1})
	s.w.Cloud.NoCapacity("*", "c5.large")
	s.deploy("web", 3, "1500m", "64Mi")
	t.Logf("three pods Running after %s although the cheapest type is sold out", s.until("three pods run", func() bool { return s.running("web") == 3 }))
	made := s.sizes()
	for name := range made {
		if !strings.HasPrefix(name, "general-c5.large-") && !strings.HasPrefix(name, "general-m5.large-") {
			t.Errorf("group %s was made: %v", name, made)
		}
	}
	s.scale("web", 6)
	s.until("the pool is full", func() bool { return s.running("web") == 4 })
	s.journal("its pool is at its maximum of 4")
	if n := len(s.nodes()); n != 4 {
		t.Errorf("%d nodes, groups %v", n, s.sizes())
	}
	s.explains("explain group general-m5.large-"+s.w.Cloud.Zones()[0], "its pool is at its maximum of 4")
	if out, code := s.command("status"); code != 0 || !strings.Contains(out, "pool general: 4 of at most 4 machines;") {
		t.Errorf("status (%d):\n%s", code, out)
	}
	if out, _ := s.check(); !strings.Contains(out, "4 of at most 4 machines;") {
		t.Errorf("check:\n%s", out)
	}
	s.kubectl("", "delete", "deployment", "web")
	s.until("every machine is gone", func() bool { return len(s.nodes()) == 0 })
}

// TestPoolOfFlavors: one entry of Nova's section makes a group of each flavor and zone. Pods get servers of the cheapest flavor that Nova has room for, and the
// entry's maximum holds for all groups together.
func TestPoolOfFlavors(t *testing.T) {
	t.Parallel() // it mostly waits
	s := newScene(t, func(o *world.Options) {
		o.Providers = []string{"nova"}
		o.Pace = world.Pace{Launch: 300 * time.Millisecond, Boot: 300 * time.Millisecond, Terminate: 300 * time.Millisecond, Seed: 7}
	})
	s.start("AUTOSCALER_SCALING_UNNEEDED_FOR=2s", "AUTOSCALER_SCALING_DELAY_AFTER_ADD=2s")
	cloud := s.w.Clouds[0].(novaCloud)
	for name, size := range map[string]int{"m1.small": 2, "m1.middle": 3} {
		cloud.PutFlavor(openstack.Flavor{Name: name, VCPUs: size, RAM: 4096 * size, Disk: 40})
	}
	data, err := s.w.RenderUserData(t.Context(), s.binary, s.w.Clouds[0].RenderFlags()...)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "worker.sh")
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	pool := map[string]any{"name": "general", "flavors": []any{"m1.small", "m1.middle"}, "zones": []string{"nova"}, "eachZone": true, "max": 3, "maxTotal": 4,
		"image": openstack.ImageName, "networks": []string{openstack.NetworkName}, "securityGroups": []string{"workers"}, "key": openstack.KeyName, "userdata": file}
	if err := s.w.PutSection("nova", map[string]any{"groups": []any{pool}}); err != nil {
		t.Fatal(err)
	}
	s.deploy("web", 6, "1500m", "64Mi")
	s.until("the pool is full", func() bool { return s.running("web") == 4 })
	s.journal("its pool is at its maximum of 4")
	of := map[string]int{}
	for _, server := range cloud.Servers() {
		of[server.Metadata["autoscaler-agent.group"]]++
	}
	if len(of) != 2 || of["general-m1.small-nova"] != 3 || of["general-m1.middle-nova"] != 1 {
		t.Errorf("servers by group: %v", of)
	}
	if out, code := s.command("status"); code != 0 || !strings.Contains(out, "pool general: 4 of at most 4 machines;") {
		t.Errorf("status (%d):\n%s", code, out)
	}
	s.kubectl("", "delete", "deployment", "web")
	s.until("every machine is gone", func() bool { return len(s.nodes()) == 0 })
}

// sizes are the desired capacities of the groups of pools, by name.
func (s *scene) sizes() map[string]int {
	out := map[string]int{}
	for _, g := range s.w.Cloud.Groups() {
		if g.Name != "workers" {
			out[g.Name] = g.Desired
		}
	}
	return out
}
