package nova

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/flavors"
	"github.com/gophercloud/gophercloud/v2/openstack/image/v2/images"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/nova/section"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/openstack"
	"github.com/autoscaler-agent/autoscaler-agent/internal/nodespec"
)

// template describes the group's next Node: the least of each resource over the
// flavors, since Nova has room for any of them.
func (p *Provider) template(ctx context.Context, s *site, g *section.Group) (cluster.Template, []string, *provider.Error) {
	var t cluster.Template
	fail := func(err error) (cluster.Template, []string, *provider.Error) {
		e := openstack.Classify("resolve template", cluster.GroupID(g.Name), err)
		t.Unknown = e.Error()
		return t, nil, e
	}
	img, err := s.image(ctx, g.Image)
	if err != nil {
		return fail(err)
	}
	var choices []flavors.Flavor
	for _, name := range g.Flavor {
		f, err := s.flavor(ctx, name)
		if err != nil {
			return fail(err)
		}
		choices = append(choices, f)
	}
	boot, err := p.userData(g)
	if err != nil {
		return fail(err)
	}
	var warnings []string
	if boot.warning != "" {
		warnings = append(warnings, boot.warning)
	}
	for i, f := range choices {
		c, warn := capacity(f, img, g)
		warnings = append(warnings, warn...)
		if i == 0 {
			t.Capacity = c
			continue
		}
		t.Capacity = cluster.Resources{MilliCPU: min(t.Capacity.MilliCPU, c.MilliCPU), Memory: min(t.Capacity.Memory, c.Memory), EphemeralStorage: min(t.Capacity.EphemeralStorage, c.EphemeralStorage)}
	}
	shown := t.Capacity
	shown.Memory -= int64(math.Ceil(float64(shown.Memory) * p.cfg.VMMemoryOverheadPercent / 100))
	t.Allocatable = p.reservation.Allocatable(shown)
	t.Capacity.Pods = t.Allocatable.Pods
	t.Labels = labels(s, g, choices, img)
	if len(g.Zones) > 1 {
		t.Zones, t.ZoneLabels = slices.Sorted(slices.Values(g.Zones)), zoneLabels
	}
	for _, taint := range g.Taints {
		t.Taints = append(t.Taints, taint.Taint)
	}
	t.Spec, t.Source = spec(g, choices, img, boot.key), source(g, choices, img, boot.wanted)
	slices.Sort(warnings)
	return t, slices.Compact(warnings), nil
}

// capacity is a flavor's own numbers: MiB of memory, GiB of disk.
func capacity(f flavors.Flavor, img images.Image, g *section.Group) (cluster.Resources, []string) {
	var warnings []string
	disk := f.Disk
	switch {
	case g.BootVolume != nil:
		disk = g.BootVolume.Size
	case disk == 0:
		disk = img.MinDiskGigabytes
		warnings = append(warnings, fmt.Sprintf("flavor %s has no disk of its own, and no bootVolume is given: Nova will refuse it, or pods that request ephemeral-storage find no room", f.Name))
	}
	for key := range f.ExtraSpecs {
		if strings.HasPrefix(key, "resources:VGPU") || key == "pci_passthrough:alias" {
			warnings = append(warnings, fmt.Sprintf("flavor %s has devices (%s); what a device plugin makes of them is not known before a machine runs: name it under groups.%s.template.capacity, for example nvidia.com/gpu: 1", f.Name, key, g.Name))
		}
	}
	return cluster.Resources{MilliCPU: int64(f.VCPUs) * 1000, Memory: int64(f.RAM) << 20, EphemeralStorage: int64(disk) << 30}, warnings
}

// zoneLabels are the labels of a Node that hold its zone: of the cloud's controller and of the
// Cinder CSI driver.
var zoneLabels = []string{"topology.kubernetes.io/zone", "topology.cinder.csi.openstack.org/zone"}

// labels are those that every Node of the group will carry: what differs between flavors
// or zones is left out, and so is the host name.
func labels(s *site, g *section.Group, choices []flavors.Flavor, img images.Image) map[string]string {
	out := map[string]string{"kubernetes.io/os": "linux", "beta.kubernetes.io/os": "linux"}
	arch := g.Arch
	if arch == "" {
		arch = map[string]string{"aarch64": "arm64", "arm64": "arm64"}[cmp.Or(property(img, "hw_architecture"), property(img, "architecture"))]
	}
	arch = cmp.Or(arch, "amd64")
	out["kubernetes.io/arch"], out["beta.kubernetes.io/arch"] = arch, arch
	set := func(value string, keys ...string) {
		for _, key := range keys {
			if value != "" && nodespec.Label(key, value) == nil {
				out[key] = value
			}
		}
	}
	set(s.region(), "topology.kubernetes.io/region")
	if len(g.Zones) == 1 {
		set(g.Zones[0], zoneLabels...)
	}
	if !slices.ContainsFunc(choices, func(f flavors.Flavor) bool { return f.Name != choices[0].Name }) {
		set(choices[0].Name, "node.kubernetes.io/instance-type")
	}
	maps.Copy(out, g.Labels)
	return out
}

// tokenLine is the line of a rendered script with its join token, which has no influence
// on the Node.
var tokenLine = regexp.MustCompile(`(?m)^JOIN_TOKEN=.*$`)

// spec is the key of a template: everything that decides what the next Node looks like.
func spec(g *section.Group, choices []flavors.Flavor, img images.Image, script []byte) string {
	h := sha256.New()
	line := func(format string, args ...any) { fmt.Fprintf(h, format+"\n", args...) }
	for _, f := range choices {
		line("flavor %s %d %d %d", f.ID, f.VCPUs, f.RAM, f.Disk)
	}
	line("image %s", img.ID)
	line("script %x", sha256.Sum256(tokenLine.ReplaceAll(script, nil)))
	line("zones %q arch %q", g.Zones, g.Arch)
	if g.BootVolume != nil {
		line("volume %d %s", g.BootVolume.Size, g.BootVolume.Type)
	}
	for _, key := range slices.Sorted(maps.Keys(g.Labels)) {
		line("label %q %q", key, g.Labels[key])
	}
	for _, t := range g.Taints {
		line("taint %q", t.Taint)
	}
	return hex.EncodeToString(h.Sum(nil)[:12])
}
