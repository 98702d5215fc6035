package cluster

import (
	"maps"
	"slices"
	"strings"
)

// Resources is an amount of every schedulable resource. The zero value is
// nothing of anything. Units: CPU in thousandths of a core, memory and ephemeral
// storage in bytes, pods in pods, extended resources in whole units as
// kube-scheduler counts them.
type Resources struct {
	MilliCPU         int64            `json:"milliCPU,omitempty"`
	Memory           int64            `json:"memory,omitempty"`
	EphemeralStorage int64            `json:"ephemeralStorage,omitempty"`
	Pods             int64            `json:"pods,omitempty"`
	Extended         map[string]int64 `json:"extended,omitempty"`
}

// Add returns r + o. Neither operand is changed.
func (r Resources) Add(o Resources) Resources { return r.combine(o, 1) }

// Sub returns r - o; amounts may become negative. Neither operand is changed.
func (r Resources) Sub(o Resources) Resources { return r.combine(o, -1) }

func (r Resources) combine(o Resources, sign int64) Resources {
	r.MilliCPU += sign * o.MilliCPU
	r.Memory += sign * o.Memory
	r.EphemeralStorage += sign * o.EphemeralStorage
	r.Pods += sign * o.Pods
	if len(o.Extended) == 0 {
		return r
	}
	sum := make(map[string]int64, len(r.Extended)+len(o.Extended))
	maps.Copy(sum, r.Extended)
	for name, n := range o.Extended {
		sum[name] += sign * n
	}
	r.Extended = sum
	return r
}

// Max returns the larger amount of each resource. Neither operand is changed.
func (r Resources) Max(o Resources) Resources {
	r.MilliCPU, r.Memory = max(r.MilliCPU, o.MilliCPU), max(r.Memory, o.Memory)
	r.EphemeralStorage, r.Pods = max(r.EphemeralStorage, o.EphemeralStorage), max(r.Pods, o.Pods)
	if len(o.Extended) == 0 {
		return r
	}
	most := maps.Clone(o.Extended)
	for name, n := range r.Extended {
		most[name] = max(most[name], n)
	}
	r.Extended = most
	return r
}

// Equal tells that r and o are the same amounts.
func (r Resources) Equal(o Resources) bool {
	return r.MilliCPU == o.MilliCPU && r.Memory == o.Memory && r.EphemeralStorage == o.EphemeralStorage && r.Pods == o.Pods && maps.Equal(r.Extended, o.Extended)
}

// HugePages are the bytes of huge pages of every size.
func (r Resources) HugePages() (bytes int64) {
	for name, n := range r.Extended {
		if strings.HasPrefix(name, "hugepages-") {
			bytes += n
		}
	}
	return bytes
}

// Reservation is what a kubelet keeps back from a machine's capacity. The agent
// generates the kubelet configuration, so it knows these values exactly
// (DESIGN 4.2).
type Reservation struct {
	Kube     Resources `json:"kube"`     // kubeReserved
	System   Resources `json:"system"`   // systemReserved
	Eviction Resources `json:"eviction"` // evictionHard, in bytes (Memory, EphemeralStorage)
	// EvictionStoragePercent is evictionHard nodefs.available when it is given in
	// percent (kubelet's default is 10): used when Eviction.EphemeralStorage is 0.
	EvictionStoragePercent int64 `json:"evictionStoragePercent,omitempty"`
	MaxPods                int64 `json:"maxPods"`
}

// Allocatable is what the kubelet will report as Node.status.allocatable for a
// machine of the given capacity: capacity - kubeReserved - systemReserved -
// evictionHard, never below zero, with pods = MaxPods. The kubelet takes huge pages out of
// allocatable memory (pkg/kubelet/nodestatus).
func (v Reservation) Allocatable(capacity Resources) Resources {
	out := capacity.Sub(v.Kube).Sub(v.System).Sub(v.Eviction)
	if v.Eviction.EphemeralStorage == 0 {
		// The kubelet keeps the share as a float32 (its parsePercentage and
		// GetThresholdQuantity): a decimal share would differ by some bytes.
		share := float32(v.EvictionStoragePercent) / 100
		out.EphemeralStorage -= int64(float64(capacity.EphemeralStorage) * float64(share))
	}
	out.MilliCPU = max(out.MilliCPU, 0)
	out.Memory = max(out.Memory-capacity.HugePages(), 0)
	out.EphemeralStorage = max(out.EphemeralStorage, 0)
	out.Pods = v.MaxPods
	return out
}

// acceleratorNames are how the extended resources of accelerators begin.
var acceleratorNames = []string{"nvidia.com/", "amd.com/gpu", "gpu.intel.com/", "habana.ai/", "aws.amazon.com/neuron", "google.com/tpu", "microsoft.com/directx"}

// Accelerator tells the extended resource of an accelerator. A node that offers one is worth what
// its accelerators do.
func Accelerator(name string) bool {
	return strings.HasSuffix(name, "/gpu") || slices.ContainsFunc(acceleratorNames, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}
