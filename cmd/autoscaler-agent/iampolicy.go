package main

import (
	"context"
	"fmt"
	"io"
)

// statement is one statement of an IAM policy.
type statement struct {
	Sid       string
	Effect    string
	Action    []string
	Resource  string
	Condition map[string]map[string]string `json:",omitempty"`
}

// leaderPolicy is what the agent calls and nothing else: reads cannot be narrowed
// by tag in IAM, writes are.
func leaderPolicy(clusterName string) map[string]any {
	write := statement{Sid: "Scale", Effect: "Allow", Resource: "*",
		Action: []string{"autoscaling:SetDesiredCapacity", "autoscaling:TerminateInstanceInAutoScalingGroup"}}
	tag := "aws:ResourceTag/k8s.io/cluster-autoscaler/enabled"
	write.Condition = map[string]map[string]string{"StringEquals": {tag: "true"}}
	if clusterName != "" {
		write.Condition = map[string]map[string]string{"StringEquals": {"aws:ResourceTag/k8s.io/cluster-autoscaler/" + clusterName: "owned"}}
	}
	return map[string]any{"Version": "2012-10-17", "Statement": []statement{
		{Sid: "Read", Effect: "Allow", Resource: "*", Action: []string{
			"autoscaling:DescribeAutoScalingGroups", "autoscaling:DescribeScalingActivities", "autoscaling:DescribeAutoScalingInstances",
			"autoscaling:DescribeLaunchConfigurations", "autoscaling:DescribeTags",
			"ec2:DescribeInstances", "ec2:DescribeInstanceTypes", "ec2:DescribeLaunchTemplateVersions", "ec2:DescribeImages",
		}},
		write,
	}}
}

func iamPolicyCommand(_ context.Context, args []string, out, errout io.Writer) int {
	fs := newFlags("iam-policy", "Print the minimal AWS policy for the agent's machine (leader).\nThe role is the first argument; leader is the only one in this build.", `  autoscaler-agent iam-policy leader --cluster demo > policy.json
`, errout)
	clusterName := fs.String("cluster", "", "the cluster's `name`: writes are allowed only on groups tagged k8s.io/cluster-autoscaler/NAME=owned")
	if len(args) > 0 && args[0] == "leader" {
		args = args[1:]
	} else if len(args) > 0 && args[0][0] != '-' {
		fmt.Fprintf(errout, "autoscaler-agent iam-policy: there is no role %q, use leader\n", args[0])
		return exitUsage
	}
	if code, done := parse(fs, args, out, errout); done {
		return code
	}
	return printJSON(out, leaderPolicy(*clusterName))
}
