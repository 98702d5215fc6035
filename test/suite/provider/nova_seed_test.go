package provider_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kelseyhightower/envconfig"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	groupsfile "github.com/autoscaler-agent/autoscaler-agent/agent/groups"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/nova"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/nova/section"
	openstackapi "github.com/autoscaler-agent/autoscaler-agent/agent/provider/openstack"
	"github.com/autoscaler-agent/autoscaler-agent/test/await"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/cloud/openstack"
)

// TestSeed002 plays what seed 002 (Nova without Magnum) tells, by its names: one YAML file
// (its conf.yml, our groups.yaml) with OpenStack's authentication, the minimum and maximum
// count of worker nodes and the time before an idle one goes; Nova, Glance and Neutron are
// asked, and neither Magnum nor Heat. Its plug-ins are externalgrpc's (TestPlugIn).
func TestSeed002(t *testing.T) {
	w := newNova(t, openstack.Options{})
	p, file := connectSeed002(t, w, "min: 1\n      max: 3\n      flavor: m1.large")
	if d := file.Groups["worker*"].Options.ScaleDownUnneededTime; d == nil || *d != 10*time.Minute {
		t.Errorf("an idle worker stays %v", d)
	}
	const worker cluster.GroupID = "worker"
	if g := readGroup(t, p, worker); g.Min != 1 || g.Max != 3 || g.Target != 0 {
		t.Errorf("%+v", g)
	}
	// A pod that has no place, and later nobody needs its machine.
	if err := p.Resize(t.Context(), worker, 0, 2); err != nil {
		t.Fatal(err)
	}
	w.settle(t)
	g := readGroup(t, p, worker)
	if g.Target != 2 || len(g.Instances) != 2 {
		t.Fatalf("%+v", g)
	}
	for _, s := range w.all() {
		if !strings.HasPrefix(s.Name, "worker-") || !strings.Contains(string(s.UserData), "JOIN_TOKEN=") {
			t.Errorf("server %s: %s", s.Name, s.UserData)
		}
	}
	if err := p.Delete(t.Context(), worker, g.Instances[0].ID); err != nil {
		t.Fatal(err)
	}
	w.settle(t)
	if g := readGroup(t, p, worker); g.Target != 1 {
		t.Errorf("%+v", g)
	}
	for _, call := range w.Calls() {
		if !slices.Contains([]string{"identity", "compute", "image", "network"}, call.Service) {
			t.Errorf("%s was asked: %s", call.Service, call.Action)
		}
	}
}

// connectSeed002 reads a groups.yaml with seed 002's settings, in which lines are those of the
// group's flavors and bounds, and logs in with a password as the seed does.
func connectSeed002(t *testing.T, w *novaWorld, lines string) (*nova.Provider, groupsfile.File) {
	t.Helper()
	t.Setenv("OS_APPLICATION_CREDENTIAL_ID", "")
	t.Setenv("OS_APPLICATION_CREDENTIAL_SECRET", "")
	for name, value := range map[string]string{"OS_USERNAME": openstack.DemoUser, "OS_PASSWORD": openstack.DemoPassword, "OS_PROJECT_NAME": openstack.DemoProject,
		"OS_USER_DOMAIN_NAME": "Default", "OS_PROJECT_DOMAIN_NAME": "Default", "OS_REGION_NAME": "RegionOne"} {
		t.Setenv(name, value)
	}
	text := fmt.Sprintf(`nova:
  cluster: kubernetes
  groups:
    - name: worker
      %s
      image: %s
      networks: [%s]
      securityGroups: [workers]
      key: %s
      userdata: %s
groups:
  "worker*":
    options:
      scaleDownUnneededTime: 600s
`, lines, openstack.ImageName, openstack.NetworkName, openstack.KeyName, w.script)
	var kept json.RawMessage
	file, err := groupsfile.Parse([]byte(text), map[string]groupsfile.Section{"nova": func(raw json.RawMessage) error {
		kept = slices.Clone(raw)
		_, err := section.Parse(raw)
		return err
	}})
	if err != nil {
		t.Fatal(err)
	}
	p, err := nova.New(nova.Config{ParallelCreates: 2}, openstackapi.Config{Timeout: await.Limit}, func() json.RawMessage { return kept }, reservation, nova.WithTokens(tokens))
	if err != nil {
		t.Fatal(err)
	}
	return p, file
}

// TestSeed002PicksFlavors: the seed's program makes a server of the first flavor that is large
// enough for a pod. Here each flavor is a group, and what is bought is what the pods need:
// nothing of the large flavor for a small pod, nothing of the small one for a large pod.
func TestSeed002PicksFlavors(t *testing.T) {
	for what, c := range map[string]struct {
		memory, pods int64 // of each pod in MiB
		want         []string
	}{
		"a small pod":                     {1500, 1, []string{"m1.medium"}},
		"a pod that only the large holds": {5000, 1, []string{"m1.large"}},
		"two large pods":                  {5000, 2, []string{"m1.large", "m1.large"}},
	} {
		t.Run(what, func(t *testing.T) {
			w := newNova(t, openstack.Options{})
			p, file := connectSeed002(t, w, "max: 3\n      flavors: [m1.medium, m1.large]")
			groups, err := p.Groups(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			file.Apply(groups, reservation)
			for _, g := range groups {
				if d := g.Options.ScaleDownUnneededTime; d == nil || *d != 10*time.Minute || g.Max != 3 {
					t.Errorf("the pattern worker* and the section's maximum do not hold for %+v", g)
				}
			}
			now := time.Now()
			s := cluster.Snapshot{Now: now, Groups: groups, Classes: []cluster.PodClass{{Namespace: "default", Requests: cluster.Resources{MilliCPU: 500, Memory: c.memory << 20, Pods: 1}}}}
			for n := range c.pods {
				name := fmt.Sprintf("pod-%d", n)
				s.Pods = append(s.Pods, cluster.Pod{Key: cluster.PodKey("default/" + name), UID: cluster.UID(name), Created: cluster.At(now.Add(-time.Minute)), Unschedulable: cluster.At(now.Add(-time.Minute))})
			}
			var policy decision.Policy
			if err := envconfig.Process("NOBODY_SETS_THIS", &policy); err != nil {
				t.Fatal(err)
			}
			decided, _ := plan.Decide(s, decision.Memory{}, policy)
			for _, action := range decided.Actions {
				if grow, ok := action.(decision.Grow); ok {
					if err := p.Resize(t.Context(), grow.Group, grow.From, grow.To); err != nil {
						t.Fatal(err)
					}
				}
			}
			var got []string
			for _, server := range w.all() {
				got = append(got, server.Flavor.Name)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("servers of %v, want %v\n%s", got, c.want, decided)
			}
		})
	}
}
