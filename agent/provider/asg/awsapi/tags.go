package awsapi

import (
	"github.com/aws/aws-sdk-go-v2/aws"
	asgtypes "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
)

// TagsOf returns the tags of a group by their keys.
func TagsOf(g asgtypes.AutoScalingGroup) map[string]string {
	out := make(map[string]string, len(g.Tags))
	for _, t := range g.Tags {
		out[aws.ToString(t.Key)] = aws.ToString(t.Value)
	}
	return out
}
