package template

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	asgtypes "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/asg/awsapi"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/asg/price"
)

// Resolver resolves templates. It is safe for concurrent use.
type Resolver struct {
	client          *awsapi.Client
	region          string
	reservation     cluster.Reservation
	overheadPercent float64
	now             func() time.Time
	facts           facts
	// Upgrades are set before the first Resolve.
	Upgrades Upgrades
}

// New makes a Resolver of the groups of one region. reservation are the resources that the
// kubelets reserve; overheadPercent is the part of a type's memory that the kubelet does
// not see.
func New(client *awsapi.Client, region string, reservation cluster.Reservation, overheadPercent float64) *Resolver {
	return &Resolver{client: client, region: region, reservation: reservation, overheadPercent: overheadPercent, now: time.Now}
}

// Resolved is a group's template, with what an operator should know about it. Err is set
// when a read failed; a template that can never be resolved has only Template.Unknown.
type Resolved struct {
	Template  cluster.Template
	Quota     string // cluster.NodeGroup.Quota
	Startable Startable
	// Types are the instance types that the group may start; Spot tells that its launch template
	// asks for spot machines.
	Types    []price.Type
	Spot     bool
	Warnings []string
	Exposed  string // cluster.NodeGroup.Exposed
	Err      error
}

// variant is one kind of machine that a group may start next.
type variant struct {
	template *launchTemplate
	image    string
	typ      string
	rootGiB  int64
}

// draft is a template while it is resolved.
type draft struct {
	source   asgtypes.AutoScalingGroup
	choices  []choice
	variants []variant
	out      Resolved
}

// choice is a launch template with the image and the type, or the requirements, that the group
// lays over it. Empty: the launch template's own.
type choice struct {
	ref          ref
	image        string
	typ          string
	requirements *asgtypes.InstanceRequirements
}

// fail gives the draft up: AWS could not be read (the next read may succeed), or the
// group's configuration is wrong.
func (d *draft) fail(err *provider.Error) {
	if d.out.Template.Unknown != "" {
		return
	}
	own := *err
	own.Group = cluster.GroupID(aws.ToString(d.source.AutoScalingGroupName))
	d.out.Template.Unknown = own.Error()
	if own.Kind != provider.Invalid && own.Kind != provider.NotFound {
		d.out.Err = &own
	}
}

func (d *draft) refuse(format string, args ...any) {
	if d.out.Template.Unknown == "" {
		d.out.Template.Unknown = fmt.Sprintf(format, args...)
	}
}

func (d *draft) open() bool { return d.out.Template.Unknown == "" }

// Resolve resolves the templates of all groups, in their order. Each launch template,
// image and type is read once.
func (rs *Resolver) Resolve(ctx context.Context, groups []asgtypes.AutoScalingGroup) ([]Resolved, []error) {
	drafts := make([]*draft, len(groups))
	var refs []ref
	for i, g := range groups {
		d := &draft{source: g}
		drafts[i] = d
		if why := Unsupported(g); why != "" {
			d.refuse("%s", why)
			continue
		}
		d.choose()
		for _, c := range d.choices {
			refs = append(refs, c.ref)
		}
	}
	versions := rs.resolveRefs(ctx, refs, startedOf(groups))

	noTemplates := rs.facts.refused(awsapi.ActionDescribeTemplates, rs.now())
	images := map[string]bool{}
	for _, d := range drafts {
		for _, c := range d.choices {
			if _, fixed := c.ref.fixed(); !fixed && noTemplates != nil {
				d.warn("a new version of its launch template is seen %s late: %s", refusalLife, noTemplates)
			}
			v := versions[c.ref]
			if v.err != nil {
				d.fail(v.err)
				continue
			}
			if why := v.template.exposed(); !strings.Contains(d.out.Exposed, why) {
				d.out.Exposed = strings.TrimPrefix(d.out.Exposed+"; "+why, "; ")
			}
			if id := c.imageID(v.template); strings.HasPrefix(id, "ami-") {
				images[id] = true
			}
		}
	}
	badImages := rs.loadImages(ctx, images)

	types := map[string]bool{}
	for _, d := range drafts {
		rs.expand(ctx, d, versions, badImages)
		for _, v := range d.variants {
			types[v.typ] = true
		}
	}
	badTypes := rs.loadTypes(ctx, types)

	out := make([]Resolved, len(drafts))
	var errs []error
	for i, d := range drafts {
		if d.open() {
			rs.finish(d, awsapi.TagsOf(groups[i]), badTypes)
			d.out.Template.Source = rs.source(d, versions)
			rs.warnUpgrade(d, versions)
		}
		d.out.Quota, d.out.Startable = d.quota(), d.startable()
		out[i] = d.out
		if d.out.Err != nil {
			errs = append(errs, d.out.Err)
		}
	}
	return out, errs
}

