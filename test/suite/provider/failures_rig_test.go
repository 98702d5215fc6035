package provider_test

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kelseyhightower/envconfig"
	"github.com/sirupsen/logrus"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/record"

	"github.com/autoscaler-agent/autoscaler-agent/agent/act"
	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/inventory"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/asg"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/wrap"
	memory "github.com/autoscaler-agent/autoscaler-agent/internal/testing/fake"
	"github.com/autoscaler-agent/autoscaler-agent/internal/testing/kubetest"
	"github.com/autoscaler-agent/autoscaler-agent/test/await"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/cloud/aws"
)

// The groups of a rig: two of an AWS on the wire, one of a cloud in memory.
const (
	groupA cluster.GroupID = "a"         // AWS, m5.large
	groupB cluster.GroupID = "b"         // AWS, c5.large, another image
	groupE cluster.GroupID = "elsewhere" // the other cloud
)

var allGroups = []cluster.GroupID{groupA, groupB, groupE}

// rig is an agent's scaling loop over two clouds: the inventory's reads, the plan's
// decisions and the executor's calls are the product's own; only the Kubernetes half of
// each Snapshot is made up. Each group has one machine with its Node, and room for more.
type rig struct {
	*testing.T
	aws      *world
	other    *memory.Cloud
	cloud    provider.Provider
	inv      *inventory.Inventory
	executor *act.Executor
	log      *bytes.Buffer
	policy   decision.Policy

	memory   decision.Memory
	outcomes []cluster.Outcome
	nodes    []*cluster.Node
	later    time.Duration // how far the clock of decisions is ahead
	last     decision.Plan
}

const pool = "pool" // the label by which pods choose their group

func newRig(t *testing.T) *rig {
	r := &rig{T: t, aws: empty(t, options()), log: &bytes.Buffer{}}
	for i, id := range []cluster.GroupID{groupA, groupB} {
		name := string(id)
		r.aws.PutLaunchTemplate(aws.LaunchTemplate{Name: name, InstanceType: []string{"m5.large", "c5.large"}[i],
			ImageID: fmt.Sprintf("ami-0000000000000000%d", i), UserData: "#!/bin/sh\n"})
		err := r.aws.PutGroup(aws.Group{Name: name, Max: 10, Desired: 1, LaunchTemplate: name, ProtectNew: true, KeepTags: true,
			Tags: map[string]string{"k8s.io/cluster-autoscaler/node-template/label/" + pool: name}})
		if err != nil {
			t.Fatal(err)
		}
	}
	r.other = memory.New(time.Now())
	r.other.AddGroup(cluster.NodeGroup{ID: groupE, Max: 10, Target: 1, Template: cluster.Template{
		Spec: "s", Labels: map[string]string{pool: string(groupE)},
		Capacity:    cluster.Resources{MilliCPU: 2000, Memory: 8 << 30, Pods: 110},
		Allocatable: cluster.Resources{MilliCPU: 2000, Memory: 8 << 30, Pods: 110},
	}})
	r.use(r.other)
	if err := envconfig.Process("NOBODY_SETS_THIS", &r.policy); err != nil {
		t.Fatal(err)
	}
	r.policy.FreshFor = 24 * time.Hour // the clock of decisions jumps
	r.settle()
	r.read()
	groups, _, err := r.inv.Last()
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range groups {
		for _, in := range g.Instances {
			r.nodes = append(r.nodes, &cluster.Node{
				Name: cluster.NodeName(in.NodeNames[0]), ProviderID: string(in.ID), Created: in.Created, Ready: cluster.StatusTrue, ReadySince: in.Created,
				Labels: map[string]string{pool: string(g.ID)}, Annotations: map[string]string{cluster.AnnotationNoScaleDown: "true"},
				Capacity: cluster.Resources{MilliCPU: 100, Memory: 1 << 30, Pods: 110}, Allocatable: cluster.Resources{MilliCPU: 100, Memory: 1 << 30, Pods: 110},
			})
		}
	}
	if len(r.nodes) != len(allGroups) {
		t.Fatalf("%d machines, want one for each group", len(r.nodes))
	}
	return r
}

