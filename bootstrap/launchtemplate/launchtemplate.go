// Package launchtemplate publishes join values, and user data for the version of Kubernetes that the workers follow, as
// a new version of an EC2 launch template: the user data of the newest version with other values, everything else as
// it was.
//
// It refuses to change what a person put into the template, to delete a version that the agent
// did not make or that a group names by its number, to change the default version or a group,
// and to write before the right to write is proven anew.
package launchtemplate

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	autoscalingtypes "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/smithy-go/logging"
	"github.com/sirupsen/logrus"

	"github.com/autoscaler-agent/autoscaler-agent/bootstrap"
	"github.com/autoscaler-agent/autoscaler-agent/userdata"
	"github.com/autoscaler-agent/autoscaler-agent/userdata/upgrade"
)

const callTimeout = 20 * time.Second

// Sink writes versions of one launch template.
type Sink struct {
	id, region string
	keep       int
	permit     bootstrap.Permit
	log        *logrus.Entry
	follow     *upgrade.Follower
	upgraded   func(template, text string)
	compute    *ec2.Client // nil: not made yet
	scaling    *autoscaling.Client
	told       string // of groups that launch another version
}

// New returns a sink for the launch template of an ID. keep is how many of the agent's own
// versions stay.
func New(id, region string, keep int, permit bootstrap.Permit, log *logrus.Entry) *Sink {
	return &Sink{id: id, region: region, keep: keep, permit: permit, log: log.WithField("launchTemplate", id)}
}

// Follow lets the user data follow the cluster's version of Kubernetes. upgraded is told of each version that was
// published for that.
func (s *Sink) Follow(f *upgrade.Follower, upgraded func(template, text string)) *Sink {
	s.follow, s.upgraded = f, upgraded
	return s
}

// Name implements bootstrap.Sink.
func (s *Sink) Name() string { return "launch template " + s.id }

// Holds implements bootstrap.Holder.
func (s *Sink) Holds(ctx context.Context, join bootstrap.Join) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	todo, err := s.compare(ctx, join)
	return err == nil && todo.source == 0, s.explained(err)
}

// Publish implements bootstrap.Sink.
func (s *Sink) Publish(ctx context.Context, join bootstrap.Join) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return s.explained(s.publish(ctx, join))
}

func (s *Sink) publish(ctx context.Context, join bootstrap.Join) error {
	if follows, _ := s.follow.Follows(); join.Token == "" && !follows {
		return nil // the user data keeps the token that it has, which has ended
	}
	todo, err := s.compare(ctx, join)
	if err != nil {
		return err
	}
	if todo.source == 0 && len(todo.remove) == 0 {
		return nil
	}
	ctx, cancel, err := s.permit(ctx)
	if err != nil {
		return err
	}
	defer cancel()
	if todo.source != 0 {
		// The token makes the same change of the same version once, however often it is asked for.
		sum := sha256.Sum256(todo.userData)
		made, err := s.compute.CreateLaunchTemplateVersion(ctx, &ec2.CreateLaunchTemplateVersionInput{
			LaunchTemplateId: aws.String(s.id), SourceVersion: aws.String(strconv.FormatInt(todo.source, 10)),
			VersionDescription: aws.String(fmt.Sprintf("%s, made from version %d", ownDescription, todo.source)),
			ClientToken:        aws.String(hex.EncodeToString(sum[:16]) + "-" + strconv.FormatInt(todo.source, 10)),
			LaunchTemplateData: &ec2types.RequestLaunchTemplateData{UserData: aws.String(base64.StdEncoding.EncodeToString(todo.userData))},
		})
		if err != nil {
			return err
		}
		s.made(aws.ToInt64(made.LaunchTemplateVersion.VersionNumber), todo)
	}
	return s.prune(ctx, todo.remove)
}

// made tells of a new version.
func (s *Sink) made(number int64, t todo) {
	why := fmt.Sprintf("version %d has other join values", t.source)
	if t.upgrade.Text != nil {
		why = fmt.Sprintf("version %d installs Kubernetes %s, and the workers follow the API server: %s", t.source, t.upgrade.From, t.upgrade.To)
	}
	s.log.WithFields(logrus.Fields{"version": number, "why": why}).Info("launch template version made")
	if t.upgrade.Text != nil && s.upgraded != nil {
		s.upgraded(s.id, fmt.Sprintf("version %d of launch template %s is published: %s", number, s.id, why))
	}
}

// prune deletes versions. The call deletes those it can, and names the others.
func (s *Sink) prune(ctx context.Context, numbers []int64) error {
	if len(numbers) == 0 {
		return nil
	}
	const most = 200 // in one call
	var names []string
	for _, n := range numbers[:min(len(numbers), most)] {
		names = append(names, strconv.FormatInt(n, 10))
	}
	out, err := s.compute.DeleteLaunchTemplateVersions(ctx, &ec2.DeleteLaunchTemplateVersionsInput{LaunchTemplateId: aws.String(s.id), Versions: names})
	if err != nil {
		return err
	}
	for _, f := range out.UnsuccessfullyDeletedLaunchTemplateVersions {
		if f.ResponseError != nil && f.ResponseError.Code != ec2types.LaunchTemplateErrorCodeLaunchTemplateVersionDoesNotExist {
			return fmt.Errorf("delete version %d: %s: %s", aws.ToInt64(f.VersionNumber), f.ResponseError.Code, aws.ToString(f.ResponseError.Message))
		}
	}
	s.log.WithField("why", fmt.Sprintf("%d newer ones of the agent's stay", s.keep)).Infof("launch template versions %s deleted", strings.Join(names, ", "))
	return nil
}

