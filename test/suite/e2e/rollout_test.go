package e2e

import (
	"context"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/cloud/aws"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/world"
)

// TestRollout: a new version of the launch template reaches every machine, one after the other by the budget, and no
// Deployment has fewer Ready pods than its PodDisruptionBudget asks for at any moment. A version whose machines never join is
// tried on one machine, and the others stay.
func TestRollout(t *testing.T) {
	t.Parallel() // it mostly waits
	const machines, budget = 4, 1
	s := newScene(t, nil)
	s.start(rolloutSettings...)
	s.workers(world.Workers{Name: "workers", Max: 10})
	const pods = 2 * machines
	s.deploy("web", pods, "1500m", "64Mi")
	s.until("web Running", func() bool { return s.running("web") == pods })
	s.budget("web", 1)
	s.until("the budget is known", func() bool { b := s.budgetOf("web"); return b != nil && b.Status.DesiredHealthy == pods-1 })

	watched := s.watchWeb(pods - 1)
	lt, _ := s.w.Cloud.LatestVersion("workers")
	lt.ImageID = "ami-00000000000000002"
	s.w.Cloud.PutLaunchTemplate(lt)
	s.patient(10*time.Minute, "every machine has the new image", func() bool {
		of := s.images()
		return len(of) == 1 && of[lt.ImageID] == machines && s.running("web") == pods
	})
	least, most := watched()
	if most > machines+budget {
		t.Errorf("%d machines at once, with a budget of %d above %d", most, budget, machines)
	}
	if least < pods-1 {
		t.Errorf("%d of %d pods were Ready at a moment, and the budget asks for %d", least, pods, pods-1)
	}

	lt.ImageID, lt.UserData = "ami-00000000000000003", "#!/bin/sh\nexit 1\n"
	s.w.Cloud.PutLaunchTemplate(lt)
	s.patient(5*time.Minute, "the rollout is halted", func() bool {
		out, _ := s.command("explain", "group", "workers")
		return strings.Contains(out, "[D31]") || strings.Contains(out, "halted")
	})
	s.patient(2*time.Minute, "the failed machine is gone", func() bool { of := s.images(); return len(of) == 1 && of["ami-00000000000000002"] == machines })
	if n := s.running("web"); n != pods {
		t.Errorf("%d of %d pods run", n, pods)
	}
	s.haltOutlives(lt.ImageID)
}

// haltOutlives ends the agent with all that it remembers: the next leader starts no machine of the source that was halted, and an
// operator's order lets it go on.
func (s *scene) haltOutlives(image string) {
	s.t.Helper()
	of := func() (n int) {
		for _, i := range s.w.Cloud.Instances() {
			if i.ImageID == image {
				n++
			}
		}
		return n
	}
	started := of()
	s.agent.Kill()
	if err := os.RemoveAll(s.w.StateDir()); err != nil {
		s.t.Fatal(err)
	}
	s.start(rolloutSettings...)
	s.patient(time.Minute, "the next leader knows the halt", func() bool {
		out, _ := s.command("rollout", "status", "workers")
		return strings.Contains(out, "halted since") && strings.Contains(out, "[D31]")
	})
	if now := of(); now != started {
		s.t.Errorf("%d machines were started by the next leader", now-started)
	}
	if out, code := s.command("rollout", "resume", "workers"); code != 0 || !strings.Contains(out, "goes on with source") {
		s.t.Fatalf("exit code %d: %s", code, out)
	}
	s.patient(time.Minute, "it goes on", func() bool { return of() > started })
	s.wayBack()
}

// wayBack sets the version that the other machines were started from: the agent may not, and says the command; then it may. The group
// ends with machines of the former image alone, and nothing is halted.
func (s *scene) wayBack() {
	s.t.Helper()
	const command = "aws autoscaling update-auto-scaling-group --region "
	stop := s.w.Cloud.Inject(aws.Fault{Kind: aws.Forbidden, Action: "UpdateAutoScalingGroup"})
	if out, code := s.command("rollout", "back", "workers"); code == 0 || !strings.Contains(out, "the agent may not") || !strings.Contains(out, command) || !strings.Contains(out, ",Version=2'") {
		s.t.Errorf("exit code %d: %s", code, out)
	}
	stop()
	if out, code := s.command("rollout", "back", "workers", "--dry-run"); code != 0 || !strings.Contains(out, "nothing is changed") || !strings.Contains(out, command) {
		s.t.Errorf("exit code %d: %s", code, out)
	}
	if out, code := s.command("rollout", "back", "workers"); code != 0 || !strings.Contains(out, "group workers starts machines from version 2 of launch template lt-") {
		s.t.Fatalf("exit code %d: %s", code, out)
	}
	s.patient(3*time.Minute, "the former version is what the group starts", func() bool {
		out, _ := s.command("rollout", "status", "workers", "--output", "json")
		of := s.images()
		return len(of) == 1 && of["ami-00000000000000002"] > 0 && !strings.Contains(out, decision.RolloutHalted)
	})
}

var rolloutSettings = []string{"AUTOSCALER_SCALING_DRIFT=true", "AUTOSCALER_SCALING_DISRUPTION_BUDGETS=1", "AUTOSCALER_SCALING_UNNEEDED_FOR=3s", "AUTOSCALER_SCALING_DELAY_AFTER_ADD=1s",
	"AUTOSCALER_SCALING_REPLACE_SETTLE_TIME=2m", "AUTOSCALER_SCALING_DELAY_AFTER_TAINT=500ms", "AUTOSCALER_SCALING_MAX_NODE_PROVISION_TIME=20s", "AUTOSCALER_SCALING_MAX_NODE_STARTUP_TIME=20s"}

func (s *scene) budgetOf(name string) *policyv1.PodDisruptionBudget {
	b, err := s.client.PolicyV1().PodDisruptionBudgets("default").Get(s.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		return nil
	}
	return b
}

// images counts the living machines of the cloud by the image that they were started from.
func (s *scene) images() map[string]int {
	out := map[string]int{}
	if s.w.Cloud == nil { // another cloud than AWS
		return out
	}
	for _, i := range s.w.Cloud.Instances() {
		if i.State == "running" || i.State == "pending" {
			out[i.ImageID]++
		}
	}
	return out
}

// watchWeb follows the pods of web from outside until it is asked: the fewest that were Ready and not on their way out at
// once, and the most machines.
func (s *scene) watchWeb(desired int) func() (least, most int) {
	ctx, cancel := context.WithCancel(s.t.Context())
	least, most := desired+1, 0
	var wg sync.WaitGroup
	wg.Go(func() {
		tick := time.NewTicker(200 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			list, err := s.client.CoreV1().Pods("default").List(ctx, metav1.ListOptions{LabelSelector: "app=web"})
			if err != nil {
				continue
			}
			ready := 0
			for _, p := range list.Items {
				for _, c := range p.Status.Conditions {
					if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue && p.DeletionTimestamp == nil {
						ready++
					}
				}
			}
			total := 0
			for _, n := range s.images() {
				total += n
			}
			least, most = min(least, ready), max(most, total)
		}
	})
	return func() (int, int) { cancel(); wg.Wait(); return least, most }
}

// patient is until for what takes longer than await.Limit: several machines, one after the other.
func (s *scene) patient(limit time.Duration, what string, ok func() bool) {
	s.t.Helper()
	for began := time.Now(); !ok(); time.Sleep(500 * time.Millisecond) {
		if time.Since(began) > limit {
			s.t.Fatalf("waited %s in vain: %s; machines by image %v, %d pods run", limit, what, s.images(), s.running("web"))
		}
	}
}
