package world

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Cloud is an emulated cloud as a story sees it: something that an operator makes a
// group of workers in, whose record shows what the agent did, and whose instances are
// machines that join.
//
// A cloud is one file of this package, named after the provider, that registers a
// constructor:
//
//	var _ = register("nova", newNova)
//
// The constructor gets the World, which has a running control plane, an empty Fleet
// and the Options by then. It starts the cloud's API on a loopback port, and makes a
// machine of every instance by calling
//
//   - World.Fleet.Boot(machine.Config) when the instance runs. InstanceID, Name,
//     Zone, InstanceType, Addresses and UserData are the cloud's; Capacity.Memory is
//     what World.KernelMemory leaves of the nominal size, because a kernel shows less
//     than a flavour says and the agent counts on it; SystemUUID is the server's UUID
//     on clouds that put it into the firmware (OpenStack does);
//   - Machine.Hang when it is stopped, Machine.Reboot when it starts again;
//   - World.Fleet.Terminate when it goes, as often as the cloud likes.
//
// (package test/emulate/machine/ec2 is the example.) Call these from a goroutine that holds no
// lock of the cloud: user data runs as a process and asks the metadata service.
//
// A Node is matched to its instance by provider ID, and the provider ID is written by
// the machine: the join section of the user data asks the cloud's metadata service who
// it is and puts the answer into the kubelet's configuration (package userdata, the
// providerID line of the kubelet patch). So a cloud needs its own metadata service, one
// for each instance or one that tells instances apart by port, and user data that
// knows how to read it. The script finds a service that is not at its real, link-local
// address by a variable: for EC2 AWS_EC2_METADATA_SERVICE_ENDPOINT, set by
// machine.Config.IMDSEndpoint; for any other cloud machine.Config.Metadata, which maps
// a variable that package userdata reads to an address on loopback. A cloud whose user
// data is completed by the cloud itself (a Heat template) writes name and provider ID into
// the user data that it boots a machine with, and needs neither.
//
// A machine runs what stands between userdata.JoinBegin and userdata.JoinEnd.
//
// What is told here is for the story and its summary; a test that wants more of one
// cloud asks World for it by its type (World.Cloud is the emulated AWS).
type Cloud interface {
	fmt.Stringer // the whole cloud, sorted: what is shown when a story fails

	// Banner is what the cloud says of itself when it has started: its kind, its
	// address, its seed.
	Banner() string
	// Env is the agent's part of the configuration for this cloud: credentials,
	// endpoint, AUTOSCALER_<CLOUD>_*. It is asked before each start of the agent and
	// does not name AUTOSCALER_PROVIDER or AUTOSCALER_GROUPS_FILE.
	Env() []string
	// RenderFlags are the flags of `autoscaler-agent userdata render` for this cloud.
	RenderFlags() []string
	// MachineType is an instance type of about 4 cores and 16 GiB, which a story uses
	// when nobody wants another.
	MachineType() string
	// PutWorkers does what an operator does once to have a group: a launch template
	// and an Auto Scaling group, a MachineDeployment, a section of groups.yaml (see
	// World.PutSection). how ends the sentence "worker group ...: min 0, max 40, ".
	PutWorkers(ctx context.Context, g Workers) (how string, err error)
	// Group tells what the cloud says of a group; false: there is none. On a cloud
	// that keeps no target it is the number of instances that are wanted.
	Group(name string) (Group, bool)
	// Instances lists a group's instances, or all with "", and those that are gone as
	// long as the cloud shows them.
	Instances(group string) []Instance
	// Raises are the changes by which the agent asked for more machines and which
	// the cloud carried out, in order. Launches that were asked for in one go are one.
	Raises() []Raise
	// Counts tells how often each call was made, by the cloud's own name of it.
	Counts() map[string]int
	// Leftovers names what a finished story must not leave beside instances: ports,
	// volumes, floating IPs, keys.
	Leftovers() []string
	// Close stops the cloud; nothing of it runs afterwards.
	Close() error
}

// Group is a group of machines at one moment.
type Group struct{ Min, Max, Target int }

// Instance is a machine as its cloud lists it.
type Instance struct {
	ID, Group string
	State     string // the cloud's own word
	Alive     bool   // it is not gone; on its way out still counts
}

// Raise is one change that asked for more machines.
type Raise struct {
	At   time.Time
	What string // the cloud's own name of the call: "SetDesiredCapacity"
}

// Workers is a group as an operator would make it.
type Workers struct {
	Name         string
	Min, Max     int
	InstanceType string // empty: the cloud's MachineType
	UserData     []byte // rendered for the cloud; one whose provider renders itself ignores it
	Image        string // Nova's; empty: the emulated OpenStack's own
	Zones        []string
}

// Pace is how fast an emulated cloud is. Zero: as fast as it is by default.
type Pace struct {
	Launch    time.Duration // from a raised target to an instance
	Boot      time.Duration // from an instance to a machine that boots
	Terminate time.Duration // from a deletion to an instance that is gone
	Jitter    float64       // share by which each varies, 0 to 1
	Seed      uint64        // of everything random; 0 picks one, which Banner tells
}

// constructor starts a cloud for a World that has its control plane and fleet.
type constructor func(ctx context.Context, w *World) (Cloud, error)

var clouds = map[string]constructor{}

func register(provider string, start constructor) struct{} {
	clouds[provider] = start
	return struct{}{}
}

// Providers are the names of the providers that have an emulated cloud, sorted.
func Providers() []string { return slices.Sorted(maps.Keys(clouds)) }

// lookUp finds a cloud's constructor by its provider's name.
func lookUp(provider string) (constructor, error) {
	if start, ok := clouds[provider]; ok {
		return start, nil
	}
	return nil, fmt.Errorf("provider %q has no emulated cloud; known are: %s", provider, strings.Join(Providers(), ", "))
}
