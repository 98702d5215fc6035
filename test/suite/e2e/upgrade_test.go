package e2e

import (
	"strings"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/cloud/aws"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/world"
)

// TestUpgrade: machines with user data for the minor version before the API server's are replaced by machines with the API
// server's, because the agent publishes it: on AWS as a version of the launch template, on Nova in what new servers get.
func TestUpgrade(t *testing.T) {
	for _, provider := range []string{"asg", "nova"} {
		t.Run(provider, func(t *testing.T) {
			t.Parallel() // it mostly waits
			s := newScene(t, func(o *world.Options) {
				o.Providers = []string{provider}
				o.Pace = world.Pace{Launch: 300 * time.Millisecond, Boot: 300 * time.Millisecond, Terminate: 300 * time.Millisecond, Seed: 7}
			})
			cloud := s.w.Clouds[0]
			s.start() // it publishes what the user data is rendered with
			data, err := s.w.RenderUserData(t.Context(), s.binary, append(cloud.RenderFlags(), "--kubernetes-version", "v1.35.2", "--label", "example.net/pool=web")...)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := s.w.PutWorkersIn(t.Context(), cloud, world.Workers{Name: "workers", Max: 4, UserData: data}); err != nil {
				t.Fatal(err)
			}
			s.deploy("web", 2, "1500m", "64Mi")
			s.until("web Running", func() bool { return s.running("web") == 2 })
			first := map[string]bool{}
			for _, i := range cloud.Instances("workers") {
				first[i.ID] = i.Alive
			}
			if out, _ := s.check(); !strings.Contains(out, "install Kubernetes v1.35.2, 1 minor versions older than the API server") {
				t.Errorf("check does not tell that the group is behind:\n%s", out)
			}

			s.agent.Kill()
			env := []string{"AUTOSCALER_BOOTSTRAP_UPGRADE=minor", "AUTOSCALER_SCALING_DRIFT=true", "AUTOSCALER_SCALING_UNNEEDED_FOR=3s", "AUTOSCALER_SCALING_DELAY_AFTER_ADD=1s",
				"AUTOSCALER_SCALING_DELAY_AFTER_TAINT=500ms", "AUTOSCALER_OBSERVE_SLOW=2s"}
			if provider == "asg" {
				env = append(env, "AUTOSCALER_BOOTSTRAP_LAUNCH_TEMPLATES="+s.w.Cloud.LaunchTemplateID("workers"))
			}
			s.start(env...)
			start := time.Now()
			s.patient(3*time.Minute, "every machine is a new one", func() bool {
				alive := 0
				for _, i := range cloud.Instances("workers") {
					if i.Alive && first[i.ID] {
						return false
					}
					if i.Alive {
						alive++
					}
				}
				return alive > 0 && s.running("web") == 2
			})
			t.Logf("replaced after %s", time.Since(start).Round(time.Second))
			if provider == "asg" {
				made := s.w.Cloud.Calls(func(c aws.Call) bool { return c.Action == "CreateLaunchTemplateVersion" })
				if len(made) != 1 {
					t.Errorf("%d versions of the launch template were made", len(made))
				}
			}
			if out, _ := s.command("explain", "group", "workers"); !strings.Contains(out, "example.net/pool=web") {
				t.Errorf("the new machines have not the label of the old user data:\n%s", out)
			}
		})
	}
}
