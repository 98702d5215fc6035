package chaos

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/autoscaler-agent/autoscaler-agent/test/await"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/cloud/aws"
)

// TestTheJudgesBite: what a storm may not do is noticed.
func TestTheJudgesBite(t *testing.T) {
	cloud, err := aws.New(aws.Options{LaunchDelay: time.Millisecond, BootDelay: time.Millisecond, TerminateDelay: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cloud.Close)
	cloud.PutLaunchTemplate(aws.LaunchTemplate{Name: group, InstanceType: "m5.xlarge"})
	if err := cloud.PutGroup(aws.Group{Name: group, Max: 5, Desired: 1, LaunchTemplate: group}); err != nil {
		t.Fatal(err)
	}
	await.True(t, "a machine runs", func() bool { list := cloud.Instances(); return len(list) == 1 && list[0].State == "running" })
	id := cloud.Instances()[0].ID
	known := map[types.UID]corev1.Node{"u": {Spec: corev1.NodeSpec{ProviderID: "aws:///eu-west-1a/" + id}}}
	w := &nodeWatch{cloud: cloud}
	if now := w.compare(known, nil); len(now) != 0 || len(w.wrong()) != 1 {
		t.Error("the Node of a live machine may go")
	}
	if err := cloud.TerminateInstance(id); err != nil {
		t.Fatal(err)
	}
	await.True(t, "the machine is gone", func() bool { i, _ := cloud.Instance(id); return i.State == "terminated" })
	if w.compare(known, nil); len(w.wrong()) != 0 {
		t.Error("the Node of a dead machine may not go")
	}
	orders := []aws.Call{{Params: map[string]string{"DesiredCapacity": "2"}}, {Params: map[string]string{"DesiredCapacity": "4"}}, {Params: map[string]string{"DesiredCapacity": "3"}}}
	if n := highest(orders); n != 4 {
		t.Errorf("the highest target is %d", n)
	}
	ends := []aws.Call{{Action: "TerminateInstanceInAutoScalingGroup", Params: map[string]string{"InstanceId": "i-1"}}, {Action: "TerminateInstanceInAutoScalingGroup", Params: map[string]string{"InstanceId": "i-2"}}}
	if got := needless(ends, []string{"i-2"}); len(got) != 1 || got[0].Params["InstanceId"] != "i-1" {
		t.Errorf("ended without need: %v", got)
	}
}
