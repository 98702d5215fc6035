package all

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/kelseyhightower/envconfig"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
	"github.com/autoscaler-agent/autoscaler-agent/internal/testing/fake"
)

func TestAnUnknownNameListsTheKnownOnes(t *testing.T) {
	_, err := New(context.Background(), "gcp", Config{}, cluster.Reservation{})
	if err == nil || !strings.Contains(err.Error(), `"gcp"`) || !strings.Contains(err.Error(), "asg") {
		t.Errorf("%v", err)
	}
}

func TestAKnownNameValidatesItsOwnConfiguration(t *testing.T) {
	_, err := New(context.Background(), "asg", Config{}, cluster.Reservation{})
	if err == nil || !strings.Contains(err.Error(), "AUTOSCALER_AWS_") {
		t.Errorf("%v", err)
	}
}

func TestTheConfigurationIsReadByEnvconfig(t *testing.T) {
	t.Setenv("AUTOSCALER_AWS_CLUSTER_NAME", "demo")
	var c struct{ Config }
	if err := envconfig.Process("AUTOSCALER", &c); err != nil {
		t.Fatal(err)
	}
	if err := envconfig.CheckDisallowed("AUTOSCALER", &c); err != nil || c.AWS.ClusterName != "demo" {
		t.Errorf("%+v, %v", c.AWS, err)
	}
}

// twoClouds are two more for the time of a test: "x" can be made while up says so.
func twoClouds(t *testing.T, up *bool, made *int) {
	before := clouds
	t.Cleanup(func() { clouds = before })
	clouds = maps.Clone(clouds)
	one := func(name string, ok func() bool) cloud {
		return cloud{
			make: func(context.Context, Config, cluster.Reservation) (provider.Provider, error) {
				if !ok() {
					return nil, errors.New("no route to " + name)
				}
				*made++
				c := fake.New(time.Now())
				c.AddGroup(cluster.NodeGroup{ID: cluster.GroupID("group-of-" + name), Max: 3})
				return c, nil
			},
			validate: func(Config) error { return errors.New(name + " is not configured") },
			section:  func(json.RawMessage) error { return nil },
		}
	}
	clouds["x"], clouds["y"] = one("x", func() bool { return *up }), one("y", func() bool { return true })
}

func TestListsOfProviders(t *testing.T) {
	up, made := true, 0
	twoClouds(t, &up, &made)
	for list, want := range map[string]string{"x": "x", "x,y": "x y", " y , x ": "y x", "aws": "asg", "aws,x": "asg x"} {
		if got, err := Split(list); err != nil || strings.Join(got, " ") != want {
			t.Errorf("%q: %v, %v", list, got, err)
		}
	}
	for list, want := range map[string]string{"": `""`, "x,": `""`, "x,y,x": `"x" stands twice`, "asg,aws": `"asg" stands twice`, "x,gcp": "known are: asg"} {
		if got, err := Split(list); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, %v", list, got, err)
		}
	}
	if err := (Config{}).Validate("x,y"); err == nil || err.Error() != "x is not configured\ny is not configured" {
		t.Errorf("%v", err)
	}
	if s := Sections(); s["x"] == nil || s["asg"] == nil || InSection("asg") || !InSection("x") {
		t.Errorf("%v", s)
	}
	if got := NoGroups("x"); got != "describe one in section x of groups.yaml" {
		t.Errorf("%s", got)
	}
	if got := NoGroups("asg", "x"); !strings.Contains(got, "asg: set AUTOSCALER_AWS_CLUSTER_NAME") || !strings.Contains(got, "; x: describe") {
		t.Errorf("%s", got)
	}
}

// TestOneOfSeveralCannotBeMade: it costs the others nothing, and is made when it can be.
func TestOneOfSeveralCannotBeMade(t *testing.T) {
	up, made := false, 0
	twoClouds(t, &up, &made)
	ctx := context.Background()
	if _, err := New(ctx, "x", Config{}, cluster.Reservation{}); err == nil || !strings.Contains(err.Error(), "provider x: no route to x") {
		t.Errorf("the only one: %v", err)
	}
	p, err := New(ctx, "x,y", Config{}, cluster.Reservation{})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		groups, err := p.Groups(ctx)
		if len(groups) != 1 || groups[0].ID != "group-of-y" || groups[0].Provider != "y" {
			t.Errorf("%+v", groups)
		}
		if list := provider.Errors(err); len(list) != 1 || list[0].Provider != "x" || !strings.Contains(err.Error(), "no route to x") {
			t.Errorf("%v", err)
		}
	}
	if err := p.Resize(ctx, "group-of-x", 0, 1); err == nil || provider.KindOf(err) == provider.NotFound {
		t.Errorf("whether the group is there is not known: %v", err)
	}
	up = true
	for range 2 {
		if groups, err := p.Groups(ctx); len(groups) != 2 || err != nil {
			t.Errorf("%+v, %v", groups, err)
		}
	}
	if err := p.Resize(ctx, "group-of-x", 0, 1); err != nil || made != 2 {
		t.Errorf("%v, made %d", err, made)
	}
}
