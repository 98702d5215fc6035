package provider_test

import (
	"context"
	"strings"
	"testing"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	asgtypes "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/internal/testing/providertest"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/cloud/aws"
)

// The abilities of the suite's AWS beyond providertest.World.
var _ interface {
	providertest.Forms
	providertest.FailLaunches
	providertest.LimitCapacity
	providertest.BreakTemplate
	providertest.RefuseOneDelete
	providertest.ExpireAfter
	providertest.Lag
	providertest.Hang
	providertest.LoseAnswer
	providertest.Pause
	providertest.Furnish
	providertest.ChangeTemplate
	providertest.RotateJoin
	providertest.ChangeUserData
} = (*world)(nil)

// Forms: as the AWS cloud provider writes it, with the zone left out, as the kubelet's
// --provider-id of hand-made machines has it, and the bare ID.
func (w *world) Forms(id cluster.InstanceID) []string {
	short := shortID(id)
	i, _ := w.Instance(short)
	return []string{"aws:///" + i.Zone + "/" + short, "aws:////" + short, "aws:///" + short, "aws://" + i.Zone + "/" + short, short}
}

func (w *world) FailLaunches(_ testing.TB, on bool) {
	w.block(on)
	for _, image := range []string{"ami-0123456789abcdef0"} {
		if on {
			w.RemoveImage(image)
		} else {
			w.RestoreImage(image)
		}
	}
}

func (w *world) LimitCapacity(_ testing.TB, on bool) {
	w.block(on)
	if on {
		w.NoCapacity("*", "*")
	} else {
		w.HasCapacity("*", "*")
	}
}

func (w *world) RefuseOneDelete(testing.TB) {
	w.fault("refuse one", true, aws.Fault{Action: "TerminateInstanceInAutoScalingGroup", Kind: aws.Forbidden, Times: 1})
}

func (w *world) ExpireAfter(_ testing.TB, calls int) {
	w.fault("expire", true, aws.Fault{Kind: aws.ExpiredCredentials, After: calls})
}

func (w *world) Lag(_ testing.TB, on bool) {
	d := time.Duration(0)
	if on {
		d = time.Hour
	}
	w.StaleReads(d)
}

func (w *world) Hang(_ testing.TB, on bool) {
	w.fault("hang", on, aws.Fault{Kind: aws.Slow, Delay: time.Hour})
}

// BreakTemplate: launch templates are throttled.
func (w *world) BreakTemplate(_ testing.TB, on bool) {
	w.fault("template", on, aws.Fault{Action: "DescribeLaunchTemplate*", Kind: aws.Throttle})
}

// LoseAnswer: Set... and Terminate... are what the provider writes with.
func (w *world) LoseAnswer(testing.TB) {
	w.fault("lose", true, aws.Fault{Service: "autoscaling", Action: "[ST]e*", Kind: aws.AnswerLost, Times: 1})
}

func (w *world) Pause(t testing.TB, on bool) {
	t.Helper()
	group, launch := sdk.String(string(providertest.Workers)), []string{"Launch"}
	var err error
	if on {
		_, err = w.admin.SuspendProcesses(context.Background(), &autoscaling.SuspendProcessesInput{AutoScalingGroupName: group, ScalingProcesses: launch})
	} else {
		_, err = w.admin.ResumeProcesses(context.Background(), &autoscaling.ResumeProcessesInput{AutoScalingGroupName: group, ScalingProcesses: launch})
	}
	if err != nil {
		t.Fatal(err)
	}
}

func (w *world) Furnish(testing.TB) {
	const prefix = "k8s.io/cluster-autoscaler/node-template/"
	taint := providertest.FurnishTaint
	w.SetTag(string(providertest.Workers), prefix+"label/"+providertest.FurnishLabel[0], providertest.FurnishLabel[1], true)
	w.SetTag(string(providertest.Workers), prefix+"taint/"+taint.Key, taint.Value+":"+taint.Effect, true)
}

func (w *world) ChangeTemplate(t testing.TB) {
	t.Helper()
	w.PutLaunchTemplate(aws.LaunchTemplate{Name: "next", InstanceType: "m5.xlarge", UserData: "#!/bin/sh\n"})
	_, err := w.admin.UpdateAutoScalingGroup(context.Background(), &autoscaling.UpdateAutoScalingGroupInput{
		AutoScalingGroupName: sdk.String(string(providertest.Workers)),
		LaunchTemplate:       &asgtypes.LaunchTemplateSpecification{LaunchTemplateName: sdk.String("next")},
	})
	if err != nil {
		t.Fatal(err)
	}
}

// RotateJoin makes a version of the launch template with another token, as bootstrap does. The
// groups name no version, which means the default one.
func (w *world) RotateJoin(t testing.TB) {
	t.Helper()
	w.newUserData(t, func(text string) string {
		return strings.Replace(text, "abcdef.0123456789abcdef", "zyxwvu.fedcba9876543210", 1)
	})
}

func (w *world) ChangeUserData(t testing.TB) {
	t.Helper()
	w.newUserData(t, func(text string) string { return text + "true\n" })
}

// newUserData makes a version of the launch template with other user data.
func (w *world) newUserData(t testing.TB, change func(string) string) {
	t.Helper()
	lt, ok := w.LatestVersion("worker")
	if !ok {
		t.Fatal("no launch template")
	}
	lt.UserData = change(lt.UserData)
	w.PutLaunchTemplate(lt)
}
