package iampolicy

import (
	"encoding/json"
	"path"
	"slices"
	"strings"
	"testing"
)

// call is one request as IAM judges it.
type call struct {
	action, resource string
	keys             map[string][]string // condition keys of the request
}

// allows judges a call by the policy, with the operators that our policies use.
func allows(t *testing.T, statements []statement, c call) bool {
	t.Helper()
	return slices.ContainsFunc(statements, func(s statement) bool {
		if !slices.Contains(s.Action, c.action) || !slices.ContainsFunc(s.Resource, func(pattern string) bool { return like(pattern, c.resource) }) {
			return false
		}
		for operator, keys := range s.Condition {
			for key, want := range keys {
				if !holds(t, operator, c.keys[key], values(want)) {
					return false
				}
			}
		}
		return true
	})
}

func values(v any) (out []string) {
	if one, ok := v.(string); ok {
		return []string{one}
	}
	for _, one := range v.([]any) {
		out = append(out, one.(string))
	}
	return out
}

// like is IAM's pattern, in which * takes slashes too.
func like(pattern, text string) bool {
	flat := strings.NewReplacer("/", "\x00")
	ok, err := path.Match(flat.Replace(pattern), flat.Replace(text))
	return ok && err == nil
}

func holds(t *testing.T, operator string, got, want []string) bool {
	any := func(match func(pattern, text string) bool) bool {
		return slices.ContainsFunc(got, func(text string) bool {
			return slices.ContainsFunc(want, func(pattern string) bool { return match(pattern, text) })
		})
	}
	equal := func(a, b string) bool { return a == b }
	switch operator {
	case "Null":
		return (len(got) == 0) == (want[0] == "true")
	case "StringEquals", "Bool":
		return any(equal)
	case "StringLike":
		return any(like)
	case "ForAllValues:StringNotEquals":
		return !any(equal)
	}
	t.Fatalf("the test does not know the operator %s", operator)
	return false
}

// addons is the leader's policy with both programs, as IAM reads it.
func addons(t *testing.T) []statement {
	t.Helper()
	raw, err := Leader(Options{ClusterName: "demo", CloudController: true, EBSCSI: true, EBSKeys: []string{kmsKey}})
	if err != nil {
		t.Fatal(err)
	}
	// AWS's limit for the inline policies of a role, blanks not counted.
	if n := len(strings.Join(strings.Fields(string(raw)), "")); n > 10240 {
		t.Errorf("the policy has %d characters, and a role's inline policies at most 10,240", n)
	}
	var p policy
	if err := json.Unmarshal(raw, &p); err != nil {
		t.Fatal(err)
	}
	return p.Statement
}

const (
	demoTag = "kubernetes.io/cluster/demo"
	ec2ARN  = "arn:aws:ec2:eu-west-1:123456789012:"
	kmsKey  = "arn:aws:kms:eu-west-1:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab"
	elbARN  = "arn:aws:elasticloadbalancing:eu-west-1:123456789012:"
)

// keys makes condition keys of "key=value" words.
func keys(pairs ...string) map[string][]string {
	out := map[string][]string{}
	for _, pair := range pairs {
		i := strings.LastIndex(pair, "=")
		out[pair[:i]] = append(out[pair[:i]], pair[i+1:])
	}
	return out
}

