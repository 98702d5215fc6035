package quickstart

import (
	"context"
	"encoding/base64"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	astypes "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	iamtypes "github.com/aws/aws-sdk-go-v2/service/iam/types"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/zclconf/go-cty/cty"

	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/asg/iampolicy"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/cloud/aws"
)

const moduleAWS = deploy + "/terraform/aws"

// TestTerraformAWS: the module makes on an empty account what aws.sh makes. Terraform
// itself cannot be run here: the files are read with HCL's own library, and what the AWS
// provider would call is called by hand for each resource.
func TestTerraformAWS(t *testing.T) {
	m, err := load(moduleAWS)
	if err != nil {
		t.Fatal(err)
	}
	if wrong := m.check(); len(wrong) > 0 {
		t.Fatal(strings.Join(wrong, "\n"))
	}
	const data = "#!/bin/sh\necho first\n"
	file := filepath.Join(t.TempDir(), "worker.sh")
	if err := os.WriteFile(file, []byte(data), 0o600); err != nil {
		t.Fatal(err)
	}
	given := map[string]cty.Value{
		"cluster": cty.StringVal("demo"), "admin_cidrs": cty.TupleVal([]cty.Value{cty.StringVal(admin)}),
		"ssh_public_key": cty.StringVal("ssh-ed25519 AAAA ops"), "owner": cty.StringVal(owner),
	}

	first := emptyAccount(t)
	if _, err := m.evaluate(given, (&applier{t, first, connect(first)}).make); err != nil {
		t.Fatal(err)
	}
	closedGroup(t, first)

	given["worker_user_data_file"] = cty.StringVal(file)
	c := emptyAccount(t)
	outputs, err := m.evaluate(given, (&applier{t, c, connect(c)}).make)
	if err != nil {
		t.Fatal(err)
	}
	judgeAWS(t, c, data)
	a := c.Account()
	for name, want := range map[string]string{"leader": a.Addresses[0].PublicIP, "endpoint": a.Interfaces[0].PrivateIP, "account": "123456789012", "role": "demo-worker"} {
		if got := outputs[name].AsString(); got != want {
			t.Errorf("output %s is %q, want %q", name, got, want)
		}
	}
	g, _ := c.Group("demo-workers")
	if got, want := sorted(g.Tags), []string{"Name", "Owner", "k8s.io/cluster-autoscaler/demo", "k8s.io/cluster-autoscaler/enabled", "kubernetes.io/cluster/demo"}; !slices.Equal(got, want) {
		t.Errorf("the group's tags are %v, want %v", got, want)
	}
}

// update writes the policy and the access rules that deploy/ reads.
var update = flag.Bool("update", false, "write deploy/'s policy and access rules from the product's")

