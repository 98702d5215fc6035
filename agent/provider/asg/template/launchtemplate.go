package template

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	asgtypes "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"golang.org/x/sync/errgroup"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/asg/awsapi"
)

// launchTemplate is one version of a launch template.
type launchTemplate struct {
	id      string
	name    string
	version int64
	data    ec2types.ResponseLaunchTemplateData // without the user data
	// userData is the SHA-256 of the user data.
	userData [sha256.Size]byte
	text     []byte       // of the user data, where Upgrades ask for it; nil: they do not
	source   cluster.Spec // shared by all its machines, and never changed
}

// handle names a launch template: by its ID, or by its name where the ID is not known.
type handle struct{ id, name string }

// version is one numbered version.
type version struct {
	handle
	number int64
}

func (v version) compare(o version) int {
	return cmp.Or(cmp.Compare(v.id, o.id), cmp.Compare(v.name, o.name), cmp.Compare(v.number, o.number))
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

func (r ref) handle() handle { return handle{r.id, r.name} }

// fixed is the number of a reference that always means the same version.
func (r ref) fixed() (number int64, ok bool) {
	number, err := strconv.ParseInt(r.version, 10, 64)
	return number, err == nil
}

// answers is what one read found for each reference.
type answers map[ref]versionAnswer

type versionAnswer struct {
	template *launchTemplate
	err      *provider.Error
}

// resolveRefs looks up every reference once. $Latest and $Default are resolved to numbers
// first (current.go). A numbered version cannot change: its contents are asked for once.
// started are the versions that machines were started from (started.go).
func (rs *Resolver) resolveRefs(ctx context.Context, refs, started []ref) answers {
	rs.facts.begin()
	defer rs.facts.end()
	out := answers{}
	for _, r := range refs {
		out[r] = versionAnswer{}
	}
	failed := rs.loadCurrent(ctx, slices.Collect(maps.Keys(out)))
	var known []ref
	for r := range out {
		if err := failed[r]; err != nil {
			out[r] = versionAnswer{err: err}
			continue
		}
		known = append(known, r)
	}
	rs.sweep(ctx, rs.facts.bare(known))
	bad := rs.loadVersions(ctx, rs.facts.bare(known))
	for _, r := range known {
		v := rs.facts.versionOf(r)
		out[r] = versionAnswer{template: rs.facts.contents(v), err: bad[v]}
	}
	if provider.Only(ctx) == nil {
		rs.loadStarted(ctx, started)
		rs.facts.retain(slices.AppendSeq(started, maps.Keys(out)))
	}
	rs.loadAliases(ctx, out)
	return out
}

// loadVersions makes sure that the contents of the references' versions are cached, four at
// a time; the answer is why those of one are not.
func (rs *Resolver) loadVersions(ctx context.Context, refs []ref) map[version]*provider.Error {
	wanted := make([]version, len(refs))
	for i, r := range refs {
		wanted[i] = rs.facts.versionOf(r)
	}
	slices.SortFunc(wanted, version.compare)
	wanted = slices.Compact(wanted)
	failed := make([]*provider.Error, len(wanted))
	var g errgroup.Group
	g.SetLimit(4)
	for i, v := range wanted {
		g.Go(func() error {
			var t *launchTemplate
			if t, failed[i] = rs.readVersion(ctx, v.handle, strconv.FormatInt(v.number, 10)); t != nil {
				rs.facts.store(v, t)
			}
			return nil
		})
	}
	_ = g.Wait() // every goroutine returns nil; errors are per version
	out := map[version]*provider.Error{}
	for i, v := range wanted {
		if failed[i] != nil {
			out[v] = failed[i]
		}
	}
	return out
}

// readVersion reads one version of a launch template: a number, $Latest or $Default.
func (rs *Resolver) readVersion(ctx context.Context, h handle, number string) (*launchTemplate, *provider.Error) {
	in := &ec2.DescribeLaunchTemplateVersionsInput{Versions: []string{number}}
	if h.id != "" {
		in.LaunchTemplateId = aws.String(h.id)
	} else {
		in.LaunchTemplateName = aws.String(h.name)
	}
	r := ref{id: h.id, name: h.name, version: number}
	answer, err := rs.client.DescribeLaunchTemplateVersions(ctx, in)
	if err != nil {
		e := awsapi.Classify("resolve template", "", awsapi.ActionDescribeVersions, err)
		e.Err = fmt.Errorf("launch template %s: %w", r, e.Err)
		return nil, e
	}
	if len(answer.LaunchTemplateVersions) == 0 || answer.LaunchTemplateVersions[0].LaunchTemplateData == nil {
		return nil, missingVersion(r)
	}
	v := &answer.LaunchTemplateVersions[0]
	t := templateOf(v)
	if rs.Upgrades.Follower != nil {
		t.text, _ = base64.StdEncoding.DecodeString(aws.ToString(v.LaunchTemplateData.UserData)) // what is no base64 is not the agent's own
	}
	return t, nil
}

func missingVersion(r ref) *provider.Error {
	return &provider.Error{Op: "resolve template", Kind: provider.Invalid,
		Err: fmt.Errorf("launch template %s does not exist", r), Remedy: "point the group at a version that exists"}
}

// templateOf keeps a digest of the user data in place of its text, which may be large.
func templateOf(v *ec2types.LaunchTemplateVersion) *launchTemplate {
	t := &launchTemplate{id: aws.ToString(v.LaunchTemplateId), name: aws.ToString(v.LaunchTemplateName),
		version: aws.ToInt64(v.VersionNumber), data: *v.LaunchTemplateData}
	t.source = sourceOf(&t.data)
	t.userData = sha256.Sum256([]byte(aws.ToString(t.data.UserData)))
	t.data.UserData = nil
	return t
}
