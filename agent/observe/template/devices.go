package template

import (
	"cmp"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// fewestDevices are the devices of the settled node that has the fewest, of several the one with the fewest taints: a device that is sick
// on one node is well on the next machine. A node that shows none while others do lacks its driver for now; where none of them does, the next machine has none either, whatever was promised. While all nodes are young, what is known
// is kept: a driver publishes its devices some time after its node is Ready.
func (r *readyNodes) fewestDevices() *cluster.Devices {
	settled, fewest := false, (*cluster.Devices)(nil)
	for _, n := range r.nodes {
		settled = settled || !r.young(n)
		d := n.Devices
		if r.young(n) && r.known.Devices != nil || d == nil || len(d.Devices) == 0 || d.Unready != "" {
			continue
		}
		if fewest == nil || cmp.Or(len(d.Devices)-len(fewest.Devices), taints(d)-taints(fewest)) < 0 {
			fewest = d
		}
	}
	switch {
	case fewest != nil:
		return free(fewest)
	case settled && (r.known.Devices != nil || r.template.Devices != nil):
		return &cluster.Devices{}
	}
	return r.known.Devices
}

func taints(d *cluster.Devices) (n int) {
	for i := range d.Devices {
		n += len(d.Devices[i].Taints)
	}
	return n
}

// free are devices that no claim has. What selectors say of them is worked out each time anew.
func free(d *cluster.Devices) *cluster.Devices {
	out := &cluster.Devices{Counters: d.Counters, Devices: make([]cluster.Device, len(d.Devices))}
	for i, x := range d.Devices {
		x.Taken, x.Matches, x.Fails, x.Ruled = false, nil, nil, nil
		out.Devices[i] = x
	}
	return out
}
