package template

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/asg/awsapi"
)

// typeFact is what a template needs of an instance type.
type typeFact struct {
	vcpus     int64
	memoryMiB int64
	extended  map[string]int64
	archs     []string // as Kubernetes writes them
}

// loadTypes makes sure that the given types are cached. It returns why a type is
// not, by type. A type that AWS does not know does not hide the others.
func (rs *Resolver) loadTypes(ctx context.Context, wanted map[string]bool) map[string]*provider.Error {
	f := &rs.facts
	f.mu.Lock()
	missing := slices.DeleteFunc(slices.Sorted(maps.Keys(wanted)), func(t string) bool { _, ok := f.types[t]; return ok })
	f.mu.Unlock()
	failed, now := map[string]*provider.Error{}, rs.now()
	missing = slices.DeleteFunc(missing, func(t string) bool {
		failed[t] = f.refused(t, now)
		return failed[t] != nil
	})
	for chunk := range slices.Chunk(missing, 100) {
		err := rs.describeTypes(ctx, chunk)
		if err == nil {
			continue
		}
		for _, t := range chunk {
			one := err
			if err.Kind == provider.Invalid && len(chunk) > 1 {
				one = rs.describeTypes(ctx, []string{t})
			}
			if one != nil {
				failed[t] = one
				f.refuse(t, one, now)
			}
		}
	}
	return failed
}

func (rs *Resolver) describeTypes(ctx context.Context, names []string) *provider.Error {
	in := &ec2.DescribeInstanceTypesInput{}
	for _, n := range names {
		in.InstanceTypes = append(in.InstanceTypes, ec2types.InstanceType(n))
	}
	pages := ec2.NewDescribeInstanceTypesPaginator(rs.client, in)
	for pages.HasMorePages() {
		answer, err := pages.NextPage(ctx)
		if err != nil {
			return awsapi.Classify("resolve template", "", awsapi.ActionDescribeTypes, err)
		}
		rs.facts.mu.Lock()
		if rs.facts.types == nil {
			rs.facts.types = map[string]typeFact{}
		}
		for _, info := range answer.InstanceTypes {
			rs.facts.types[string(info.InstanceType)] = typeOf(info)
		}
		rs.facts.mu.Unlock()
	}
	return nil
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

// capacity is what a machine of the type has before any reservation.
func (rs *Resolver) capacity(t typeFact, v variant) cluster.Resources {
	vcpus := t.vcpus
	if o := v.template.data.CpuOptions; o != nil && aws.ToInt32(o.CoreCount) > 0 && aws.ToInt32(o.ThreadsPerCore) > 0 {
		vcpus = int64(aws.ToInt32(o.CoreCount)) * int64(aws.ToInt32(o.ThreadsPerCore))
	}
	return cluster.Resources{
		MilliCPU:         vcpus * 1000,
		Memory:           (t.memoryMiB - overheadMiB(t.memoryMiB, rs.overheadPercent)) << 20,
		EphemeralStorage: v.rootGiB << 30,
		Pods:             rs.reservation.MaxPods,
		Extended:         maps.Clone(t.extended),
	}
}