// choose lists the launch templates and types that the group itself names.
func (d *draft) choose() {
	g := d.source
	switch {
	case g.MixedInstancesPolicy != nil && g.MixedInstancesPolicy.LaunchTemplate != nil && g.MixedInstancesPolicy.LaunchTemplate.LaunchTemplateSpecification != nil:
		mixed := g.MixedInstancesPolicy.LaunchTemplate
		base := refOf(mixed.LaunchTemplateSpecification)
		for _, o := range mixed.Overrides {
			c := choice{ref: base, image: aws.ToString(o.ImageId), typ: aws.ToString(o.InstanceType), requirements: o.InstanceRequirements}
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

// imageID is the image of the choice's machines: the group's own, or the launch template's.
func (c choice) imageID(t *launchTemplate) string {
	return cmp.Or(c.image, aws.ToString(t.data.ImageId))
}

// expand turns choices into single types with their root volumes.
func (rs *Resolver) expand(ctx context.Context, d *draft, versions answers, badImages map[string]string) {
	for _, c := range d.choices {
		if !d.open() {
			return
		}
		t := versions[c.ref].template
		image := c.imageID(t)
		fact := rs.facts.imageFact(image)
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
			types, err = rs.matchTypes(ctx, c.requirements, fact.arch)
		case t.data.InstanceType != "":
			types = []string{string(t.data.InstanceType)}
		case t.data.InstanceRequirements != nil:
			types, err = rs.matchTypes(ctx, t.data.InstanceRequirements, fact.arch)
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
			d.variants = append(d.variants, variant{template: t, image: image, typ: typ, rootGiB: root})
		}
	}
}

func (d *draft) warn(format string, args ...any) {
	if w := fmt.Sprintf(format, args...); !slices.Contains(d.out.Warnings, w) {
		d.out.Warnings = append(d.out.Warnings, w)
	}
}

// rootGiB is the size of the root volume: the launch template's size for the image's root
// device, or else the image's own.
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
func (rs *Resolver) finish(d *draft, tags map[string]string, badTypes map[string]*provider.Error) {
	var capacity, largest cluster.Resources
	for i, v := range d.variants {
		t, ok := rs.facts.typeFact(v.typ)
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
		c := rs.capacity(t, v)
		d.out.Types = append(d.out.Types, price.Type{Name: v.typ, Capacity: c})
		d.out.Spot = spotTemplate(v.template)
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
	d.out.Warnings = append(d.out.Warnings, h.warnings...)
	capacity = h.apply(capacity)
	t := &d.out.Template
	t.Capacity = capacity
	t.Allocatable = rs.reservation.Allocatable(capacity)
	if pods, ok := h.resources["pods"]; ok {
		t.Allocatable.Pods = pods
	}
	t.Labels = rs.labels(d)
	if zones := d.source.AvailabilityZones; len(zones) > 1 {
		t.Zones, t.ZoneLabels = slices.Sorted(slices.Values(zones)), zoneLabels
	}
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

// Unsupported names the reason why a group's target cannot be counted in machines.
func Unsupported(source asgtypes.AutoScalingGroup) string {
	if unit := aws.ToString(source.DesiredCapacityType); unit != "" && unit != "units" {
		return "its desired capacity is counted in " + unit + ", not in machines; set DesiredCapacityType to units"
	}
	if policy := source.MixedInstancesPolicy; policy != nil && policy.LaunchTemplate != nil {
		for _, o := range policy.LaunchTemplate.Overrides {
			if w := aws.ToString(o.WeightedCapacity); w != "" && w != "1" {
				return "its instance types carry weights, so its desired capacity is not counted in machines; remove the weights"
			}
		}
	}
	return ""
}
