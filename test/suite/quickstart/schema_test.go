package quickstart

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// schema is what a provider's manual says of a resource, as far as the modules use it:
// arguments with their types, inner blocks, and what can be read of it. It was copied by
// hand from the pages of hashicorp/aws 5 and terraform-provider-openstack/openstack 3.
type schema struct {
	required string // names of arguments and blocks
	args     string // NAME:TYPE of all arguments; s string, n number, b bool, l list of strings, m map of strings
	blocks   map[string]schema
	read     string // attributes beside id and the arguments
}

func schemaOf(address string) (schema, bool) {
	typ, isData := strings.CutPrefix(address, "data.")
	typ, _, _ = strings.Cut(typ, ".")
	if isData {
		typ = "data." + typ
	}
	s, ok := schemas[typ]
	return s, ok
}

// kind is the letter of an argument's type, "" where there is no such argument.
func (s schema) kind(name string) string {
	for pair := range strings.FieldsSeq(s.args) {
		if arg, kind, _ := strings.Cut(pair, ":"); arg == name {
			return kind
		}
	}
	return ""
}

func (s schema) has(attribute string) bool {
	return attribute == "id" || s.kind(attribute) != "" || slices.Contains(strings.Fields(s.read), attribute)
}

// check compares a block with the schema; top is for blocks that may have for_each and
// lifecycle.
func (s schema) check(body *hclsyntax.Body, at hcl.Range, top bool) []string {
	var wrong []string
	found := map[string]bool{}
	for name, a := range body.Attributes {
		found[name] = true
		if s.kind(name) == "" && (!top || !slices.Contains([]string{"count", "for_each", "depends_on"}, name)) {
			wrong = append(wrong, fmt.Sprintf("%s: there is no argument %s", a.NameRange, name))
		}
	}
	for _, b := range body.Blocks {
		name, inner := b.Type, b.Body
		if name == "lifecycle" && top {
			continue
		}
		if name == "dynamic" {
			name = b.Labels[0]
			content := slices.IndexFunc(b.Body.Blocks, func(c *hclsyntax.Block) bool { return c.Type == "content" })
			if content < 0 || b.Body.Attributes["for_each"] == nil {
				wrong = append(wrong, fmt.Sprintf("%s: a dynamic block has for_each and content", b.TypeRange))
				continue
			}
			inner = b.Body.Blocks[content].Body
		}
		found[name] = true
		nested, known := s.blocks[name]
		if !known {
			wrong = append(wrong, fmt.Sprintf("%s: there is no block %s", b.TypeRange, name))
			continue
		}
		wrong = append(wrong, nested.check(inner, b.DefRange(), false)...)
	}
	for name := range strings.FieldsSeq(s.required) {
		if !found[name] {
			wrong = append(wrong, fmt.Sprintf("%s: %s is missing", at, name))
		}
	}
	return wrong
}

var metadataOptions = schema{args: "http_endpoint:s http_tokens:s http_put_response_hop_limit:n instance_metadata_tags:s"}

var securityRule = schema{required: "security_group_id ip_protocol",
	args: "security_group_id:s ip_protocol:s from_port:n to_port:n cidr_ipv4:s cidr_ipv6:s referenced_security_group_id:s description:s tags:m"}

