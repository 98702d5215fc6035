package chaos

import (
	"fmt"
	"strings"

	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/cloud/aws"
)

// drifting lets the agents replace the machines whose launch template has another version.
var drifting = []string{"AUTOSCALER_SCALING_DRIFT=true", "AUTOSCALER_SCALING_REPLACE_SETTLE_TIME=2m", "AUTOSCALER_SCALING_DISRUPTION_BUDGETS=50%"}

// rollout gives the group another image in a storm: each old machine goes once and is replaced once, no machine is left that the
// group, the cluster or the cloud does not know of, and no pod is lost.
func (s *storms) rollout(number int) {
	s.t.Helper()
	s.hurt = &casualties{}
	g, _ := s.w.Cloud.Group(group)
	machines := g.Desired
	lt, _ := s.w.Cloud.LatestVersion(group)
	lt.ImageID = fmt.Sprintf("ami-%017d", 2+number)
	s.w.Cloud.ResetCalls()
	over := s.blow(number, fmt.Sprintf("%d machines get image %s", machines, lt.ImageID))
	s.w.Cloud.PutLaunchTemplate(lt)
	over()
	s.until("each machine has the new image", func() string {
		living := s.living()
		if old := len(living) - len(s.of(living, lt.ImageID)); old > 0 || len(s.running()) != s.pods {
			return fmt.Sprintf("%d of %d machines have another image, %d of %d pods run", old, len(living), len(s.running()), s.pods)
		}
		return ""
	})
	hurt := s.hurt.list()
	ends := map[string]int{}
	for _, c := range s.w.Cloud.Calls(func(c aws.Call) bool { return c.Done && strings.HasPrefix(c.Action, "TerminateInstance") }) {
		ends[c.Params["InstanceId"]]++
	}
	started := len(s.of(s.w.Cloud.Instances(), lt.ImageID))
	if most := machines + 2*len(hurt) + 1; started > most {
		s.t.Errorf("replaced twice: %d machines of the new image were started for %d, and the storm broke %q", started, machines, hurt)
	}
	g, _ = s.w.Cloud.Group(group)
	if living := len(s.living()); living != g.Desired {
		s.t.Errorf("%d machines live, and the target is %d", living, g.Desired)
	}
	s.t.Logf("storm %d: %d machines replaced by %d, %d ended by the agents", number, machines, started, len(ends))
	s.judge()
}

// living are the machines that live or start.
func (s *storms) living() (out []aws.Instance) {
	for _, i := range s.w.Cloud.Instances() {
		if i.State == "running" || i.State == "pending" {
			out = append(out, i)
		}
	}
	return out
}

func (s *storms) of(list []aws.Instance, image string) (out []aws.Instance) {
	for _, i := range list {
		if i.ImageID == image {
			out = append(out, i)
		}
	}
	return out
}
