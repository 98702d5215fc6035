package template

import (
	"context"
	"fmt"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	asgtypes "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"golang.org/x/sync/errgroup"

	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/asg/awsapi"
)

// launchTemplate is one version of a launch template.
type launchTemplate struct {
	id      string
	name    string
	version int64
	data    ec2types.ResponseLaunchTemplateData
}

// ref names a launch template version as a group does.
type ref struct{ id, name, version string }

func refOf(s *asgtypes.LaunchTemplateSpecification) ref {
	r := ref{id: aws.ToString(s.LaunchTemplateId), name: aws.ToString(s.LaunchTemplateName), version: aws.ToString(s.Version)}
	if r.version == "" {
		r.version = "$Default"
	}
	if r.id != "" {
		r.name = "" // EC2 refuses a name in addition to an ID
	}
	return r
}

func (r ref) String() string { return r.id + r.name + " version " + r.version }

// fixed reports whether the reference always means the same version.
func (r ref) fixed() bool {
	_, err := strconv.ParseInt(r.version, 10, 64)
	return err == nil
}

// answers is what one read found for each reference.
type answers map[ref]versionAnswer

type versionAnswer struct {
	template *launchTemplate
	err      *provider.Error
}

// resolveRefs looks up every reference once, four at a time. Numbered versions
// cannot change and are asked for once in the life of the process; $Latest and
// $Default are asked for in every read.
func (rs *Resolver) resolveRefs(ctx context.Context, refs []ref) answers {
	out := answers{}
	for _, r := range refs {
		out[r] = versionAnswer{}
	}
	unique := make([]ref, 0, len(out))
	for r := range out {
		unique = append(unique, r)
	}
	found := make([]versionAnswer, len(unique))
	var g errgroup.Group
	g.SetLimit(4)
	for i, r := range unique {
		g.Go(func() error {
			found[i].template, found[i].err = rs.resolveRef(ctx, r)
			return nil
		})
	}
	_ = g.Wait() // every goroutine returns nil; errors are per reference
	for i, r := range unique {
		out[r] = found[i]
	}
	return out
}

func (rs *Resolver) resolveRef(ctx context.Context, r ref) (*launchTemplate, *provider.Error) {
	key := r.String()
	if r.fixed() {
		rs.facts.mu.Lock()
		known := rs.facts.versions[key]
		rs.facts.mu.Unlock()
		if known != nil {
			return known, nil
		}
	}
	in := &ec2.DescribeLaunchTemplateVersionsInput{Versions: []string{r.version}}
	if r.id != "" {
		in.LaunchTemplateId = aws.String(r.id)
	} else {
		in.LaunchTemplateName = aws.String(r.name)
	}
	answer, err := rs.client.DescribeLaunchTemplateVersions(ctx, in)
	if err != nil {
		e := awsapi.Classify("resolve template", "", awsapi.ActionDescribeVersions, err)
		e.Err = fmt.Errorf("launch template %s: %w", r, e.Err)
		return nil, e
	}
	if len(answer.LaunchTemplateVersions) == 0 || answer.LaunchTemplateVersions[0].LaunchTemplateData == nil {
		return nil, &provider.Error{Op: "resolve template", Kind: provider.Invalid,
			Err: fmt.Errorf("launch template %s does not exist", r), Remedy: "point the group at a version that exists"}
	}
	v := answer.LaunchTemplateVersions[0]
	t := &launchTemplate{id: aws.ToString(v.LaunchTemplateId), name: aws.ToString(v.LaunchTemplateName),
		version: aws.ToInt64(v.VersionNumber), data: *v.LaunchTemplateData}
	if r.fixed() {
		rs.facts.mu.Lock()
		if rs.facts.versions == nil {
			rs.facts.versions = map[string]*launchTemplate{}
		}
		rs.facts.versions[key] = t
		rs.facts.mu.Unlock()
	}
	return t, nil
}