var schemas = map[string]schema{
	"data.aws_partition":         {read: "partition dns_suffix"},
	"data.aws_caller_identity":   {read: "account_id arn user_id"},
	"data.aws_vpc":               {args: "default:b id:s cidr_block:s tags:m"},
	"data.aws_subnets":           {args: "tags:m", blocks: map[string]schema{"filter": {required: "name values", args: "name:s values:l"}}, read: "ids"},
	"data.aws_ssm_parameter":     {required: "name", args: "name:s with_decryption:b", read: "value arn type version"},
	"data.aws_ec2_instance_type": {required: "instance_type", args: "instance_type:s", read: "supported_architectures default_vcpus memory_size"},
	"terraform_data":             {args: "input:s triggers_replace:s", read: "output"},
	"data.aws_ami": {args: "owners:l most_recent:b", blocks: map[string]schema{"filter": {required: "name values", args: "name:s values:l"}},
		read: "root_device_name architecture arn"},
	"aws_security_group":                  {args: "name:s description:s vpc_id:s tags:m", read: "arn owner_id"},
	"aws_vpc_security_group_egress_rule":  securityRule,
	"aws_vpc_security_group_ingress_rule": securityRule,
	"aws_iam_role":                        {required: "assume_role_policy", args: "name:s assume_role_policy:s description:s tags:m", read: "arn unique_id"},
	"aws_iam_role_policy":                 {required: "role policy", args: "name:s role:s policy:s"},
	"aws_iam_role_policy_attachment":      {required: "role policy_arn", args: "role:s policy_arn:s"},
	"aws_iam_instance_profile":            {args: "name:s role:s tags:m", read: "arn"},
	"aws_key_pair":                        {required: "public_key", args: "key_name:s public_key:s tags:m", read: "arn fingerprint"},
	"aws_network_interface": {required: "subnet_id", args: "subnet_id:s security_groups:l description:s private_ips:l ipv6_address_count:n ipv6_addresses:l source_dest_check:b tags:m",
		read: "private_ip private_dns_name mac_address"},
	"aws_eip": {args: "domain:s network_interface:s instance:s tags:m", read: "public_ip allocation_id"},
	"aws_instance": {args: "ami:s instance_type:s key_name:s iam_instance_profile:s user_data:s subnet_id:s vpc_security_group_ids:l tags:m volume_tags:m",
		blocks: map[string]schema{
			"network_interface": {required: "device_index network_interface_id", args: "device_index:n network_interface_id:s"},
			"root_block_device": {args: "volume_size:n volume_type:s encrypted:b delete_on_termination:b tags:m"},
			"metadata_options":  metadataOptions,
		}, read: "arn private_ip public_ip"},
	"aws_launch_template": {args: "name:s image_id:s instance_type:s key_name:s user_data:s vpc_security_group_ids:l update_default_version:b tags:m",
		blocks: map[string]schema{
			"iam_instance_profile": {args: "name:s arn:s"},
			"metadata_options":     metadataOptions,
			"block_device_mappings": {args: "device_name:s", blocks: map[string]schema{
				// Both switches of this block are strings in the provider's own schema.
				"ebs": {args: "volume_size:n volume_type:s encrypted:s delete_on_termination:s"}}},
			"tag_specifications": {args: "resource_type:s tags:m"},
		}, read: "arn latest_version default_version"},
	"aws_autoscaling_group": {required: "min_size max_size",
		args: "name:s min_size:n max_size:n desired_capacity:n vpc_zone_identifier:l protect_from_scale_in:b suspended_processes:l wait_for_capacity_timeout:s",
		blocks: map[string]schema{
			"launch_template": {args: "id:s name:s version:s"},
			"mixed_instances_policy": {required: "launch_template", blocks: map[string]schema{
				"instances_distribution": {args: "on_demand_allocation_strategy:s on_demand_base_capacity:n on_demand_percentage_above_base_capacity:n spot_allocation_strategy:s spot_max_price:s"},
				"launch_template": {required: "launch_template_specification", blocks: map[string]schema{
					"launch_template_specification": {args: "launch_template_id:s launch_template_name:s version:s"},
					"override":                      {args: "instance_type:s weighted_capacity:s"},
				}},
			}},
			"tag": {required: "key value propagate_at_launch", args: "key:s value:s propagate_at_launch:b"},
		}, read: "arn availability_zones"},

	"data.openstack_networking_network_v2": {args: "name:s network_id:s region:s external:b", read: "subnets"},
	"data.openstack_images_image_v2":       {args: "name:s most_recent:b region:s", read: "checksum"},
	"data.openstack_compute_flavor_v2":     {args: "name:s flavor_id:s region:s", read: "vcpus ram disk"},
	"openstack_networking_secgroup_v2":     {required: "name", args: "name:s description:s region:s delete_default_rules:b"},
	"openstack_networking_secgroup_rule_v2": {required: "direction ethertype security_group_id",
		args: "security_group_id:s direction:s ethertype:s protocol:s port_range_min:n port_range_max:n remote_ip_prefix:s remote_group_id:s description:s region:s"},
	"openstack_compute_keypair_v2":       {required: "name", args: "name:s public_key:s region:s", read: "fingerprint private_key"},
	"openstack_networking_port_v2":       {required: "network_id", args: "network_id:s name:s security_group_ids:l description:s region:s", read: "all_fixed_ips mac_address"},
	"openstack_networking_floatingip_v2": {required: "pool", args: "pool:s port_id:s description:s region:s", read: "address"},
	"openstack_compute_instance_v2": {required: "name", args: "name:s image_id:s flavor_id:s key_pair:s user_data:s config_drive:b security_groups:l region:s",
		blocks: map[string]schema{"network": {args: "uuid:s name:s port:s fixed_ip_v4:s"}}, read: "access_ip_v4"},
	"openstack_identity_application_credential_v3": {required: "name", args: "name:s description:s roles:l unrestricted:b secret:s expires_at:s region:s",
		blocks: map[string]schema{"access_rules": {required: "path service method", args: "path:s service:s method:s"}}, read: "project_id"},
}
