package fit

import (
	"slices"
	"strings"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// Dimensions turns requests and host ports into vectors over one set of dimensions, so that
// "how many more pods of this class fit here" is a handful of divisions. Host ports
// become dimensions of capacity one: an address has one dimension per port, and a claim on
// 0.0.0.0 takes every dimension of its port, which is exactly the scheduler's rule of
// conflicts.
type Dimensions struct {
	dimensions []dimension
	classes    []int64 // len(dimensions) numbers per class
}

type dimension struct {
	name string // "cpu", "memory", "ephemeral-storage", "pods", an extended resource, or "port:..."
	port bool
	// backed tells an extended resource for which devices may stand.
	backed bool
}

const (
	dimCPU = iota
	dimMemory
	dimStorage
	dimPods
	fixedDims
)

// NewDimensions builds the dimensions that the classes need and the vector of every class.
func NewDimensions(classes []cluster.PodClass) *Dimensions {
	s := &Dimensions{dimensions: []dimension{{name: "cpu"}, {name: "memory"}, {name: "ephemeral-storage"}, {name: "pods"}}}
	var extended, ports []string
	backed := map[string]bool{}
	for i := range classes {
		c := &classes[i]
		for name, n := range c.Requests.Extended {
			if n > 0 {
				extended = append(extended, name)
			}
		}
		for k := range c.Claims {
			for _, r := range c.Claims[k].Requests {
				backed[r.Resource] = true
			}
		}
		for _, p := range c.HostPorts {
			port, ip := portOf(p)
			ports = append(ports, port+ip)
		}
	}
	slices.Sort(extended)
	for _, name := range slices.Compact(extended) {
		s.dimensions = append(s.dimensions, dimension{name: name, backed: backed[name]})
	}
	slices.Sort(ports)
	for _, name := range slices.Compact(ports) {
		s.dimensions = append(s.dimensions, dimension{name: name, port: true})
	}
	s.classes = make([]int64, len(classes)*len(s.dimensions))
	for i := range classes {
		s.fill(s.classes[i*len(s.dimensions):(i+1)*len(s.dimensions)], &classes[i])
	}
	return s
}

const anyAddress = "0.0.0.0"

// portOf returns a port's dimension prefix and its address, with the API's defaults.
func portOf(p cluster.HostPort) (port, ip string) {
	protocol, ip := p.Protocol, p.IP
	if protocol == "" {
		protocol = "TCP"
	}
	if ip == "" {
		ip = anyAddress
	}
	digits := [5]byte{}
	n := p.Port
	for i := len(digits) - 1; i >= 0; i-- {
		digits[i] = byte('0' + n%10)
		n /= 10
	}
	return "port:" + protocol + "/" + string(digits[:]) + "@", ip
}

func (s *Dimensions) fill(v []int64, c *cluster.PodClass) {
	v[dimCPU], v[dimMemory] = c.Requests.MilliCPU, c.Requests.Memory
	v[dimStorage], v[dimPods] = c.Requests.EphemeralStorage, max(c.Requests.Pods, 1)
	for i := fixedDims; i < len(s.dimensions); i++ {
		if a := s.dimensions[i]; !a.port {
			v[i] = c.Requests.Extended[a.name]
			continue
		}
		for _, p := range c.HostPorts {
			port, ip := portOf(p)
			if ip == anyAddress && strings.HasPrefix(s.dimensions[i].name, port) || port+ip == s.dimensions[i].name {
				v[i] = 1
			}
		}
	}
}

// Same tells that two Dimensions have the same dimensions, so that vectors over one are vectors
// over the other.
func (s *Dimensions) Same(o *Dimensions) bool { return slices.Equal(s.dimensions, o.dimensions) }

// Len is the length of every vector.
func (s *Dimensions) Len() int { return len(s.dimensions) }

// Class returns the vector of one class; the caller does not change it.
func (s *Dimensions) Class(i int) []int64 {
	return s.classes[i*len(s.dimensions) : (i+1)*len(s.dimensions) : (i+1)*len(s.dimensions)]
}

// Capacity fills v with the room of an empty node.
func (s *Dimensions) Capacity(v []int64, allocatable cluster.Resources) {
	v[dimCPU], v[dimMemory] = allocatable.MilliCPU, allocatable.Memory
	v[dimStorage], v[dimPods] = allocatable.EphemeralStorage, allocatable.Pods
	for i := fixedDims; i < len(s.dimensions); i++ {
		if s.dimensions[i].port {
			v[i] = 1
		} else {
			v[i] = allocatable.Extended[s.dimensions[i].name]
			if v[i] == 0 && s.dimensions[i].backed {
				v[i] = unbounded
			}
		}
	}
}

// unbounded is the room for an extended resource where no device plug-in offers it and devices may stand for it: claims say whether they do.
const unbounded = 1 << 40

// Requests replaces in v, the vector of a class, what is requested; its ports stay.
func (s *Dimensions) Requests(v []int64, requests cluster.Resources) {
	v[dimCPU], v[dimMemory], v[dimStorage] = requests.MilliCPU, requests.Memory, requests.EphemeralStorage
	for i := fixedDims; i < len(s.dimensions); i++ {
		if !s.dimensions[i].port {
			v[i] = requests.Extended[s.dimensions[i].name]
		}
	}
}

// Insufficient says why one more pod of a size does not fit into a room, in the
// scheduler's words and order; an empty rule means that it does.
func (s *Dimensions) Insufficient(room, size []int64) (rule, words string) {
	var said []string
	for i, n := range size {
		if n == 0 || n <= room[i] {
			continue
		}
		switch {
		case s.dimensions[i].port:
			return RulePorts, "node(s) didn't have free ports for the requested pod ports"
		case i == dimPods:
			said = append([]string{"Too many pods"}, said...)
		default:
			said = append(said, "Insufficient "+s.dimensions[i].name)
		}
	}
	if len(said) == 0 {
		return "", ""
	}
	return RuleResources, strings.Join(said, ", ")
}
