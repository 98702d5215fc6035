package asg

import (
	"encoding/json"
	"errors"
	"strings"
)

// PolicyOptions says for whom an IAM policy is.
type PolicyOptions struct {
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
	Condition map[string]map[string]string `json:",omitempty"`
}

// LeaderPolicy is the least that the agent needs on AWS, as an IAM policy document.
// Describe calls know no resources, so they are allowed on all; both writes are
// bound to the cluster's own groups. It allows no RunInstances, no PassRole and no
// launch template change: Auto Scaling starts machines by its own role.
func LeaderPolicy(o PolicyOptions) ([]byte, error) {
	if o.ClusterName == "" && len(o.Groups) == 0 {
		return nil, errors.New("leader policy: name the cluster or its groups: a policy without either would allow writes to every group of the account")
	}
	o.Partition = orAWS(o.Partition)
	writes := []string{actionSetDesired, actionTerminate}
	p := policy{Version: "2012-10-17", Statement: []statement{{
		Sid: "Read", Effect: "Allow", Resource: []string{"*"},
		Action: []string{
			actionDescribeGroups, actionDescribeActivities, actionDescribeRefreshes,
			actionDescribeInstances, actionDescribeSpot, actionDescribeTypes, actionDescribeImages, actionDescribeVersions, actionMatchTypes,
		},
	}}}
	all := "arn:" + o.Partition + ":autoscaling:*:*:autoScalingGroup:*:autoScalingGroupName/"
	if o.ClusterName != "" {
		p.Statement = append(p.Statement, statement{
			Sid: "ScaleOwnGroupsByTag", Effect: "Allow", Action: writes, Resource: []string{all + "*"},
			// Null false means that the tag is there; Cluster Autoscaler's habit gives it
			// any value.
			Condition: map[string]map[string]string{"Null": {"aws:ResourceTag/k8s.io/cluster-autoscaler/" + o.ClusterName: "false"}},
		})
	}
	if len(o.Groups) > 0 {
		s := statement{Sid: "ScaleOwnGroupsByName", Effect: "Allow", Action: writes}
		for _, entry := range o.Groups {
			n, err := parseNamed(entry)
			if err != nil {
				return nil, errors.Join(errors.New("leader policy: group "+entry), err)
			}
			s.Resource = append(s.Resource, all+string(n.id))
		}
		p.Statement = append(p.Statement, s)
	}
	if o.Parameter != "" {
		p.Statement = append(p.Statement, statement{Sid: "PublishJoinInformation", Effect: "Allow",
			Action: []string{"ssm:PutParameter", "ssm:DeleteParameter"}, Resource: []string{parameterARN(o)}})
		if o.KeyARN != "" {
			p.Statement = append(p.Statement, statement{Sid: "EncryptJoinInformation", Effect: "Allow",
				Action: []string{"kms:Encrypt"}, Resource: []string{o.KeyARN}})
		}
	}
	return print(p)
}

// WorkerPolicy is the least that a worker needs to read its join information.
func WorkerPolicy(o PolicyOptions) ([]byte, error) {
	if o.Parameter == "" {
		return nil, errors.New("worker policy: name the SSM parameter; a worker whose join information comes with its user data needs no policy")
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

func orAWS(partition string) string {
	if partition == "" {
		return "aws"
	}
	return partition
}

func parameterARN(o PolicyOptions) string {
	return "arn:" + o.Partition + ":ssm:*:*:parameter/" + strings.TrimPrefix(o.Parameter, "/")
}

func print(p policy) ([]byte, error) {
	out, err := json.MarshalIndent(p, "", "  ")
	if err != nil {
		return nil, err
	}
	return append(out, '\n'), nil
}
