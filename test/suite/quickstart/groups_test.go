package quickstart

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/kelseyhightower/envconfig"
	"github.com/zclconf/go-cty/cty"
	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/yaml"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/cloud/aws"
)

// furtherGroups types the section of the page about several groups, and then gives each group new user data alone.
func (d *workstation) furtherGroups(c *aws.Cloud) {
	d.t.Helper()
	d.play(block(d.t, "quickstart-aws.md", "## Several groups, spot, ARM\n"), c.Env()...)
	spot := group{min: 0, max: 20, types: []string{"m6i.large", "m5.large", "m5a.large"}, demand: 0, image: "ami-0a1b2c3d4e5f60720"}
	arm := group{min: 0, max: 5, types: []string{"m6g.large"}, demand: 100, image: imageARM}
	wantGroup(d.t, c, "demo-spot", spot)
	wantGroup(d.t, c, "demo-arm", arm)

	publish(d.t, c, "ami-0a1b2c3d4e5f60721", "x86_64")
	d.play([]string{"deploy/cli/aws.sh workers --cluster demo --user-data worker.sh --group spot --min 1"}, c.Env()...)
	spot.min = 1
	wantGroup(d.t, c, "demo-spot", spot)
	d.play([]string{"deploy/cli/aws.sh workers --cluster demo --user-data worker.sh --group spot --image newest --spot no --type m5.large --min 0 --disk 50"}, c.Env()...)
	wantGroup(d.t, c, "demo-spot", group{min: 0, max: 20, types: []string{"m5.large"}, demand: 100, image: "ami-0a1b2c3d4e5f60721"})
	if lt, _ := c.LatestVersion("demo-spot"); lt.BlockDevices[0].SizeGiB != 50 {
		d.t.Errorf("the disk is %+v", lt.BlockDevices)
	}
}

// group is what AWS says of an Auto Scaling group.
type group struct {
	min, max int
	types    []string
	demand   int // percent of machines on demand
	image    string
}

func wantGroup(t *testing.T, c *aws.Cloud, name string, want group) {
	t.Helper()
	out, err := connect(c).asg.DescribeAutoScalingGroups(t.Context(), &autoscaling.DescribeAutoScalingGroupsInput{AutoScalingGroupNames: []string{name}})
	if err != nil || len(out.AutoScalingGroups) != 1 {
		t.Fatalf("%s: %v, %v", name, out, err)
	}
	g := out.AutoScalingGroups[0]
	lt, _ := c.LatestVersion(name)
	got := group{min: int(*g.MinSize), max: int(*g.MaxSize), types: []string{lt.InstanceType}, demand: 100, image: lt.ImageID}
	if m := g.MixedInstancesPolicy; m != nil {
		got.demand, got.types = int(*m.InstancesDistribution.OnDemandPercentageAboveBaseCapacity), nil
		for _, o := range m.LaunchTemplate.Overrides {
			got.types = append(got.types, *o.InstanceType)
		}
	}
	if got.min != want.min || got.max != want.max || got.demand != want.demand || got.image != want.image || !slices.Equal(got.types, want.types) {
		t.Errorf("%s is %+v, want %+v", name, got, want)
	}
}

