package iampolicy

// What two programs beside the agent need where they run on the leader with its role.

const (
	elb = "elasticloadbalancing:"
	// actionTagEC2 is bound in each statement that has it: tags are what other statements
	// are bound by.
	actionTagEC2 = "ec2:CreateTags"
)

// present is the operand of Null where the request or the resource has each key, with any value.
func present(keys ...string) map[string]any {
	out := map[string]any{}
	for _, key := range keys {
		out[key] = "false"
	}
	return out
}

// actions puts the prefix before each name.
func actions(prefix string, names ...string) []string {
	out := make([]string, len(names))
	for i, name := range names {
		out[i] = prefix + name
	}
	return out
}

// cloudController is what cloud-provider-aws calls in the version that leader-config applies, and what it calls
// with --configure-cloud-routes: routes, and the attribute of an instance without which EC2 drops what is routed to
// it. Another attribute is the instance's user data, which runs as root. Its own page of prerequisites allows more, all of it on every
// resource of the account, and lacks the attributes of target groups. Writes are bound here to
// the tag kubernetes.io/cluster/NAME, which it gives to all that it makes; kOps binds them to
// its own tag. ec2:CreateTags on everything would let whoever has the role tag a stranger's
// volume or load balancer and then delete it.
func cloudController(partition, cluster string) []statement {
	arn := "arn:" + partition + ":"
	key := "kubernetes.io/cluster/" + cluster
	tables, instances := []string{arn + "ec2:*:*:route-table/*"}, []string{arn + "ec2:*:*:instance/*"}
	groups, vpcs, balancers := []string{arn + "ec2:*:*:security-group/*"}, []string{arn + "ec2:*:*:vpc/*"}, actions(arn+elb+"*:*:", "loadbalancer/*", "targetgroup/*", "listener/*")
	made := present("aws:RequestTag/" + key)
	own := present("aws:ResourceTag/" + key)
	return []statement{
		{Sid: "CloudControllerReads", Action: append(
			actions("ec2:Describe", "AvailabilityZones", "Instances", "InstanceTopology", "NetworkInterfaces", "Regions", "RouteTables", "SecurityGroups", "Subnets", "Vpcs"),
			actions(elb+"Describe", "Listeners", "LoadBalancerAttributes", "LoadBalancerPolicies", "LoadBalancers", "TargetGroupAttributes", "TargetGroups", "TargetHealth")...),
			Resource: []string{"*"}},
		{Sid: "CloudControllerMakesLoadBalancers", Action: actions(elb+"Create", "Listener", "LoadBalancer", "TargetGroup"), Resource: balancers,
			Condition: map[string]map[string]any{"Null": made}},
		{Sid: "CloudControllerTagsNewLoadBalancers", Action: actions(elb, "AddTags"), Resource: balancers, Condition: map[string]map[string]any{
			"Null": made, "StringEquals": {elb + "CreateAction": actions("Create", "Listener", "LoadBalancer", "TargetGroup")}}},
		{Sid: "CloudControllerChangesOwnLoadBalancers", Action: actions(elb, "AddTags", "ApplySecurityGroupsToLoadBalancer", "AttachLoadBalancerToSubnets", "ConfigureHealthCheck",
			"CreateLoadBalancerListeners", "CreateLoadBalancerPolicy", "DeleteListener", "DeleteLoadBalancer", "DeleteLoadBalancerListeners", "DeleteTargetGroup",
			"DeregisterInstancesFromLoadBalancer", "DeregisterTargets", "DetachLoadBalancerFromSubnets", "ModifyListener", "ModifyLoadBalancerAttributes", "ModifyTargetGroup",
			"ModifyTargetGroupAttributes", "RegisterInstancesWithLoadBalancer", "RegisterTargets", "SetLoadBalancerPoliciesForBackendServer",
			"SetLoadBalancerPoliciesOfListener", "SetSecurityGroups"), Resource: balancers, Condition: map[string]map[string]any{"Null": own}},
		{Sid: "CloudControllerMakesSecurityGroups", Action: actions("ec2:", "CreateSecurityGroup"), Resource: groups, Condition: map[string]map[string]any{"Null": made}},
		{Sid: "CloudControllerMakesThemInAnyVPC", Action: actions("ec2:", "CreateSecurityGroup"), Resource: vpcs},
		{Sid: "CloudControllerTagsNewSecurityGroups", Action: []string{actionTagEC2}, Resource: groups,
			Condition: map[string]map[string]any{"StringEquals": {"ec2:CreateAction": "CreateSecurityGroup"}}},
		{Sid: "CloudControllerChangesOwnSecurityGroups", Action: actions("ec2:", "AuthorizeSecurityGroupIngress", "DeleteSecurityGroup", "RevokeSecurityGroupIngress"), Resource: groups,
			Condition: map[string]map[string]any{"Null": own}},
		{Sid: "CloudControllerChangesRoutes", Action: actions("ec2:", "CreateRoute", "DeleteRoute"), Resource: tables, Condition: map[string]map[string]any{"Null": own}},
		{Sid: "CloudControllerLetsInstancesForward", Action: actions("ec2:", "ModifyInstanceAttribute"), Resource: instances,
			Condition: map[string]map[string]any{"Null": own, "StringEquals": {"ec2:Attribute": "SourceDestCheck"}}},
		{Sid: "ElasticLoadBalancingRole", Action: []string{"iam:CreateServiceLinkedRole"}, Resource: []string{arn + "iam::*:role/aws-service-role/elasticloadbalancing.amazonaws.com/*"},
			Condition: map[string]map[string]any{"StringEquals": {"iam:AWSServiceName": "elasticloadbalancing.amazonaws.com"}}},
	}
}

