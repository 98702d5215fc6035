package asg

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	asgtypes "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
)

// resolved is a template, with what an operator should know about it. err is set
// when a read failed; a template that can never be resolved has only Unknown.
type resolved struct {
	template cluster.Template
	quota    string // cluster.NodeGroup.Quota
	kinds    kinds
	warnings []string
	err      error
}

// variant is one kind of machine that a group may start next.
type variant struct {
	template *launchTemplate
	typ      string
	rootGiB  int64
}

// draft is a template while it is resolved.
type draft struct {
	source   asgtypes.AutoScalingGroup
	choices  []choice
	variants []variant
	out      resolved
}

// choice is a launch template with the type, or the requirements, that the group
// lays over it. Both empty: the launch template's own.
type choice struct {
	ref          ref
	typ          string
	requirements *asgtypes.InstanceRequirements
}

// give up on the draft: because AWS could not be read (the next read may do), or
// because the group's configuration is wrong.
func (d *draft) fail(err *provider.Error) {
	if d.out.template.Unknown != "" {
		return
	}
	own := *err
	own.Group = cluster.GroupID(aws.ToString(d.source.AutoScalingGroupName))
	d.out.template.Unknown = own.Error()
	if own.Kind != provider.Invalid && own.Kind != provider.NotFound {
		d.out.err = &own
	}
}

func (d *draft) refuse(format string, args ...any) {
	if d.out.template.Unknown == "" {
		d.out.template.Unknown = fmt.Sprintf(format, args...)
	}
}

func (d *draft) open() bool { return d.out.template.Unknown == "" }

// readTemplates resolves the templates of all groups, asking for each launch
// template, image and type once.
func (p *Provider) readTemplates(ctx context.Context, readings []*reading) ([]resolved, []error) {
	drafts := make([]*draft, len(readings))
	var refs []ref
	for i, r := range readings {
		d := &draft{source: r.source}
		drafts[i] = d
		if why := unsupported(r.source); why != "" {
			d.refuse("%s", why)
			continue
		}
		d.choose()
		for _, c := range d.choices {
			refs = append(refs, c.ref)
		}
	}
	versions := p.resolveRefs(ctx, refs)

	images := map[string]bool{}
	for _, d := range drafts {
		for _, c := range d.choices {
			v := versions[c.ref]
			if v.err != nil {
				d.fail(v.err)
			} else if id := aws.ToString(v.template.data.ImageId); strings.HasPrefix(id, "ami-") {
				images[id] = true
			}
		}
	}
	badImages := p.loadImages(ctx, images)

	types := map[string]bool{}
	for _, d := range drafts {
		p.expand(ctx, d, versions, badImages)
		for _, v := range d.variants {
			types[v.typ] = true
		}
	}
	badTypes := p.loadTypes(ctx, types)

	out := make([]resolved, len(drafts))
	var errs []error
	for i, d := range drafts {
		if d.open() {
			p.finish(d, readings[i].tags, badTypes)
		}
		d.out.quota, d.out.kinds = d.quota(), d.kinds()
		out[i] = d.out
		if d.out.err != nil {
			errs = append(errs, d.out.err)
		}
	}
	return out, errs
}

// choose lists what the group may start, as the group itself tells it.
func (d *draft) choose() {
	g := d.source
	switch {
	case g.MixedInstancesPolicy != nil && g.MixedInstancesPolicy.LaunchTemplate != nil && g.MixedInstancesPolicy.LaunchTemplate.LaunchTemplateSpecification != nil:
		mixed := g.MixedInstancesPolicy.LaunchTemplate
		base := refOf(mixed.LaunchTemplateSpecification)
		for _, o := range mixed.Overrides {
			c := choice{ref: base, typ: aws.ToString(o.InstanceType), requirements: o.InstanceRequirements}
			if o.LaunchTemplateSpecification != nil {
				c.ref = refOf(o.LaunchTemplateSpecification)
			}
			d.choices = append(d.choices, c)
		}
		if len(mixed.Overrides) == 0 {
			d.choices = []choice{{ref: base}}
		}
	case g.LaunchTemplate != nil:
		d.choices = []choice{{ref: refOf(g.LaunchTemplate)}}
	case aws.ToString(g.LaunchConfigurationName) != "":
		d.refuse("the group uses launch configuration %s, which AWS has retired and this agent does not read; move the group to a launch template", aws.ToString(g.LaunchConfigurationName))
	default:
		d.refuse("the group has no launch template")
	}
}

// expand turns choices into single types with their root volumes.
func (p *Provider) expand(ctx context.Context, d *draft, versions answers, badImages map[string]string) {
	for _, c := range d.choices {
		if !d.open() {
			return
		}
		t := versions[c.ref].template
		image := aws.ToString(t.data.ImageId)
		fact := p.facts.imageFact(image)
		if why := badImages[image]; why != "" {
			d.warn("image %s could not be read, so root volume and architecture are taken from the launch template and the instance type: %s", image, why)
		}
		root, known := rootGiB(t, fact)
		if !known {
			d.warn("the size of the root volume is not known, so pods that request ephemeral-storage find no room in a new machine; allow ec2:DescribeImages, or set the tag %sephemeral-storage", tagResources)
		}
		var types []string
		var err *provider.Error
		switch {
		case c.typ != "":
			types = []string{c.typ}
		case c.requirements != nil:
			types, err = p.matchTypes(ctx, c.requirements, fact.arch)
		case t.data.InstanceType != "":
			types = []string{string(t.data.InstanceType)}
		case t.data.InstanceRequirements != nil:
			types, err = p.matchTypes(ctx, t.data.InstanceRequirements, fact.arch)
		default:
			d.refuse("launch template %s names no instance type, and neither does the group", c.ref)
			return
		}
		if err != nil {
			d.fail(err)
			return
		}
		if len(types) == 0 {
			d.refuse("no instance type meets the group's instance requirements")
			return
		}
		for _, typ := range types {
			d.variants = append(d.variants, variant{template: t, typ: typ, rootGiB: root})
		}
	}
}

