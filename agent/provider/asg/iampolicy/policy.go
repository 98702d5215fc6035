// Package iampolicy makes the IAM policies that iam-policy prints: of the agent's machine, with
// what two programs beside the agent need there, and of the workers.
//
// It refuses names that IAM would take for patterns, and writes that no tag or name binds. It
// makes no request.
package iampolicy

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/asg"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/asg/awsapi"
)

// Options are the names that an IAM policy is limited to.
type Options struct {
	// ClusterName limits writes to groups that carry the tag
	// k8s.io/cluster-autoscaler/<ClusterName>, with any value.
	ClusterName string
	// Groups limits writes to groups of these names, in addition to those of the tag.
	// Entries may be written as in Config.Groups.
	Groups []string
	// Partition is "aws" (the default), "aws-cn" or "aws-us-gov".
	Partition string
	// Parameter is the SSM parameter by which join information is published,
	// "/name/with/slashes". Empty: none.
	Parameter string
	// KeyARN is the KMS key that Parameter is encrypted with. Empty: AWS's own key,
	// which needs no statement.
	KeyARN string
	// LaunchTemplates are the IDs of launch templates that get join values as a new version.
	LaunchTemplates []string
	// Pools are the names of the pools of groups.yaml whose groups the agent makes, PoolTemplates the IDs of
	// their launch templates, and PoolRole the name of the role that their machines get.
	Pools, PoolTemplates []string
	PoolRole             string
	// CloudController and EBSCSI add what cloud-provider-aws and the EBS CSI driver's controller
	// need, where they run on the leader with its role.
	CloudController, EBSCSI bool
	// EBSKeys are the ARNs of KMS keys with which volumes of the EBS CSI driver are encrypted; those that
	// are encrypted with AWS's own key need none.
	EBSKeys []string
}

type policy struct {
	Version   string
	Statement []statement
}

type statement struct {
	Sid       string
	Effect    string
	Action    []string
	Resource  []string
	Condition map[string]map[string]any `json:",omitempty"`
}

// Leader is the least that the agent needs on AWS, as an IAM policy document.
// Describe calls know no resources, so they are allowed on all; both writes are
// bound to the cluster's own groups. It allows no RunInstances, no PassRole and, unless
// LaunchTemplates are named, no launch template change: Auto Scaling starts machines by its
// own role, which may pass any role to them, so that whoever changes a template that a group
// launches as $Latest can start machines with every instance role of the account.
func Leader(o Options) ([]byte, error) {
	if o.ClusterName == "" && len(o.Groups) == 0 {
		return nil, errors.New("leader policy: name the cluster (--cluster) or its groups (--groups): a policy without either would allow writes to every group of the account")
	}
	if err := o.literal("leader policy"); err != nil {
		return nil, err
	}
	o.Partition = orAWS(o.Partition)
	writes := []string{awsapi.ActionSetDesired, awsapi.ActionTerminate}
	p := policy{Version: "2012-10-17", Statement: []statement{{
		Sid: "Read", Effect: "Allow", Resource: []string{"*"},
		Action: []string{
			awsapi.ActionDescribeGroups, awsapi.ActionDescribeActivities, awsapi.ActionDescribeRefreshes,
			awsapi.ActionDescribeInstances, awsapi.ActionDescribeSpot, awsapi.ActionDescribeSpotPrices, awsapi.ActionDescribeTypes, awsapi.ActionDescribeImages, awsapi.ActionDescribeTemplates, awsapi.ActionDescribeVersions, awsapi.ActionMatchTypes, awsapi.ActionPrices,
		},
	}}}
	all := "arn:" + o.Partition + ":autoscaling:*:*:autoScalingGroup:*:autoScalingGroupName/"
	if o.ClusterName != "" {
		p.Statement = append(p.Statement, statement{
			Sid: "ScaleOwnGroupsByTag", Effect: "Allow", Action: writes, Resource: []string{all + "*"},
			// Null false means that the tag is there; Cluster Autoscaler's habit gives it
			// any value.
			Condition: map[string]map[string]any{"Null": {"aws:ResourceTag/k8s.io/cluster-autoscaler/" + o.ClusterName: "false"}},
		})
	}
	if len(o.Groups) > 0 {
		s := statement{Sid: "ScaleOwnGroupsByName", Effect: "Allow", Action: writes}
		for _, entry := range o.Groups {
			name, err := asg.GroupName(entry)
			if err != nil {
				return nil, errors.Join(errors.New("leader policy: --groups has "+entry), err)
			}
			s.Resource = append(s.Resource, all+name)
		}
		p.Statement = append(p.Statement, s)
	}
	p.Statement = append(p.Statement, statement{
		Sid: "ReadConsolesOfGroups", Effect: "Allow", Action: []string{awsapi.ActionConsole}, Resource: []string{"arn:" + o.Partition + ":ec2:*:*:instance/*"},
		// Every instance of an Auto Scaling group has this tag, and only Auto Scaling sets it.
		Condition: map[string]map[string]any{"Null": {"aws:ResourceTag/aws:autoscaling:groupName": "false"}},
	})
	if o.Parameter != "" {
		p.Statement = append(p.Statement, statement{Sid: "PublishJoinInformation", Effect: "Allow",
			Action: []string{"ssm:PutParameter", "ssm:DeleteParameter"}, Resource: []string{parameterARN(o)}})
		if o.KeyARN != "" {
			p.Statement = append(p.Statement, statement{Sid: "EncryptJoinInformation", Effect: "Allow",
				Action: []string{"kms:Encrypt"}, Resource: []string{o.KeyARN}})
		}
	}
	if len(o.LaunchTemplates) > 0 {
		s := statement{Sid: "PublishLaunchTemplateVersions", Effect: "Allow", Action: []string{"ec2:CreateLaunchTemplateVersion", "ec2:DeleteLaunchTemplateVersions"}}
		for _, id := range o.LaunchTemplates {
			s.Resource = append(s.Resource, "arn:"+o.Partition+":ec2:*:*:launch-template/"+id)
		}
		p.Statement = append(p.Statement, s)
	}
	p.Statement = append(p.Statement, o.pools(all)...)
	return p.withAddons(o)
}

