// Package fakeworld lets package providertest play with the fake cloud. It is for
// tests only, and refuses to be more than the glue between the two.
package fakeworld

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
	"github.com/autoscaler-agent/autoscaler-agent/internal/testing/fake"
	"github.com/autoscaler-agent/autoscaler-agent/internal/testing/providertest"
)

// World is the fake behind the suite.
type World struct{ *fake.Cloud }

// New makes a fake with the suite's groups.
func New(testing.TB) (provider.Provider, providertest.World) {
	w := Of("", providertest.Workers, providertest.Others)
	return w.Cloud, w
}

// Of makes a fake with some of the suite's groups; name is the cloud's.
func Of(name string, groups ...cluster.GroupID) World {
	c := fake.New(time.Now())
	c.Name = name
	for _, g := range []cluster.NodeGroup{
		{ID: providertest.Workers, Min: 0, Max: 10, Target: 2},
		{ID: providertest.Others, Min: 1, Max: 3, Target: 1},
	} {
		if !slices.Contains(groups, g.ID) {
			continue
		}
		g.Template = cluster.Template{
			Spec:        "spec of " + string(g.ID),
			Source:      cluster.Spec{"image": "image-1", "user data": "sha256:1"},
			Capacity:    cluster.Resources{MilliCPU: 2000, Memory: 8 << 30, Pods: 110, Extended: map[string]int64{"fake.example/gpu": 1}},
			Allocatable: cluster.Resources{MilliCPU: 1900, Memory: 7 << 30, Pods: 110, Extended: map[string]int64{"fake.example/gpu": 1}},
			Labels:      map[string]string{"kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"},
			Taints:      []cluster.Taint{{Key: "k", Value: "v", Effect: "NoSchedule"}},
		}
		g.Warnings = []string{"a warning"}
		c.AddGroup(g)
	}
	w := World{c}
	Settle(nil, w)
	return w
}

// Settle lets an hour pass in three steps, less than the fake's memory of what is
// gone.
func Settle(_ testing.TB, w providertest.World) {
	c := w.(World).Cloud
	c.Step(0)
	c.Step(c.Boot)
	c.Step(c.Shutdown)
	c.Step(c.Boot)
}

// Foreign implements providertest.World.
func (w World) Foreign(testing.TB) cluster.InstanceID { return w.AddLoose() }

// ForeignAlive implements providertest.World.
func (w World) ForeignAlive(id cluster.InstanceID) bool { return slices.Contains(w.Alive(""), id) }

// Node implements providertest.World.
func (w World) Node(id cluster.InstanceID) cluster.Node {
	groups, err := w.Groups(context.Background())
	if err != nil {
		return cluster.Node{}
	}
	for _, g := range groups {
		for _, i := range g.Instances {
			if i.ID == id {
				return cluster.Node{Name: cluster.NodeName(i.NodeNames[0]), ProviderID: string(id), Addresses: []string{i.Addresses[0].String(), i.NodeNames[0]}}
			}
		}
	}
	return cluster.Node{}
}

// Vanish implements providertest.World.
func (w World) Vanish(id cluster.GroupID) { w.RemoveGroup(id) }

// Quota implements providertest.World.
func (w World) Quota(_ testing.TB, on bool) {
	var f *cluster.Failure
	if on {
		f = &cluster.Failure{Cause: cluster.CauseQuota, Text: "quota exceeded"}
	}
	w.Block(providertest.Workers, f)
}

// Throttle implements providertest.World.
func (w World) Throttle(_ testing.TB, on bool) {
	w.down(on, &provider.Error{Op: "call", Kind: provider.Transient, Err: errors.New("throttled")})
}

// Expire implements providertest.World.
func (w World) Expire(_ testing.TB, on bool) {
	w.down(on, &provider.Error{Op: "call", Kind: provider.Denied, Err: errors.New("expired"), Remedy: "renew the credentials"})
}

func (w World) down(on bool, err error) {
	if !on {
		err = nil
	}
	w.Down(err)
}

// RefuseDeletes implements providertest.World.
func (w World) RefuseDeletes(_ testing.TB, on bool) {
	if !on {
		w.RefuseDelete(nil)
		return
	}
	w.RefuseDelete(&provider.Error{Op: "delete", Group: providertest.Workers, Kind: provider.Denied, Err: errors.New("not allowed"), Remedy: "allow it"})
}