// use makes the loop anew with another provider beside AWS.
func (r *rig) use(other provider.Provider) {
	log := logrus.New()
	log.SetOutput(r.log)
	r.cloud = wrap.Timeout(wrap.Join(map[string]provider.Provider{
		"asg": r.aws.connect(r, asg.Config{Groups: []string{string(groupA), string(groupB)}}), "other": other,
	}), 1500*time.Millisecond)
	r.inv = inventory.New(r.cloud, time.Second, time.Minute, 5*time.Second, log.WithField("service", "inventory"))
	r.executor = &act.Executor{Client: kubetest.Client(fake.NewClientset()), Cloud: r.cloud, Recorder: record.NewFakeRecorder(10000), Log: log.WithField("service", "scaler")}
}

// read lets the inventory read once, and tell the journal as it does.
func (r *rig) read() {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	r.inv.Refresh() // a loop that has just read would wait for its next time
	beats := 0
	beat := func() { // before the read, and when it is over
		if beats++; beats == 2 {
			cancel()
		}
	}
	if err := r.inv.Run(ctx, beat); err != nil {
		r.Fatal(err)
	}
}

// round is one round of the agent: read, decide, act. want is how many new machines'
// worth of pods wait for each group. It returns all that was told of it.
func (r *rig) round(want int) string {
	r.Helper()
	r.log.Reset()
	r.read()
	groups, _, _ := r.inv.Last() // what is wrong is in the groups and in the journal
	now := time.Now().Add(r.later)
	s := cluster.Snapshot{Now: now, Groups: groups, Nodes: r.nodes, Outcomes: r.outcomes}
	for i, id := range allGroups {
		s.Classes = append(s.Classes, cluster.PodClass{Namespace: "default", NodeSelector: map[string]string{pool: string(id)},
			Requests: cluster.Resources{MilliCPU: 1100, Memory: 1 << 20, Pods: 1}})
		for n := range want {
			name := fmt.Sprintf("%s-%d", id, n)
			s.Pods = append(s.Pods, cluster.Pod{Key: cluster.PodKey("default/" + name), UID: cluster.UID(name), Class: i,
				Created: cluster.At(now.Add(-time.Minute)), Unschedulable: cluster.At(now.Add(-time.Minute))})
		}
	}
	r.last, r.memory = plan.Decide(s, r.memory, r.policy)
	r.outcomes = r.executor.Do(r.Context(), r.last)
	return r.log.String() + r.last.String() + told(groups)
}

// told is what `status` shows of the groups.
func told(groups []cluster.NodeGroup) string {
	var b strings.Builder
	for _, g := range groups {
		for _, text := range append([]string{g.Stale, g.Paused, g.Template.Unknown}, g.Warnings...) {
			if text != "" {
				fmt.Fprintf(&b, "group %s: %s\n", g.ID, text)
			}
		}
		for _, f := range g.Failures {
			fmt.Fprintf(&b, "group %s: %s: %s\n", g.ID, f.Cause, f.Text)
		}
		for _, in := range g.Instances {
			if in.Failure != nil {
				fmt.Fprintf(&b, "group %s: %s: %s: %s\n", g.ID, in.ID, in.Failure.Cause, in.Failure.Text)
			}
		}
	}
	return b.String()
}

// target and alive ask the clouds themselves.
func (r *rig) target(id cluster.GroupID) int {
	if id == groupE {
		return r.other.Target(id)
	}
	return r.aws.Target(id)
}

func (r *rig) alive(id cluster.GroupID) []cluster.InstanceID {
	if id == groupE {
		return r.other.Alive(id)
	}
	return r.aws.Alive(id)
}

// settle waits until the groups have their machines.
func (r *rig) settle(groups ...cluster.GroupID) {
	r.Helper()
	for range 4 {
		r.other.Step(30 * time.Second)
	}
	for _, id := range []cluster.GroupID{groupA, groupB} {
		if len(groups) > 0 && !slices.Contains(groups, id) {
			continue
		}
		await.True(r, "group "+string(id)+" has its machines", func() bool {
			g, _ := r.aws.Group(string(id))
			return g.Lifecycles()["InService"] == g.Desired && len(g.Instances) == g.Desired
		})
	}
}

// settleSome settles what the trouble is not about, and lets the rest try.
func (r *rig) settleSome(sound []cluster.GroupID) {
	r.Helper()
	if !slices.Contains(sound, groupA) && !slices.Contains(sound, groupB) {
		sound = []cluster.GroupID{groupE}
	}
	r.settle(sound...)
}
