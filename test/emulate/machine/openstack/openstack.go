// Package openstack gives the servers of an emulated OpenStack their machines: a server
// that becomes ACTIVE is a machine that boots with the server's user data and metadata
// service; one that is deleted is a machine that dies.
//
// It refuses to carry anything else between the two: a machine learns of the cloud, and
// the cloud of a machine, only what they would on OpenStack.
package openstack

import (
	"context"
	"fmt"
	"io"
	"net/netip"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/cloud/openstack"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/machine"
)

// Variable is how the user data finds the metadata service.
const Variable = "OPENSTACK_METADATA_ENDPOINT"

// Glue ties a fleet to a cloud. Cloud is set once the cloud is made.
type Glue struct {
	Fleet *machine.Fleet
	Cloud func() *openstack.Cloud
	// Log gets what could not be done (nil: nothing).
	Log io.Writer
	// Kernel returns what the kernel shows of a machine's nominal memory, in bytes;
	// nil: all of it.
	Kernel func(nominal int64) int64
}

// Attach adds the glue to the options of a cloud that is about to be made. A callback
// that is there already is called first.
func (g *Glue) Attach(opts *openstack.Options) {
	before := opts.OnState
	opts.OnState = func(s openstack.Server, old, now string) {
		if before != nil {
			before(s, old, now)
		}
		g.onState(s, now)
	}
}

func (g *Glue) onState(s openstack.Server, now string) {
	var err error
	switch now {
	case "ACTIVE":
		err = g.run(s)
	case "SHUTOFF", "ERROR":
		if m := g.Fleet.Machine(s.ID); m != nil {
			err = m.Hang()
		}
	case "deleting", "DELETED":
		g.Fleet.Terminate(s.ID)
	}
	if err != nil && g.Log != nil {
		fmt.Fprintf(g.Log, "openstack: %v\n", err)
	}
}

// run boots a server, or starts one again that was stopped: it keeps its disk.
func (g *Glue) run(s openstack.Server) error {
	if m := g.Fleet.Machine(s.ID); m != nil {
		return m.Reboot(context.Background())
	}
	memory := int64(s.Flavor.RAM) << 20
	if g.Kernel != nil {
		memory = g.Kernel(memory)
	}
	disk := s.Flavor.Disk
	for _, v := range g.Cloud().RegionNamed(s.Region).Volumes() {
		if v.ServerID == s.ID {
			disk = v.SizeGiB
		}
	}
	cfg := machine.Config{
		UserData: s.UserData, InstanceID: s.ID, Name: s.Name, Zone: s.Zone, InstanceType: s.Flavor.Name, SystemUUID: s.ID,
		Capacity: cluster.Resources{MilliCPU: int64(s.Flavor.VCPUs) * 1000, Memory: memory, EphemeralStorage: int64(disk) << 30},
		Metadata: map[string]string{Variable: g.Cloud().MetadataURL(s.ID)},
	}
	for _, a := range s.Addresses {
		ip, err := netip.ParseAddr(a.IP)
		if err != nil {
			return fmt.Errorf("boot machine %s: address: %w", s.ID, err)
		}
		if a.Type == "fixed" { // a floating address is a router's, and no machine knows it
			cfg.Addresses = append(cfg.Addresses, ip)
		}
	}
	_, err := g.Fleet.Boot(cfg)
	return err
}