// pools are the rights to make groups for pools. Auto Scaling asks for them of whoever makes a group with a launch
// template ("Launch template support", EC2 Auto Scaling User Guide). They are bound to the pools' names, to the
// cluster's tag, to the launch templates and to the role.
func (o Options) pools(all string) []statement {
	if len(o.Pools) == 0 {
		return nil
	}
	create := statement{Sid: "MakeGroupsOfPools", Effect: "Allow", Action: []string{awsapi.ActionCreateGroup, "autoscaling:CreateOrUpdateTags"},
		Condition: map[string]map[string]any{"Null": {"aws:RequestTag/k8s.io/cluster-autoscaler/" + o.ClusterName: "false"}}}
	for _, name := range o.Pools {
		create.Resource = append(create.Resource, all+name+"-*")
	}
	var templates []string
	for _, id := range o.PoolTemplates {
		templates = append(templates, "arn:"+o.Partition+":ec2:*:*:launch-template/"+id)
	}
	ec2 := "arn:" + o.Partition + ":ec2:*:*:"
	return []statement{create,
		{Sid: "StartMachinesOfPools", Effect: "Allow", Action: []string{"ec2:RunInstances"}, Resource: []string{"*"},
			Condition: map[string]map[string]any{"ArnEquals": {"ec2:LaunchTemplate": templates}}},
		{Sid: "TagMachinesOfPools", Effect: "Allow", Action: []string{"ec2:CreateTags"}, Resource: []string{ec2 + "instance/*", ec2 + "volume/*", ec2 + "network-interface/*"},
			Condition: map[string]map[string]any{"StringEquals": {"ec2:CreateAction": "RunInstances"}}},
		{Sid: "PassRoleOfPools", Effect: "Allow", Action: []string{"iam:PassRole"}, Resource: []string{"arn:" + o.Partition + ":iam::*:role/" + o.PoolRole},
			Condition: map[string]map[string]any{"StringEquals": {"iam:PassedToService": "ec2.amazonaws.com"}}},
	}
}

// withAddons adds the statements of the programs beside the agent.
func (p policy) withAddons(o Options) ([]byte, error) {
	var add []statement
	if o.CloudController {
		if o.ClusterName == "" {
			return nil, errors.New("leader policy: name the cluster (--cluster): the cloud controller manager (--cloud-controller) may change only what has the tag kubernetes.io/cluster/NAME")
		}
		add = cloudController(o.Partition, o.ClusterName)
	}
	if o.EBSCSI {
		add = append(add, ebsCSI(o.Partition, o.EBSKeys)...)
	}
	for _, s := range add {
		s.Effect = "Allow"
		p.Statement = append(p.Statement, s)
	}
	return print(p)
}

// Worker is the least that a worker needs to read its join information.
func Worker(o Options) ([]byte, error) {
	for _, f := range []struct {
		name  string
		given bool
	}{{"pools", len(o.Pools) > 0}, {"pool-template", len(o.PoolTemplates) > 0}, {"pool-role", o.PoolRole != ""}, {"cluster", o.ClusterName != ""}, {"groups", len(o.Groups) > 0}, {"launch-template", len(o.LaunchTemplates) > 0}} {
		if f.given {
			return nil, fmt.Errorf("worker policy: --%s is for leader: leave it out", f.name)
		}
	}
	if o.Parameter == "" {
		return nil, errors.New("worker policy: name the SSM parameter (--parameter); a worker whose join information comes with its user data needs no policy")
	}
	if err := o.literal("worker policy"); err != nil {
		return nil, err
	}
	if o.CloudController || o.EBSCSI {
		return nil, errors.New("worker policy: --cloud-controller and --ebs-csi are for programs on the leader: leave them out, or write iam-policy leader")
	}
	o.Partition = orAWS(o.Partition)
	p := policy{Version: "2012-10-17", Statement: []statement{{Sid: "ReadJoinInformation", Effect: "Allow",
		Action: []string{"ssm:GetParameter"}, Resource: []string{parameterARN(o)}}}}
	if o.KeyARN != "" {
		p.Statement = append(p.Statement, statement{Sid: "DecryptJoinInformation", Effect: "Allow",
			Action: []string{"kms:Decrypt"}, Resource: []string{o.KeyARN}})
	}
	return print(p)
}

