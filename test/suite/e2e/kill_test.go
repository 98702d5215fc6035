package e2e

import (
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/autoscaler-agent/autoscaler-agent/internal/testing/drawn"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/cloud/aws"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/world"
)

// TestKillAtAnyMoment: kill -9 at 20 seeded moments of a scale-up, restart, and the
// group ends at the size that an undisturbed agent would have given it. A third of
// the moments is right after the resize (its answer lost), a third with reads that
// lag behind writes, a third with the state file gone.
func TestKillAtAnyMoment(t *testing.T) {
	t.Parallel() // it mostly waits
	seed := drawn.Seed(t)
	random := rand.New(rand.NewPCG(seed, 0))
	s := newScene(t, nil)
	// Scale-down is only the way back to the start here: as fast as it goes.
	quick := []string{
		"AUTOSCALER_SCALING_UNNEEDED_FOR=3s", "AUTOSCALER_SCALING_DELAY_AFTER_ADD=3s",
		"AUTOSCALER_SCALING_DELAY_AFTER_TAINT=500ms", "AUTOSCALER_NODECLEANER_SIGHT_INTERVAL=1s",
	}
	s.start(quick...)
	s.workers(world.Workers{Name: "workers", Max: 30})
	const pods, want = 100, 3 // 38 pods of 100m on a machine of 3.8 cores
	for i := range 20 {
		name := fmt.Sprintf("kill-%d", i)
		s.w.Cloud.ResetCalls()
		var stop func() int
		switch i % 3 {
		case 0:
			stop = s.w.Cloud.Inject(aws.Fault{Action: "SetDesiredCapacity", Kind: aws.AnswerLost, Times: 1})
		case 1:
			s.w.Cloud.StaleReads(1500 * time.Millisecond)
		}
		s.deploy(name, pods, "100m", "64Mi")
		wait := time.Duration(random.Int64N(int64(4 * time.Second)))
		if i%3 == 0 {
			s.until("the resize", func() bool { return len(s.resizes()) > 0 })
			wait = time.Duration(random.Int64N(int64(50 * time.Millisecond)))
		}
		<-time.After(wait)
		s.agent.Kill()
		if i%3 == 2 {
			if err := os.RemoveAll(s.w.StateDir()); err != nil {
				t.Fatal(err)
			}
		}
		s.start(quick...)
		s.until(name+" Running", func() bool { return s.running(name) == pods })
		g, _ := s.w.Cloud.Group("workers")
		if g.Desired != want {
			t.Errorf("moment %d (%s after the burst): target %d, want %d; calls %v", i, wait, g.Desired, want, s.resizes())
		}
		if stop != nil {
			stop()
		}
		s.w.Cloud.StaleReads(0)
		s.reset(name)
	}
}

// reset removes a deployment, waits until the agent has brought the group back to its
// minimum, and takes the Nodes away itself: reaping them is other tests' matter.
func (s *scene) reset(name string) {
	s.t.Helper()
	p := metav1.DeletePropagationBackground
	if err := s.client.AppsV1().Deployments("default").Delete(s.t.Context(), name, metav1.DeleteOptions{PropagationPolicy: &p}); err != nil {
		s.t.Fatal(err)
	}
	s.until("back at min after "+name, func() bool {
		g, _ := s.w.Cloud.Group("workers")
		if g.Desired != 0 {
			return false
		}
		for _, i := range s.w.Cloud.Instances() {
			if i.State != "terminated" {
				return false
			}
		}
		return true
	})
	for _, n := range s.nodes() {
		if err := s.client.CoreV1().Nodes().Delete(s.t.Context(), n.Name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			s.t.Fatal(err)
		}
	}
}
