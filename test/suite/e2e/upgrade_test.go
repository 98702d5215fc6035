package e2e

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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
			if out, _ := s.check(); !strings.Contains(out, "install Kubernetes v1.35.2, 1 minor version older than the API server") {
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
			fresh := ""
			s.until("a machine is ordered in place of the old one, and the pods move there", func() bool {
				for _, i := range cloud.Instances("workers") {
					if i.Alive && !first[i.ID] {
						fresh = i.ID
					}
				}
				return fresh != "" && s.podsOn("web", fresh) == 2 && s.running("web") == 2
			})
			t.Logf("moved after %s", time.Since(start).Round(time.Second))
			s.journal("in place of ", "it is drifted: Kubernetes version: v1.35.2, wanted v1.36.")
			if out, _ := s.command("nodes"); !strings.Contains(out, "Kubernetes version") {
				t.Errorf("nodes does not tell in what the old machine differs:\n%s", out)
			}
			if provider == "asg" {
				made := s.w.Cloud.Calls(func(c aws.Call) bool { return c.Action == "CreateLaunchTemplateVersion" })
				if len(made) != 1 {
					t.Errorf("%d versions of the launch template were made", len(made))
				}
			}
			nodes := s.nodes()
			for _, n := range nodes {
				if n.Labels["example.net/pool"] != "web" {
					t.Errorf("node %s has not the label of the user data: %v", n.Name, n.Labels)
				}
			}
		})
	}
}

// podsOn counts the pods of an app on the Node of an instance.
func (s *scene) podsOn(app, instance string) (n int) {
	on := map[string]bool{}
	for _, node := range s.nodes() {
		if strings.HasSuffix(node.Spec.ProviderID, "/"+instance) {
			on[node.Name] = true
		}
	}
	pods, err := s.client.CoreV1().Pods("default").List(s.t.Context(), metav1.ListOptions{LabelSelector: "app=" + app})
	if err != nil {
		return 0
	}
	for i := range pods.Items {
		if on[pods.Items[i].Spec.NodeName] {
			n++
		}
	}
	return n
}
