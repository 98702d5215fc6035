package provider_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling/types"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/asg"
	"github.com/autoscaler-agent/autoscaler-agent/test/await"
)

// TestPools: one entry of groups.yaml is a group for each type and zone; the first purchase of one makes it in the cloud, and from then on
// it is a group as every other. What groups.yaml names no more grows no more.
func TestPools(t *testing.T) {
	w := newWorld(t)
	section := `{"pools": [{"name": "general", "launchTemplate": "worker", "types": ["m5.large", "m5.xlarge"], "subnets": {"us-east-1a": "SUBNETA", "us-east-1b": "SUBNETB"}, "max": 5}]}`
	section = strings.NewReplacer("SUBNETA", w.Subnet("us-east-1a"), "SUBNETB", w.Subnet("us-east-1b")).Replace(section)
	p := w.connect(t, asg.Config{ClusterName: "demo"}, asg.WithSection(func() json.RawMessage { return json.RawMessage(section) }))
	ctx := context.Background()
	read := func() map[cluster.GroupID]cluster.NodeGroup {
		t.Helper()
		list, err := p.Groups(ctx)
		if err != nil {
			t.Fatal(err)
		}
		out := map[cluster.GroupID]cluster.NodeGroup{}
		for _, g := range list {
			if g.Pool != "" || strings.HasPrefix(string(g.ID), "general-") {
				out[g.ID] = g
			}
		}
		return out
	}
	const one = cluster.GroupID("general-m5.large-us-east-1b")
	groups := read()
	g := groups[one]
	if len(groups) != 4 || g.Pool != "general" || g.PoolMax != 5 || g.Max != 5 || g.Target != 0 || !g.Declared {
		t.Fatalf("%d groups; %s is %+v", len(groups), one, g)
	}
	if g.Template.Unknown != "" || g.Template.Capacity.MilliCPU != 2000 || g.Template.Labels["topology.kubernetes.io/zone"] != "us-east-1b" || len(g.Warnings) != 0 {
		t.Errorf("its template: %+v, warnings %v", g.Template, g.Warnings)
	}

	right := section
	section = strings.ReplaceAll(section, w.Subnet("us-east-1b"), "subnet-0")
	read()
	if err := p.Resize(ctx, one, 0, 2); kindOf(err) != provider.Invalid {
		t.Errorf("a subnet that is not there: %v", err)
	}
	section = right
	read()
	if err := p.Resize(ctx, one, 0, 2); err != nil {
		t.Fatal(err)
	}
	if g = read()[one]; g.Target != 2 || g.Declared {
		t.Errorf("after the purchase: target %d, declared %v", g.Target, g.Declared)
	}
	await.True(t, "its machines come", func() bool { return len(read()[one].Instances) == 2 })
	if list, err := p.Groups(provider.WithOnly(ctx, []cluster.GroupID{one, "general-m5.xlarge-us-east-1a"})); err != nil || len(list) != 2 {
		t.Errorf("a read of two groups, one of which is not made yet: %d, %v", len(list), err)
	}
	if err := p.Resize(ctx, one, 0, 3); kindOf(err) != provider.Conflict {
		t.Errorf("a resize from another size: %v", err)
	}
	if err := p.Resize(ctx, one, 2, 3); err != nil {
		t.Errorf("a second purchase: %v", err)
	}

	// Another agent makes a group that this one does not see yet.
	const two = cluster.GroupID("general-m5.xlarge-us-east-1a")
	if _, err := w.admin.CreateAutoScalingGroup(ctx, &autoscaling.CreateAutoScalingGroupInput{AutoScalingGroupName: sdk.String(string(two)), MinSize: sdk.Int32(0), MaxSize: sdk.Int32(5),
		VPCZoneIdentifier: sdk.String(w.Subnet("us-east-1a")), LaunchTemplate: &types.LaunchTemplateSpecification{LaunchTemplateName: sdk.String("worker")}}); err != nil {
		t.Fatal(err)
	}
	if err := p.Resize(ctx, two, 0, 1); err == nil {
		t.Error("a group that is not the agent's was grown")
	}

	section = strings.Replace(section, `"m5.large", `, "", 1)
	if g = read()[one]; g.Paused != "pool general of groups.yaml names its type, zone or capacity no more" || len(g.Instances) < 2 {
		t.Errorf("a type that is named no more: paused %q, %d machines", g.Paused, len(g.Instances))
	}
	section = ""
	if g = read()[one]; g.Paused != "groups.yaml has no pool general any more" || len(read()) != 1 {
		t.Errorf("without the pool: paused %q, %d groups", g.Paused, len(read()))
	}
	if err := p.Resize(ctx, "general-m5.xlarge-us-east-1b", 0, 1); kindOf(err) != provider.NotFound {
		t.Errorf("a group of a pool that is gone was made: %v", err)
	}
}

func kindOf(err error) provider.Kind {
	if e, ok := errors.AsType[*provider.Error](err); ok {
		return e.Kind
	}
	return provider.Other
}