// TestAddonsAreAllowedTheirWork: what cloud-provider-aws v1.36.1 and the EBS CSI driver v1.64 do,
// one call a line.
func TestAddonsAreAllowedTheirWork(t *testing.T) {
	policy := addons(t)
	made, own := "aws:RequestTag/"+demoTag+"=owned", "aws:ResourceTag/"+demoTag+"=owned"
	managed, asked := "ec2:ResourceTag/ebs.csi.aws.com/cluster=true", "aws:RequestTag/ebs.csi.aws.com/cluster=true"
	for _, c := range []call{
		{"ec2:DescribeInstances", "*", nil},
		{"elasticloadbalancing:DescribeTargetGroupAttributes", "*", nil},
		{"elasticloadbalancing:CreateLoadBalancer", elbARN + "loadbalancer/a123", keys(made)},
		{"elasticloadbalancing:CreateLoadBalancer", elbARN + "loadbalancer/net/a123/0", keys(made)},
		{"elasticloadbalancing:AddTags", elbARN + "loadbalancer/net/a123/0", keys(made, "elasticloadbalancing:CreateAction=CreateLoadBalancer")},
		{"elasticloadbalancing:CreateTargetGroup", elbARN + "targetgroup/k8s-a/0", keys(made)},
		{"elasticloadbalancing:CreateListener", elbARN + "loadbalancer/net/a123/0", keys(made, own)},
		{"elasticloadbalancing:ModifyTargetGroupAttributes", elbARN + "targetgroup/k8s-a/0", keys(own)},
		{"elasticloadbalancing:RegisterTargets", elbARN + "targetgroup/k8s-a/0", keys(own)},
		{"elasticloadbalancing:DeleteListener", elbARN + "listener/net/a123/0/1", keys(own)},
		{"elasticloadbalancing:DeleteLoadBalancer", elbARN + "loadbalancer/a123", keys(own)},
		{"ec2:CreateSecurityGroup", ec2ARN + "security-group/*", keys(made)},
		{"ec2:CreateSecurityGroup", ec2ARN + "vpc/vpc-1", nil},
		{"ec2:CreateTags", ec2ARN + "security-group/sg-1", keys("ec2:CreateAction=CreateSecurityGroup")},
		{"ec2:AuthorizeSecurityGroupIngress", ec2ARN + "security-group/sg-1", keys(own)},
		{"iam:CreateServiceLinkedRole", "arn:aws:iam::123456789012:role/aws-service-role/elasticloadbalancing.amazonaws.com/AWSServiceRoleForElasticLoadBalancing", keys("iam:AWSServiceName=elasticloadbalancing.amazonaws.com")},
		{"ec2:CreateVolume", ec2ARN + "volume/*", keys(asked)},
		{"ec2:CreateTags", ec2ARN + "volume/vol-1", keys("ec2:CreateAction=CreateVolume")},
		{"ec2:AttachVolume", ec2ARN + "volume/vol-1", keys(managed)},
		{"ec2:AttachVolume", ec2ARN + "instance/i-1", nil},
		{"ec2:DeleteVolume", ec2ARN + "volume/vol-1", keys(managed)},
		{"ec2:DeleteVolume", ec2ARN + "volume/vol-1", keys("ec2:ResourceTag/kubernetes.io/created-for/pvc/name=data")},
		{"ec2:CreateSnapshot", ec2ARN + "snapshot/*", keys(asked)},
		{"ec2:CreateSnapshot", ec2ARN + "volume/vol-1", keys(managed)},
		{"ec2:CreateTags", ec2ARN + "volume/vol-1", keys(managed, "aws:TagKeys=team")},
		{"ec2:CreateRoute", ec2ARN + "route-table/rtb-1", keys(own)},
		{"ec2:DeleteRoute", ec2ARN + "route-table/rtb-1", keys(own)},
		{"ec2:ModifyInstanceAttribute", ec2ARN + "instance/i-1", keys(own, "ec2:Attribute=SourceDestCheck")},
		{"kms:DescribeKey", kmsKey, keys("kms:ViaService=ec2.eu-west-1.amazonaws.com")},
		{"kms:GenerateDataKeyWithoutPlaintext", kmsKey, keys("kms:ViaService=ec2.cn-north-1.amazonaws.com.cn")},
		{"kms:CreateGrant", kmsKey, keys("kms:ViaService=ec2.eu-west-1.amazonaws.com", "kms:GrantIsForAWSResource=true")},
	} {
		if !allows(t, policy, c) {
			t.Errorf("%s on %s with %v is refused", c.action, c.resource, c.keys)
		}
	}
}

