package template

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	asgtypes "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	"github.com/aws/aws-sdk-go-v2/service/ec2"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/asg/awsapi"
)

// The versions of launch templates that machines were started from. Auto Scaling lists the
// number with each machine; the contents of a number never change.

const (
	// startedAtOnce is how many versions one read asks for: after a start of the agent each
	// machine of a fleet may be of another one.
	startedAtOnce = 4
	// goneLife is how long a version that was deleted is not asked for again, and how long an
	// alias that may not be read.
	goneLife = time.Hour
	// aliasLife is how long an alias of an image is believed.
	aliasLife = 30 * time.Minute
	// forgetAlias is how long an alias that no launch template names any more is kept.
	forgetAlias = 24 * time.Hour
	// aliasPrefix starts an image that Systems Manager names.
	aliasPrefix = "resolve:ssm:"
)

// startedOf are the versions that the machines of groups were started from, each once.
func startedOf(groups []asgtypes.AutoScalingGroup) []ref {
	refs := map[ref]bool{}
	for g := range groups {
		for i := range groups[g].Instances {
			if r, ok := startedFrom(groups[g].Instances[i].LaunchTemplate); ok {
				refs[r] = true
			}
		}
	}
	return slices.Collect(maps.Keys(refs))
}

// startedFrom is the version that a machine was started from; false: Auto Scaling tells none
// (the machine was attached, or is of a launch configuration).
func startedFrom(s *asgtypes.LaunchTemplateSpecification) (ref, bool) {
	if s == nil {
		return ref{}, false
	}
	r := refOf(s)
	_, ok := r.fixed()
	return r, ok && r.handle() != handle{}
}

// loadStarted asks for the contents of versions that machines were started from, some at a time.
// A version that was deleted stays unknown.
func (rs *Resolver) loadStarted(ctx context.Context, refs []ref) {
	now := rs.now()
	slices.SortFunc(refs, func(a, b ref) int { return strings.Compare(a.String(), b.String()) })
	due := slices.DeleteFunc(rs.facts.bare(refs), func(r ref) bool { return rs.facts.refused(r.String(), now) != nil })
	for _, r := range due[:min(len(due), startedAtOnce)] {
		t, err := rs.readVersion(ctx, r.handle(), r.version)
		if err != nil {
			rs.facts.refuseFor(goneLife, r.String(), err, now)
			continue
		}
		rs.facts.store(version{r.handle(), t.version}, t)
	}
}

// Started is what the launch template version tells that a machine was started from; nil: it is
// not known. The caller does not change it.
func (rs *Resolver) Started(from *asgtypes.LaunchTemplateSpecification) cluster.Spec {
	r, ok := startedFrom(from)
	if !ok {
		return nil
	}
	if t := rs.facts.contents(rs.facts.versionOf(r)); t != nil {
		return t.source
	}
	return nil
}

// alias is the image that an alias means, or meant when it was last read.
type alias struct {
	image string
	until time.Time
}

// loadAliases asks EC2 which images the aliases of launch templates mean, each alias once in
// aliasLife. It takes the right ssm:GetParameters; without it the image is not known.
func (rs *Resolver) loadAliases(ctx context.Context, versions answers) {
	now := rs.now()
	for r, v := range versions {
		if v.template == nil {
			continue
		}
		name := aws.ToString(v.template.data.ImageId)
		if !strings.HasPrefix(name, aliasPrefix) || rs.facts.aliasUntil(name).After(now) || rs.facts.refused(name, now) != nil {
			continue
		}
		answer, err := rs.client.DescribeLaunchTemplateVersions(ctx, &ec2.DescribeLaunchTemplateVersionsInput{
			LaunchTemplateId: aws.String(cmp.Or(r.id, v.template.id)), Versions: []string{strconv.FormatInt(v.template.version, 10)}, ResolveAlias: aws.Bool(true)})
		if err != nil {
			rs.facts.refuseFor(goneLife, name, awsapi.Classify("resolve template", "", awsapi.ActionDescribeVersions, err), now)
			continue
		}
		for _, found := range answer.LaunchTemplateVersions {
			if d := found.LaunchTemplateData; d != nil {
				rs.facts.name(name, alias{aws.ToString(d.ImageId), now.Add(aliasLife)})
			}
		}
	}
}

func (f *facts) name(name string, a alias) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.aliases == nil {
		f.aliases = map[string]alias{}
	}
	maps.DeleteFunc(f.aliases, func(_ string, old alias) bool { return a.until.Sub(old.until) > forgetAlias })
	f.aliases[name] = a
}

func (f *facts) aliasUntil(name string) time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.aliases[name].until
}

// meant is the image that a launch template means by an ID or by an alias; empty: not known.
func (f *facts) meant(image string) string {
	if !strings.HasPrefix(image, aliasPrefix) {
		return image
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if a := f.aliases[image]; strings.HasPrefix(a.image, "ami-") {
		return a.image
	}
	return ""
}
