package fit

import (
	"math"
	"slices"
	"strings"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// Space turns requests and host ports into vectors over one set of axes, so that
// "how many more pods of this class fit here" is a handful of divisions. Host ports
// become axes of capacity one: an address has one axis per port, and a claim on
// 0.0.0.0 takes every axis of its port, which is exactly the scheduler's rule of
// conflicts.
type Space struct {
	axes    []axis
	classes []int64 // len(axes) numbers per class
}

type axis struct {
	name string // "cpu", "memory", "ephemeral-storage", "pods", an extended resource, or "port:..."
	port bool
}

const (
	axisCPU = iota
	axisMemory
	axisStorage
	axisPods
	fixedAxes
)

// NewSpace builds the axes that the classes need and the vector of every class.
func NewSpace(classes []cluster.PodClass) *Space {
	s := &Space{axes: []axis{{name: "cpu"}, {name: "memory"}, {name: "ephemeral-storage"}, {name: "pods"}}}
	var extended, wild, exact []string
	for i := range classes {
		c := &classes[i]
		for name, n := range c.Requests.Extended {
			if n > 0 {
				extended = append(extended, name)
			}
		}
		for _, p := range c.HostPorts {
			if port, ip := portOf(p); ip == anyAddress {
				wild = append(wild, port)
			} else {
				exact = append(exact, port+ip)
			}
		}
	}
	slices.Sort(extended)
	for _, name := range slices.Compact(extended) {
		s.axes = append(s.axes, axis{name: name})
	}
	slices.Sort(exact)
	for _, name := range slices.Compact(exact) {
		s.axes = append(s.axes, axis{name: name, port: true})
	}
	slices.Sort(wild)
	for _, port := range slices.Compact(wild) {
		if !slices.ContainsFunc(exact, func(e string) bool { return strings.HasPrefix(e, port) }) {
			s.axes = append(s.axes, axis{name: port + anyAddress, port: true})
		}
	}
	s.classes = make([]int64, len(classes)*len(s.axes))
	for i := range classes {
		s.fill(s.classes[i*len(s.axes):(i+1)*len(s.axes)], &classes[i])
	}
	return s
}

const anyAddress = "0.0.0.0"

// portOf returns a port's axis prefix and its address, with the API's defaults.
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

func (s *Space) fill(v []int64, c *cluster.PodClass) {
	v[axisCPU], v[axisMemory] = c.Requests.MilliCPU, c.Requests.Memory
	v[axisStorage], v[axisPods] = c.Requests.EphemeralStorage, max(c.Requests.Pods, 1)
	for i := fixedAxes; i < len(s.axes); i++ {
		if a := s.axes[i]; !a.port {
			v[i] = c.Requests.Extended[a.name]
			continue
		}
		for _, p := range c.HostPorts {
			port, ip := portOf(p)
			if ip == anyAddress && strings.HasPrefix(s.axes[i].name, port) || port+ip == s.axes[i].name {
				v[i] = 1
			}
		}
	}
}

// Same tells that two Spaces have the same axes, so that vectors over one are vectors
// over the other.
func (s *Space) Same(o *Space) bool { return slices.Equal(s.axes, o.axes) }

// Axes is the length of every vector.
func (s *Space) Axes() int { return len(s.axes) }

// Class returns the vector of one class; the caller does not change it.
func (s *Space) Class(i int) []int64 {
	return s.classes[i*len(s.axes) : (i+1)*len(s.axes) : (i+1)*len(s.axes)]
}

// Room fills v with the room of an empty node.
func (s *Space) Room(v []int64, allocatable cluster.Resources) {
	v[axisCPU], v[axisMemory] = allocatable.MilliCPU, allocatable.Memory
	v[axisStorage], v[axisPods] = allocatable.EphemeralStorage, allocatable.Pods
	for i := fixedAxes; i < len(s.axes); i++ {
		if s.axes[i].port {
			v[i] = 1
		} else {
			v[i] = allocatable.Extended[s.axes[i].name]
		}
	}
}

// Most is how many more pods of a size fit into a room. What a pod does not ask for
// cannot keep it away, even from a node that is overcommitted.
func Most(room, size []int64) int {
	most := int64(math.MaxInt32)
	for i, n := range size {
		if n > 0 {
			if room[i] < n {
				return 0
			}
			most = min(most, room[i]/n)
		}
	}
	return int(most)
}

// One tells whether a pod of a size fits into a room: whether Most is not zero.
func One(room, size []int64) bool {
	for i, n := range size {
		if n > 0 && room[i] < n {
			return false
		}
	}
	return true
}

// Take takes n pods of a size out of a room; a negative n gives them back.
func Take(room, size []int64, n int) {
	for i, v := range size {
		room[i] -= v * int64(n)
	}
}

// Short says why one more pod of a size does not fit into a room, in the
// scheduler's words and order; an empty rule means that it does.
func (s *Space) Short(room, size []int64) (rule, words string) {
	var said []string
	for i, n := range size {
		if n == 0 || n <= room[i] {
			continue
		}
		switch {
		case s.axes[i].port:
			return RulePorts, "node(s) didn't have free ports for the requested pod ports"
		case i == axisPods:
			said = append([]string{"Too many pods"}, said...)
		default:
			said = append(said, "Insufficient "+s.axes[i].name)
		}
	}
	if len(said) == 0 {
		return "", ""
	}
	return RuleResources, strings.Join(said, ", ")
}
