package iampolicy

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/asg/awsapi"
)

type document struct {
	Statement []struct {
		Sid       string
		Action    []string
		Resource  []string
		Condition map[string]map[string]any
	}
}

func TestLeaderPolicyAllowsWhatIsCalledAndBindsWrites(t *testing.T) {
	raw, err := Leader(Options{ClusterName: "demo", Groups: []string{"0:3:pool"}, Parameter: "/demo/join", KeyARN: "arn:aws:kms:eu-west-1:1:key/k", LaunchTemplates: []string{"lt-0123456789abcdef0"},
		Pools: []string{"general"}, PoolTemplates: []string{"lt-0123456789abcdef1"}, PoolRole: "workers"})
	if err != nil {
		t.Fatal(err)
	}
	var d document
	if err := json.Unmarshal(raw, &d); err != nil {
		t.Fatal(err)
	}
	var allowed []string
	for _, s := range d.Statement {
		allowed = append(allowed, s.Action...)
		for _, a := range s.Action {
			read := strings.Contains(a, ":Describe") || strings.Contains(a, ":Get")
			if !read && slices.Contains(s.Resource, "*") && s.Condition["ArnEquals"]["ec2:LaunchTemplate"] == nil {
				t.Errorf("%s is allowed on everything", a)
			}
			if strings.Contains(a, "*") {
				t.Errorf("%s is a wildcard", a)
			}
		}
		if s.Sid == "ScaleOwnGroupsByTag" && s.Condition["Null"]["aws:ResourceTag/k8s.io/cluster-autoscaler/demo"] != "false" {
			t.Errorf("writes are not bound to the tag: %+v", s)
		}
		if s.Sid == "MakeGroupsOfPools" && (!slices.Equal(s.Resource, []string{"arn:aws:autoscaling:*:*:autoScalingGroup:*:autoScalingGroupName/general-*"}) || s.Condition["Null"]["aws:RequestTag/k8s.io/cluster-autoscaler/demo"] != "false") {
			t.Errorf("groups are not bound to the pool's name and the cluster's tag: %+v", s)
		}
		if s.Sid == "PassRoleOfPools" && !slices.Equal(s.Resource, []string{"arn:aws:iam::*:role/workers"}) {
			t.Errorf("any role may be passed: %+v", s)
		}
		if s.Sid == "PublishLaunchTemplateVersions" && !slices.Equal(s.Resource, []string{"arn:aws:ec2:*:*:launch-template/lt-0123456789abcdef0"}) {
			t.Errorf("versions are not bound to the template: %+v", s)
		}
		if s.Sid == "ScaleOwnGroupsByName" && !strings.HasSuffix(s.Resource[0], "autoScalingGroupName/pool") {
			t.Errorf("writes are not bound to the name: %+v", s)
		}
	}
	// Every action constant of package awsapi is a call that is made. Who changes what a group starts can start machines with every
	// role of the account: that is for a person, and rollout back prints the command.
	if slices.Contains(allowed, awsapi.ActionUpdateGroup) {
		t.Errorf("%s is allowed", awsapi.ActionUpdateGroup)
	}
	allowed = append(allowed, awsapi.ActionUpdateGroup)
	source, err := os.ReadFile("../awsapi/actions.go")
	if err != nil {
		t.Fatal(err)
	}
	called := regexp.MustCompile(`= "((?:autoscaling|ec2|pricing):[A-Za-z]+)"`).FindAllStringSubmatch(string(source), -1)
	if len(called) != 17 {
		t.Fatalf("%d actions found", len(called))
	}
	for _, m := range called {
		if !slices.Contains(allowed, m[1]) {
			t.Errorf("%s is called and not allowed", m[1])
		}
		allowed = slices.DeleteFunc(allowed, func(a string) bool { return a == m[1] })
	}
	for _, a := range allowed {
		needed := slices.Contains([]string{"autoscaling:CreateOrUpdateTags", "ec2:RunInstances", "ec2:CreateTags", "iam:PassRole"}, a) // by Auto Scaling, for a group of a pool
		if !needed && !strings.Contains(a, "LaunchTemplateVersion") && !strings.HasPrefix(a, "ssm:") && !strings.HasPrefix(a, "kms:") {
			t.Errorf("%s is allowed and never called", a)
		}
	}
	if _, err := Leader(Options{}); err == nil {
		t.Error("a policy for every group of the account")
	}
}

func TestWorker(t *testing.T) {
	raw, err := Worker(Options{Parameter: "/demo/join", Partition: "aws-cn"})
	if err != nil || !strings.Contains(string(raw), `"arn:aws-cn:ssm:*:*:parameter/demo/join"`) || strings.Contains(string(raw), "Put") {
		t.Errorf("%s, %v", raw, err)
	}
	if _, err := Worker(Options{}); err == nil {
		t.Error("no error")
	}
}

// TestTheManualPrintsThePolicy: docs/providers/aws.md shows what the command prints.
func TestTheManualPrintsThePolicy(t *testing.T) {
	want, err := Leader(Options{ClusterName: "mycluster"})
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../../../../docs/providers/aws.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(page), string(want)) {
		t.Errorf("docs/providers/aws.md does not show\n%s", want)
	}
}

// TestPolicyHasNoWildcardOfNames: a name that IAM would take for a pattern is refused.
func TestPolicyHasNoWildcardOfNames(t *testing.T) {
	for name, o := range map[string]Options{
		"group":           {Groups: []string{"a*b"}},
		"group of bounds": {Groups: []string{"0:3:workers", "0:3:*"}},
		"one character":   {Groups: []string{"worker?"}},
		"variable":        {Groups: []string{"${aws:username}"}},
		"blank":           {Groups: []string{"a b"}},
		"cluster":         {ClusterName: "*"},
		"two clusters":    {ClusterName: "a,b"},
		"long cluster":    {ClusterName: strings.Repeat("c", 103)},
		"no slash":        {ClusterName: "demo", Parameter: "demo/join"},
		"partition":       {ClusterName: "demo", Partition: "*"},
		"parameter":       {ClusterName: "demo", Parameter: "/demo/*"},
		"template":        {ClusterName: "demo", LaunchTemplates: []string{"lt-*"}},
		"template's name": {ClusterName: "demo", LaunchTemplates: []string{"workers"}},
		"key":             {ClusterName: "demo", Parameter: "/demo/join", KeyARN: "*"},
		"no ARN of a key": {ClusterName: "demo", Parameter: "/demo/join", KeyARN: "alias/join"},
	} {
		if out, err := Leader(o); err == nil {
			t.Errorf("%s: %s", name, out)
		}
		if o.Parameter != "" {
			if out, err := Worker(o); err == nil {
				t.Errorf("%s: %s", name, out)
			}
		}
	}
	if _, err := Leader(Options{ClusterName: "demo-1", Groups: []string{"0:3:pool/a.b_c", " workers"}, Partition: "aws-cn"}); err != nil {
		t.Error(err)
	}
}
