package provider_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
	"github.com/autoscaler-agent/autoscaler-agent/internal/testing/providertest"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/cloud/aws"
)

func TestASGLateInstances(t *testing.T) {
	w := newWorld(t)
	p := w.connect(t, byTag)
	w.StaleService("ec2", time.Hour)
	if err := p.Resize(ctx, providertest.Workers, 2, 3); err != nil {
		t.Fatal(err)
	}
	w.settle(t)
	g := groups(t, p)[providertest.Workers]
	phases := map[cluster.Phase]int{}
	for _, i := range g.Instances {
		phases[i.Phase]++
		if !i.Member || i.Created.IsZero() != (i.Phase == cluster.PhasePending) || i.Zone == "" {
			t.Errorf("%+v", i)
		}
	}
	if phases[cluster.PhasePending] != 1 || phases[cluster.PhaseRunning] != 2 {
		t.Errorf("phases %v: EC2 does not list the third machine yet", phases)
	}
}

func TestASGStates(t *testing.T) {
	w := newWorld(t)
	p := w.connect(t, byTag)
	w.put(t, aws.Group{Name: "paused", Max: 2, SuspendedProcesses: []string{"Launch", "AZRebalance"}, ProtectNew: true}, nil)
	w.put(t, aws.Group{Name: "one-zone", Max: 2, Zones: []string{"b"}, ProtectNew: true}, nil)
	w.put(t, aws.Group{Name: "careless", Max: 2}, nil)
	w.put(t, aws.Group{Name: "weighted", Max: 4, Overrides: []aws.Override{{InstanceType: "m5.large", WeightedCapacity: "2"}}}, nil)
	w.put(t, aws.Group{Name: "tag-error", Max: 4}, map[string]string{
		"k8s.io/cluster-autoscaler/node-template/taint/a":                                  "nonsense",
		"k8s.io/cluster-autoscaler/node-template/resources/memory":                         "lots",
		"k8s.io/cluster-autoscaler/node-template/label/ok":                                 "yes",
		"k8s.io/cluster-autoscaler/node-template/autoscaling-options/maxnodeprovisiontime": "3m",
	})
	got := groups(t, p)
	if g := got["paused"]; !strings.Contains(g.Paused, "Launch") || len(g.Warnings) != 0 {
		t.Errorf("paused: %q, warnings %q", g.Paused, g.Warnings)
	}
	if g := got["one-zone"]; len(g.Warnings) != 0 || g.Template.Labels["topology.kubernetes.io/zone"] != "us-east-1b" || g.Template.Labels["topology.ebs.csi.aws.com/zone"] != "us-east-1b" {
		t.Errorf("one zone: warnings %q, labels %v", g.Warnings, g.Template.Labels)
	}
	if g := got["careless"]; len(g.Warnings) != 2 {
		t.Errorf("careless: warnings %q", g.Warnings)
	}
	if g := got["weighted"]; !strings.Contains(g.Template.Unknown, "weights") {
		t.Errorf("weighted: %q", g.Template.Unknown)
	}
	if err := p.Resize(ctx, "weighted", 0, 1); provider.KindOf(err) != provider.Invalid {
		t.Errorf("weighted was resized: %v", err)
	}
	g := got["tag-error"]
	if len(g.Warnings) != 4 || g.Template.Unknown != "" || g.Template.Labels["ok"] != "yes" || len(g.Template.Taints) != 0 ||
		g.Options.MaxNodeProvisionTime == nil || *g.Options.MaxNodeProvisionTime != 3*time.Minute {
		t.Errorf("tag errors: warnings %q, template %+v", g.Warnings, g.Template)
	}
}

