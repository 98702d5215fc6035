package provider_test

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kelseyhightower/envconfig"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/all"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/asg"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/cloud/aws"
)

// kops is the group of an operator who comes from kops and Cluster Autoscaler: t2.micro
// in one zone of eu-west-1, 2 to 4 machines, with the tags that kops writes.
const kops = "nodes.proyecto.k8s.local"

func newKops(t testing.TB) *world {
	t.Helper()
	o := options()
	o.Region = "eu-west-1"
	w := empty(t, o)
	w.PutLaunchTemplate(aws.LaunchTemplate{Name: kops, InstanceType: "t2.micro", UserData: "#!/bin/sh\n",
		BlockDevices: []aws.BlockDevice{{DeviceName: "/dev/xvda", SizeGiB: 128, VolumeType: "gp2"}}})
	must(t, w.PutGroup(aws.Group{Name: kops, Min: 2, Max: 4, Desired: 2, LaunchTemplate: kops, Zones: []string{"a"}, ProtectNew: true, Tags: map[string]string{
		"KubernetesCluster": "proyecto.k8s.local", "Name": kops, "k8s.io/role/node": "1", "kops.k8s.io/instancegroup": "nodes",
		"k8s.io/cluster-autoscaler/node-template/label/kops.k8s.io/instancegroup": "nodes",
		"k8s.io/cluster-autoscaler/node-template/label/kubernetes.io/role":        "node",
	}}))
	w.settle(t)
	return w
}

// TestSeed001 takes the operator's own words: CLOUD_PROVIDER=aws, MIN_NODES, MAX_NODES
// and GROUP_NAME as --nodes=2:4:nodes.proyecto.k8s.local, AWS_DEFAULT_REGION and the two
// keys in the environment, and plays what the log of that day shows: 2->3, and back.
func TestSeed001(t *testing.T) {
	w := newKops(t)
	t.Setenv("AWS_DEFAULT_REGION", "eu-west-1")
	must(t, os.Unsetenv("AWS_REGION"))
	t.Setenv("AUTOSCALER_AWS_GROUPS", "2:4:"+kops)
	var c struct{ all.Config }
	must(t, envconfig.Process("AUTOSCALER", &c))
	must(t, c.Validate("aws"))
	p, err := all.New(context.Background(), "aws", c.Config, reservation)
	must(t, err)

	g := groups(t, p)[kops]
	if g.Min != 2 || g.Max != 4 || g.Target != 2 || len(g.Instances) != 2 || len(g.Warnings) > 0 {
		t.Errorf("%+v", g)
	}
	for key, value := range map[string]string{"kops.k8s.io/instancegroup": "nodes", "kubernetes.io/role": "node",
		"node.kubernetes.io/instance-type": "t2.micro", "topology.kubernetes.io/zone": "eu-west-1a", "topology.kubernetes.io/region": "eu-west-1"} {
		if g.Template.Labels[key] != value {
			t.Errorf("label %s is %q, want %q", key, g.Template.Labels[key], value)
		}
	}
	for _, key := range []string{"KubernetesCluster", "Name", "k8s.io/role/node"} {
		if _, ok := g.Template.Labels[key]; ok {
			t.Errorf("tag %s became a label", key)
		}
	}
	if r := g.Template.Capacity; r.MilliCPU != 1000 || r.Memory>>20 != 1024-77 {
		t.Errorf("t2.micro has %+v", r)
	}
	for _, i := range g.Instances {
		if name := string(w.Node(i.ID).Name); !strings.HasSuffix(name, ".eu-west-1.compute.internal") || !slices.Contains(i.NodeNames, name) {
			t.Errorf("node names %q, its Node is %s", i.NodeNames, name)
		}
	}
	must(t, p.Resize(context.Background(), kops, 2, 3))
	w.settle(t)
	if err := p.Resize(context.Background(), kops, 3, 5); provider.KindOf(err) != provider.Invalid {
		t.Errorf("above MAX_NODES: %v", err)
	}
	must(t, p.Delete(context.Background(), kops, w.Alive(kops)[0]))
	w.settle(t)
	if err := p.Delete(context.Background(), kops, w.Alive(kops)[0]); provider.KindOf(err) != provider.Invalid {
		t.Errorf("below MIN_NODES: %v", err)
	}
	if n := len(w.Alive(kops)); n != 2 {
		t.Errorf("%d machines in the end", n)
	}
}

// TestSeed001Policy: with that day's IAM policy (five actions of Auto Scaling) the group
// is seen and stale, and what is missing is named, with the command that prints it.
func TestSeed001Policy(t *testing.T) {
	w := newKops(t)
	for _, action := range []string{"DescribeInstances", "DescribeInstanceTypes", "DescribeImages", "DescribeLaunchTemplateVersions",
		"DescribeScalingActivities", "DescribeSpotInstanceRequests", "DescribeInstanceRefreshes", "GetInstanceTypesFromInstanceRequirements"} {
		w.fault(action, true, aws.Fault{Action: action, Kind: aws.Forbidden})
	}
	list, err := w.connect(t, asg.Config{Groups: []string{"2:4:" + kops}}).Groups(context.Background())
	if len(list) != 1 || list[0].Stale == "" || list[0].Template.Unknown == "" {
		t.Errorf("%+v", list)
	}
	for _, action := range []string{"ec2:DescribeInstances", "ec2:DescribeLaunchTemplateVersions"} {
		if err == nil || !strings.Contains(err.Error(), "allow "+action+" in the leader's IAM policy; `autoscaler-agent iam-policy leader` prints it") {
			t.Errorf("%s is not named: %v", action, err)
		}
	}
}

