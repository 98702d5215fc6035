package provider_test

import (
	"strings"
	"testing"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
	"github.com/autoscaler-agent/autoscaler-agent/internal/testing/providertest"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/cloud/aws"
)

// has counts the warnings of a group that contain a word.
func has(g cluster.NodeGroup, word string) int {
	n := 0
	for _, w := range g.Warnings {
		if strings.Contains(w, word) {
			n++
		}
	}
	return n
}

func phaseIn(g cluster.NodeGroup, id cluster.InstanceID) (cluster.Phase, bool) {
	for _, i := range g.Instances {
		if i.ID == id {
			return i.Phase, i.Member
		}
	}
	return cluster.PhaseUnknown, false
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestASGSpotInterruption: a spot machine that got its notice is on its way out, at the
// read after the notice and without EventBridge; its group is otherwise as it was.
func TestASGSpotInterruption(t *testing.T) {
	w := newWorld(t)
	p := w.connect(t, byTag)
	groups(t, p)
	if n := w.Counts()["ec2:DescribeSpotInstanceRequests"]; n != 0 {
		t.Errorf("asked %d times without a spot machine", n)
	}
	alive := w.Alive(providertest.Workers)
	for _, id := range alive {
		must(t, w.MakeSpot(shortID(id)))
	}
	if g := groups(t, p)[providertest.Workers]; len(g.Warnings) != 1 || has(g, "AZRebalance") != 1 { // of the suite's own group
		t.Errorf("warnings %q", g.Warnings)
	}
	must(t, w.Interrupt(shortID(alive[0])))
	g := groups(t, p)[providertest.Workers]
	if phase, member := phaseIn(g, alive[0]); phase != cluster.PhaseDeleting || !member {
		t.Errorf("interrupted: phase %q, member %t", phase, member)
	}
	if i := interruptionIn(g, alive[0]); i == nil || !strings.Contains(i.Why, "marked-for-termination") || time.Until(i.By) > 2*time.Minute || time.Until(i.By) < time.Minute {
		t.Errorf("interruption %+v", i)
	}
	if phase, _ := phaseIn(g, alive[1]); phase != cluster.PhaseRunning || interruptionIn(g, alive[1]) != nil {
		t.Errorf("the other: phase %q", phase)
	}
	if has(g, "interruption notice") != 1 || g.Stale != "" || g.Target != 2 {
		t.Errorf("stale %q, target %d, warnings %q", g.Stale, g.Target, g.Warnings)
	}
	// An error takes no notice back; whoever never could ask goes on without.
	w.fault("spot", true, aws.Fault{Action: "DescribeSpotInstanceRequests", Kind: aws.Forbidden})
	g = groups(t, p)[providertest.Workers]
	if phase, _ := phaseIn(g, alive[0]); phase != cluster.PhaseDeleting || interruptionIn(g, alive[0]) == nil || g.Stale != "" || has(g, "ec2:DescribeSpotInstanceRequests") != 1 {
		t.Errorf("phase %q, stale %q, warnings %q", phase, g.Stale, g.Warnings)
	}
	g = groups(t, w.connect(t, byTag))[providertest.Workers]
	if phase, _ := phaseIn(g, alive[0]); phase != cluster.PhaseRunning || interruptionIn(g, alive[0]) != nil || g.Stale != "" || has(g, "ec2:DescribeSpotInstanceRequests") != 1 {
		t.Errorf("another agent: phase %q, stale %q, warnings %q", phase, g.Stale, g.Warnings)
	}
	// AWS takes it back.
	w.fault("spot", false, aws.Fault{})
	must(t, w.Spare(shortID(alive[0])))
	g = groups(t, p)[providertest.Workers]
	if phase, _ := phaseIn(g, alive[0]); phase != cluster.PhaseRunning || interruptionIn(g, alive[0]) != nil || has(g, "interruption notice") != 0 {
		t.Errorf("spared: phase %q, warnings %q", phase, g.Warnings)
	}
}

// TestASGTerminatingWait: a machine that a lifecycle hook holds on its way out is to be
// emptied, too; nobody knows for how long it is held.
func TestASGTerminatingWait(t *testing.T) {
	w := newWorld(t)
	p := w.connect(t, byTag)
	_, err := w.admin.PutLifecycleHook(ctx, &autoscaling.PutLifecycleHookInput{AutoScalingGroupName: sdk.String(string(providertest.Workers)),
		LifecycleHookName: sdk.String("out"), LifecycleTransition: sdk.String("autoscaling:EC2_INSTANCE_TERMINATING"), HeartbeatTimeout: sdk.Int32(3600)})
	must(t, err)
	alive := w.Alive(providertest.Workers)
	must(t, p.Delete(ctx, providertest.Workers, alive[0]))
	for end := time.Now().Add(20 * time.Second); ; {
		g := groups(t, p)[providertest.Workers]
		if i := interruptionIn(g, alive[0]); i != nil {
			if phase, _ := phaseIn(g, alive[0]); phase != cluster.PhaseDeleting || !i.By.IsZero() || !strings.Contains(i.Why, "Terminating:Wait") || interruptionIn(g, alive[1]) != nil {
				t.Errorf("phase %q, %+v", phase, i)
			}
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%+v", g.Instances)
		}
	}
}

func interruptionIn(g cluster.NodeGroup, id cluster.InstanceID) *cluster.Interruption {
	for i := range g.Instances {
		if g.Instances[i].ID == id {
			return g.Instances[i].Interruption
		}
	}
	return nil
}

// TestASGCapacityRebalance and AZRebalance, ReplaceUnhealthy, HealthCheck: settings with
// which AWS ends machines, or leaves dead ones, are warned of.
func TestASGCapacityRebalance(t *testing.T) {
	w := newWorld(t)
	p := w.connect(t, byTag)
	w.put(t, aws.Group{Name: "rebalanced", Max: 2, ProtectNew: true, Zones: []string{"a"}, CapacityRebalance: true}, nil)
	for _, process := range []string{"ReplaceUnhealthy", "HealthCheck"} {
		w.put(t, aws.Group{Name: process, Max: 2, ProtectNew: true, Zones: []string{"a"}, SuspendedProcesses: []string{process}}, nil)
	}
	got := groups(t, p)
	if g := got["rebalanced"]; has(g, "CapacityRebalance") != 1 || len(g.Warnings) != 1 {
		t.Errorf("%q", g.Warnings)
	}
	for _, process := range []string{"ReplaceUnhealthy", "HealthCheck"} {
		if g := got[cluster.GroupID(process)]; has(g, process) != 1 || len(g.Warnings) != 1 || g.Paused != "" {
			t.Errorf("%q, paused %q", g.Warnings, g.Paused)
		}
	}
}

// TestASGInstanceRefresh: a group whose machines are replaced says so; the question is
// put only while there are machines of an older kind, and once a minute.
func TestASGInstanceRefresh(t *testing.T) {
	w := newWorld(t)
	p := w.connect(t, byTag)
	for range 3 {
		groups(t, p)
	}
	if n := w.Counts()["ec2:DescribeInstanceRefreshes"]; n != 0 {
		t.Errorf("asked %d times of groups with machines of one kind", n)
	}
	must(t, w.InstanceRefresh(string(providertest.Workers), "InProgress", 40))
	w.PutLaunchTemplate(aws.LaunchTemplate{Name: "worker", InstanceType: "m5.large", UserData: "#!/bin/sh\ntrue\n"})
	for range 3 {
		g := groups(t, p)[providertest.Workers]
		if has(g, "instance refresh is under way (InProgress, 40 %)") != 1 || g.Replacing != "an instance refresh is under way (InProgress, 40 %)" || g.Stale != "" || g.Paused != "" {
			t.Errorf("stale %q, paused %q, warnings %q", g.Stale, g.Paused, g.Warnings)
		}
	}
	if n := w.Counts()["ec2:DescribeInstanceRefreshes"]; n > 3 { // one for each group that uses the template
		t.Errorf("asked %d times", n)
	}
	// Another agent: a refresh that is over, and one that may not be asked about.
	must(t, w.InstanceRefresh(string(providertest.Workers), "Successful", 100))
	if g := groups(t, w.connect(t, byTag))[providertest.Workers]; has(g, "instance refresh") != 0 || g.Replacing != "" {
		t.Errorf("warnings %q", g.Warnings)
	}
	w.fault("refresh", true, aws.Fault{Action: "DescribeInstanceRefreshes", Kind: aws.Forbidden})
	if g := groups(t, w.connect(t, byTag))[providertest.Workers]; has(g, "autoscaling:DescribeInstanceRefreshes") != 1 || g.Replacing != "" || g.Stale != "" {
		t.Errorf("stale %q, warnings %q", g.Stale, g.Warnings)
	}
}

// TestASGInstanceTypeDrift: machines of a type that the group does not start any more.
func TestASGInstanceTypeDrift(t *testing.T) {
	w := newWorld(t)
	p := w.connect(t, byTag)
	before := groups(t, p)[providertest.Workers]
	w.PutLaunchTemplate(aws.LaunchTemplate{Name: "worker", InstanceType: "m5.xlarge", UserData: "#!/bin/sh\n"})
	g := groups(t, p)[providertest.Workers]
	if has(g, "2 of its machines have an instance type that the group does not start any more (m5.large)") != 1 {
		t.Errorf("warnings %q", g.Warnings)
	}
	if g.Template.Spec == before.Template.Spec || g.Template.Capacity.MilliCPU != 4000 {
		t.Errorf("template %+v", g.Template)
	}
	must(t, p.Delete(ctx, providertest.Workers, w.Alive(providertest.Workers)...))
	w.settle(t)
	must(t, p.Resize(ctx, providertest.Workers, 0, 1))
	w.settle(t)
	if g := groups(t, p)[providertest.Workers]; has(g, "instance type") != 0 {
		t.Errorf("warnings %q", g.Warnings)
	}
}

// TestASGWarmPool: a machine in a warm pool is not one of its group's, is never deleted
// by it, and is known all the same, so that its Node is not taken for an orphan's.
func TestASGWarmPool(t *testing.T) {
	w := newWorld(t)
	p := w.connect(t, byTag)
	alive := w.Alive(providertest.Workers)
	must(t, w.Warm(shortID(alive[0])))
	g := groups(t, p)[providertest.Workers]
	if phase, member := phaseIn(g, alive[0]); phase != cluster.PhaseStopped || member {
		t.Errorf("Warmed:Stopped: phase %q, member %t", phase, member)
	}
	if g.Target != 1 || len(g.Failures) > 0 || g.Stale != "" {
		t.Errorf("%+v", g)
	}
	if err := p.Delete(ctx, providertest.Workers, alive[0]); provider.KindOf(err) != provider.NotFound {
		t.Errorf("%v", err)
	}
	w.wantTarget(t, 1)
	must(t, w.Unwarm(shortID(alive[0])))
	g = groups(t, p)[providertest.Workers]
	if phase, member := phaseIn(g, alive[0]); phase != cluster.PhaseRunning || !member || g.Target != 2 {
		t.Errorf("in service: phase %q, member %t, target %d", phase, member, g.Target)
	}
}

func (w *world) wantTarget(t testing.TB, n int) {
	t.Helper()
	if got := w.Target(providertest.Workers); got != n {
		t.Errorf("target %d, want %d", got, n)
	}
}
