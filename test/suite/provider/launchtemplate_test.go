package provider_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/sirupsen/logrus"

	"github.com/autoscaler-agent/autoscaler-agent/bootstrap"
	"github.com/autoscaler-agent/autoscaler-agent/bootstrap/launchtemplate"
	"github.com/autoscaler-agent/autoscaler-agent/test/await"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/cloud/aws"
	"github.com/autoscaler-agent/autoscaler-agent/userdata"
)

// launching is a launch template with the agent's user data, and a sink for it.
type launching struct {
	*world
	id   string
	sink *launchtemplate.Sink
	log  *bytes.Buffer
	gate error // of the next write
	asks int
}

func newLaunching(t *testing.T, keep int) *launching {
	l := &launching{world: newWorld(t), log: &bytes.Buffer{}}
	script, err := userdata.Render(userdata.Spec{Cloud: "aws", KubernetesVersion: "v1.36.3", Reservation: userdata.DefaultReservation(),
		Join: userdata.Join{Endpoint: "old:6443", Token: "abcdef.0123456789abcdef", CACertHashes: []string{"sha256:" + strings.Repeat("b", 64)}}})
	if err != nil {
		t.Fatal(err)
	}
	l.id, _ = l.PutLaunchTemplate(aws.LaunchTemplate{Name: "joining", InstanceType: "t3.large", UserData: string(script), InstanceProfile: "worker", HTTPTokens: "required", HopLimit: 1})
	log := logrus.New()
	log.SetOutput(l.log)
	l.sink = launchtemplate.New(l.id, l.Region(), keep, func(ctx context.Context) (context.Context, context.CancelFunc, error) {
		l.asks++
		ctx, cancel := context.WithCancel(ctx)
		return ctx, cancel, l.gate
	}, log.WithField("service", "bootstrap"))
	return l
}

func joinOf(token string) bootstrap.Join {
	return bootstrap.Join{Token: token, CAHashes: []string{"sha256:" + strings.Repeat("a", 64)}, Endpoint: "api:6443", Expires: time.Unix(2e9, 0), Kubernetes: "v1.36.3"}
}