// TestTerraformPolicy: the module's policy is what iam-policy leader prints, byte for byte.
func TestTerraformPolicy(t *testing.T) {
	if *update {
		const cluster = "THE-CLUSTER"
		policy, err := iampolicy.Leader(iampolicy.Options{ClusterName: cluster})
		if err != nil {
			t.Fatal(err)
		}
		text := strings.NewReplacer(cluster, "${cluster}", "arn:aws:", "arn:${partition}:").Replace(string(policy))
		if err := os.WriteFile(moduleAWS+"/leader-policy.json.tftpl", []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, partition := range []string{"aws", "aws-cn", "aws-us-gov"} {
		want, err := iampolicy.Leader(iampolicy.Options{ClusterName: "demo", Partition: partition})
		if err != nil {
			t.Fatal(err)
		}
		got, err := functions["templatefile"].Call([]cty.Value{cty.StringVal(moduleAWS + "/leader-policy.json.tftpl"),
			cty.ObjectVal(map[string]cty.Value{"cluster": cty.StringVal("demo"), "partition": cty.StringVal(partition)})})
		if err != nil || got.AsString() != string(want) {
			t.Errorf("%s: %v\n%s\nwant\n%s", partition, err, got.AsString(), want)
		}
	}
	if _, err := iampolicy.Worker(iampolicy.Options{}); err == nil {
		t.Error("iam-policy worker prints a policy for workers that attest: the module gives them none")
	}
}

// TestModuleChecks: each kind of mistake in a module is found.
func TestModuleChecks(t *testing.T) {
	for _, mutant := range []struct{ file, from, to, want string }{
		{"roles.tf", "local.trust", "local.trusted", "local.trusted is not declared"},
		{"roles.tf", "var.ecr_pull", "var.ecr", "var.ecr is not declared"},
		{"roles.tf", "aws_iam_role.worker.name", "aws_iam_role.workers.name", "aws_iam_role.workers is not declared"},
		{"outputs.tf", "aws_eip.leader.public_ip", "aws_eip.leader.public", "has no attribute public"},
		{"workers.tf", "protect_from_scale_in ", "protected_from_scale_in ", "there is no argument protected_from_scale_in"},
		{"workers.tf", "http_put_response_hop_limit", "hop_limit", "there is no argument hop_limit"},
		{"workers.tf", "  max_size            = local.user_data[each.key] == null ? 0 : each.value.max\n", "", "max_size is missing"},
		{"workers.tf", "propagate_at_launch = true", "", "propagate_at_launch is missing"},
		{"workers.tf", `dynamic "tag_specifications"`, `dynamic "tag_specification"`, "there is no block tag_specification"},
		{"workers.tf", "tag_specifications.value", "tag_spec.value", "tag_spec.value is not declared"},
		{"network.tf", `resource "aws_security_group" "worker"`, `resource "aws_security_groups" "worker"`, "no aws_security_groups.worker"},
		{"versions.tf", "aws = {", "amazon = {", "of a provider that is not required"},
		{"variables.tf", `variable "owner" {`, `variable "unused" {
  description = "x"
  type        = string
}

variable "owner" {`, "nothing uses var.unused"},
	} {
		dir := t.TempDir()
		if err := os.CopyFS(dir, os.DirFS(moduleAWS)); err != nil {
			t.Fatal(err)
		}
		name := filepath.Join(dir, mutant.file)
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		changed := strings.Replace(string(text), mutant.from, mutant.to, 1)
		if changed == string(text) {
			t.Errorf("%s has no %q", mutant.file, mutant.from)
			continue
		}
		if err := os.WriteFile(name, []byte(changed), 0o600); err != nil {
			t.Fatal(err)
		}
		m, err := load(dir)
		if err != nil {
			t.Errorf("%s: %v", mutant.to, err)
			continue
		}
		if wrong := strings.Join(m.check(), "\n"); !strings.Contains(wrong, mutant.want) {
			t.Errorf("%q for %q: want %q, got %s", mutant.to, mutant.from, mutant.want, wrong)
		}
	}
}

// applier makes each resource of the module by the calls of the AWS provider.
type applier struct {
	t     *testing.T
	cloud *aws.Cloud
	clients
}

func (c content) text(name string) string {
	if v, ok := c.args[name]; ok && !v.IsNull() {
		return v.AsString()
	}
	return ""
}

func (c content) number(name string) *int32 {
	v, ok := c.args[name]
	if !ok || v.IsNull() {
		return nil
	}
	n, _ := v.AsBigFloat().Int64()
	return sdk.Int32(int32(n))
}

func (c content) list(name string) []string {
	var out []string
	for _, v := range c.args[name].AsValueSlice() {
		out = append(out, v.AsString())
	}
	return out
}

func (c content) tags() []ec2types.Tag {
	var out []ec2types.Tag
	for k, v := range c.args["tags"].AsValueMap() {
		out = append(out, ec2types.Tag{Key: sdk.String(k), Value: sdk.String(v.AsString())})
	}
	return out
}

func (c content) specified(kind ec2types.ResourceType) []ec2types.TagSpecification {
	return []ec2types.TagSpecification{{ResourceType: kind, Tags: c.tags()}}
}

type attributes = map[string]cty.Value

func texts(pairs ...*string) attributes {
	out := attributes{}
	for i := 0; i < len(pairs); i += 2 {
		out[*pairs[i]] = cty.StringVal(sdk.ToString(pairs[i+1]))
	}
	return out
}

func (m *applier) make(address string, c content) (attributes, error) {
	typ, isData := strings.CutPrefix(address, "data.")
	typ, _, _ = strings.Cut(typ, ".")
	ctx := m.t.Context()
	switch {
	case isData:
		return m.data(ctx, typ, c)
	case strings.HasPrefix(typ, "aws_iam"):
		return m.identity(ctx, typ, c)
	case typ == "terraform_data":
		return attributes{"output": c.args["input"]}, nil
	case typ == "aws_launch_template":
		return m.launchTemplate(ctx, c)
	case typ == "aws_autoscaling_group":
		return m.group(ctx, c)
	case typ == "aws_instance":
		return m.instance(ctx, c)
	}
	return m.network(ctx, typ, c)
}

func (m *applier) data(ctx context.Context, typ string, c content) (attributes, error) {
	id := sdk.String("id")
	switch typ {
	case "aws_partition":
		return texts(sdk.String("partition"), sdk.String("aws")), nil
	case "aws_caller_identity":
		out, err := m.sts.GetCallerIdentity(ctx, &sts.GetCallerIdentityInput{})
		if err != nil {
			return nil, err
		}
		return texts(sdk.String("account_id"), out.Account), nil
	case "aws_vpc":
		out, err := m.ec2.DescribeVpcs(ctx, &ec2.DescribeVpcsInput{Filters: []ec2types.Filter{{Name: sdk.String("is-default"), Values: []string{"true"}}}})
		if err != nil || len(out.Vpcs) != 1 {
			return nil, fmt.Errorf("%d default VPCs, %w", len(out.Vpcs), err)
		}
		return texts(id, out.Vpcs[0].VpcId), nil
	case "aws_subnets":
		f := c.blocks["filter"][0]
		out, err := m.ec2.DescribeSubnets(ctx, &ec2.DescribeSubnetsInput{Filters: []ec2types.Filter{{Name: sdk.String(f.text("name")), Values: f.list("values")}}})
		if err != nil {
			return nil, err
		}
		var ids []cty.Value
		for _, s := range out.Subnets {
			ids = append(ids, cty.StringVal(*s.SubnetId))
		}
		return attributes{"ids": cty.ListVal(ids)}, nil
	case "aws_ssm_parameter":
		out, err := m.ssm.GetParameter(ctx, &ssm.GetParameterInput{Name: sdk.String(c.text("name"))})
		if err != nil {
			return nil, err
		}
		return texts(sdk.String("value"), out.Parameter.Value), nil
	case "aws_ec2_instance_type":
		out, err := m.ec2.DescribeInstanceTypes(ctx, &ec2.DescribeInstanceTypesInput{InstanceTypes: []ec2types.InstanceType{ec2types.InstanceType(c.text("instance_type"))}})
		if err != nil {
			return nil, err
		}
		var names []cty.Value
		for _, name := range out.InstanceTypes[0].ProcessorInfo.SupportedArchitectures {
			names = append(names, cty.StringVal(string(name)))
		}
		return attributes{"supported_architectures": cty.ListVal(names)}, nil
	case "aws_ami":
		out, err := m.ec2.DescribeImages(ctx, &ec2.DescribeImagesInput{ImageIds: c.blocks["filter"][0].list("values")})
		if err != nil {
			return nil, err
		}
		return texts(id, out.Images[0].ImageId, sdk.String("root_device_name"), out.Images[0].RootDeviceName), nil
	}
	return nil, fmt.Errorf("no reader for %s", typ)
}

func (m *applier) identity(ctx context.Context, typ string, c content) (attributes, error) {
	name, role := sdk.String(c.text("name")), sdk.String(c.text("role"))
	id := texts(sdk.String("id"), name)
	switch typ {
	case "aws_iam_role":
		in := &iam.CreateRoleInput{RoleName: name, AssumeRolePolicyDocument: sdk.String(c.text("assume_role_policy"))}
		for _, t := range c.tags() {
			in.Tags = append(in.Tags, iamtypes.Tag{Key: t.Key, Value: t.Value})
		}
		_, err := m.iam.CreateRole(ctx, in)
		return id, err
	case "aws_iam_role_policy":
		_, err := m.iam.PutRolePolicy(ctx, &iam.PutRolePolicyInput{RoleName: role, PolicyName: name, PolicyDocument: sdk.String(c.text("policy"))})
		return id, err
	case "aws_iam_role_policy_attachment":
		_, err := m.iam.AttachRolePolicy(ctx, &iam.AttachRolePolicyInput{RoleName: role, PolicyArn: sdk.String(c.text("policy_arn"))})
		return id, err
	case "aws_iam_instance_profile":
		if _, err := m.iam.CreateInstanceProfile(ctx, &iam.CreateInstanceProfileInput{InstanceProfileName: name}); err != nil {
			return nil, err
		}
		_, err := m.iam.AddRoleToInstanceProfile(ctx, &iam.AddRoleToInstanceProfileInput{InstanceProfileName: name, RoleName: role})
		return id, err
	}
	return nil, fmt.Errorf("no maker for %s", typ)
}

func (m *applier) network(ctx context.Context, typ string, c content) (attributes, error) {
	id := sdk.String("id")
	switch typ {
	case "aws_security_group":
		out, err := m.ec2.CreateSecurityGroup(ctx, &ec2.CreateSecurityGroupInput{GroupName: sdk.String(c.text("name")), Description: sdk.String(c.text("description")),
			VpcId: sdk.String(c.text("vpc_id")), TagSpecifications: c.specified(ec2types.ResourceTypeSecurityGroup)})
		if err != nil {
			return nil, err
		}
		return texts(id, out.GroupId), nil
	case "aws_vpc_security_group_egress_rule":
		// A group that EC2 makes lets everything out; the provider takes that away, and this
		// rule is what brings it back.
		return attributes{}, nil
	case "aws_vpc_security_group_ingress_rule":
		p := ec2types.IpPermission{IpProtocol: sdk.String(c.text("ip_protocol")), FromPort: c.number("from_port"), ToPort: c.number("to_port")}
		if cidr := c.text("cidr_ipv4"); cidr != "" {
			p.IpRanges = []ec2types.IpRange{{CidrIp: sdk.String(cidr)}}
		}
		if cidr := c.text("cidr_ipv6"); cidr != "" {
			p.Ipv6Ranges = []ec2types.Ipv6Range{{CidrIpv6: sdk.String(cidr)}}
		}
		if from := c.text("referenced_security_group_id"); from != "" {
			p.UserIdGroupPairs = []ec2types.UserIdGroupPair{{GroupId: sdk.String(from)}}
		}
		_, err := m.ec2.AuthorizeSecurityGroupIngress(ctx, &ec2.AuthorizeSecurityGroupIngressInput{GroupId: sdk.String(c.text("security_group_id")), IpPermissions: []ec2types.IpPermission{p}})
		return attributes{}, err
	case "aws_key_pair":
		_, err := m.ec2.ImportKeyPair(ctx, &ec2.ImportKeyPairInput{KeyName: sdk.String(c.text("key_name")), PublicKeyMaterial: []byte(c.text("public_key"))})
		return attributes{}, err
	case "aws_network_interface":
		out, err := m.ec2.CreateNetworkInterface(ctx, &ec2.CreateNetworkInterfaceInput{SubnetId: sdk.String(c.text("subnet_id")), Groups: c.list("security_groups"),
			TagSpecifications: c.specified(ec2types.ResourceTypeNetworkInterface)})
		if err != nil {
			return nil, err
		}
		made := texts(id, out.NetworkInterface.NetworkInterfaceId, sdk.String("private_ip"), out.NetworkInterface.PrivateIpAddress)
		made["ipv6_addresses"] = cty.ListValEmpty(cty.String)
		if n := c.number("ipv6_address_count"); n != nil {
			assigned, err := m.ec2.AssignIpv6Addresses(ctx, &ec2.AssignIpv6AddressesInput{NetworkInterfaceId: out.NetworkInterface.NetworkInterfaceId, Ipv6AddressCount: n})
			if err != nil {
				return nil, err
			}
			made["ipv6_addresses"] = cty.ListVal([]cty.Value{cty.StringVal(assigned.AssignedIpv6Addresses[0])})
		}
		return made, nil
	case "aws_eip":
		out, err := m.ec2.AllocateAddress(ctx, &ec2.AllocateAddressInput{Domain: ec2types.DomainTypeVpc, TagSpecifications: c.specified(ec2types.ResourceTypeElasticIp)})
		if err != nil {
			return nil, err
		}
		_, err = m.ec2.AssociateAddress(ctx, &ec2.AssociateAddressInput{AllocationId: out.AllocationId, NetworkInterfaceId: sdk.String(c.text("network_interface"))})
		return texts(id, out.AllocationId, sdk.String("public_ip"), out.PublicIp), err
	}
	return nil, fmt.Errorf("no maker for %s", typ)
}

func (m *applier) instance(ctx context.Context, c content) (attributes, error) {
	nic, disk, options := c.blocks["network_interface"][0], c.blocks["root_block_device"][0], c.blocks["metadata_options"][0]
	out, err := m.ec2.RunInstances(ctx, &ec2.RunInstancesInput{
		ImageId: sdk.String(c.text("ami")), InstanceType: ec2types.InstanceType(c.text("instance_type")), KeyName: sdk.String(c.text("key_name")),
		MinCount: sdk.Int32(1), MaxCount: sdk.Int32(1), IamInstanceProfile: &ec2types.IamInstanceProfileSpecification{Name: sdk.String(c.text("iam_instance_profile"))},
		NetworkInterfaces: []ec2types.InstanceNetworkInterfaceSpecification{{DeviceIndex: nic.number("device_index"), NetworkInterfaceId: sdk.String(nic.text("network_interface_id"))}},
		MetadataOptions: &ec2types.InstanceMetadataOptionsRequest{HttpTokens: ec2types.HttpTokensState(options.text("http_tokens")), HttpPutResponseHopLimit: options.number("http_put_response_hop_limit"),
			HttpEndpoint: ec2types.InstanceMetadataEndpointState(options.text("http_endpoint"))},
		BlockDeviceMappings: []ec2types.BlockDeviceMapping{{DeviceName: sdk.String("/dev/xvda"), Ebs: &ec2types.EbsBlockDevice{VolumeSize: disk.number("volume_size"), VolumeType: ec2types.VolumeType(disk.text("volume_type"))}}},
		TagSpecifications:   c.specified(ec2types.ResourceTypeInstance),
	})
	if err != nil {
		return nil, err
	}
	return texts(sdk.String("id"), out.Instances[0].InstanceId), nil
}

func (m *applier) launchTemplate(ctx context.Context, c content) (attributes, error) {
	if _, err := base64.StdEncoding.DecodeString(c.text("user_data")); err != nil {
		return nil, err
	}
	options, device := c.blocks["metadata_options"][0], c.blocks["block_device_mappings"][0]
	disk := device.blocks["ebs"][0]
	data := &ec2types.RequestLaunchTemplateData{
		ImageId: sdk.String(c.text("image_id")), InstanceType: ec2types.InstanceType(c.text("instance_type")), UserData: sdk.String(c.text("user_data")),
		SecurityGroupIds:   c.list("vpc_security_group_ids"),
		IamInstanceProfile: &ec2types.LaunchTemplateIamInstanceProfileSpecificationRequest{Name: sdk.String(c.blocks["iam_instance_profile"][0].text("name"))},
		MetadataOptions: &ec2types.LaunchTemplateInstanceMetadataOptionsRequest{HttpTokens: ec2types.LaunchTemplateHttpTokensState(options.text("http_tokens")),
			HttpPutResponseHopLimit: options.number("http_put_response_hop_limit"), HttpEndpoint: ec2types.LaunchTemplateInstanceMetadataEndpointState(options.text("http_endpoint"))},
		BlockDeviceMappings: []ec2types.LaunchTemplateBlockDeviceMappingRequest{{DeviceName: sdk.String(device.text("device_name")),
			Ebs: &ec2types.LaunchTemplateEbsBlockDeviceRequest{VolumeSize: disk.number("volume_size"), VolumeType: ec2types.VolumeType(disk.text("volume_type"))}}},
	}
	for _, s := range c.blocks["tag_specifications"] {
		data.TagSpecifications = append(data.TagSpecifications, ec2types.LaunchTemplateTagSpecificationRequest{ResourceType: ec2types.ResourceType(s.text("resource_type")), Tags: s.tags()})
	}
	out, err := m.ec2.CreateLaunchTemplate(ctx, &ec2.CreateLaunchTemplateInput{LaunchTemplateName: sdk.String(c.text("name")), LaunchTemplateData: data})
	if err != nil {
		return nil, err
	}
	return texts(sdk.String("id"), out.LaunchTemplate.LaunchTemplateId), nil
}

func (m *applier) group(ctx context.Context, c content) (attributes, error) {
	name := sdk.String(c.text("name"))
	in := &autoscaling.CreateAutoScalingGroupInput{AutoScalingGroupName: name, MinSize: c.number("min_size"), MaxSize: c.number("max_size"),
		VPCZoneIdentifier: sdk.String(strings.Join(c.list("vpc_zone_identifier"), ",")), NewInstancesProtectedFromScaleIn: sdk.Bool(c.args["protect_from_scale_in"].True())}
	for _, ref := range c.blocks["launch_template"] {
		in.LaunchTemplate = &astypes.LaunchTemplateSpecification{LaunchTemplateId: sdk.String(ref.text("id")), Version: sdk.String(ref.text("version"))}
	}
	for _, policy := range c.blocks["mixed_instances_policy"] {
		in.MixedInstancesPolicy = mixedPolicy(policy)
	}
	for _, tag := range c.blocks["tag"] {
		in.Tags = append(in.Tags, astypes.Tag{Key: sdk.String(tag.text("key")), Value: sdk.String(tag.text("value")), PropagateAtLaunch: sdk.Bool(tag.args["propagate_at_launch"].True())})
	}
	if _, err := m.asg.CreateAutoScalingGroup(ctx, in); err != nil {
		return nil, err
	}
	_, err := m.asg.SuspendProcesses(ctx, &autoscaling.SuspendProcessesInput{AutoScalingGroupName: name, ScalingProcesses: c.list("suspended_processes")})
	return texts(sdk.String("id"), name), err
}

func mixedPolicy(c content) *astypes.MixedInstancesPolicy {
	shares, template := c.blocks["instances_distribution"][0], c.blocks["launch_template"][0]
	ref := template.blocks["launch_template_specification"][0]
	out := &astypes.MixedInstancesPolicy{
		InstancesDistribution: &astypes.InstancesDistribution{OnDemandAllocationStrategy: sdk.String(shares.text("on_demand_allocation_strategy")), OnDemandBaseCapacity: shares.number("on_demand_base_capacity"),
			OnDemandPercentageAboveBaseCapacity: shares.number("on_demand_percentage_above_base_capacity"), SpotAllocationStrategy: sdk.String(shares.text("spot_allocation_strategy"))},
		LaunchTemplate: &astypes.LaunchTemplate{LaunchTemplateSpecification: &astypes.LaunchTemplateSpecification{LaunchTemplateId: sdk.String(ref.text("launch_template_id")), Version: sdk.String(ref.text("version"))}},
	}
	for _, o := range template.blocks["override"] {
		out.LaunchTemplate.Overrides = append(out.LaunchTemplate.Overrides, astypes.LaunchTemplateOverrides{InstanceType: sdk.String(o.text("instance_type"))})
	}
	return out
}
