package e2e

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/cloud/aws"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/controlplane"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/machine"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/world"
)

// TestCloudFaults: AWS misbehaves for some seconds around a burst. The journal says
// what is wrong in one message with a remedy or the cloud's own words, nothing is
// bought twice, nothing that lives is deleted, and the burst is served when the
// fault ends, by the same process.
func TestCloudFaults(t *testing.T) {
	t.Parallel() // they mostly wait
	s := newScene(t, nil)
	s.start("AUTOSCALER_SCALING_UNNEEDED_FOR=2s", "AUTOSCALER_SCALING_DELAY_AFTER_ADD=2s", "AUTOSCALER_OBSERVE_SLOW=2s",
		"AUTOSCALER_NODECLEANER_SIGHT_INTERVAL=1s", "AUTOSCALER_SCALING_BACKOFF_INITIAL=4s")
	s.workers(world.Workers{Name: "workers", Max: 30})
	for i, tc := range []struct {
		name  string
		fault aws.Fault
		words []string // one journal line has them all; nil: the fault may pass unnoticed
	}{
		{"throttled", aws.Fault{Kind: aws.Throttle}, []string{"transient", "rate exceeded"}},
		{"5xx", aws.Fault{Kind: aws.ServerError500}, []string{"transient"}},
		{"expired credentials", aws.Fault{Kind: aws.ExpiredCredentials}, []string{"denied", "credential"}},
		{"forbidden resize", aws.Fault{Action: "SetDesiredCapacity", Kind: aws.Forbidden}, []string{"denied", "autoscaling:SetDesiredCapacity"}},
		{"empty lists", aws.Fault{Action: "Describe*", Kind: aws.EmptyList}, nil},
		{"short lists", aws.Fault{Action: "Describe*", Kind: aws.ShortList}, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			name := fmt.Sprintf("fault-%d", i)
			s.w.Cloud.ResetCalls()
			stop := s.w.Cloud.Inject(tc.fault)
			s.deploy(name, 60, "100m", "64Mi")
			if tc.words != nil {
				s.journal(tc.words...)
			} else {
				<-time.After(4 * time.Second) // how long the cloud lies, not a wait for anything
			}
			stop()
			s.until(name+" Running", func() bool { return s.running(name) == 60 })
			if g, _ := s.w.Cloud.Group("workers"); g.Desired != 2 {
				t.Errorf("target %d, want the 2 that hold 60 pods; calls %v", g.Desired, s.resizes())
			}
			// A fault while machines run must not cost one of them.
			before := len(s.calls("TerminateInstanceInAutoScalingGroup"))
			stop = s.w.Cloud.Inject(tc.fault)
			<-time.After(4 * time.Second)
			stop()
			if n := len(s.calls("TerminateInstanceInAutoScalingGroup")); n != before || s.running(name) != 60 || len(s.nodes()) != 2 {
				t.Errorf("during the fault %d instances were terminated; %d pods run on %d nodes", n-before, s.running(name), len(s.nodes()))
			}
			s.reset(name)
		})
	}
}

// TestAPIServerDownForAMinute: the API server is killed for a minute with a fleet
// running. The agent's process lives on, deletes nothing, says so, and scales again
// when the API server is back.
func TestAPIServerDownForAMinute(t *testing.T) {
	t.Parallel() // they mostly wait
	s := newScene(t, nil)
	s.start()
	s.workers(world.Workers{Name: "workers", Max: 30})
	s.deploy("before", 60, "100m", "64Mi")
	s.until("before Running", func() bool { return s.running("before") == 60 })
	cp := s.w.ControlPlane
	if err := cp.KillPart(controlplane.APIServer); err != nil {
		t.Fatal(err)
	}
	down := time.Now()
	s.journal("api server")
	<-time.After(time.Minute - time.Since(down))
	if err := cp.StartPart(t.Context(), controlplane.APIServer); err != nil {
		t.Fatal(err)
	}
	s.deploy("after", 60, "100m", "64Mi")
	took := s.until("after Running", func() bool { return s.running("after") == 60 })
	t.Logf("60 new pods ran %s after the API server came back", took.Round(100*time.Millisecond))
	if n := len(s.calls("TerminateInstanceInAutoScalingGroup")); n != 0 {
		t.Errorf("%d instances were terminated around the outage", n)
	}
	if got := s.running("before"); got != 60 {
		t.Errorf("%d of 60 older pods run after the outage", got)
	}
}

