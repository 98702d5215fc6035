package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/asg/iampolicy"
)

func iamPolicyCommand() *cobra.Command {
	roles := []string{"leader", "worker"}
	c := &cobra.Command{
		Use:   "iam-policy [leader|worker]",
		Short: "Print the minimal AWS policy of the agent",
		Long: `Print the minimal AWS policy of the agent's machine (leader, the default) or of the
workers (worker). Workers whose user data has the token, and those that attest, need no
rights at all: only those that read an SSM parameter do.`,
		Example: `  autoscaler-agent iam-policy leader --cluster demo > policy.json
  autoscaler-agent iam-policy leader --groups workers,gpu
  autoscaler-agent iam-policy leader --cluster demo --cloud-controller --ebs-csi
  autoscaler-agent iam-policy leader --cluster demo --pools general --pool-template lt-0123456789abcdef0 --pool-role worker
  autoscaler-agent iam-policy worker --parameter /clusters/demo/join`,
		ValidArgs: roles,
		Args: func(c *cobra.Command, args []string) error {
			switch {
			case len(args) > 1:
				return usagef(c, "%q is one argument too many: name one role", args[1])
			case len(args) == 1 && !slices.Contains(roles, args[0]):
				return usagef(c, "there is no role %q: use %s", args[0], strings.Join(roles, " or "))
			}
			return nil
		},
	}
	var o iampolicy.Options
	c.Flags().StringVar(&o.ClusterName, "cluster", "", "the cluster's `name`: writes are allowed on groups tagged k8s.io/cluster-autoscaler/NAME")
	c.Flags().StringSliceVar(&o.Groups, "groups", nil, "`names` of groups that writes are allowed on, separated by commas")
	c.Flags().StringVar(&o.Partition, "partition", "aws", "AWS `partition`: aws, aws-cn or aws-us-gov")
	words(c, "partition", "aws", "aws-cn", "aws-us-gov")
	c.Flags().StringVar(&o.Parameter, "parameter", "", "`name` of the SSM parameter that join information is published as (AUTOSCALER_BOOTSTRAP_SSM_PARAMETER)")
	c.Flags().StringVar(&o.KeyARN, "key-arn", "", "`ARN` of the KMS key of the parameter; none for the account's own")
	c.Flags().StringSliceVar(&o.LaunchTemplates, "launch-template", nil, "`IDs` of launch templates that get new versions with the join values, separated by commas (AUTOSCALER_BOOTSTRAP_LAUNCH_TEMPLATES)")
	c.Flags().StringSliceVar(&o.Pools, "pools", nil, "`names` of pools of groups.yaml, for which the agent makes groups, separated by commas")
	c.Flags().StringSliceVar(&o.PoolTemplates, "pool-template", nil, "with --pools, `IDs` of the pools' launch templates, separated by commas")
	c.Flags().StringVar(&o.PoolRole, "pool-role", "", "with --pools, `name` of the role that the machines of the pools get")
	c.Flags().BoolVar(&o.CloudController, "cloud-controller", false, "add what cloud-provider-aws needs on the leader: load balancers and security groups tagged kubernetes.io/cluster/NAME")
	c.Flags().BoolVar(&o.EBSCSI, "ebs-csi", false, "add what the controller of the EBS CSI driver needs on the leader (AmazonEBSCSIDriverPolicyV2)")
	c.Flags().StringSliceVar(&o.EBSKeys, "ebs-key-arn", nil, "with --ebs-csi, `ARNs` of the KMS keys that volumes are encrypted with, separated by commas; none for the account's own")
	c.RunE = func(c *cobra.Command, args []string) error {
		build := iampolicy.Leader
		if len(args) > 0 && args[0] == "worker" {
			build = iampolicy.Worker
		}
		policy, err := build(o)
		if err != nil {
			return misused("policy", err)
		}
		fmt.Fprintf(c.OutOrStdout(), "%s\n", strings.TrimSpace(string(policy)))
		return nil
	}
	return c
}