func (d *draft) warn(format string, args ...any) {
	if w := fmt.Sprintf(format, args...); !slices.Contains(d.out.warnings, w) {
		d.out.warnings = append(d.out.warnings, w)
	}
}

// rootGiB is the size of the root volume: the launch template's word for the
// image's root device, or else the image's own.
func rootGiB(t *launchTemplate, image imageFact) (int64, bool) {
	var sizes []int64
	for _, m := range t.data.BlockDeviceMappings {
		if m.Ebs == nil || m.Ebs.VolumeSize == nil {
			continue
		}
		size := int64(aws.ToInt32(m.Ebs.VolumeSize))
		if image.rootDev != "" && aws.ToString(m.DeviceName) == image.rootDev {
			return size, true
		}
		sizes = append(sizes, size)
	}
	switch {
	case image.rootGiB > 0:
		return image.rootGiB, true
	case image.rootDev == "" && len(sizes) == 1:
		return sizes[0], true
	}
	return 0, false
}

// finish computes the template: the element-wise minimum over all variants, since
// nobody knows which one AWS will start.
func (p *Provider) finish(d *draft, tags map[string]string, badTypes map[string]*provider.Error) {
	var capacity, largest cluster.Resources
	for i, v := range d.variants {
		t, ok := p.facts.typeFact(v.typ)
		if !ok {
			err := badTypes[v.typ]
			if err == nil {
				err = &provider.Error{Op: "resolve template", Kind: provider.Invalid, Err: errors.New("AWS does not describe it")}
			}
			named := *err
			named.Err = fmt.Errorf("instance type %s: %w", v.typ, err.Err)
			d.fail(&named)
			return
		}
		c := p.capacity(t, v)
		if i == 0 {
			capacity, largest = c, c
			continue
		}
		capacity = minimum(capacity, c)
		largest.MilliCPU, largest.Memory = max(largest.MilliCPU, c.MilliCPU), max(largest.Memory, c.Memory)
	}
	if largest.MilliCPU*10 > capacity.MilliCPU*11 || float64(largest.Memory) > float64(capacity.Memory)*1.1 {
		d.warn("its instance types differ by more than 10 %% in cpu or memory: the smallest of each is counted on (%d of %d mcpu, %d of %d MiB), so machines may stay half empty; use types of one size",
			capacity.MilliCPU, largest.MilliCPU, capacity.Memory>>20, largest.Memory>>20)
	}
	h := parseHints(tags)
	d.out.warnings = append(d.out.warnings, h.warnings...)
	capacity = h.apply(capacity)
	t := &d.out.template
	t.Capacity = capacity
	t.Allocatable = p.reservation.Allocatable(capacity)
	if pods, ok := h.resources["pods"]; ok {
		t.Allocatable.Pods = pods
	}
	t.Labels = p.labels(d)
	for name, value := range h.labels {
		t.Labels[name] = value
	}
	t.Taints = h.taints
	t.Spec = spec(d, t.Labels, h.relevant)
}

// minimum is element-wise; a resource that one side lacks is nothing.
func minimum(a, b cluster.Resources) cluster.Resources {
	out := cluster.Resources{
		MilliCPU: min(a.MilliCPU, b.MilliCPU), Memory: min(a.Memory, b.Memory),
		EphemeralStorage: min(a.EphemeralStorage, b.EphemeralStorage), Pods: min(a.Pods, b.Pods),
		Extended: map[string]int64{},
	}
	for name, n := range a.Extended {
		if m := min(n, b.Extended[name]); m > 0 {
			out.Extended[name] = m
		}
	}
	return out
}

// overheadMiB rounds up, as Karpenter does.
func overheadMiB(memoryMiB int64, percent float64) int64 {
	return int64(math.Ceil(float64(memoryMiB) * percent / 100))
}

// labels are those that every node of the group will carry: what differs between
// variants or zones is left out, and so is the host name.
func (p *Provider) labels(d *draft) map[string]string {
	l := map[string]string{"topology.kubernetes.io/region": p.region}
	if zones := d.source.AvailabilityZones; len(zones) == 1 {
		l["topology.kubernetes.io/zone"] = zones[0]
		l["topology.ebs.csi.aws.com/zone"] = zones[0]
	}
	var types, archs, systems []string
	for _, v := range d.variants {
		types = append(types, v.typ)
		image := p.facts.imageFact(aws.ToString(v.template.data.ImageId))
		t, _ := p.facts.typeFact(v.typ)
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

// spec is the key of a template: everything that decides what the next node looks
// like. What was learnt from nodes of another key does not hold for this one.
func spec(d *draft, labels map[string]string, tags []string) string {
	h := sha256.New()
	var lines []string
	for _, v := range d.variants {
		user := sha256.Sum256([]byte(aws.ToString(v.template.data.UserData)))
		lines = append(lines, fmt.Sprintf("%s/%d %s %s %d %x", v.template.id, v.template.version,
			v.typ, aws.ToString(v.template.data.ImageId), v.rootGiB, user))
	}
	lines = append(lines, tags...)
	lines = append(lines, "zone "+labels["topology.kubernetes.io/zone"])
	slices.Sort(lines)
	for _, line := range lines {
		fmt.Fprintf(h, "%d %s\n", len(line), line)
	}
	return hex.EncodeToString(h.Sum(nil)[:12])
}
