package provider_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/asg"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/cloud/aws"
)

// repeatingASG reads as the agent's inventory does.
type repeatingASG struct{ *asg.Provider }

func (p repeatingASG) Groups(ctx context.Context) ([]cluster.NodeGroup, error) {
	return p.Provider.Groups(provider.WithRepeated(ctx, time.Hour))
}

// TestASGRepeats: names and addresses of running machines are repeated as long as the caller
// allows it, and said to be as old as they are; each change of a machine's state, in the group
// and beside it, is seen at once, also by hand and where Auto Scaling knows nothing of it yet.
func TestASGRepeats(t *testing.T) {
	opts := options()
	opts.HealthCheckDelay = time.Hour // Auto Scaling does not notice what EC2 ends
	w := empty(t, opts)
	w.PutLaunchTemplate(aws.LaunchTemplate{Name: "worker", InstanceType: "m5.large", UserData: "#!/bin/sh\n"})
	if err := w.PutGroup(aws.Group{Name: "workers", Max: 9, Desired: 5, LaunchTemplate: "worker", Tags: map[string]string{tagEnabled: "", tagCluster: ""}}); err != nil {
		t.Fatal(err)
	}
	w.settle(t)
	p := w.connect(t, asg.Config{ClusterName: "demo"})
	read := func(ctx context.Context) cluster.NodeGroup {
		t.Helper()
		groups, err := p.Groups(ctx)
		if err != nil || len(groups) != 1 || groups[0].Stale != "" {
			t.Fatalf("%+v, %v", groups, err)
		}
		return groups[0]
	}
	repeat := provider.WithRepeated(t.Context(), time.Hour)
	first := read(repeat)
	if !first.WitnessedAt().Equal(first.ReadAt) {
		t.Errorf("the first read says that its names are of %s, it is of %s", first.NamesReadAt, first.ReadAt)
	}
	addresses := func(g cluster.NodeGroup) (out []string) {
		for _, in := range g.Instances {
			out = append(out, fmt.Sprint(in.ID, in.NodeNames, in.Names, in.Addresses))
		}
		return out
	}
	moved := w.Instances()[0]
	if err := w.Rewire(moved.ID, func(n *aws.Network) { n.PrivateIP = "10.0.99.99" }); err != nil {
		t.Fatal(err)
	}
	again := read(repeat)
	if !slices.Equal(addresses(again), addresses(first)) || !again.NamesReadAt.Equal(first.ReadAt) || !again.ReadAt.After(first.ReadAt) {
		t.Errorf("repeated: %v, names of %s, read at %s", addresses(again), again.NamesReadAt, again.ReadAt)
	}
	if narrow := read(provider.WithOnly(t.Context(), []cluster.GroupID{"workers"})); !narrow.WitnessedAt().Equal(first.ReadAt) {
		t.Errorf("a narrowed read says that its names are of %s, they are of %s", narrow.WitnessedAt(), first.ReadAt)
	}
	for n, ctx := range []context.Context{t.Context(), provider.WithRepeated(t.Context(), time.Nanosecond)} {
		if g := read(ctx); slices.Equal(addresses(g), addresses(first)) || !g.WitnessedAt().Equal(g.ReadAt) {
			t.Errorf("read %d: %v, names of %s, read at %s", n, addresses(g), g.NamesReadAt, g.ReadAt)
		}
	}
	for _, step := range []struct {
		what string
		do   func(id string) error
		want map[cluster.Phase]bool
	}{
		{"stopped by hand", w.StopInstance, map[cluster.Phase]bool{cluster.PhaseStopped: true}},
		{"terminated by hand", w.TerminateInstance, map[cluster.Phase]bool{cluster.PhaseDeleting: true, cluster.PhaseGone: true}},
	} {
		id := w.Alive("workers")[1]
		read(repeat)
		_, short, _ := strings.Cut(strings.TrimPrefix(string(id), "aws:///"), "/")
		if err := step.do(short); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			g := read(repeat)
			at := slices.IndexFunc(g.Instances, func(in cluster.Instance) bool { return in.ID == id })
			if at < 0 || !step.want[g.Instances[at].Phase] || g.Instances[at].Runs {
				t.Errorf("%s: %+v", step.what, g.Instances)
			}
		}
	}
}
