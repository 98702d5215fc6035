package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/asg"
)

func iamPolicyCommand(_ context.Context, args []string, out, errout io.Writer) int {
	fs := newFlags("iam-policy", "Print the minimal AWS policy of the agent's machine (leader) or of the workers\n(worker). The role is the first argument.", `  autoscaler-agent iam-policy leader --cluster demo > policy.json
  autoscaler-agent iam-policy leader --groups workers,gpu
`, errout)
	var o asg.PolicyOptions
	var groups string
	fs.StringVar(&o.ClusterName, "cluster", "", "the cluster's `name`: writes are allowed on groups tagged k8s.io/cluster-autoscaler/NAME")
	fs.StringVar(&groups, "groups", "", "`names` of groups that writes are allowed on, separated by commas")
	fs.StringVar(&o.Partition, "partition", "aws", "`aws`, aws-cn or aws-us-gov")
	role := "leader"
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		role, args = args[0], args[1:]
	}
	if code, done := parse(fs, args, out, errout); done {
		return code
	}
	if groups != "" {
		o.Groups = strings.Split(groups, ",")
	}
	policies := map[string]func(asg.PolicyOptions) ([]byte, error){"leader": asg.LeaderPolicy, "worker": asg.WorkerPolicy}
	build, ok := policies[role]
	if !ok {
		fmt.Fprintf(errout, "autoscaler-agent iam-policy: there is no role %q: use leader or worker\n", role)
		return exitUsage
	}
	policy, err := build(o)
	if err != nil {
		return complain(errout, "policy", err)
	}
	fmt.Fprintf(out, "%s\n", strings.TrimSpace(string(policy)))
	return exitOK
}
