package aws

import (
	"slices"
	"strconv"
)

func (c *Cloud) describeTypes(r *request) ([]el, *apiError) {
	names := r.p.strs("InstanceType")
	var found []InstanceType
	for _, t := range c.sortedTypes() {
		if len(names) > 0 && !slices.Contains(names, t.Name) {
			continue
		}
		keep := true
		for _, f := range filters(r.p, "Filter", "Value") {
			v, ok := t.filter(f.name)
			if !ok {
				return nil, badFilter(f.name)
			}
			keep = keep && f.any(v)
		}
		if keep {
			found = append(found, t)
		}
	}
	var lost []string
	for _, n := range names {
		if _, ok := c.types[n]; !ok {
			lost = append(lost, n)
		}
	}
	if len(lost) > 0 {
		slices.Sort(lost)
		return nil, fail("InvalidInstanceType", "The following supplied instance types do not exist: "+bracketed(lost))
	}
	found, next, err := page(c, r, "DescribeInstanceTypes", found, "MaxResults", 100, 100)
	if err != nil {
		return nil, err
	}
	return []el{each("instanceTypeSet", "item", found, InstanceType.elements), opt("nextToken", next)}, nil
}

func bracketed(list []string) string {
	s := "["
	for i, v := range list {
		if i > 0 {
			s += ", "
		}
		s += v
	}
	return s + "]"
}

func (t InstanceType) filter(name string) (string, bool) {
	switch name {
	case "instance-type":
		return t.Name, true
	case "processor-info.supported-architecture":
		return t.Arch, true
	case "vcpu-info.default-vcpus":
		return strconv.Itoa(t.VCPU), true
	case "memory-info.size-in-mib":
		return strconv.Itoa(t.MemoryMiB), true
	case "current-generation":
		return strconv.FormatBool(!t.Previous), true
	case "bare-metal":
		return strconv.FormatBool(t.BareMetal), true
	case "burstable-performance-supported":
		return strconv.FormatBool(t.Burstable), true
	case "instance-storage-supported":
		return strconv.FormatBool(t.StorageGB > 0), true
	}
	return "", false
}

func (t InstanceType) elements() []el {
	threads := min(2, t.VCPU)
	if t.Arch == "arm64" {
		threads = 1
	}
	e := []el{
		x("instanceType", t.Name),
		x("currentGeneration", !t.Previous),
		x("freeTierEligible", t.Name == "t3.micro" || t.Name == "t2.micro"),
		texts("supportedUsageClasses", "item", []string{"on-demand", "spot"}),
		texts("supportedRootDeviceTypes", "item", []string{"ebs"}),
		texts("supportedVirtualizationTypes", "item", []string{"hvm"}),
		x("bareMetal", t.BareMetal),
		x("hypervisor", onOff(t.Previous, "xen", "nitro")),
		x("processorInfo",
			texts("supportedArchitectures", "item", []string{t.Arch}),
			x("sustainedClockSpeedInGhz", t.ClockGHz),
			opt("manufacturer", t.CPUMaker)),
		x("vCpuInfo",
			x("defaultVCpus", t.VCPU), x("defaultCores", t.VCPU/threads), x("defaultThreadsPerCore", threads)),
		x("memoryInfo", x("sizeInMiB", t.MemoryMiB)),
		x("instanceStorageSupported", t.StorageGB > 0),
	}
	if t.StorageGB > 0 {
		n := max(1, t.StorageDisks)
		e = append(e, x("instanceStorageInfo",
			x("totalSizeInGB", t.StorageGB),
			x("disks", x("item", x("sizeInGB", t.StorageGB/n), x("count", n), x("type", "ssd"))),
			x("nvmeSupport", "required"), x("encryptionSupport", "required")))
	}
	e = append(e,
		x("ebsInfo", x("ebsOptimizedSupport", "default"), x("encryptionSupport", "supported"), x("nvmeSupport", onOff(t.Previous, "unsupported", "required"))),
		x("networkInfo",
			x("networkPerformance", t.Bandwidth),
			x("maximumNetworkInterfaces", t.ENIs),
			x("maximumNetworkCards", 1),
			x("defaultNetworkCardIndex", 0),
			x("networkCards", x("item", x("networkCardIndex", 0), x("networkPerformance", t.Bandwidth), x("maximumNetworkInterfaces", t.ENIs))),
			x("ipv4AddressesPerInterface", t.IPv4PerENI),
			x("ipv6AddressesPerInterface", t.IPv4PerENI),
			x("ipv6Supported", true),
			x("enaSupport", onOff(t.Previous, "unsupported", "required")),
			x("efaSupported", false)))
	if t.GPUs > 0 {
		e = append(e, x("gpuInfo",
			x("gpus", x("item", x("name", t.GPUName), x("manufacturer", t.GPUMaker), x("count", t.GPUs),
				x("memoryInfo", x("sizeInMiB", t.GPUMemoryMiB)))),
			x("totalGpuMemoryInMiB", t.GPUs*t.GPUMemoryMiB)))
	}
	return append(e,
		x("placementGroupInfo", texts("supportedStrategies", "item", []string{"partition", "spread"})),
		x("hibernationSupported", false),
		x("burstablePerformanceSupported", t.Burstable),
		x("dedicatedHostsSupported", !t.Burstable),
		x("autoRecoverySupported", t.StorageGB == 0))
}