// TestHalfNeverJoin: every second machine boots and never becomes a Node. They are
// held by name, terminated after the provision time, the group is backed off with
// its cause, and they are replaced until all pods run.
func TestHalfNeverJoin(t *testing.T) {
	t.Parallel() // they mostly wait
	var launched atomic.Int32
	s := newScene(t, func(o *world.Options) {
		o.Tune = func(c *machine.Config) {
			if n := launched.Add(1); n == 2 || n == 4 {
				c.NeverJoins = true
			}
		}
	})
	s.start("AUTOSCALER_SCALING_MAX_NODE_PROVISION_TIME=12s", "AUTOSCALER_SCALING_BACKOFF_INITIAL=4s")
	s.workers(world.Workers{Name: "workers", Max: 30})
	s.deploy("half", 150, "100m", "64Mi") // 4 machines
	s.journal("terminate", "I1", "has not become a node")
	s.journal("held group workers", "backed off", "no-join")
	s.until("all Running", func() bool { return s.running("half") == 150 })
	if n := len(s.calls("TerminateInstanceInAutoScalingGroup")); n != 2 {
		t.Errorf("%d instances were terminated, want the 2 that never joined", n)
	}
	if g, _ := s.w.Cloud.Group("workers"); g.Desired != 4 {
		t.Errorf("target %d, want 4", g.Desired)
	}
}

// TestWrongConfiguration: each mistake ends in one clear message that names the
// setting and the remedy, in `check` and in the journal of `run`.
func TestWrongConfiguration(t *testing.T) {
	t.Parallel() // they mostly wait
	s := newScene(t, nil)
	for _, tc := range []struct {
		name  string
		env   []string
		words []string
	}{
		{"min above max", []string{"AUTOSCALER_AWS_GROUPS=5:2:workers"}, []string{"AUTOSCALER_AWS_GROUPS", "5:2:workers", "min"}},
		{"unknown variable", []string{"AUTOSCALER_SCALING_UNEEDED_FOR=1m"}, []string{"AUTOSCALER_SCALING_UNEEDED_FOR", "AUTOSCALER_SCALING_UNNEEDED_FOR"}},
		{"not a duration", []string{"AUTOSCALER_SCALING_UNNEEDED_FOR=soon"}, []string{"AUTOSCALER_SCALING_UNNEEDED_FOR", "soon"}},
		{"unknown provider", []string{"AUTOSCALER_PROVIDER=gce"}, []string{"AUTOSCALER_PROVIDER", "gce", "asg"}},
		{"wrong region", []string{"AWS_REGION=us-west-7"}, []string{"region"}},
		{"wrong secret", []string{"AWS_SECRET_ACCESS_KEY=wrong"}, []string{"signature"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			out, code := s.check(tc.env...)
			found := false
			for line := range strings.Lines(out) {
				found = found || containsAll(line, tc.words)
			}
			if code == 0 || !found {
				t.Errorf("check ended with %d and no line with %q:\n%s", code, tc.words, out)
			}
			p, err := s.w.StartAgent(t.Context(), s.binary, tc.env...)
			if err != nil {
				t.Fatal(err)
			}
			defer p.Kill()
			run := &scene{t: t, w: s.w, agent: nil}
			run.until("a journal line", func() bool {
				for line := range strings.Lines(p.Tail(200)) {
					if containsAll(line, tc.words) {
						return true
					}
				}
				return false
			})
		})
	}
}