// buysTen: for the work of the page the agent orders as many machines as the page says.
func buysTen(t *testing.T, c *aws.Cloud) {
	t.Helper()
	text, err := os.ReadFile(deploy + "/work.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var work appsv1.Deployment
	if err := yaml.UnmarshalStrict(text, &work); err != nil {
		t.Fatal(err)
	}
	requests := work.Spec.Template.Spec.Containers[0].Resources.Requests
	groups, err := provider(t, c).Groups(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	groups[0].Target, groups[0].Instances = 0, nil // as before the tests' own machine
	now := time.Now()
	s := cluster.Snapshot{Now: now, Groups: groups, Classes: []cluster.PodClass{
		{Namespace: "default", Requests: cluster.Resources{MilliCPU: requests.Cpu().MilliValue(), Memory: requests.Memory().Value(), Pods: 1}},
		{Namespace: "kube-flannel", Requests: cluster.Resources{MilliCPU: 100, Memory: 50 << 20, Pods: 1}}},
		DaemonSets: []cluster.DaemonSet{{Key: "kube-flannel/kube-flannel-ds", UID: "flannel", Class: 1}}}
	for n := range int(*work.Spec.Replicas) {
		name := fmt.Sprintf("work-%d", n)
		s.Pods = append(s.Pods, cluster.Pod{Key: cluster.PodKey("default/" + name), UID: cluster.UID(name), Created: cluster.At(now.Add(-time.Minute)), Unschedulable: cluster.At(now.Add(-time.Minute))})
	}
	var policy decision.Policy
	if err := envconfig.Process("NOBODY_SETS_THIS", &policy); err != nil {
		t.Fatal(err)
	}
	decided, _ := plan.Decide(s, decision.Memory{}, policy)
	if grow, ok := decided.Actions[0].(decision.Grow); !ok || len(decided.Actions) != 1 || grow.To != 10 {
		t.Errorf("the page says ten machines, the agent decides\n%s", decided)
	}
}

// TestTerraformGroups: the module makes groups of one type, of mixed instances, on the spot market and for arm64.
func TestTerraformGroups(t *testing.T) {
	m, err := load(moduleAWS)
	if err != nil {
		t.Fatal(err)
	}
	types := func(names ...string) cty.Value {
		var out []cty.Value
		for _, name := range names {
			out = append(out, cty.StringVal(name))
		}
		return cty.TupleVal(out)
	}
	given := map[string]cty.Value{
		"cluster": cty.StringVal("demo"), "admin_cidrs": types(admin), "ssh_public_key": cty.StringVal("ssh-ed25519 AAAA ops"),
		"leader": cty.ObjectVal(map[string]cty.Value{"instance_type": cty.StringVal("t4g.medium")}),
		"groups": cty.ObjectVal(map[string]cty.Value{
			"plain": cty.ObjectVal(map[string]cty.Value{"user_data": cty.StringVal("x")}),
			"spot":  cty.ObjectVal(map[string]cty.Value{"user_data": cty.StringVal("x"), "instance_types": types("m6i.large", "m5.large"), "spot": cty.True, "max": cty.NumberIntVal(20)}),
			"one":   cty.ObjectVal(map[string]cty.Value{"user_data": cty.StringVal("x"), "instance_types": types("m5.large"), "spot": cty.True}),
			"arm":   cty.ObjectVal(map[string]cty.Value{"user_data": cty.StringVal("x"), "instance_types": types("m6g.large", "m6g.xlarge"), "min": cty.NumberIntVal(1)}),
		}),
	}
	c := emptyAccount(t)
	if _, err := m.evaluate(given, (&applier{t, c, connect(c)}).make); err != nil {
		t.Fatal(err)
	}
	wantGroup(t, c, "demo-plain", group{max: 10, types: []string{"t3.large"}, demand: 100, image: image})
	wantGroup(t, c, "demo-spot", group{max: 20, types: []string{"m6i.large", "m5.large"}, image: image})
	wantGroup(t, c, "demo-one", group{max: 10, types: []string{"m5.large"}, image: image})
	wantGroup(t, c, "demo-arm", group{min: 1, max: 10, types: []string{"m6g.large", "m6g.xlarge"}, demand: 100, image: imageARM})
	for _, i := range c.Instances() {
		if i.GroupName == "" && i.ImageID != imageARM {
			t.Errorf("the leader has the image %s", i.ImageID)
		}
	}

	given["groups"] = cty.ObjectVal(map[string]cty.Value{"both": cty.ObjectVal(map[string]cty.Value{"user_data": cty.StringVal("x"), "instance_types": types("m6g.large", "m5.large")})})
	c = emptyAccount(t)
	if _, err := m.evaluate(given, (&applier{t, c, connect(c)}).make); err == nil || !strings.Contains(err.Error(), "two architectures") {
		t.Errorf("types of two architectures: %v", err)
	}
	given["image_ids"] = cty.ObjectVal(map[string]cty.Value{"x86": cty.StringVal(image)})
	if _, err := m.evaluate(given, (&applier{t, c, connect(c)}).make); err == nil || !strings.Contains(err.Error(), "image_ids") {
		t.Errorf("an image of no architecture: %v", err)
	}
}
