package doctor

import (
	"errors"
	"strings"
	"testing"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/config"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/all"
)

func TestCheckNamesTheProvider(t *testing.T) {
	e := &provider.Error{Op: "read", Provider: "nova", Kind: provider.Denied, Err: errors.New("401"), Remedy: "renew the application credential"}
	if f := cloudFinding(e); f.About != "provider nova" || f.Text != "read: denied: 401" || f.Remedy != e.Remedy {
		t.Errorf("%+v", f)
	}
	e.Group = "gpu"
	if f := cloudFinding(e); f.About != "group gpu" || !strings.Contains(f.Text, "401") {
		t.Errorf("%+v", f)
	}
}

func TestCheckCountsTheGroupsOfEachProvider(t *testing.T) {
	one := config.Config{Provider: "asg"}
	if got := checkProviders(one, nil, nil); len(got) != 1 || got[0].Level != LevelError || !strings.Contains(got[0].Remedy, "AUTOSCALER_AWS_CLUSTER_NAME") {
		t.Errorf("%+v", got)
	}
	if got := checkProviders(one, []cluster.NodeGroup{{ID: "g"}}, nil); len(got) != 0 {
		t.Errorf("%+v", got)
	}
	if len(all.Names()) < 2 {
		t.Skip("there is only one provider")
	}
	other := all.Names()[0]
	if other == "asg" {
		other = all.Names()[1]
	}
	two := config.Config{Provider: "asg," + other}
	got := checkProviders(two, []cluster.NodeGroup{{ID: "g", Provider: "asg"}, {ID: "h", Provider: "asg"}}, nil)
	if len(got) != 2 || got[0].Text != "2 node groups" || got[1].About != "provider "+other || got[1].Level != LevelError || got[1].Remedy == "" {
		t.Errorf("%+v", got)
	}
	down := &provider.Error{Op: "read", Provider: other, Err: errors.New("down")}
	if got := checkProviders(two, []cluster.NodeGroup{{ID: "g", Provider: "asg"}}, down); len(got) != 1 {
		t.Errorf("a provider that could not be read was told about already: %+v", got)
	}
	// What is left out because its name stands twice was found.
	twice := &provider.Error{Op: "read", Group: "workers", Kind: provider.Invalid, Err: provider.Duplicate{Providers: []string{"asg", other}}, Remedy: "rename one of them"}
	if got := checkProviders(two, nil, twice); len(got) != 0 {
		t.Errorf("duplicates are told of as missing groups: %+v", got)
	}
	if f := cloudFinding(twice); f.About != "group workers" || !strings.Contains(f.Text, "asg and "+other+" have a node group of this name") {
		t.Errorf("%+v", f)
	}
}

// TestExposedIsAWarning: a launch template whose machines let pods ask the metadata service is a warning with its remedy.
func TestExposedIsAWarning(t *testing.T) {
	got := Group(cluster.NodeGroup{ID: "g", Max: 1, Exposed: "launch template lt version 1 has a hop limit of 2"})
	if len(got) != 1 || got[0].Level != LevelWarning || !strings.HasSuffix(got[0].Text, "hop limit of 2") || !strings.Contains(got[0].Remedy, `"HttpPutResponseHopLimit":1`) {
		t.Errorf("%+v", got)
	}
}
