package template

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
)

// spec is the key of a template: everything that decides what the next node looks
// like. What was learnt from nodes of another key does not hold for this one.
func spec(d *draft, labels map[string]string, tags []string) string {
	h := sha256.New()
	var lines []string
	for _, v := range d.variants {
		lines = append(lines, fmt.Sprintf("%s/%d %s %s %d %x", v.template.id, v.template.version,
			v.typ, v.image, v.rootGiB, v.template.userData))
	}
	lines = append(lines, tags...)
	lines = append(lines, "zone "+labels["topology.kubernetes.io/zone"])
	slices.Sort(lines)
	for _, line := range lines {
		fmt.Fprintf(h, "%d %s\n", len(line), line)
	}
	return hex.EncodeToString(h.Sum(nil)[:12])
}

// zoneLabels are the labels of a Node that hold its zone: of the cloud's controller and of the
// EBS CSI driver.
var zoneLabels = []string{"topology.kubernetes.io/zone", "topology.ebs.csi.aws.com/zone"}

// labels are those that every node of the group will carry: what differs between
// variants or zones is left out, and so is the host name.
func (rs *Resolver) labels(d *draft) map[string]string {
	l := map[string]string{"topology.kubernetes.io/region": rs.region}
	if zones := d.source.AvailabilityZones; len(zones) == 1 {
		for _, key := range zoneLabels {
			l[key] = zones[0]
		}
	}
	var types, archs, systems []string
	for _, v := range d.variants {
		types = append(types, v.typ)
		image := rs.facts.imageFact(v.image)
		t, _ := rs.facts.typeFact(v.typ)
		switch {
		case image.arch != "":
			archs = append(archs, image.arch)
		case len(t.archs) == 1:
			archs = append(archs, t.archs[0])
		default:
			archs = append(archs, "")
		}
		if image.os == "" {
			image.os = "linux"
		}
		systems = append(systems, image.os)
	}
	same := func(list []string, keys ...string) {
		slices.Sort(list)
		if list = slices.Compact(list); len(list) == 1 && list[0] != "" {
			for _, key := range keys {
				l[key] = list[0]
			}
		}
	}
	same(types, "node.kubernetes.io/instance-type")
	same(archs, "kubernetes.io/arch", "beta.kubernetes.io/arch")
	same(systems, "kubernetes.io/os", "beta.kubernetes.io/os")
	return l
}