func (c *Cloud) typesFromRequirements(r *request) ([]el, *apiError) {
	q, err := readRequirements(r.p.at("InstanceRequirements"), "CpuManufacturer", "AllowedInstanceType", "ExcludedInstanceType")
	if err != nil {
		return nil, err
	}
	q.Architectures = r.p.strs("ArchitectureType")
	if len(q.Architectures) == 0 {
		return nil, fail("MissingParameter", "The request must contain the parameter ArchitectureType")
	}
	names, next, err := page(c, r, "GetInstanceTypesFromInstanceRequirements", c.choose(*q), "MaxResults", 1000, 1000)
	if err != nil {
		return nil, err
	}
	return []el{
		each("instanceTypeSet", "item", names, func(n string) []el { return []el{x("instanceType", n)} }),
		opt("nextToken", next),
	}, nil
}

// readRequirements understands the attributes that Requirements has; the list
// names differ between the services. Others are refused.
func readRequirements(p *params, makers, allowed, excluded string) (*Requirements, *apiError) {
	q := &Requirements{Allowed: p.strs(allowed), Excluded: p.strs(excluded), Burstable: p.str("BurstablePerformance")}
	if p != nil {
		for name := range p.kids {
			switch name {
			case "VCpuCount", "MemoryMiB", "AcceleratorCount", "BurstablePerformance", allowed, excluded:
			default:
				return nil, fail("UnsupportedOperation", "This emulated AWS does not emulate the instance requirement "+name+".")
			}
		}
	}
	q.MaxGPUs = -1
	for path, to := range map[string]*int{
		"VCpuCount.Min": &q.MinVCPU, "VCpuCount.Max": &q.MaxVCPU,
		"MemoryMiB.Min": &q.MinMemoryMiB, "MemoryMiB.Max": &q.MaxMemoryMiB,
		"AcceleratorCount.Min": &q.MinGPUs, "AcceleratorCount.Max": &q.MaxGPUs,
	} {
		n, err := p.number(path, *to)
		if err != nil {
			return nil, err
		}
		*to = n
	}
	return q, nil
}

// element renders requirements: members in lower case for EC2, in upper case
// for Auto Scaling.
func (q *Requirements) element(name, member string, ec2 bool) el {
	n := func(upper, lower string) string { return onOff(ec2, lower, upper) }
	span := func(name string, low, high int) el {
		e := x(name, x(n("Min", "min"), low))
		if high > 0 {
			e.add(x(n("Max", "max"), high))
		}
		return e
	}
	e := x(name, span(n("VCpuCount", "vCpuCount"), q.MinVCPU, q.MaxVCPU), span(n("MemoryMiB", "memoryMiB"), q.MinMemoryMiB, q.MaxMemoryMiB))
	if len(q.Allowed) > 0 {
		e.add(texts(n("AllowedInstanceTypes", "allowedInstanceTypeSet"), member, q.Allowed))
	}
	if len(q.Excluded) > 0 {
		e.add(texts(n("ExcludedInstanceTypes", "excludedInstanceTypeSet"), member, q.Excluded))
	}
	e.add(opt(n("BurstablePerformance", "burstablePerformance"), q.Burstable))
	if q.MinGPUs > 0 || q.MaxGPUs > 0 {
		e.add(span(n("AcceleratorCount", "acceleratorCount"), q.MinGPUs, q.MaxGPUs))
	}
	return e
}
