package localapi

import (
	"cmp"
	"fmt"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/election"
	"github.com/autoscaler-agent/autoscaler-agent/agent/page/fleet"
	"github.com/autoscaler-agent/autoscaler-agent/agent/page/trouble"
	"github.com/autoscaler-agent/autoscaler-agent/internal/version"
)

// Status is what the local API tells under /status.
type Status struct {
	Version string    `json:"version"`
	Node    string    `json:"node"`
	Since   time.Time `json:"since"`
	Acting  bool      `json:"acting"`
	Why     string    `json:"why,omitempty"` // why it does not act
	// StandsBy tells that this is as it should be: another agent acts.
	StandsBy bool `json:"standsBy,omitempty"`
	// Troubles has the troubles of this moment, the gravest first, with cause and remedy.
	Troubles []trouble.Trouble `json:"troubles,omitempty"`
	Stale    string            `json:"stale,omitempty"`
	Settings string            `json:"settings,omitempty"` // why groups.yaml as it is now is not in force
	Cloud    string            `json:"cloud,omitempty"`    // what is wrong with the last read
	CloudAt  time.Time         `json:"cloudAt,omitzero"`
	Late     []string          `json:"late,omitempty"`
	// Unread is what was not read since the agent started: the figures of it are unknown, and not zero.
	Unread   []string      `json:"unread,omitempty"`
	Services []string      `json:"services"`
	Nodes    int           `json:"nodes"`
	Ready    int           `json:"ready"`
	Pods     int           `json:"pods"`
	Pending  int           `json:"pending"`
	Groups   []GroupStatus `json:"groups"` // those that the cloud has
	// Pools are those of groups.yaml whose groups the agent makes.
	Pools    []cluster.PoolUse `json:"pools,omitempty"`
	LastPlan time.Time         `json:"lastPlan,omitzero"`
	Plan     string            `json:"plan,omitempty"`
	Held     []decision.Held   `json:"held,omitempty"`
	// Rollouts are those of the node groups whose nodes are replaced.
	Rollouts []decision.Rollout `json:"rollouts,omitempty"`
}

// The values of Status.Unread.
const (
	UnreadCluster = "cluster"
	UnreadGroups  = "node groups"
)

// GroupStatus is one node group in Status.
type GroupStatus struct {
	ID        string   `json:"id"`
	Provider  string   `json:"provider,omitempty"` // where there are several
	Min       int      `json:"min"`
	Max       int      `json:"max"`
	Target    int      `json:"target"`
	Instances int      `json:"instances"`
	Drifted   int      `json:"drifted,omitempty"` // of them, those that differ from what the group starts today
	Stale     string   `json:"stale,omitempty"`
	Paused    string   `json:"paused,omitempty"`
	Busy      string   `json:"busy,omitempty"`
	Keeps     string   `json:"keeps,omitempty"`
	Template  string   `json:"template,omitempty"` // why it is not known
	Warnings  []string `json:"warnings,omitempty"`
	Failures  []string `json:"failures,omitempty"`
}

// Remark is the most important thing that an operator should know of the group; empty:
// nothing.
func (g *GroupStatus) Remark() string {
	for _, list := range [][]string{{g.Stale, g.Paused, g.Busy, g.Keeps, g.Template}, g.Failures, g.Warnings} {
		for _, text := range list {
			if text != "" {
				return text
			}
		}
	}
	return ""
}

// groupStatus sums up one group.
func groupStatus(g cluster.NodeGroup) GroupStatus {
	out := GroupStatus{ID: string(g.ID), Provider: g.Provider, Min: g.Min, Max: g.Max, Target: g.Target, Stale: g.Stale, Paused: g.Paused, Busy: g.Busy, Keeps: g.Keeps,
		Template: cmp.Or(g.TemplateStale, g.Template.Unknown), Warnings: g.Warnings}
	for _, in := range g.Instances {
		if in.Member {
			out.Instances++
		}
	}
	out.Drifted, _ = g.Drifted()
	for i, f := range g.Failures {
		if i == 3 {
			break
		}
		out.Failures = append(out.Failures, fmt.Sprintf("%s %s: %s", f.At.UTC().Format(time.RFC3339), f.Cause, f.Text))
	}
	return out
}

// status gathers Status now. Only the troubles of node groups that failed ask for the machines.
func (s *Server) status() Status {
	var machines []fleet.Machine
	if len(s.Memory().Backoff) > 0 {
		machines = s.machines(time.Now())
	}
	return s.statusOf(machines)
}

// statusOf gathers Status. The machines are those that the map shows.
func (s *Server) statusOf(machines []fleet.Machine) Status {
	out := Status{Version: version.Current(), Node: s.Node, Since: s.Since, Stale: s.Observer.Stale(), Services: s.Services}
	standing, why := s.Leadership.Standing()
	out.Acting, out.StandsBy, out.Why = standing == election.Acts, standing == election.StandsBy, why
	if s.SettingsFault != nil {
		out.Settings = s.SettingsFault()
	}
	groups, at, err := s.Inventory.Last()
	out.CloudAt = at
	if err != nil {
		out.Cloud = err.Error()
	}
	if s.Unready() != "" {
		out.Unread = append(out.Unread, UnreadCluster)
	}
	if at.IsZero() {
		out.Unread = append(out.Unread, UnreadGroups)
	}
	for _, g := range groups {
		if !g.Unmade() {
			out.Groups = append(out.Groups, groupStatus(g))
		}
	}
	out.Pools = cluster.Pools(groups)
	for _, l := range s.Heartbeats.Late(time.Now()) {
		out.Late = append(out.Late, l.String())
	}
	look := s.Observer.ReadOnlySnapshot()
	out.Nodes, out.Pods = len(look.Nodes), look.PodCount()
	for _, n := range look.Nodes {
		if n.Ready == cluster.StatusTrue {
			out.Ready++
		}
	}
	for _, p := range look.Pods {
		if !p.Unschedulable.IsZero() {
			out.Pending++
		}
	}
	last, at := s.Last()
	out.LastPlan, out.Plan, out.Held, out.Rollouts = at, last.String(), last.Held, last.Rollouts
	out.Troubles = s.troubles(&out, standing == election.Hindered, machines, time.Now())
	return out
}