// TestASGTagsByName: every tag of Cluster Autoscaler's, one by one.
func TestASGTagsByName(t *testing.T) {
	const prefix = "k8s.io/cluster-autoscaler/node-template/"
	w := newWorld(t)
	w.PutLaunchTemplate(aws.LaunchTemplate{Name: "plain", InstanceType: "m5.large", UserData: "#!/bin/sh\n",
		BlockDevices: []aws.BlockDevice{{DeviceName: "/dev/xvda", SizeGiB: 20, VolumeType: "gp3"}}})
	is := func(d time.Duration) func(*time.Duration) bool {
		return func(p *time.Duration) bool { return p != nil && *p == d }
	}
	part := func(v float64) func(*float64) bool { return func(p *float64) bool { return p != nil && *p == v } }
	tests := []struct {
		tag, value string
		ok         func(g cluster.NodeGroup) bool
	}{
		{prefix + "label/team", "web", func(g cluster.NodeGroup) bool { return g.Template.Labels["team"] == "web" }},
		{prefix + "label/topology.ebs.csi.aws.com/zone", "z", func(g cluster.NodeGroup) bool { return g.Template.Labels["topology.ebs.csi.aws.com/zone"] == "z" }},
		{prefix + "taint/dedicated", "gpu:NoSchedule", func(g cluster.NodeGroup) bool {
			return len(g.Template.Taints) == 1 && g.Template.Taints[0] == cluster.Taint{Key: "dedicated", Value: "gpu", Effect: "NoSchedule"}
		}},
		{prefix + "taint/empty", ":NoExecute", func(g cluster.NodeGroup) bool {
			return len(g.Template.Taints) == 1 && g.Template.Taints[0].Effect == "NoExecute"
		}},
		{prefix + "resources/cpu", "1500m", func(g cluster.NodeGroup) bool { return g.Template.Capacity.MilliCPU == 1500 }},
		{prefix + "resources/memory", "3Gi", func(g cluster.NodeGroup) bool { return g.Template.Capacity.Memory == 3<<30 }},
		{prefix + "resources/ephemeral-storage", "100G", func(g cluster.NodeGroup) bool { return g.Template.Capacity.EphemeralStorage == 100e9 }},
		{prefix + "resources/pods", "29", func(g cluster.NodeGroup) bool { return g.Template.Allocatable.Pods == 29 }},
		{prefix + "resources/nvidia.com/gpu", "2", func(g cluster.NodeGroup) bool { return g.Template.Allocatable.Extended["nvidia.com/gpu"] == 2 }},
		{prefix + "autoscaling-options/scaledownutilizationthreshold", "0.7", func(g cluster.NodeGroup) bool { return part(0.7)(g.Options.ScaleDownUtilization) }},
		{prefix + "autoscaling-options/scaledowngpuutilizationthreshold", "0.8", func(g cluster.NodeGroup) bool { return part(0.8)(g.Options.ScaleDownGPUUtilization) }},
		{prefix + "autoscaling-options/scaledownunneededtime", "3m0s", func(g cluster.NodeGroup) bool { return is(3 * time.Minute)(g.Options.ScaleDownUnneededTime) }},
		{prefix + "autoscaling-options/scaledownunreadytime", "4m", func(g cluster.NodeGroup) bool { return is(4 * time.Minute)(g.Options.ScaleDownUnreadyTime) }},
		{prefix + "autoscaling-options/maxnodeprovisiontime", "5m", func(g cluster.NodeGroup) bool { return is(5 * time.Minute)(g.Options.MaxNodeProvisionTime) }},
		{prefix + "autoscaling-options/maxnodestartuptime", "6m", func(g cluster.NodeGroup) bool { return is(6 * time.Minute)(g.Options.MaxNodeStartupTime) }},
		{prefix + "autoscaling-options/ignoredaemonsetsutilization", "true", func(g cluster.NodeGroup) bool {
			return g.Options.IgnoreDaemonSetsUtilization != nil && *g.Options.IgnoreDaemonSetsUtilization
		}},
	}
	name := func(tag string) string { return strings.NewReplacer("/", "-", ".", "-").Replace(tag[len(prefix):]) }
	for _, c := range tests {
		w.put(t, aws.Group{Name: name(c.tag), Max: 1, LaunchTemplate: "plain", Zones: []string{"a"}, ProtectNew: true}, map[string]string{c.tag: c.value})
	}
	got := groups(t, w.connect(t, byTag)) // by k8s.io/cluster-autoscaler/enabled and k8s.io/cluster-autoscaler/demo
	for _, c := range tests {
		g, ok := got[cluster.GroupID(name(c.tag))]
		if !ok || !c.ok(g) || len(g.Warnings) > 0 {
			t.Errorf("%s=%s: listed %t, %+v, options %+v, warnings %q", c.tag, c.value, ok, g.Template, g.Options, g.Warnings)
		}
	}
	for _, flag := range []string{"asg:tag=" + tagEnabled + "," + tagCluster, "asg:tag=" + tagCluster + "=", "asg:tag=nobody asg:tag=" + tagCluster} {
		var d asg.Discovery
		must(t, d.Decode(flag))
		if again := groups(t, w.connect(t, asg.Config{AutoDiscovery: d})); len(again) != len(got) {
			t.Errorf("--node-group-auto-discovery=%s finds %d groups, want %d", flag, len(again), len(got))
		}
	}
}
