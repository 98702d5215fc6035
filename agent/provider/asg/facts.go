package asg

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
)

// facts caches what does not change in AWS: instance types, images, launch
// template versions by number; and, for requirementsLife, the types that meet a
// set of requirements (AWS adds new types a few times a year).
type facts struct {
	mu           sync.Mutex
	types        map[string]typeFact
	images       map[string]imageFact
	versions     map[string]*launchTemplate
	requirements map[string]matched
	refusals     map[string]refusal              // types and images, for refusalLife
	refreshes    map[cluster.GroupID]refreshFact // for refreshLife
	notices      map[string]notice               // by EC2 id, for noticeLife
}

const requirementsLife = time.Hour

// refusalLife is how long a type or an image that AWS refused to tell of (no right, no
// such thing) is not asked for again: nothing but an operator changes that.
const refusalLife = 5 * time.Minute

// refusal is what was answered, and until when it is believed.
type refusal struct {
	err   *provider.Error
	until time.Time
}

// refused is why a type or an image need not be asked for; nil: ask.
func (f *facts) refused(name string, now time.Time) *provider.Error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if r, ok := f.refusals[name]; ok && now.Before(r.until) {
		return r.err
	}
	return nil
}

// refuse remembers err if it is one that lasts.
func (f *facts) refuse(name string, err *provider.Error, now time.Time) {
	if err.Kind != provider.Denied && err.Kind != provider.Invalid && err.Kind != provider.NotFound || err.Kind == provider.Denied && badLogin(err) {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.refusals == nil {
		f.refusals = map[string]refusal{}
	}
	maps.DeleteFunc(f.refusals, func(_ string, r refusal) bool { return !now.Before(r.until) })
	f.refusals[name] = refusal{err, now.Add(refusalLife)}
}

// typeFact is what a template needs of an instance type.
type typeFact struct {
	vcpus     int64
	memoryMiB int64
	extended  map[string]int64
	archs     []string // as Kubernetes writes them
}

// imageFact is what a template needs of an image. The zero value: nothing known.
type imageFact struct {
	arch    string
	os      string
	rootDev string
	rootGiB int64
}

type matched struct {
	types []string
	until time.Time
}

// loadTypes makes sure that the given types are cached. It returns why a type is
// not, by type. A type that AWS does not know does not hide the others.
func (p *Provider) loadTypes(ctx context.Context, wanted map[string]bool) map[string]*provider.Error {
	f := &p.facts
	f.mu.Lock()
	missing := slices.DeleteFunc(slices.Sorted(maps.Keys(wanted)), func(t string) bool { _, ok := f.types[t]; return ok })
	f.mu.Unlock()
	failed, now := map[string]*provider.Error{}, p.now()
	missing = slices.DeleteFunc(missing, func(t string) bool {
		failed[t] = f.refused(t, now)
		return failed[t] != nil
	})
	for chunk := range slices.Chunk(missing, 100) {
		err := p.describeTypes(ctx, chunk)
		if err == nil {
			continue
		}
		for _, t := range chunk {
			one := err
			if err.Kind == provider.Invalid && len(chunk) > 1 {
				one = p.describeTypes(ctx, []string{t})
			}
			if one != nil {
				failed[t] = one
				f.refuse(t, one, now)
			}
		}
	}
	return failed
}

func (p *Provider) describeTypes(ctx context.Context, names []string) *provider.Error {
	in := &ec2.DescribeInstanceTypesInput{}
	for _, n := range names {
		in.InstanceTypes = append(in.InstanceTypes, ec2types.InstanceType(n))
	}
	for {
		answer, err := call(ctx, p, actionDescribeTypes, p.compute.DescribeInstanceTypes, in)
		if err != nil {
			return classify("resolve template", "", actionDescribeTypes, err)
		}
		p.facts.mu.Lock()
		if p.facts.types == nil {
			p.facts.types = map[string]typeFact{}
		}
		for _, info := range answer.InstanceTypes {
			p.facts.types[string(info.InstanceType)] = typeOf(info)
		}
		p.facts.mu.Unlock()
		if aws.ToString(answer.NextToken) == "" {
			return nil
		}
		in = &ec2.DescribeInstanceTypesInput{InstanceTypes: in.InstanceTypes, NextToken: answer.NextToken}
	}
}

func (f *facts) typeFact(name string) (typeFact, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	t, ok := f.types[name]
	return t, ok
}

func typeOf(info ec2types.InstanceTypeInfo) typeFact {
	t := typeFact{extended: map[string]int64{}}
	if info.VCpuInfo != nil {
		t.vcpus = int64(aws.ToInt32(info.VCpuInfo.DefaultVCpus))
	}
	if info.MemoryInfo != nil {
		t.memoryMiB = aws.ToInt64(info.MemoryInfo.SizeInMiB)
	}
	if info.GpuInfo != nil {
		for _, gpu := range info.GpuInfo.Gpus {
			switch strings.ToUpper(aws.ToString(gpu.Manufacturer)) {
			case "NVIDIA":
				t.extended["nvidia.com/gpu"] += int64(aws.ToInt32(gpu.Count))
			case "AMD":
				t.extended["amd.com/gpu"] += int64(aws.ToInt32(gpu.Count))
			}
		}
	}
	if info.NeuronInfo != nil {
		for _, device := range info.NeuronInfo.NeuronDevices {
			t.extended["aws.amazon.com/neuron"] += int64(aws.ToInt32(device.Count))
		}
	}
	if info.ProcessorInfo != nil {
		for _, a := range info.ProcessorInfo.SupportedArchitectures {
			if arch := archOf(string(a)); arch != "" {
				t.archs = append(t.archs, arch)
			}
		}
	}
	return t
}

// archOf turns AWS's name of an architecture into Kubernetes'; 32-bit and macOS
// give nothing.
func archOf(s string) string {
	switch s {
	case "x86_64":
		return "amd64"
	case "arm64":
		return "arm64"
	}
	return ""
}

// loadImages makes sure that images are cached as far as they can be read; the
// answer is why one could not be, by image. Images refine a template (root volume,
// architecture); a template without them is still a template.
func (p *Provider) loadImages(ctx context.Context, wanted map[string]bool) map[string]string {
	f := &p.facts
	f.mu.Lock()
	missing := slices.DeleteFunc(slices.Sorted(maps.Keys(wanted)), func(id string) bool { _, ok := f.images[id]; return ok })
	f.mu.Unlock()
	failed, now := map[string]string{}, p.now()
	// One call per image: an unknown ID fails a whole call, and there are few images.
	for _, id := range missing {
		if e := f.refused(id, now); e != nil {
			failed[id] = e.Error()
			continue
		}
		answer, err := call(ctx, p, actionDescribeImages, p.compute.DescribeImages, &ec2.DescribeImagesInput{ImageIds: []string{id}})
		if err != nil {
			e := classify("resolve template", "", actionDescribeImages, err)
			failed[id] = e.Error()
			f.refuse(id, e, now)
			continue
		}
		if len(answer.Images) == 0 {
			e := &provider.Error{Op: "resolve template", Kind: provider.Invalid, Err: errors.New("AWS lists no such image for this account")}
			failed[id] = e.Error()
			f.refuse(id, e, now)
			continue
		}
		f.mu.Lock()
		if f.images == nil {
			f.images = map[string]imageFact{}
		}
		f.images[id] = imageOf(answer.Images[0])
		f.mu.Unlock()
	}
	return failed
}

func (f *facts) imageFact(id string) imageFact {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.images[id]
}

func imageOf(i ec2types.Image) imageFact {
	out := imageFact{arch: archOf(string(i.Architecture)), os: "linux", rootDev: aws.ToString(i.RootDeviceName)}
	if i.Platform == ec2types.PlatformValuesWindows {
		out.os = "windows"
	}
	for _, m := range i.BlockDeviceMappings {
		if m.Ebs != nil && aws.ToString(m.DeviceName) == out.rootDev {
			out.rootGiB = int64(aws.ToInt32(m.Ebs.VolumeSize))
		}
	}
	return out
}

// matchTypes lists the instance types that meet requirements. requirements is a
// struct of either SDK package: their fields have the same names.
func (p *Provider) matchTypes(ctx context.Context, requirements any, arch string) ([]string, *provider.Error) {
	raw, err := json.Marshal(requirements)
	var want ec2types.InstanceRequirementsRequest
	if err == nil {
		err = json.Unmarshal(raw, &want)
	}
	if err != nil {
		return nil, &provider.Error{Op: "resolve template", Kind: provider.Invalid, Err: fmt.Errorf("instance requirements: %w", err)}
	}
	archs := []ec2types.ArchitectureType{ec2types.ArchitectureTypeX8664, ec2types.ArchitectureTypeArm64}
	switch arch {
	case "amd64":
		archs = archs[:1]
	case "arm64":
		archs = archs[1:]
	}
	key := arch + " " + string(raw)
	p.facts.mu.Lock()
	known, ok := p.facts.requirements[key]
	p.facts.mu.Unlock()
	if ok && p.now().Before(known.until) {
		return known.types, nil
	}
	in := &ec2.GetInstanceTypesFromInstanceRequirementsInput{
		ArchitectureTypes: archs, VirtualizationTypes: []ec2types.VirtualizationType{ec2types.VirtualizationTypeHvm},
		InstanceRequirements: &want,
	}
	var types []string
	for {
		answer, err := call(ctx, p, actionMatchTypes, p.compute.GetInstanceTypesFromInstanceRequirements, in)
		if err != nil {
			return nil, classify("resolve template", "", actionMatchTypes, err)
		}
		for _, t := range answer.InstanceTypes {
			types = append(types, aws.ToString(t.InstanceType))
		}
		if aws.ToString(answer.NextToken) == "" {
			break
		}
		next := *in
		next.NextToken = answer.NextToken
		in = &next
	}
	p.facts.mu.Lock()
	if p.facts.requirements == nil {
		p.facts.requirements = map[string]matched{}
	}
	p.facts.requirements[key] = matched{types: types, until: p.now().Add(requirementsLife)}
	p.facts.mu.Unlock()
	return types, nil
}

// capacity is what a machine of the type has before anything is kept back.
func (p *Provider) capacity(t typeFact, v variant) cluster.Resources {
	vcpus := t.vcpus
	if o := v.template.data.CpuOptions; o != nil && aws.ToInt32(o.CoreCount) > 0 && aws.ToInt32(o.ThreadsPerCore) > 0 {
		vcpus = int64(aws.ToInt32(o.CoreCount)) * int64(aws.ToInt32(o.ThreadsPerCore))
	}
	return cluster.Resources{
		MilliCPU:         vcpus * 1000,
		Memory:           (t.memoryMiB - overheadMiB(t.memoryMiB, p.cfg.VMMemoryOverheadPercent)) << 20,
		EphemeralStorage: v.rootGiB << 30,
		Pods:             p.reservation.MaxPods,
		Extended:         maps.Clone(t.extended),
	}
}
