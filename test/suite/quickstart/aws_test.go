package quickstart

import (
	"encoding/json"
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	ssmtypes "github.com/aws/aws-sdk-go-v2/service/ssm/types"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/asg"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/asg/iampolicy"
	"github.com/autoscaler-agent/autoscaler-agent/test/await"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/cloud/aws"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/cloud/aws/awsmodel"
)

const (
	deploy   = "../../../deploy"
	image    = "ami-0a1b2c3d4e5f60718"
	imageARM = "ami-0a1b2c3d4e5f60719"
	admin    = "203.0.113.7/32"
	owner    = "ops@example.com"
)

// emptyAccount is an AWS with a default VPC, the public images, and nothing else. Every
// answer is compared with AWS's own API model.
func emptyAccount(t *testing.T) *aws.Cloud {
	t.Helper()
	dir, err := awsmodel.Locate("")
	if err != nil {
		t.Fatal(err)
	}
	models, err := awsmodel.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	c, err := aws.New(aws.Options{
		LaunchDelay: 2 * time.Millisecond, BootDelay: 5 * time.Millisecond, TerminateDelay: 5 * time.Millisecond,
		OnExchange: func(e aws.Exchange) {
			if err := models.Check(awsmodel.Answer{Service: e.Service, Action: e.Action, Status: e.Status, ContentType: e.ContentType, Body: e.Body}); err != nil {
				t.Errorf("%v\n%s", err, e.Body)
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	publish(t, c, image, "x86_64")
	publish(t, c, imageARM, "arm64")
	return c
}

// publish makes an image the newest of Ubuntu for its architecture: AWS tells it by a public parameter.
func publish(t *testing.T, c *aws.Cloud, id, architecture string) {
	t.Helper()
	c.PutImage(id, architecture)
	name := fmt.Sprintf("/aws/service/canonical/ubuntu/server/24.04/stable/current/%s/hvm/ebs-gp3/ami-id", map[string]string{"x86_64": "amd64", "arm64": "arm64"}[architecture])
	if _, err := connect(c).ssm.PutParameter(t.Context(), &ssm.PutParameterInput{Name: sdk.String(name), Value: sdk.String(id), Type: ssmtypes.ParameterTypeString, Overwrite: sdk.Bool(true)}); err != nil {
		t.Fatal(err)
	}
}

// clients are AWS's own SDK.
type clients struct {
	ec2 *ec2.Client
	asg *autoscaling.Client
	iam *iam.Client
	ssm *ssm.Client
	sts *sts.Client
}

func connect(c *aws.Cloud) clients {
	root := c.RootCredentials()
	cfg := sdk.Config{Region: c.Region(), BaseEndpoint: sdk.String(c.Endpoint()),
		Credentials: credentials.NewStaticCredentialsProvider(root.AccessKeyID, root.SecretAccessKey, "")}
	return clients{ec2.NewFromConfig(cfg), autoscaling.NewFromConfig(cfg), iam.NewFromConfig(cfg), ssm.NewFromConfig(cfg), sts.NewFromConfig(cfg)}
}

// awsCommand skips where AWS's own command line is not installed. TestTerraformAWS makes
// the same resources through the SDK there.
func awsCommand(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("aws"); err != nil {
		t.Skip("the aws command is not installed (Debian's package awscli): docs/quickstart-aws.md is not typed")
	}
}

// script is a script of deploy/.
func script(t *testing.T, name string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join(deploy, "cli", name))
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// closedGroup: before there is user data the group is there, so that the agent's install
// finds the cluster by it, and has no room for a machine.
func closedGroup(t *testing.T, c *aws.Cloud) {
	t.Helper()
	g, ok := c.Group("demo-workers")
	if lt, _ := c.LatestVersion("demo-workers"); !ok || g.Max != 0 || g.Tags["kubernetes.io/cluster/demo"] != "owned" || lt.UserData != "" || len(c.Instances()) != 1 {
		t.Errorf("before there is user data: group %+v, template %+v, %d instances", g, lt, len(c.Instances()))
	}
}

// provider is the agent's own provider, on the emulated AWS.
func provider(t *testing.T, c *aws.Cloud) *asg.Provider {
	t.Helper()
	for _, pair := range c.Env() {
		name, value, _ := strings.Cut(pair, "=")
		t.Setenv(name, value)
	}
	p, err := asg.New(t.Context(), asg.Config{ClusterName: "demo", Timeout: 10 * time.Second}, cluster.Reservation{MaxPods: 110})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// grow lets the agent's own provider find the group by its tags and raise it by one.
func grow(t *testing.T, c *aws.Cloud) aws.Instance {
	t.Helper()
	p := provider(t, c)
	groups, err := p.Groups(t.Context())
	if err != nil || len(groups) != 1 || groups[0].ID != "demo-workers" {
		t.Fatalf("the provider finds %+v, %v", groups, err)
	}
	if w := groups[0].Warnings; len(w) > 0 {
		t.Errorf("the provider warns of the group: %v", w)
	}
	if err := p.Resize(t.Context(), "demo-workers", groups[0].Target, groups[0].Target+1); err != nil {
		t.Fatal(err)
	}
	want := groups[0].Target + 1
	await.True(t, "the machine is in service", func() bool {
		g, _ := c.Group("demo-workers")
		return g.Lifecycles()["InService"] == want
	})
	list := slices.DeleteFunc(c.Instances(), func(i aws.Instance) bool { return i.GroupName == "" })
	return list[len(list)-1]
}

// judgeAWS compares the world with what the documents promise, whoever made it.
func judgeAWS(t *testing.T, c *aws.Cloud, data string) {
	t.Helper()
	a := c.Account()
	wantRoles(t, a)
	wantNetwork(t, c, a)
	leaders := slices.DeleteFunc(c.Instances(), func(i aws.Instance) bool { return i.GroupName != "" })
	if len(leaders) != 1 || leaders[0].PrivateIP != a.Interfaces[0].PrivateIP || leaders[0].PublicIP != a.Addresses[0].PublicIP {
		t.Fatalf("leaders %+v", leaders)
	}
	for key, value := range map[string]string{"Name": "demo-leader", "Owner": owner, "kubernetes.io/cluster/demo": "owned"} {
		if leaders[0].Tags[key] != value {
			t.Errorf("the leader's tag %s is %q", key, leaders[0].Tags[key])
		}
	}
	g, ok := c.Group("demo-workers")
	if !ok || g.Min != 0 || g.Max != 10 || g.Desired != 0 || !g.ProtectNew || !slices.Equal(g.SuspendedProcesses, []string{"AZRebalance"}) {
		t.Errorf("group %+v", g)
	}
	if i := grow(t, c); i.UserData != data || !i.Protected || i.Tags["kubernetes.io/cluster/demo"] != "owned" || i.Tags["Owner"] != owner || i.Tags["Name"] != "demo-workers" {
		t.Errorf("a worker is %+v", i)
	}
	lt, _ := c.LatestVersion("demo-workers")
	if lt.HTTPTokens != "required" || lt.HopLimit != 1 || lt.InstanceProfile != "demo-worker" ||
		!slices.Equal(lt.SecurityGroups, []string{a.SecurityGroups["demo-worker"].ID}) ||
		!slices.Equal(lt.BlockDevices, []aws.BlockDevice{{DeviceName: "/dev/xvda", SizeGiB: 32, VolumeType: "gp3"}}) {
		t.Errorf("launch template %+v", lt)
	}
}

// wantRoles: the leader's role has the agent's policy and nothing else, the workers' may
// pull images, and EC2 alone may take either.
func wantRoles(t *testing.T, a aws.Account) {
	t.Helper()
	policy, err := iampolicy.Leader(iampolicy.Options{ClusterName: "demo"})
	if err != nil {
		t.Fatal(err)
	}
	leader, worker := a.Roles["demo-leader"], a.Roles["demo-worker"]
	if len(a.Roles) != 2 || len(leader.Inline) != 1 || !sameJSON(t, leader.Inline["autoscaler-agent"], string(policy)) || len(leader.Attached) > 0 {
		t.Errorf("the leader's role is %+v", leader)
	}
	if len(worker.Inline) > 0 || !slices.Equal(worker.Attached, []string{"arn:aws:iam::aws:policy/AmazonEC2ContainerRegistryPullOnly"}) {
		t.Errorf("the workers' role is %+v", worker)
	}
	const trust = `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"Service":"ec2.amazonaws.com"},"Action":"sts:AssumeRole"}]}`
	for name, role := range a.Roles {
		if !sameJSON(t, role.Trust, trust) || a.Profiles[name].Role != name || role.Tags["Owner"] != owner {
			t.Errorf("role %s: %+v, profile %+v", name, role, a.Profiles[name])
		}
	}
}

// wantNetwork: exactly these rules, by the names of groups.
func wantNetwork(t *testing.T, c *aws.Cloud, a aws.Account) {
	t.Helper()
	leader, worker := a.SecurityGroups["demo-leader"], a.SecurityGroups["demo-worker"]
	port := func(protocol string, n int, from string) aws.SecurityRule {
		rule := aws.SecurityRule{Protocol: protocol, From: n, To: n, Group: from}
		if strings.Contains(from, "/") {
			rule.Group, rule.CIDR = "", from
		}
		return rule
	}
	want := map[string][]aws.SecurityRule{
		"demo-leader": {port("tcp", 22, admin), port("tcp", 6443, worker.ID), port("tcp", 6444, worker.ID), port("tcp", 10250, worker.ID), port("udp", 8472, worker.ID)},
		"demo-worker": {port("tcp", 10250, leader.ID), port("udp", 8472, leader.ID), port("tcp", 10250, worker.ID), port("udp", 8472, worker.ID)},
	}
	if len(a.SecurityGroups) != 2 {
		t.Errorf("%d security groups", len(a.SecurityGroups))
	}
	for name, rules := range want {
		got := slices.Clone(a.SecurityGroups[name].Ingress)
		for _, list := range [][]aws.SecurityRule{got, rules} {
			slices.SortFunc(list, func(x, y aws.SecurityRule) int { return strings.Compare(ruleKey(x), ruleKey(y)) })
		}
		if !slices.Equal(got, rules) || a.SecurityGroups[name].Tags["kubernetes.io/cluster/demo"] != "owned" {
			t.Errorf("%s lets in\n%v, want\n%v", name, got, rules)
		}
	}
	if len(a.Interfaces) != 1 || !slices.Equal(a.Interfaces[0].Groups, []string{leader.ID}) || len(a.Addresses) != 1 || a.Addresses[0].Interface != a.Interfaces[0].ID {
		t.Errorf("interfaces %+v, addresses %+v", a.Interfaces, a.Addresses)
	}
	g, _ := c.Group("demo-workers")
	if !slices.Equal(slices.Sorted(slices.Values(g.Zones)), c.Zones()) {
		t.Errorf("the group is in %v", g.Zones)
	}
}

func ruleKey(r aws.SecurityRule) string {
	raw, err := json.Marshal(r)
	if err != nil {
		panic(err)
	}
	return string(raw)
}

func sameJSON(t *testing.T, a, b string) bool {
	t.Helper()
	canonical := func(text string) string {
		var tree any
		if err := json.Unmarshal([]byte(text), &tree); err != nil {
			t.Errorf("%v: %s", err, text)
		}
		raw, err := json.Marshal(tree)
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
	return canonical(a) == canonical(b)
}

// stateOf is all that a person set up, and the groups, as text.
func stateOf(t *testing.T, c *aws.Cloud) string {
	t.Helper()
	raw, err := json.MarshalIndent(c.Account(), "", " ")
	if err != nil {
		t.Fatal(err)
	}
	g, _ := c.Group("demo-workers")
	names := slices.Sorted(maps.Keys(g.Tags))
	lines := []string{string(raw), strings.Join(names, " ")}
	for _, i := range c.Instances() {
		lines = append(lines, i.ID)
	}
	return strings.Join(lines, "\n") + "\n"
}
