package aws

import "maps"

// services are the APIs behind the endpoint, by their name in a signature's
// credential scope.
var services map[string]service

func init() {
	services = map[string]service{
		"ec2": {
			name: "ec2", version: "2016-11-15",
			namespace: "http://ec2.amazonaws.com/doc/2016-11-15/",
			actions:   ec2Actions(),
		},
		"autoscaling": {
			name: "autoscaling", version: "2011-01-01", wrapped: true,
			namespace: "http://autoscaling.amazonaws.com/doc/2011-01-01/",
			actions:   autoscalingActions(),
		},
		"sts": {
			name: "sts", version: "2011-06-15", wrapped: true,
			namespace: "https://sts.amazonaws.com/doc/2011-06-15/",
			actions:   stsActions(),
		},
		"iam": {
			name: "iam", version: "2010-05-08", wrapped: true,
			namespace: "https://iam.amazonaws.com/doc/2010-05-08/",
			actions:   iamActions(),
		},
		"ssm":     {name: "ssm", version: "2014-11-06", actions: ssmActions()},
		"pricing": {name: "pricing", version: "2017-10-15", actions: map[string]action{"GetProducts": {json: (*Cloud).getProducts}}},
	}
}

// speaksJSON tells the services whose requests and answers are JSON.
func speaksJSON(service string) bool { return service == "ssm" || service == "pricing" }

func autoscalingActions() map[string]action {
	page := []string{"MaxRecords", "NextToken"}
	byInstance := []string{"AutoScalingGroupName", "InstanceIds", "InstanceIds.member.N"}
	processes := []string{"AutoScalingGroupName", "ScalingProcesses", "ScalingProcesses.member.N"}
	settings := []string{
		"AutoScalingGroupName", "MinSize", "MaxSize", "DesiredCapacity", "DefaultCooldown",
		"HealthCheckGracePeriod", "HealthCheckType", "VPCZoneIdentifier", "AvailabilityZones.member.N",
		"NewInstancesProtectedFromScaleIn", "LaunchTemplate.*", "MixedInstancesPolicy.*",
		"TerminationPolicies.member.N", "CapacityRebalance",
	}
	tags := []string{"Tags.member.N.Key", "Tags.member.N.Value", "Tags.member.N.ResourceId",
		"Tags.member.N.ResourceType", "Tags.member.N.PropagateAtLaunch"}
	filter := []string{"Filters.member.N.Name", "Filters.member.N.Values.member.N"}
	return map[string]action{
		"DescribeAutoScalingGroups": {query: (*Cloud).describeGroups, params: join(page, filter, []string{"AutoScalingGroupNames.member.N", "IncludeInstances"})},
		"DescribeScalingActivities": {query: (*Cloud).describeActivities, params: join(page, []string{"AutoScalingGroupName", "ActivityIds.member.N", "IncludeDeletedGroups"})},
		"DescribeInstanceRefreshes": {query: (*Cloud).describeRefreshes, params: join(page, []string{"AutoScalingGroupName", "InstanceRefreshIds.member.N"})},
		"SetDesiredCapacity":        {write: true, bare: true, query: (*Cloud).setDesiredCapacity, params: []string{"AutoScalingGroupName", "DesiredCapacity", "HonorCooldown"}},
		"TerminateInstanceInAutoScalingGroup": {write: true, query: (*Cloud).terminateInGroup,
			params: []string{"InstanceId", "ShouldDecrementDesiredCapacity"}},
		"CreateAutoScalingGroup": {write: true, bare: true, query: (*Cloud).createGroup, params: join(settings, tags)},
		"UpdateAutoScalingGroup": {write: true, bare: true, query: (*Cloud).updateGroup, params: settings},
		"DeleteAutoScalingGroup": {write: true, bare: true, query: (*Cloud).deleteGroup, params: []string{"AutoScalingGroupName", "ForceDelete"}},
		"CreateOrUpdateTags":     {write: true, bare: true, query: (*Cloud).putTags, params: tags},
		"SuspendProcesses":       {write: true, bare: true, query: (*Cloud).suspend, params: processes},
		"ResumeProcesses":        {write: true, bare: true, query: (*Cloud).resume, params: processes},
		"EnterStandby":           {write: true, query: (*Cloud).enterStandby, params: join(byInstance, []string{"ShouldDecrementDesiredCapacity"})},
		"PutLifecycleHook": {write: true, query: (*Cloud).putHook, params: []string{"AutoScalingGroupName", "LifecycleHookName",
			"LifecycleTransition", "HeartbeatTimeout", "DefaultResult", "NotificationMetadata"}},
	}
}

