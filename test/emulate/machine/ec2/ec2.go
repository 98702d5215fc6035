// Package ec2 gives the instances of an emulated AWS their machines: an instance
// that runs is a machine that boots with the instance's user data and metadata
// service; one that shuts down is a machine that dies.
//
// It refuses to carry anything else between the two: a machine learns of the cloud,
// and the cloud of a machine, only what they would on AWS.
package ec2

import (
	"context"
	"fmt"
	"io"
	"net/netip"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/cloud/aws"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/machine"
)

// DiskBytes is the root disk of an instance when Glue.Disk does not say.
const DiskBytes = 20 << 30

// Glue ties a fleet to a cloud. The zero values of its optional fields are good.
type Glue struct {
	Fleet *machine.Fleet
	// Log gets what could not be done (nil: nothing).
	Log io.Writer
	// Kernel returns what the kernel shows of a machine's nominal memory, in bytes;
	// nil: all of it. Real kernels and firmware keep some back.
	Kernel func(nominal int64) int64
	// Disk returns the size of an instance's root file system in bytes; nil: DiskBytes.
	Disk func(aws.Instance) int64
}

// Attach adds the glue to the options of a cloud that is about to be made. Callbacks
// that are there already are called first.
func (g *Glue) Attach(opts *aws.Options) {
	state, reboot := opts.OnState, opts.OnReboot
	opts.OnState = func(i aws.Instance, old, now string) {
		if state != nil {
			state(i, old, now)
		}
		g.onState(i, now)
	}
	opts.OnReboot = func(i aws.Instance) {
		if reboot != nil {
			reboot(i)
		}
		g.onReboot(i)
	}
}

func (g *Glue) onState(i aws.Instance, now string) {
	var err error
	switch now {
	case "running":
		err = g.run(i)
	case "stopping":
		if m := g.Fleet.Machine(i.ID); m != nil {
			err = m.Hang()
		}
	case "shutting-down", "terminated":
		g.Fleet.Terminate(i.ID)
	}
	g.report(err)
}

// run boots an instance, or starts one again that was stopped: it keeps its disk.
func (g *Glue) run(i aws.Instance) error {
	if m := g.Fleet.Machine(i.ID); m != nil {
		return m.Reboot(context.Background())
	}
	cfg, err := g.config(i)
	if err != nil {
		return err
	}
	_, err = g.Fleet.Boot(cfg)
	return err
}

func (g *Glue) onReboot(i aws.Instance) {
	if m := g.Fleet.Machine(i.ID); m != nil {
		g.report(m.Reboot(context.Background()))
	}
}

func (g *Glue) report(err error) {
	if err != nil && g.Log != nil {
		fmt.Fprintf(g.Log, "ec2: %v\n", err)
	}
}

func (g *Glue) config(i aws.Instance) (machine.Config, error) {
	imds, err := i.IMDS()
	if err != nil {
		return machine.Config{}, err
	}
	cfg := machine.Config{
		UserData: []byte(i.UserData), InstanceID: i.ID, Name: i.PrivateDNS, Zone: i.Zone, InstanceType: i.Type,
		Arch: "amd64", Capacity: g.capacity(i.Spec), IMDSEndpoint: imds,
	}
	if g.Disk != nil {
		cfg.Capacity.EphemeralStorage = g.Disk(i)
	}
	if i.Spec.Arch == "arm64" {
		cfg.Arch = "arm64"
	}
	for _, text := range []string{i.PrivateIP, i.IPv6} {
		if text == "" {
			continue
		}
		a, err := netip.ParseAddr(text)
		if err != nil {
			return cfg, fmt.Errorf("boot machine %s: address: %w", i.ID, err)
		}
		cfg.Addresses = append(cfg.Addresses, a)
	}
	return cfg, nil
}

func (g *Glue) capacity(t aws.InstanceType) cluster.Resources {
	r := cluster.Resources{MilliCPU: int64(t.VCPU) * 1000, Memory: int64(t.MemoryMiB) << 20, EphemeralStorage: DiskBytes}
	if g.Kernel != nil {
		r.Memory = g.Kernel(r.Memory)
	}
	if t.GPUs > 0 && t.GPUMaker == "NVIDIA" {
		r.Extended = map[string]int64{"nvidia.com/gpu": int64(t.GPUs)}
	}
	return r
}
