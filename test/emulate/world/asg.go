package world

import (
	"cmp"
	"context"
	"fmt"

	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/cloud/aws"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/machine/ec2"
)

var _ = register("asg", newASG)

// asg is the emulated AWS with its EC2 instances.
type asg struct{ *aws.Cloud }

// newASG starts the emulated AWS and the glue that boots a machine for every instance
// that it launches.
func newASG(_ context.Context, w *World) (Cloud, error) {
	o := w.Options.Cloud
	o.LaunchDelay = cmp.Or(o.LaunchDelay, w.Pace.Launch)
	o.BootDelay = cmp.Or(o.BootDelay, w.Pace.Boot)
	o.TerminateDelay = cmp.Or(o.TerminateDelay, w.Pace.Terminate)
	o.Jitter = cmp.Or(o.Jitter, w.Pace.Jitter)
	o.Seed = cmp.Or(o.Seed, w.Pace.Seed)
	if n := len(w.Clouds); n > 0 { // beside another one, which may be an AWS too
		o.Network = n
		if o.Seed != 0 {
			o.Seed += uint64(n)
		}
	}
	glue := ec2.Glue{Fleet: w.Fleet, Log: w.LogFile("machines.log"), Kernel: w.KernelMemory}
	glue.Attach(&o)
	if o.Log == nil {
		o.Log = w.LogFile("cloud.log")
	}
	c, err := aws.New(o)
	if err != nil {
		return nil, err
	}
	if w.Cloud == nil {
		w.Cloud = c
	}
	return asg{c}, nil
}

func (c asg) Banner() string {
	return fmt.Sprintf("an emulated AWS answers at %s (seed %d)", c.Endpoint(), c.Seed())
}

func (c asg) Env() []string {
	return append([]string{"AUTOSCALER_AWS_CLUSTER_NAME=" + ClusterName}, c.Cloud.Env()...)
}

func (asg) RenderFlags() []string { return nil }
func (asg) MachineType() string   { return "m5.xlarge" }

// PutWorkers makes a launch template and a group with Cluster Autoscaler's tags.
func (c asg) PutWorkers(_ context.Context, g Workers) (string, error) {
	c.PutLaunchTemplate(aws.LaunchTemplate{
		Name: g.Name, InstanceType: g.InstanceType, UserData: string(g.UserData), HTTPTokens: "required", HopLimit: 1,
	})
	err := c.PutGroup(aws.Group{
		Name: g.Name, Min: g.Min, Max: g.Max, Desired: g.Min, LaunchTemplate: g.Name, Version: "$Latest", Zones: g.Zones,
		ProtectNew: true, KeepTags: true, SuspendedProcesses: []string{"AZRebalance"},
		Tags: map[string]string{
			"k8s.io/cluster-autoscaler/enabled":        "",
			"k8s.io/cluster-autoscaler/" + ClusterName: "",
		},
	})
	return fmt.Sprintf("%d bytes of generated user data in its launch template", len(g.UserData)), err
}

func (c asg) Group(name string) (Group, bool) {
	g, ok := c.Cloud.Group(name)
	return Group{Min: g.Min, Max: g.Max, Target: g.Desired}, ok
}

func (c asg) Instances(group string) []Instance {
	var out []Instance
	for _, i := range c.Cloud.Instances() {
		if group == "" || i.GroupName == group {
			out = append(out, Instance{ID: i.ID, Group: i.GroupName, State: i.State, Alive: i.State != "terminated"})
		}
	}
	return out
}

// Raises: an Auto Scaling group's deletions lower its target by another call.
func (c asg) Raises() []Raise {
	var out []Raise
	for _, k := range c.Calls(func(k aws.Call) bool { return k.Action == "SetDesiredCapacity" && k.Done }) {
		out = append(out, Raise{At: k.At, What: k.Action})
	}
	return out
}

// Leftovers: an instance's interfaces and volumes go with it here.
func (asg) Leftovers() []string { return nil }

func (c asg) Close() error {
	c.Cloud.Close()
	return nil
}