func ec2Actions() map[string]action {
	list := []string{"DryRun", "MaxResults", "NextToken", "Filter.N.Name", "Filter.N.Value.N"}
	which := []string{"LaunchTemplateId", "LaunchTemplateName", "DryRun"}
	once := []string{"ClientToken"}
	data := []string{"VersionDescription", "LaunchTemplateData.*"}
	actions := map[string]action{
		"RunInstances":                 {write: true, query: (*Cloud).runInstances, params: runParams},
		"DescribeInstances":            {query: (*Cloud).describeInstances, params: join(list, []string{"InstanceId.N"})},
		"DescribeSpotInstanceRequests": {query: (*Cloud).describeSpot, params: join(list, []string{"SpotInstanceRequestId.N"})},
		"DescribeSpotPriceHistory":     {query: (*Cloud).describeSpotPrices, params: join(list, []string{"InstanceType.N", "ProductDescription.N", "StartTime", "EndTime", "AvailabilityZone"})},
		"DescribeInstanceTypes":        {query: (*Cloud).describeTypes, params: join(list, []string{"InstanceType.N"})},
		"DescribeLaunchTemplates":      {query: (*Cloud).describeTemplates, params: join(list, []string{"LaunchTemplateId.N", "LaunchTemplateName.N"})},
		"DescribeLaunchTemplateVersions": {query: (*Cloud).describeVersions, params: join(list, which,
			[]string{"LaunchTemplateVersion.N", "MinVersion", "MaxVersion", "ResolveAlias"})},
		"CreateLaunchTemplate": {write: true, query: (*Cloud).createTemplate, params: join(once, data, []string{
			"LaunchTemplateName", "DryRun", "TagSpecification.N.ResourceType", "TagSpecification.N.Tag.N.Key", "TagSpecification.N.Tag.N.Value"})},
		"CreateLaunchTemplateVersion":  {write: true, query: (*Cloud).createVersion, params: join(which, once, data, []string{"SourceVersion", "ResolveAlias"})},
		"DeleteLaunchTemplateVersions": {write: true, query: (*Cloud).deleteVersions, params: join(which, []string{"LaunchTemplateVersion.N"})},
		"DescribeSubnets":              {query: (*Cloud).describeSubnets, params: join(list, []string{"SubnetId.N"})},
		"DescribeImages":               {query: (*Cloud).describeImages, params: join(list, []string{"ImageId.N", "Owner.N"})},
		"GetConsoleOutput":             {query: (*Cloud).consoleOutput, params: []string{"InstanceId", "Latest", "DryRun"}},
		"GetInstanceTypesFromInstanceRequirements": {query: (*Cloud).typesFromRequirements, params: []string{"DryRun", "MaxResults", "NextToken",
			"ArchitectureType.N", "VirtualizationType.N", "InstanceRequirements.*"}},
		"CreateTags": {write: true, query: (*Cloud).createTags, params: []string{"DryRun", "ResourceId.N", "Tag.N.Key", "Tag.N.Value"}},
	}
	maps.Copy(actions, networkActions())
	return actions
}

func join(lists ...[]string) []string {
	var out []string
	for _, l := range lists {
		out = append(out, l...)
	}
	return out
}