// BreakRead implements providertest.World.
func (w World) BreakRead(_ testing.TB, on bool) {
	if !on {
		w.Cloud.BreakRead(providertest.Workers, nil)
		return
	}
	w.Cloud.BreakRead(providertest.Workers, &provider.Error{Op: "read", Group: providertest.Workers, Kind: provider.Transient, Err: errors.New("half a page")})
}

// BreakTemplate implements providertest.BreakTemplate.
func (w World) BreakTemplate(_ testing.TB, on bool) {
	var err error
	if on {
		err = &provider.Error{Op: "resolve template", Group: providertest.Workers, Kind: provider.Transient, Err: errors.New("throttled")}
	}
	w.Cloud.BreakTemplate(providertest.Workers, err)
}

// Forms implements providertest.Forms.
func (w World) Forms(id cluster.InstanceID) []string {
	short := string(id[strings.LastIndexByte(string(id), '/')+1:])
	return []string{string(id), "fake://" + short, short, strings.ToUpper(short)}
}

// FailLaunches implements providertest.FailLaunches.
func (w World) FailLaunches(_ testing.TB, on bool) {
	var f *cluster.Failure
	if on {
		f = &cluster.Failure{Cause: cluster.CauseInvalid, Text: "no such image"}
	}
	w.Spoil(providertest.Workers, f)
}

// LimitCapacity implements providertest.LimitCapacity.
func (w World) LimitCapacity(_ testing.TB, on bool) {
	var f *cluster.Failure
	if on {
		f = &cluster.Failure{Cause: cluster.CauseCapacity, Text: "no such machine now", Zone: "zone-1"}
	}
	w.Block(providertest.Workers, f)
}

// RefuseOneDelete implements providertest.RefuseOneDelete.
func (w World) RefuseOneDelete(testing.TB) {
	w.RefuseOne(provider.Error{Op: "delete", Kind: provider.Denied, Err: errors.New("not this one")})
}

// ExpireAfter implements providertest.ExpireAfter.
func (w World) ExpireAfter(_ testing.TB, calls int) {
	w.DownAfter(calls, &provider.Error{Op: "call", Kind: provider.Denied, Err: errors.New("expired"), Remedy: "renew the credentials"})
}

// Lag implements providertest.Lag.
func (w World) Lag(_ testing.TB, on bool) { w.Freeze(on) }

// Hang implements providertest.Hang.
func (w World) Hang(_ testing.TB, on bool) { w.Cloud.Hang(on) }

// LoseAnswer implements providertest.LoseAnswer.
func (w World) LoseAnswer(testing.TB) {
	w.Cloud.LoseAnswer(&provider.Error{Op: "call", Kind: provider.Transient, Unsure: true, Err: errors.New("connection reset")})
}

// Pause implements providertest.Pause.
func (w World) Pause(_ testing.TB, on bool) {
	w.Edit(providertest.Workers, func(g *cluster.NodeGroup) {
		g.Paused = ""
		if on {
			g.Paused = "somebody suspended launches"
		}
	})
}

// Furnish implements providertest.Furnish.
func (w World) Furnish(testing.TB) {
	w.Edit(providertest.Workers, func(g *cluster.NodeGroup) {
		g.Template.Labels = maps.Clone(g.Template.Labels)
		g.Template.Labels[providertest.FurnishLabel[0]] = providertest.FurnishLabel[1]
		g.Template.Taints = append(slices.Clone(g.Template.Taints), providertest.FurnishTaint)
	})
}

// ChangeTemplate implements providertest.ChangeTemplate.
func (w World) ChangeTemplate(testing.TB) {
	w.Edit(providertest.Workers, func(g *cluster.NodeGroup) {
		g.Template.Spec += ", changed"
		g.Template.Source = maps.Clone(g.Template.Source)
		g.Template.Source["image"] = "image-2"
	})
}

// RotateJoin implements providertest.RotateJoin: the key of the template changes, as the user
// data does, and its source does not.
func (w World) RotateJoin(testing.TB) {
	w.Edit(providertest.Workers, func(g *cluster.NodeGroup) { g.Template.Spec += ", new token" })
}

// ChangeUserData implements providertest.ChangeUserData.
func (w World) ChangeUserData(testing.TB) {
	w.Edit(providertest.Workers, func(g *cluster.NodeGroup) {
		g.Template.Spec += ", other user data"
		g.Template.Source = maps.Clone(g.Template.Source)
		g.Template.Source["user data"] = "sha256:2"
	})
}
