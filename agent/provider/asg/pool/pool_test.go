package pool

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
)

const general = `{"pools": [{"name": "general", "launchTemplate": "workers", "types": ["m5.*", "c6i.2xlarge"], "without": ["m5.metal"],
	"cpu": {"min": 2, "max": 16}, "memory": {"min": 4}, "subnets": {"eu-west-1a": "subnet-1", "eu-west-1b": "subnet-2"}, "capacity": ["spot", "on-demand"], "max": 50, "tags": {"team": "x"}}]}`

func TestParse(t *testing.T) {
	for change, want := range map[string]string{
		``:                                     "",
		`"name": "general"->"name": "General"`: "pools[0].name: \"General\": write at most 40 small letters",
		`"launchTemplate": "workers"->"launchTemplate": ""`: "pools[0].launchTemplate: name the launch template",
		`"m5.*"->"m5 large"`:                            "pools[0].types[0]: \"m5 large\" is no instance type",
		`"types": ["m5.*", "c6i.2xlarge"]->"types": []`: "pools[0].types: name the instance types",
		`"min": 2, "max": 16->"min": 20, "max": 16`:     "pools[0].cpu: 20 to 16 is no range",
		`"eu-west-1a": ->"eu-west-1": `:                 "pools[0].subnets.eu-west-1: \"eu-west-1\" is no availability zone",
		`"subnet-1"->"net-1"`:                           "pools[0].subnets.eu-west-1a: \"net-1\" is no subnet",
		`"spot", "on-demand"->"spot", "spot"`:           "pools[0].capacity[1]: \"spot\" stands twice",
		`"spot", "on-demand"->"cheap"`:                  "pools[0].capacity[0]: \"cheap\": write on-demand or spot",
		`"max": 50->"max": 0`:                           "pools[0].max: 0: write how many machines",
		`"team": "x"->"aws:x": "y"`:                     "pools[0].tags.aws:x:",
		`"max": 50->"max": 50, "maximum": 1`:            "pools[0].maximum: no such field: known are arch, capacity, cpu",
		`"max": 50->"max": "50"`:                        "pools.max: write a whole number, not a string",
	} {
		text := general
		if old, new, ok := strings.Cut(change, "->"); ok {
			if text = strings.Replace(general, old, new, 1); text == general {
				t.Fatalf("%s changes nothing", change)
			}
		}
		_, err := Parse(json.RawMessage(text))
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", change, err, want)
		}
	}
	if _, err := Parse(json.RawMessage(`{"pools": [` + strings.TrimSuffix(strings.TrimPrefix(general, `{"pools": [`), `]}`) + `,{"name": "general"}]}`)); err == nil || !strings.Contains(err.Error(), "stands twice") {
		t.Errorf("two pools of one name: %v", err)
	}
}

// TestGroups: a group for each type, zone and market, of the types that the entry names alone.
func TestGroups(t *testing.T) {
	s, err := Parse(json.RawMessage(general))
	if err != nil {
		t.Fatal(err)
	}
	groups, err := s.Pools[0].Groups([]string{"m5.metal", "m5.large", "c6i.2xlarge", "c6i.large"}, map[string]string{"own": "ed"})
	if err != nil || len(groups) != 8 {
		t.Fatalf("%d groups, %v; want two types in two zones on two markets", len(groups), err)
	}
	g := groups[4] // m5.large in zone a on the spot market
	in := Create(g, 3)
	over, mixed := in.MixedInstancesPolicy.LaunchTemplate, in.MixedInstancesPolicy.InstancesDistribution
	if aws.ToString(in.AutoScalingGroupName) != "general-m5.large-eu-west-1a-spot" || aws.ToString(over.Overrides[0].InstanceType) != "m5.large" ||
		aws.ToInt32(mixed.OnDemandPercentageAboveBaseCapacity) != 0 || aws.ToString(in.VPCZoneIdentifier) != "subnet-1" || aws.ToInt32(in.DesiredCapacity) != 3 ||
		!aws.ToBool(in.NewInstancesProtectedFromScaleIn) || aws.ToString(over.LaunchTemplateSpecification.Version) != "$Latest" {
		t.Errorf("%+v", in)
	}
	tags := map[string]bool{}
	for _, tag := range in.Tags {
		tags[aws.ToString(tag.Key)+"="+aws.ToString(tag.Value)] = aws.ToBool(tag.PropagateAtLaunch)
	}
	if len(tags) != 3 || tags["own=ed"] || tags[Tag+"=general"] || !tags["team=x"] {
		t.Errorf("tags, and whether machines get them: %v", tags)
	}
	if _, err := s.Pools[0].Groups([]string{"c6i.large"}, nil); err == nil || !strings.Contains(err.Error(), "no instance type of the region") {
		t.Errorf("no type: %v", err)
	}
	many := make([]string, 51)
	for i := range many {
		many[i] = "m5." + strings.Repeat("x", i+1)
	}
	if _, err := s.Pools[0].Groups(many, nil); err == nil || !strings.Contains(err.Error(), "are 204 groups, more than 200") {
		t.Errorf("too many: %v", err)
	}
}
