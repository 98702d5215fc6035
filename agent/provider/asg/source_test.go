package asg

import (
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	asgtypes "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
)

// TestSourcesAreShared: the machines of one origin share one map, from one read to the next, a
// narrowed one among them; the maps of machines that are gone are forgotten. A machine that EC2
// does not list yet tells what its launch template does.
func TestSourcesAreShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(2, 3)
		p := newProvider(Config{ClusterName: "demo", Timeout: 10 * time.Second}, cluster.Reservation{MaxPods: 110}, "eu-west-1", f, f)
		read := func(only ...cluster.GroupID) (maps map[uintptr]int) {
			t.Helper()
			ctx := t.Context()
			if len(only) > 0 {
				ctx = provider.WithOnly(ctx, only)
			}
			groups, err := p.Groups(ctx)
			if err != nil {
				t.Fatal(err)
			}
			maps = map[uintptr]int{}
			for _, g := range groups {
				for _, in := range g.Instances {
					if d := in.Source.Differences(g.Template.Source); len(d) > 0 || in.Source["instance type"] != "m5.large" {
						t.Errorf("%s tells %v and differs: %v", in.ID, in.Source, d)
					}
					maps[reflect.ValueOf(in.Source).Pointer()]++
				}
			}
			return maps
		}
		first := read()
		if len(first) != 2 {
			t.Errorf("%d maps for the machines of two launch templates", len(first))
		}
		for _, only := range [][]cluster.GroupID{nil, {"g001"}, nil} {
			time.Sleep(time.Minute)
			for at, n := range read(only...) {
				if first[at] != n {
					t.Errorf("a read of %v has other maps", only)
				}
			}
		}
		f.mu.Lock()
		f.groups[0].Instances, f.groups[0].DesiredCapacity = nil, aws.Int32(0)
		f.mu.Unlock()
		if read(); len(p.sources.byOrigin) != 1 {
			t.Errorf("%d maps are kept for the machines of one launch template", len(p.sources.byOrigin))
		}
	})
}

// A machine that was attached, or is of a launch configuration, tells what EC2 knows of it.
func TestSourceWithoutALaunchTemplate(t *testing.T) {
	of := machine{image: "ami-1", subnet: "subnet-a", instance: cluster.Instance{Type: "m5.large"}}
	for name, m := range map[string]asgtypes.Instance{"attached": {}, "of a launch configuration": {LaunchConfigurationName: aws.String("old"), InstanceType: aws.String("m5.large")}} {
		got := originOf(&m, of, false).spec(nil)
		if want := (cluster.Spec{"image": "ami-1", "subnet": "subnet-a", "instance type": "m5.large"}); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v", name, got)
		}
	}
	if got := originOf(&asgtypes.Instance{}, machine{}, false).spec(nil); len(got) != 0 {
		t.Errorf("a machine that nobody describes tells %v", got)
	}
}