// ebsCSI is AmazonEBSCSIDriverPolicyV2, the driver's own policy (v1.64), statement by statement:
// volumes and snapshots that carry the driver's tag. keys are the customer's keys of encrypted volumes, for which
// the driver's page asks for these rights; AWS's own key needs none.
func ebsCSI(partition string, keys []string) []statement {
	arn := "arn:" + partition + ":ec2:*:*:"
	volumes, snapshots := []string{arn + "volume/*"}, []string{arn + "snapshot/*"}
	const driver, claim = "ebs.csi.aws.com/cluster", "kubernetes.io/created-for/pvc/name"
	equals := func(key, value string) map[string]map[string]any {
		return map[string]map[string]any{"StringEquals": {key: value}}
	}
	asked, managed := equals("aws:RequestTag/"+driver, "true"), equals("ec2:ResourceTag/"+driver, "true")
	migrated := map[string]map[string]any{"StringLike": {"ec2:ResourceTag/" + claim: "*"}}
	change := actions("ec2:", "ModifyVolume", "AttachVolume", "DetachVolume", "DeleteVolume")
	statements := []statement{
		{Sid: "EBSReads", Action: actions("ec2:Describe", "AvailabilityZones", "Instances", "InstanceTypes", "Snapshots", "Volumes", "VolumesModifications", "VolumeStatus"), Resource: []string{"*"}},
		{Sid: "EBSMakesVolumes", Action: actions("ec2:", "CreateVolume", "CopyVolumes"), Resource: volumes, Condition: asked},
		{Sid: "EBSCopiesManagedVolumes", Action: actions("ec2:", "CopyVolumes"), Resource: []string{arn + "volume/vol-*"}, Condition: managed},
		{Sid: "EBSCopiesMigratedVolumes", Action: actions("ec2:", "CopyVolumes"), Resource: []string{arn + "volume/vol-*"}, Condition: migrated},
		{Sid: "EBSMakesSnapshots", Action: actions("ec2:", "CreateSnapshot"), Resource: snapshots, Condition: asked},
		{Sid: "EBSMakesSnapshotsOfManagedVolumes", Action: actions("ec2:", "CreateSnapshot"), Resource: volumes, Condition: managed},
		{Sid: "EBSChangesManagedVolumes", Action: change, Resource: volumes, Condition: managed},
		{Sid: "EBSChangesMigratedVolumes", Action: change, Resource: volumes, Condition: migrated},
		{Sid: "EBSUsesManagedSnapshots", Action: actions("ec2:", "CreateVolume", "EnableFastSnapshotRestores"), Resource: snapshots, Condition: managed},
		{Sid: "EBSAttachesToInstances", Action: actions("ec2:", "AttachVolume", "DetachVolume"), Resource: []string{arn + "instance/*"}},
		{Sid: "EBSDeletesManagedSnapshots", Action: actions("ec2:", "DeleteSnapshot", "LockSnapshot"), Resource: snapshots, Condition: managed},
		{Sid: "EBSTagsWhatItMakes", Action: []string{actionTagEC2}, Resource: append(volumes[:1:1], snapshots...),
			Condition: map[string]map[string]any{"StringEquals": {"ec2:CreateAction": actions("", "CreateVolume", "CreateSnapshot", "CopyVolumes")}}},
		{Sid: "EBSChangesTagsOfManagedVolumes", Action: []string{actionTagEC2, "ec2:DeleteTags"}, Resource: volumes, Condition: map[string]map[string]any{
			"StringEquals": managed["StringEquals"], "Null": present("aws:TagKeys"), "ForAllValues:StringNotEquals": {"aws:TagKeys": []string{driver, driver + "-name", claim}}}},
	}
	if len(keys) > 0 {
		through := map[string]any{"kms:ViaService": "ec2.*.amazonaws.com*"}
		statements = append(statements,
			statement{Sid: "EBSGrantsKeys", Action: actions("kms:", "CreateGrant", "ListGrants", "RevokeGrant"), Resource: keys,
				Condition: map[string]map[string]any{"Bool": {"kms:GrantIsForAWSResource": "true"}, "StringLike": through}},
			statement{Sid: "EBSUsesKeys", Action: actions("kms:", "Decrypt", "DescribeKey", "Encrypt", "GenerateDataKey", "GenerateDataKeyWithoutPlaintext", "ReEncryptFrom", "ReEncryptTo"), Resource: keys,
				Condition: map[string]map[string]any{"StringLike": through}})
	}
	return statements
}