// TestAddonsAreRefusedTheRest: whoever has the role gains nothing of another cluster, and no
// statement makes a stranger's thing one that another statement allows.
func TestAddonsAreRefusedTheRest(t *testing.T) {
	policy := addons(t)
	other := "aws:ResourceTag/kubernetes.io/cluster/other=owned"
	managed := "ec2:ResourceTag/ebs.csi.aws.com/cluster=true"
	for _, c := range []call{
		{"elasticloadbalancing:DeleteLoadBalancer", elbARN + "loadbalancer/a123", keys(other)},
		{"elasticloadbalancing:RegisterTargets", elbARN + "targetgroup/shop/0", nil},
		{"elasticloadbalancing:CreateLoadBalancer", elbARN + "loadbalancer/a123", nil},
		{"elasticloadbalancing:AddTags", elbARN + "loadbalancer/net/shop/0", keys("aws:RequestTag/" + demoTag + "=owned")},
		{"ec2:CreateTags", ec2ARN + "security-group/sg-1", keys("aws:RequestTag/" + demoTag + "=owned")},
		{"ec2:CreateTags", ec2ARN + "volume/vol-1", keys("aws:TagKeys=ebs.csi.aws.com/cluster")},
		{"ec2:CreateTags", ec2ARN + "volume/vol-1", keys(managed, "aws:TagKeys=ebs.csi.aws.com/cluster-name")},
		{"ec2:CreateTags", ec2ARN + "instance/i-1", keys("ec2:CreateAction=RunInstances")},
		{"ec2:DeleteSecurityGroup", ec2ARN + "security-group/sg-1", keys(other)},
		{"ec2:ModifyInstanceAttribute", ec2ARN + "instance/i-1", keys("aws:ResourceTag/" + demoTag + "=owned")},
		{"ec2:ModifyInstanceAttribute", ec2ARN + "instance/i-1", keys("aws:ResourceTag/"+demoTag+"=owned", "ec2:Attribute=UserData")},
		{"ec2:ModifyInstanceAttribute", ec2ARN + "instance/i-1", keys(other, "ec2:Attribute=SourceDestCheck")},
		{"ec2:CreateRoute", ec2ARN + "route-table/rtb-1", keys(other)},
		{"ec2:DeleteRoute", ec2ARN + "route-table/rtb-1", nil},
		{"kms:Decrypt", kmsKey, nil},
		{"kms:Decrypt", kmsKey, keys("kms:ViaService=secretsmanager.eu-west-1.amazonaws.com")},
		{"kms:CreateGrant", kmsKey, keys("kms:ViaService=ec2.eu-west-1.amazonaws.com", "kms:GrantIsForAWSResource=false")},
		{"kms:DescribeKey", kmsKey[:len(kmsKey)-1] + "c", keys("kms:ViaService=ec2.eu-west-1.amazonaws.com")},
		{"ec2:RunInstances", ec2ARN + "instance/*", nil},
		{"ec2:DeleteVolume", ec2ARN + "volume/vol-1", nil},
		{"ec2:DetachVolume", ec2ARN + "volume/vol-1", nil},
		{"ec2:CreateVolume", ec2ARN + "volume/*", nil},
		{"ec2:CreateVolume", ec2ARN + "snapshot/snap-1", nil},
		{"ec2:DeleteSnapshot", ec2ARN + "snapshot/snap-1", nil},
		{"iam:CreateServiceLinkedRole", "arn:aws:iam::123456789012:role/aws-service-role/ecs.amazonaws.com/x", keys("iam:AWSServiceName=ecs.amazonaws.com")},
		{"iam:PassRole", "arn:aws:iam::123456789012:role/admin", nil},
	} {
		if allows(t, policy, c) {
			t.Errorf("%s on %s with %v is allowed", c.action, c.resource, c.keys)
		}
	}
}

// TestAddonsBindWrites: nothing but reads is allowed on everything, no action is a pattern, each
// statement has a name of its own, and every ARN has the partition.
func TestAddonsBindWrites(t *testing.T) {
	for _, partition := range []string{"aws", "aws-cn", "aws-us-gov"} {
		raw, err := Leader(Options{ClusterName: "demo", Partition: partition, CloudController: true, EBSCSI: true})
		if err != nil {
			t.Fatal(err)
		}
		var p policy
		if err := json.Unmarshal(raw, &p); err != nil {
			t.Fatal(err)
		}
		names := map[string]bool{}
		for _, s := range p.Statement {
			if names[s.Sid] || s.Effect != "Allow" {
				t.Errorf("%s: effect %q, or its name stands twice", s.Sid, s.Effect)
			}
			names[s.Sid] = true
			for _, r := range s.Resource {
				if r != "*" && !strings.HasPrefix(r, "arn:"+partition+":") {
					t.Errorf("%s: %s is not in %s", s.Sid, r, partition)
				}
			}
			for _, a := range s.Action {
				if strings.Contains(a, "*") || slices.Contains(s.Resource, "*") && !strings.Contains(a, ":Describe") && !strings.Contains(a, ":Get") {
					t.Errorf("%s: %s on %v", s.Sid, a, s.Resource)
				}
			}
		}
	}
}

// TestAddonsNeedTheirPlace: each combination that makes no sense says what to write.
func TestAddonsNeedTheirPlace(t *testing.T) {
	if _, err := Leader(Options{Groups: []string{"workers"}, CloudController: true}); err == nil || !strings.Contains(err.Error(), "--cluster") {
		t.Errorf("a cloud controller manager without a cluster: %v", err)
	}
	if _, err := Leader(Options{Groups: []string{"workers"}, EBSCSI: true}); err != nil {
		t.Error(err)
	}
	if _, err := Leader(Options{ClusterName: "demo", EBSKeys: []string{kmsKey}}); err == nil || !strings.Contains(err.Error(), "--ebs-csi") {
		t.Errorf("a key without the driver: %v", err)
	}
	if _, err := Leader(Options{ClusterName: "demo", EBSCSI: true, EBSKeys: []string{"alias/x"}}); err == nil || !strings.Contains(err.Error(), "by its ARN") {
		t.Errorf("an alias of a key: %v", err)
	}
	for _, o := range []Options{{Parameter: "/a", CloudController: true}, {Parameter: "/a", EBSCSI: true}} {
		if _, err := Worker(o); err == nil || !strings.Contains(err.Error(), "--cloud-controller") {
			t.Errorf("workers with %+v: %v", o, err)
		}
	}
}
