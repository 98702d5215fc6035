package provider_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	groupsfile "github.com/autoscaler-agent/autoscaler-agent/agent/groups"
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
      min: 1
      max: 3
      flavor: m1.large
      image: %s
      networks: [%s]
      securityGroups: [workers]
      key: %s
      userdata: %s
groups:
  worker:
    options:
      scaleDownUnneededTime: 5m
`, openstack.ImageName, openstack.NetworkName, openstack.KeyName, w.script)
	var kept json.RawMessage
	file, err := groupsfile.Parse([]byte(text), map[string]groupsfile.Section{"nova": func(raw json.RawMessage) error {
		kept = slices.Clone(raw)
		_, err := section.Parse(raw)
		return err
	}})
	if err != nil {
		t.Fatal(err)
	}
	if d := file.Groups["worker"].Options.ScaleDownUnneededTime; d == nil || *d != 5*time.Minute {
		t.Errorf("an idle worker stays %v", d)
	}
	p, err := nova.New(nova.Config{ParallelCreates: 2}, openstackapi.Config{Timeout: await.Limit}, func() json.RawMessage { return kept }, reservation, nova.WithTokens(tokens))
	if err != nil {
		t.Fatal(err)
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
