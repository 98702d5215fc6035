package cluster

import "slices"

// Devices are what the ResourceSlices of one node offer (resource.k8s.io), in the order in which kube-scheduler tries them.
// Never changed once they are handed out.
type Devices struct {
	Devices  []Device     `json:"devices,omitempty"`
	Counters []CounterSet `json:"counters,omitempty"`
	// Unready names a pool that is not whole or not valid ("driver/pool"): nothing of it is in Devices, and no request
	// for all devices is met. Empty: there is none.
	Unready string `json:"unready,omitempty"`
}

// Drivers are those of the devices, sorted.
func (d *Devices) Drivers() (out []string) {
	for i := 0; d != nil && i < len(d.Devices); i++ {
		if at, has := slices.BinarySearch(out, d.Devices[i].Driver); !has {
			out = slices.Insert(out, at, d.Devices[i].Driver)
		}
	}
	return out
}

// Has tells whether a driver has a device.
func (d *Devices) Has(driver string) bool { return slices.Contains(d.Drivers(), driver) }

// Share is the largest share of one driver's devices that claims have.
func (d *Devices) Share() (most float64) {
	for _, driver := range d.Drivers() {
		taken, all := 0, 0
		for i := range d.Devices {
			if d.Devices[i].Driver == driver {
				all++
				if d.Devices[i].Taken {
					taken++
				}
			}
		}
		most = max(most, float64(taken)/float64(all))
	}
	return most
}

// Device is one device. Attributes are typed ("string:a100", "int:4"), and their names fully qualified.
type Device struct {
	Driver     string            `json:"driver"`
	Pool       string            `json:"pool,omitempty"`
	Name       string            `json:"name,omitempty"`
	Attributes map[string]string `json:"attributes,omitempty"`
	Capacity   map[string]string `json:"capacity,omitempty"`
	// Matches are the selectors of requests that select the device, Fails those that cannot be evaluated on it. Sorted.
	Matches  []string     `json:"matches,omitempty"`
	Fails    []string     `json:"fails,omitempty"`
	Consumes []CounterSet `json:"consumes,omitempty"`
	Taints   []Taint      `json:"taints,omitempty"` // that keep requests off, as the driver publishes them
	Ruled    []Taint      `json:"ruled,omitempty"`  // those of DeviceTaintRules
	// Taken tells that a claim has the device.
	Taken bool `json:"taken,omitempty"`
}

// CounterSet is what devices of a pool share, or what one of them takes of it.
type CounterSet struct {
	Pool     string           `json:"pool,omitempty"` // "driver/pool"
	Name     string           `json:"name"`
	Counters map[string]int64 `json:"counters"`
}

// DeviceClaim is a ResourceClaim of a pod, as a pod made from the same template would ask for it.
type DeviceClaim struct {
	Requests    []DeviceRequest    `json:"requests,omitempty"`
	Constraints []DeviceConstraint `json:"constraints,omitempty"`
	// On are the nodes that an allocated claim can be used on, terms OR-ed; nil: it is not allocated. An empty list is every node.
	On []NodeTerm `json:"on,omitzero"`
	// Refused says in kube-scheduler's words why no node can take the pod now (no such device class); empty: some may.
	Refused string `json:"refused,omitempty"`
}

// DeviceRequest is met by the first of its alternatives that can be.
type DeviceRequest struct {
	Name string `json:"name,omitempty"`
	// Resource is the extended resource that the devices are in place of; a node whose device plug-in offers it is not asked for devices.
	Resource     string      `json:"resource,omitempty"`
	Alternatives []DeviceAsk `json:"alternatives"`
}

// DeviceAsk asks for Count devices that all of its selectors select, or for all of these.
type DeviceAsk struct {
	Name        string       `json:"name,omitempty"` // of a subrequest
	Selectors   []string     `json:"selectors,omitempty"`
	Count       int          `json:"count,omitempty"`
	All         bool         `json:"all,omitempty"`
	Admin       bool         `json:"admin,omitempty"` // it takes the device from nobody
	Tolerations []Toleration `json:"tolerations,omitempty"`
}

// DeviceConstraint says that the devices of some requests have one value of an attribute, or all different ones.
type DeviceConstraint struct {
	Requests  []string `json:"requests,omitempty"` // empty: all
	Attribute string   `json:"attribute"`          // fully qualified
	Distinct  bool     `json:"distinct,omitempty"`
}

// AppendClaims appends claims.
func AppendClaims(b []byte, claims []DeviceClaim) []byte {
	for i := range claims {
		c := &claims[i]
		b = AppendString(AppendNodeTerms(append(b, 'd'), c.On), c.Refused)
		b = appendInt(b, int64(len(c.Requests)))
		for _, r := range c.Requests {
			b = appendInt(AppendString(AppendString(b, r.Name), r.Resource), int64(len(r.Alternatives)))
			for _, a := range r.Alternatives {
				b = appendInt(AppendStrings(AppendString(b, a.Name), a.Selectors), int64(a.Count))
				b = AppendTolerations(appendBool(appendBool(b, a.All), a.Admin), a.Tolerations)
			}
		}
		b = appendInt(b, int64(len(c.Constraints)))
		for _, x := range c.Constraints {
			b = appendBool(AppendString(AppendStrings(b, x.Requests), x.Attribute), x.Distinct)
		}
	}
	return b
}