func TestASGTemplates(t *testing.T) {
	w := newWorld(t)
	p := w.connect(t, byTag)
	w.PutLaunchTemplate(aws.LaunchTemplate{Name: "gpu", InstanceType: "g4dn.xlarge", ImageID: "ami-0000000000000000b"})
	w.put(t, aws.Group{Name: "gpu", Max: 2, LaunchTemplate: "gpu", Version: "$Latest"}, map[string]string{
		"k8s.io/cluster-autoscaler/node-template/taint/nvidia.com/gpu":   "present:NoSchedule",
		"k8s.io/cluster-autoscaler/node-template/resources/example/disk": "3",
	})
	w.put(t, aws.Group{Name: "pages", Max: 2}, map[string]string{"k8s.io/cluster-autoscaler/node-template/resources/hugepages-2Mi": "2Gi"})
	w.put(t, aws.Group{Name: "mixed", Max: 2, Overrides: []aws.Override{{InstanceType: "m5.xlarge"}, {InstanceType: "c5.xlarge"}}}, nil)
	w.put(t, aws.Group{Name: "asked", Max: 2, Overrides: []aws.Override{{Requirements: &aws.Requirements{
		MinVCPU: 4, MaxVCPU: 4, MinMemoryMiB: 16384, MaxMemoryMiB: 16384, Allowed: []string{"m5.*"}}}}}, nil)
	got := groups(t, p)

	m5 := got[providertest.Workers].Template
	memory := int64(8192-615) << 20 // 7.5 % of 8192 MiB, rounded up
	wantCapacity := cluster.Resources{MilliCPU: 2000, Memory: memory, EphemeralStorage: 20 << 30, Pods: 110, Extended: map[string]int64{}}
	if c := m5.Capacity; c.MilliCPU != wantCapacity.MilliCPU || c.Memory != wantCapacity.Memory || c.EphemeralStorage != wantCapacity.EphemeralStorage || c.Pods != 110 {
		t.Errorf("m5.large: %+v, want %+v", c, wantCapacity)
	}
	if a, want := m5.Allocatable, reservation.Allocatable(m5.Capacity); a.MilliCPU != 1930 || a.Memory != memory-600<<20 || a.EphemeralStorage != want.EphemeralStorage {
		t.Errorf("allocatable %+v", a)
	}
	if pages := got["pages"].Template; pages.Allocatable.Memory != m5.Allocatable.Memory-2<<30 || pages.Allocatable.Extended["hugepages-2Mi"] != 2<<30 {
		t.Errorf("2Gi of huge pages leave %+v of %+v", pages.Allocatable, m5.Allocatable)
	}
	for name, value := range map[string]string{"kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux",
		"node.kubernetes.io/instance-type": "m5.large", "topology.kubernetes.io/region": "us-east-1"} {
		if m5.Labels[name] != value {
			t.Errorf("label %s=%q, want %q", name, m5.Labels[name], value)
		}
	}
	gpu := got["gpu"].Template
	if gpu.Allocatable.Extended["nvidia.com/gpu"] != 1 || gpu.Allocatable.Extended["example/disk"] != 3 ||
		!slices.Equal(gpu.Taints, []cluster.Taint{{Key: "nvidia.com/gpu", Value: "present", Effect: "NoSchedule"}}) {
		t.Errorf("gpu: %+v", gpu)
	}
	mixed := got["mixed"]
	if c := mixed.Template.Capacity; c.MilliCPU != 4000 || c.Memory>>20 != 8192-615 || mixed.Template.Labels["node.kubernetes.io/instance-type"] != "" {
		t.Errorf("mixed: %+v", mixed.Template)
	}
	if !slices.ContainsFunc(mixed.Warnings, func(s string) bool { return strings.Contains(s, "10 %") }) {
		t.Errorf("mixed: warnings %q", mixed.Warnings)
	}
	if asked := got["asked"].Template; asked.Capacity.MilliCPU != 4000 || asked.Labels["node.kubernetes.io/instance-type"] != "m5.xlarge" {
		t.Errorf("asked: %+v", asked)
	}

	// A new version of the launch template makes what was learnt void; a read in
	// between does not.
	if again := groups(t, p)["gpu"].Template.Spec; again != gpu.Spec {
		t.Errorf("spec changed by itself: %s, %s", gpu.Spec, again)
	}
	w.PutLaunchTemplate(aws.LaunchTemplate{Name: "gpu", InstanceType: "p3.2xlarge", ImageID: "ami-0000000000000000b"})
	if now := groups(t, p)["gpu"].Template; now.Spec == gpu.Spec || now.Capacity.MilliCPU != 8000 {
		t.Errorf("the new version is not seen: %+v", now)
	}
}

func TestASGStockout(t *testing.T) {
	w := newWorld(t)
	p := w.connect(t, byTag)
	w.block(true)
	w.NoCapacity("*", "*")
	if err := p.Resize(ctx, providertest.Workers, 2, 4); err != nil {
		t.Fatal(err)
	}
	w.settle(t)
	g := groups(t, p)[providertest.Workers]
	if len(g.Failures) == 0 {
		t.Fatal("no failures")
	}
	for _, f := range g.Failures {
		if f.Cause != cluster.CauseCapacity || !slices.Contains(w.Zones(), f.Zone) {
			t.Errorf("%+v", f)
		}
	}
	// What has not come can be taken back; all machines are protected.
	if err := p.Resize(ctx, providertest.Workers, 4, 2); err != nil {
		t.Errorf("taking back: %v", err)
	}
	w.put(t, aws.Group{Name: "bare", Max: 4, Desired: 1}, nil)
	if err := p.Resize(ctx, "bare", 1, 0); provider.KindOf(err) != provider.Invalid {
		t.Errorf("an unprotected group was lowered: %v", err)
	}
	w.RemoveImage("ami-0123456789abcdef0")
	w.HasCapacity("*", "*")
	w.block(true) // settle waits for a failure from now on
	w.settle(t)
	g = groups(t, p)["bare"]
	if len(g.Failures) == 0 || g.Failures[0].Cause != cluster.CauseInvalid {
		t.Errorf("an image that does not exist: %+v", g.Failures)
	}
}

// TestASGSurplus: somebody lowered the target of a protected group by hand, so it has
// more instances than its target, which is at its minimum. The surplus can still be
// deleted by name, and lowers nothing; the last one at the minimum cannot.
func TestASGSurplus(t *testing.T) {
	w := newWorld(t)
	w.put(t, aws.Group{Name: "protected", Min: 1, Max: 5, Desired: 3, ProtectNew: true}, nil)
	p := w.connect(t, byTag)
	w.settle(t)
	members := w.Alive("protected")
	if len(members) != 3 {
		t.Fatalf("%d instances, want 3", len(members))
	}
	if err := w.Cloud.PutGroup(aws.Group{Name: "protected", Min: 1, Max: 5, Desired: 1, ProtectNew: true, LaunchTemplate: "worker", Tags: tagged}); err != nil {
		t.Fatal(err)
	}
	if err := p.Delete(ctx, "protected", members[0], members[1]); err != nil {
		t.Errorf("delete the surplus: %v", err)
	}
	w.settle(t)
	if n, target := len(w.Alive("protected")), w.Target("protected"); n != 1 || target != 1 {
		t.Errorf("%d instances and target %d, want 1 and 1", n, target)
	}
	if err := p.Delete(ctx, "protected", members[2]); provider.KindOf(err) != provider.Invalid {
		t.Errorf("delete the last one at the minimum: %v, want it refused as invalid", err)
	}
}
