package aws

import "slices"

// InstanceType is what DescribeInstanceTypes tells about a type. The numbers
// of the built-in table are those that AWS publishes.
type InstanceType struct {
	Name      string
	VCPU      int
	MemoryMiB int
	Arch      string // x86_64 or arm64

	GPUs         int
	GPUName      string // "T4"
	GPUMaker     string // "NVIDIA"
	GPUMemoryMiB int    // of one GPU

	StorageGB    int // instance store in total, 0 without
	StorageDisks int

	ENIs       int // network interfaces
	IPv4PerENI int
	Burstable  bool
	BareMetal  bool
	ClockGHz   float64
	CPUMaker   string // "Intel", "AMD", "AWS"
	Previous   bool   // previous generation
	Bandwidth  string // network performance, as AWS words it
}

var builtinTypes = []InstanceType{
	{Name: "t2.micro", VCPU: 1, MemoryMiB: 1024, Arch: "x86_64", ENIs: 2, IPv4PerENI: 2, Burstable: true, ClockGHz: 2.5, CPUMaker: "Intel", Previous: true, Bandwidth: "Low to Moderate"},
	{Name: "t2.small", VCPU: 1, MemoryMiB: 2048, Arch: "x86_64", ENIs: 3, IPv4PerENI: 4, Burstable: true, ClockGHz: 2.5, CPUMaker: "Intel", Previous: true, Bandwidth: "Low to Moderate"},
	{Name: "t3.micro", VCPU: 2, MemoryMiB: 1024, Arch: "x86_64", ENIs: 2, IPv4PerENI: 2, Burstable: true, ClockGHz: 2.5, CPUMaker: "Intel", Bandwidth: "Up to 5 Gigabit"},
	{Name: "t3.small", VCPU: 2, MemoryMiB: 2048, Arch: "x86_64", ENIs: 3, IPv4PerENI: 4, Burstable: true, ClockGHz: 2.5, CPUMaker: "Intel", Bandwidth: "Up to 5 Gigabit"},
	{Name: "t3.medium", VCPU: 2, MemoryMiB: 4096, Arch: "x86_64", ENIs: 3, IPv4PerENI: 6, Burstable: true, ClockGHz: 2.5, CPUMaker: "Intel", Bandwidth: "Up to 5 Gigabit"},
	{Name: "t3.large", VCPU: 2, MemoryMiB: 8192, Arch: "x86_64", ENIs: 3, IPv4PerENI: 12, Burstable: true, ClockGHz: 2.5, CPUMaker: "Intel", Bandwidth: "Up to 5 Gigabit"},
	{Name: "t3.xlarge", VCPU: 4, MemoryMiB: 16384, Arch: "x86_64", ENIs: 4, IPv4PerENI: 15, Burstable: true, ClockGHz: 2.5, CPUMaker: "Intel", Bandwidth: "Up to 5 Gigabit"},
	{Name: "t3.2xlarge", VCPU: 8, MemoryMiB: 32768, Arch: "x86_64", ENIs: 4, IPv4PerENI: 15, Burstable: true, ClockGHz: 2.5, CPUMaker: "Intel", Bandwidth: "Up to 5 Gigabit"},
	{Name: "t4g.medium", VCPU: 2, MemoryMiB: 4096, Arch: "arm64", ENIs: 3, IPv4PerENI: 6, Burstable: true, ClockGHz: 2.5, CPUMaker: "AWS", Bandwidth: "Up to 5 Gigabit"},
	{Name: "m5.large", VCPU: 2, MemoryMiB: 8192, Arch: "x86_64", ENIs: 3, IPv4PerENI: 10, ClockGHz: 3.1, CPUMaker: "Intel", Bandwidth: "Up to 10 Gigabit"},
	{Name: "m5.xlarge", VCPU: 4, MemoryMiB: 16384, Arch: "x86_64", ENIs: 4, IPv4PerENI: 15, ClockGHz: 3.1, CPUMaker: "Intel", Bandwidth: "Up to 10 Gigabit"},
	{Name: "m5.2xlarge", VCPU: 8, MemoryMiB: 32768, Arch: "x86_64", ENIs: 4, IPv4PerENI: 15, ClockGHz: 3.1, CPUMaker: "Intel", Bandwidth: "Up to 10 Gigabit"},
	{Name: "m5.4xlarge", VCPU: 16, MemoryMiB: 65536, Arch: "x86_64", ENIs: 8, IPv4PerENI: 30, ClockGHz: 3.1, CPUMaker: "Intel", Bandwidth: "Up to 10 Gigabit"},
	{Name: "m5a.large", VCPU: 2, MemoryMiB: 8192, Arch: "x86_64", ENIs: 3, IPv4PerENI: 10, ClockGHz: 2.5, CPUMaker: "AMD", Bandwidth: "Up to 10 Gigabit"},
	{Name: "m5d.large", VCPU: 2, MemoryMiB: 8192, Arch: "x86_64", StorageGB: 75, StorageDisks: 1, ENIs: 3, IPv4PerENI: 10, ClockGHz: 3.1, CPUMaker: "Intel", Bandwidth: "Up to 10 Gigabit"},
	{Name: "m6g.large", VCPU: 2, MemoryMiB: 8192, Arch: "arm64", ENIs: 3, IPv4PerENI: 10, ClockGHz: 2.5, CPUMaker: "AWS", Bandwidth: "Up to 10 Gigabit"},
	{Name: "m6g.xlarge", VCPU: 4, MemoryMiB: 16384, Arch: "arm64", ENIs: 4, IPv4PerENI: 15, ClockGHz: 2.5, CPUMaker: "AWS", Bandwidth: "Up to 10 Gigabit"},
	{Name: "m6i.large", VCPU: 2, MemoryMiB: 8192, Arch: "x86_64", ENIs: 3, IPv4PerENI: 10, ClockGHz: 3.5, CPUMaker: "Intel", Bandwidth: "Up to 12.5 Gigabit"},
	{Name: "c5.large", VCPU: 2, MemoryMiB: 4096, Arch: "x86_64", ENIs: 3, IPv4PerENI: 10, ClockGHz: 3.4, CPUMaker: "Intel", Bandwidth: "Up to 10 Gigabit"},
	{Name: "c5.xlarge", VCPU: 4, MemoryMiB: 8192, Arch: "x86_64", ENIs: 4, IPv4PerENI: 15, ClockGHz: 3.4, CPUMaker: "Intel", Bandwidth: "Up to 10 Gigabit"},
	{Name: "c5.2xlarge", VCPU: 8, MemoryMiB: 16384, Arch: "x86_64", ENIs: 4, IPv4PerENI: 15, ClockGHz: 3.4, CPUMaker: "Intel", Bandwidth: "Up to 10 Gigabit"},
	{Name: "c5.4xlarge", VCPU: 16, MemoryMiB: 32768, Arch: "x86_64", ENIs: 8, IPv4PerENI: 30, ClockGHz: 3.4, CPUMaker: "Intel", Bandwidth: "Up to 10 Gigabit"},
	{Name: "r5.large", VCPU: 2, MemoryMiB: 16384, Arch: "x86_64", ENIs: 3, IPv4PerENI: 10, ClockGHz: 3.1, CPUMaker: "Intel", Bandwidth: "Up to 10 Gigabit"},
	{Name: "r5.xlarge", VCPU: 4, MemoryMiB: 32768, Arch: "x86_64", ENIs: 4, IPv4PerENI: 15, ClockGHz: 3.1, CPUMaker: "Intel", Bandwidth: "Up to 10 Gigabit"},
	{Name: "g4dn.xlarge", VCPU: 4, MemoryMiB: 16384, Arch: "x86_64", GPUs: 1, GPUName: "T4", GPUMaker: "NVIDIA", GPUMemoryMiB: 16384, StorageGB: 125, StorageDisks: 1, ENIs: 3, IPv4PerENI: 10, ClockGHz: 2.5, CPUMaker: "Intel", Bandwidth: "Up to 25 Gigabit"},
	{Name: "g4dn.12xlarge", VCPU: 48, MemoryMiB: 196608, Arch: "x86_64", GPUs: 4, GPUName: "T4", GPUMaker: "NVIDIA", GPUMemoryMiB: 16384, StorageGB: 900, StorageDisks: 1, ENIs: 8, IPv4PerENI: 30, ClockGHz: 2.5, CPUMaker: "Intel", Bandwidth: "50 Gigabit"},
	{Name: "p3.2xlarge", VCPU: 8, MemoryMiB: 62464, Arch: "x86_64", GPUs: 1, GPUName: "V100", GPUMaker: "NVIDIA", GPUMemoryMiB: 16384, ENIs: 4, IPv4PerENI: 15, ClockGHz: 2.7, CPUMaker: "Intel", Bandwidth: "Up to 10 Gigabit"},
}

// InstanceTypes lists the types that the region offers, by name.
func (c *Cloud) InstanceTypes() []InstanceType {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.sortedTypes()
}

func (c *Cloud) sortedTypes() []InstanceType {
	var out []InstanceType
	for _, name := range sortedKeys(c.types) {
		out = append(out, c.types[name])
	}
	return out
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
