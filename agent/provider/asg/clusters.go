package asg

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	asgtypes "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/asg/awsapi"
)

// clusterTag starts the tags by which Cluster Autoscaler finds the groups of a cluster.
const clusterTag = "k8s.io/cluster-autoscaler/"

// clustersWithin limits each call of Clusters.
const clustersWithin = 10 * time.Second

// Clusters asks AWS for the region of this machine and the names of the clusters that have
// an enabled group there, sorted.
func Clusters(ctx context.Context) (region string, names []string, err error) {
	cfg, err := loadAWS(ctx, Config{})
	if err != nil {
		return "", nil, err
	}
	p := newProvider(Config{Timeout: clustersWithin}, cluster.Reservation{}, cfg.Region, autoscaling.NewFromConfig(cfg), nil)
	groups, fault := p.describe(ctx, &autoscaling.DescribeAutoScalingGroupsInput{
		Filters: []asgtypes.Filter{{Name: aws.String("tag-key"), Values: []string{clusterTag + "enabled"}}}})
	if fault != nil {
		return cfg.Region, nil, fault
	}
	for _, g := range groups {
		tags := awsapi.TagsOf(g)
		if _, enabled := tags[clusterTag+"enabled"]; !enabled {
			continue
		}
		for key := range tags {
			name, ours := strings.CutPrefix(key, clusterTag)
			if ours && name != "enabled" && !strings.Contains(name, "/") {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return cfg.Region, slices.Compact(names), nil
}

// BadClusterName says what is wrong with a name that is to be a part of the tag's key; empty: nothing.
func BadClusterName(name string) string {
	const longest = 128 // AWS's limit of a tag's key
	switch {
	case strings.ContainsAny(name, ",= \t"):
		return "a cluster name has no spaces, commas or equal signs"
	case len(clusterTag)+len(name) > longest:
		return fmt.Sprintf("a cluster name has at most %d bytes, so that AWS takes the tag %sNAME", longest-len(clusterTag), clusterTag)
	}
	return ""
}