// keyForm is the ARN of a KMS key; a policy takes no alias.
var keyForm = regexp.MustCompile(`^arn:aws[a-z-]*:kms:[a-z0-9-]+:[0-9]*:key/[A-Za-z0-9-]+$`)

// literal is an error where a name would be more than itself in a policy: IAM takes * and
// ? for wildcards, and ${...} for a variable.
func (o Options) literal(of string) error {
	var errs []error
	if o.KeyARN != "" && o.Parameter == "" {
		errs = append(errs, fmt.Errorf("%s: --key-arn is the key of --parameter: give both or neither", of))
	}
	check := func(what, value, remedy string) {
		if strings.ContainsAny(value, "*?$") || strings.ContainsFunc(value, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
			errs = append(errs, fmt.Errorf("%s: --%s is %q: *, ? and $ have a meaning of their own in a policy, and a name has no blanks: %s", of, what, value, remedy))
		}
	}
	check("cluster", o.ClusterName, "write the cluster's own name")
	if why := asg.BadClusterName(o.ClusterName); why != "" {
		errs = append(errs, fmt.Errorf("%s: --cluster is %q: %s", of, o.ClusterName, why))
	}
	for _, g := range o.Groups {
		check("groups", strings.TrimSpace(g), "write each group's whole name; one whose name has such a character can be tagged instead (--cluster)")
	}
	templates := func(flag string, list []string) {
		for _, id := range list {
			check(flag, id, "write the template's whole ID")
			if !strings.HasPrefix(id, "lt-") {
				errs = append(errs, fmt.Errorf("%s: --%s is %q: a policy names launch templates by their IDs (lt-...)", of, flag, id))
			}
		}
	}
	templates("launch-template", o.LaunchTemplates)
	templates("pool-template", o.PoolTemplates)
	for _, name := range o.Pools {
		check("pools", name, "write each pool's name")
	}
	check("pool-role", o.PoolRole, "write the role's name")
	if n := len(o.Pools); (n > 0) != (len(o.PoolTemplates) > 0) || (n > 0) != (o.PoolRole != "") || n > 0 && o.ClusterName == "" {
		errs = append(errs, fmt.Errorf("%s: --pools, --pool-template, --pool-role and --cluster go together: the right to make groups is bound to each of them", of))
	}
	check("parameter", o.Parameter, "write the parameter's whole name")
	if o.Parameter != "" && !strings.HasPrefix(o.Parameter, "/") {
		errs = append(errs, fmt.Errorf("%s: --parameter is %q: write its whole name, which begins with a slash, for example /clusters/demo/join", of, o.Parameter))
	}
	if len(o.EBSKeys) > 0 && !o.EBSCSI {
		errs = append(errs, fmt.Errorf("%s: --ebs-key-arn is of the EBS CSI driver's volumes: give --ebs-csi too, or leave it out", of))
	}
	keys := func(flag string, list ...string) {
		for _, key := range list {
			check(flag, key, "write the key's whole ARN")
			if key != "" && !keyForm.MatchString(key) {
				errs = append(errs, fmt.Errorf("%s: --%s is %q: a policy names a KMS key by its ARN (arn:aws:kms:eu-west-1:111111111111:key/...)", of, flag, key))
			}
		}
	}
	keys("key-arn", o.KeyARN)
	keys("ebs-key-arn", o.EBSKeys...)
	if o.Partition != "" && !slices.Contains([]string{"aws", "aws-cn", "aws-us-gov"}, o.Partition) {
		errs = append(errs, fmt.Errorf("%s: --partition is %q: use aws, aws-cn or aws-us-gov", of, o.Partition))
	}
	return errors.Join(errs...)
}

func orAWS(partition string) string {
	if partition == "" {
		return "aws"
	}
	return partition
}

func parameterARN(o Options) string {
	return "arn:" + o.Partition + ":ssm:*:*:parameter/" + strings.TrimPrefix(o.Parameter, "/")
}

func print(p policy) ([]byte, error) {
	out, err := json.MarshalIndent(p, "", "  ")
	if err != nil {
		return nil, err
	}
	return append(out, '\n'), nil
}