// versions are the numbers of the template's versions, newest first, and its newest user data.
func (l *launching) versions(t *testing.T) (numbers string, latest ec2.DescribeLaunchTemplateVersionsOutput) {
	t.Helper()
	cfg, err := config.LoadDefaultConfig(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	out, err := ec2.NewFromConfig(cfg).DescribeLaunchTemplateVersions(t.Context(), &ec2.DescribeLaunchTemplateVersionsInput{LaunchTemplateId: sdk.String(l.id)})
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range out.LaunchTemplateVersions {
		numbers += fmt.Sprint(sdk.ToInt64(v.VersionNumber), " ")
	}
	return strings.TrimSpace(numbers), *out
}

func (l *launching) writes() (out []string) {
	for _, c := range l.Calls(func(c aws.Call) bool {
		return strings.Contains(c.Action, "LaunchTemplate") && !strings.HasPrefix(c.Action, "Describe")
	}) {
		out = append(out, c.Action)
	}
	return out
}

// TestPublishAsLaunchTemplateVersion: the newest version of a launch template has the join
// values, everything else of it stays; a machine that a group launches as $Latest has them;
// the same values write nothing; of the agent's versions three stay.
func TestPublishAsLaunchTemplateVersion(t *testing.T) {
	l := newLaunching(t, 3)
	if err := l.PutGroup(aws.Group{Name: "joining", Max: 5, LaunchTemplate: "joining", Version: "$Latest"}); err != nil {
		t.Fatal(err)
	}
	for n := range 6 {
		join := joinOf(fmt.Sprintf("asa00%d.0123456789abcdef", n%4))
		for range 2 {
			if err := l.sink.Publish(t.Context(), join); err != nil {
				t.Fatal(err)
			}
		}
		if held, err := l.sink.Holds(t.Context(), join); err != nil || !held {
			t.Errorf("it holds %t, %v", held, err)
		}
		if held, err := l.sink.Holds(t.Context(), joinOf("asa009.0123456789abcdef")); err != nil || held {
			t.Errorf("it holds another token: %t, %v", held, err)
		}
	}
	numbers, out := l.versions(t)
	if numbers != "7 6 5 1" {
		t.Errorf("versions %s, want the three newest and the person's", numbers)
	}
	newest := out.LaunchTemplateVersions[0]
	if d := newest.LaunchTemplateData; sdk.ToString(d.IamInstanceProfile.Name) != "worker" || d.InstanceType != "t3.large" || d.MetadataOptions.HttpTokens != "required" || sdk.ToBool(newest.DefaultVersion) {
		t.Errorf("the new version is not the old one with other user data: %+v", d)
	}
	creates, deletes := 0, 0
	for _, w := range l.writes() {
		switch w {
		case "CreateLaunchTemplateVersion":
			creates++
		case "DeleteLaunchTemplateVersions":
			deletes++
		default:
			t.Errorf("it called %s", w)
		}
	}
	if creates != 6 || deletes != 3 || l.asks != 6 {
		t.Errorf("%d versions were made and %d calls deleted some, the gate was asked %d times", creates, deletes, l.asks)
	}
	g := l.launchOne(t)
	if held, err := userdata.Read([]byte(g.UserData)); err != nil || held.Join.Token != "asa001.0123456789abcdef" || held.Join.Endpoint != "api:6443" {
		t.Errorf("a machine of the group has other user data: %+v, %v", held, err)
	}
	for n := range 5 { // the version that the machine was started from stays
		if err := l.sink.Publish(t.Context(), joinOf(fmt.Sprintf("asa00%d.0123456789abcdef", n%4+2))); err != nil {
			t.Fatal(err)
		}
	}
	if numbers, _ := l.versions(t); numbers != "12 11 10 7 1" {
		t.Errorf("versions %s, want the three newest, the machine's and the person's", numbers)
	}
	if strings.Contains(l.log.String(), "0123456789abcdef.") || strings.Contains(l.log.String(), ".0123456789abcdef") {
		t.Errorf("the log has a token:\n%s", l.log)
	}
}

// launchOne is an instance of a group that follows the template.
func (l *launching) launchOne(t *testing.T) (i aws.Instance) {
	t.Helper()
	if err := l.PutGroup(aws.Group{Name: "growing", Max: 5, Desired: 1, LaunchTemplate: "joining", Version: "$Latest"}); err != nil {
		t.Fatal(err)
	}
	await.True(t, "an instance is launched", func() bool {
		g, _ := l.Group("growing")
		if len(g.Instances) == 1 {
			i = g.Instances[0]
		}
		return len(g.Instances) == 1
	})
	return i
}

// TestLaunchTemplateThatStays: a version that a group names by its number, one of a person and
// the default one are never deleted; the group is named in the journal.
func TestLaunchTemplateThatStays(t *testing.T) {
	l := newLaunching(t, 1)
	publish := func(token string) {
		t.Helper()
		if err := l.sink.Publish(t.Context(), joinOf(token)); err != nil {
			t.Fatal(err)
		}
	}
	publish("asa000.0123456789abcdef") // version 2
	if err := l.PutGroup(aws.Group{Name: "pinned", Max: 5, LaunchTemplate: "joining", Version: "2"}); err != nil {
		t.Fatal(err)
	}
	publish("asa001.0123456789abcdef")
	publish("asa002.0123456789abcdef")
	if numbers, _ := l.versions(t); numbers != "4 2 1" {
		t.Errorf("versions %s", numbers)
	}
	if n := strings.Count(l.log.String(), "pinned (2)"); n != 1 {
		t.Errorf("the group was named %d times:\n%s", n, l.log)
	}
}

// TestLaunchTemplateIsNotWritten: what may not be written, or has no place for join values, is
// left as it is, and the error says what to do.
func TestLaunchTemplateIsNotWritten(t *testing.T) {
	t.Run("not leading", func(t *testing.T) {
		l := newLaunching(t, 3)
		l.gate = errors.New("standing by")
		if err := l.sink.Publish(t.Context(), joinOf("asa000.0123456789abcdef")); err == nil || len(l.writes()) > 0 {
			t.Errorf("%v, wrote %v", err, l.writes())
		}
	})
	t.Run("the right ends meanwhile", func(t *testing.T) {
		l := newLaunching(t, 3)
		sink := launchtemplate.New(l.id, l.Region(), 3, func(ctx context.Context) (context.Context, context.CancelFunc, error) {
			ctx, cancel := context.WithCancel(ctx)
			cancel()
			return ctx, cancel, nil
		}, logrus.NewEntry(logrus.New()))
		if err := sink.Publish(t.Context(), joinOf("asa000.0123456789abcdef")); err == nil || len(l.writes()) > 0 {
			t.Errorf("%v, wrote %v", err, l.writes())
		}
	})
	t.Run("the answer is lost", func(t *testing.T) {
		l := newLaunching(t, 3)
		l.Inject(aws.Fault{Kind: aws.AnswerLost, Action: "CreateLaunchTemplateVersion", Times: 1})
		err := l.sink.Publish(t.Context(), joinOf("asa000.0123456789abcdef"))
		if err == nil {
			err = l.sink.Publish(t.Context(), joinOf("asa000.0123456789abcdef"))
		}
		if numbers, _ := l.versions(t); err != nil || numbers != "2 1" {
			t.Errorf("%v, versions %s", err, numbers)
		}
	})
	t.Run("no token", func(t *testing.T) {
		l := newLaunching(t, 3)
		if err := l.sink.Publish(t.Context(), joinOf("")); err != nil || len(l.writes()) > 0 {
			t.Errorf("%v, wrote %v", err, l.writes())
		}
	})
	t.Run("user data of somebody's own", func(t *testing.T) {
		l := newLaunching(t, 3)
		l.PutLaunchTemplate(aws.LaunchTemplate{Name: "joining", InstanceType: "t3.large", UserData: "#!/bin/sh\nkubeadm join\n"})
		if err := l.sink.Publish(t.Context(), joinOf("asa000.0123456789abcdef")); err == nil || !strings.Contains(err.Error(), "userdata render") || len(l.writes()) > 0 {
			t.Errorf("%v, wrote %v", err, l.writes())
		}
	})
	t.Run("no such template", func(t *testing.T) {
		l := newLaunching(t, 3)
		sink := launchtemplate.New("lt-00000000000000000", l.Region(), 3, nil, logrus.NewEntry(logrus.New()))
		if err := sink.Publish(t.Context(), joinOf("asa000.0123456789abcdef")); err == nil || !strings.Contains(err.Error(), "AUTOSCALER_BOOTSTRAP_LAUNCH_TEMPLATES") {
			t.Error(err)
		}
	})
	t.Run("not allowed", func(t *testing.T) {
		l := newLaunching(t, 3)
		l.Inject(aws.Fault{Kind: aws.Forbidden, Action: "CreateLaunchTemplateVersion"})
		err := l.sink.Publish(t.Context(), joinOf("asa000.0123456789abcdef"))
		if err == nil || !strings.Contains(err.Error(), "iam-policy leader --launch-template "+l.id) {
			t.Error(err)
		}
	})
}