// compare reads the template and the groups that name it.
func (s *Sink) compare(ctx context.Context, join bootstrap.Join) (todo, error) {
	if err := s.connect(ctx); err != nil {
		return todo{}, err
	}
	versions, name, err := s.versions(ctx)
	if err != nil {
		return todo{}, err
	}
	references, started, err := s.references(ctx, name)
	if err != nil {
		return todo{}, err
	}
	for i := range versions {
		versions[i].started = started[strconv.FormatInt(versions[i].number, 10)]
	}
	out, err := decide(versions, references, userdata.Join{Endpoint: join.Endpoint, Token: join.Token, CACertHashes: join.CAHashes}, s.keep, s.follow)
	if text := strings.Join(out.strays, ", "); text != s.told {
		if s.told = text; text != "" {
			s.log.WithField("why", text).Warn("groups launch another version than $Latest: their machines get nothing new of its user data (set the version of each group's launch template to $Latest)")
		}
	}
	return out, err
}

func (s *Sink) connect(ctx context.Context) error {
	if s.compute != nil {
		return nil
	}
	opts := []func(*config.LoadOptions) error{config.WithLogger(logging.Nop{})}
	if s.region != "" {
		opts = append(opts, config.WithRegion(s.region))
	}
	cfg, err := config.LoadDefaultConfig(ctx, opts...)
	if err != nil {
		return fmt.Errorf("load AWS configuration: %w", err)
	}
	s.compute, s.scaling = ec2.NewFromConfig(cfg), autoscaling.NewFromConfig(cfg)
	return nil
}

// versions reads all versions and the template's name.
func (s *Sink) versions(ctx context.Context) (list []version, name string, err error) {
	pages := ec2.NewDescribeLaunchTemplateVersionsPaginator(s.compute, &ec2.DescribeLaunchTemplateVersionsInput{LaunchTemplateId: aws.String(s.id)})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, "", err
		}
		for _, v := range page.LaunchTemplateVersions {
			name = aws.ToString(v.LaunchTemplateName)
			out := version{number: aws.ToInt64(v.VersionNumber), own: isOwn(aws.ToString(v.VersionDescription)), standard: aws.ToBool(v.DefaultVersion)}
			if v.LaunchTemplateData != nil {
				if out.userData, err = base64.StdEncoding.DecodeString(aws.ToString(v.LaunchTemplateData.UserData)); err != nil {
					return nil, "", fmt.Errorf("read the user data of version %d: it is no base64", out.number)
				}
			}
			list = append(list, out)
		}
	}
	return list, name, nil
}

// references are how the region's groups name the template, and the versions of it that their
// machines were started from.
func (s *Sink) references(ctx context.Context, name string) (out []reference, started map[string]bool, err error) {
	started = map[string]bool{}
	pages := autoscaling.NewDescribeAutoScalingGroupsPaginator(s.scaling, &autoscaling.DescribeAutoScalingGroupsInput{})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, nil, err
		}
		for _, g := range page.AutoScalingGroups {
			for _, m := range g.Instances {
				if m.LaunchTemplate != nil && aws.ToString(m.LaunchTemplate.LaunchTemplateId) == s.id {
					started[aws.ToString(m.LaunchTemplate.Version)] = true
				}
			}
			for _, t := range templatesOf(g) {
				if aws.ToString(t.LaunchTemplateId) == s.id || t.LaunchTemplateId == nil && aws.ToString(t.LaunchTemplateName) == name {
					out = append(out, reference{aws.ToString(g.AutoScalingGroupName), aws.ToString(t.Version)})
				}
			}
		}
	}
	return out, started, nil
}

// templatesOf are the launch templates of a group.
func templatesOf(g autoscalingtypes.AutoScalingGroup) []*autoscalingtypes.LaunchTemplateSpecification {
	var out []*autoscalingtypes.LaunchTemplateSpecification
	if g.LaunchTemplate != nil {
		out = append(out, g.LaunchTemplate)
	}
	if g.MixedInstancesPolicy == nil || g.MixedInstancesPolicy.LaunchTemplate == nil {
		return out
	}
	mixed := g.MixedInstancesPolicy.LaunchTemplate
	if mixed.LaunchTemplateSpecification != nil {
		out = append(out, mixed.LaunchTemplateSpecification)
	}
	for _, o := range mixed.Overrides {
		if o.LaunchTemplateSpecification != nil {
			out = append(out, o.LaunchTemplateSpecification)
		}
	}
	return out
}

// explained adds what an operator can do.
func (s *Sink) explained(err error) error {
	var answer interface{ ErrorCode() string }
	if !errors.As(err, &answer) {
		return err
	}
	switch code := answer.ErrorCode(); {
	case code == "UnauthorizedOperation" || strings.HasPrefix(code, "AccessDenied"):
		return fmt.Errorf("%w (autoscaler-agent iam-policy leader --launch-template %s prints what the agent's role lacks)", err, s.id)
	case strings.HasPrefix(code, "InvalidLaunchTemplateId"):
		return fmt.Errorf("%w (AUTOSCALER_BOOTSTRAP_LAUNCH_TEMPLATES names it)", err)
	}
	return err
}
