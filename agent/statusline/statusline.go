// Package statusline says in one line what the agent is doing, as systemd's STATUS=
// (systemctl status), and writes each change of it, and of what an operator should correct
// in the node groups, into the journal once.
//
// It refuses to ask the API server or a cloud: it tells what the services have in memory.
package statusline

import (
	"strings"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/config"
	"github.com/autoscaler-agent/autoscaler-agent/agent/doctor"
	"github.com/autoscaler-agent/autoscaler-agent/agent/groups"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/all"
	"github.com/autoscaler-agent/autoscaler-agent/agent/report"
)

// Line is the line of one agent.
type Line struct {
	Config  config.Config
	Changes *report.Changes // into the journal
	MayAct  func() (bool, string)
	Stale   func() string // why the facts of Kubernetes are old; empty: they are not
	// Groups are the node groups as last read, when that was, and why the read failed.
	Groups func() ([]cluster.NodeGroup, time.Time, error)
	File   func() groups.File // groups.yaml that is in force
	Fault  func() string      // of groups.yaml as it is now
	// Alarm is csrsigner's, and Stopped what stops the nodecleaner; nil: it is switched off.
	Alarm   func() string
	Stopped func() string
}

// Text is STATUS=. Computing it is also what notices changes of state, so each is logged
// once.
func (l *Line) Text() string {
	may, why := l.MayAct()
	stale := l.Stale()
	_, readAt, err := l.Groups()
	l.Changes.Say("acting", why, "acting", "not acting")
	l.Changes.Say("kubernetes", stale, "the API server is heard again", "the Kubernetes facts are old: services wait, nothing is deleted")
	if !readAt.IsZero() {
		l.sayGroups()
	}
	fault := l.Fault() // its mistakes are in the journal
	switch {
	case stale != "":
		return "degraded: " + stale
	case err != nil:
		return "degraded: cloud: " + err.Error()
	case readAt.IsZero():
		return "waiting for the first read of the cloud"
	case !may:
		return "not acting: " + why
	case fault != "":
		return "acting; " + config.GroupsNotInForce(l.Config.GroupsFile)
	}
	if l.Alarm != nil {
		if alarm := l.Alarm(); alarm != "" {
			return "acting; alarm: " + alarm
		}
	}
	if l.Stopped != nil {
		if stopped := l.Stopped(); stopped != "" {
			return "acting; " + stopped
		}
	}
	return "acting"
}

// sayGroups logs what an operator should correct in the node groups, once for each
// change. Reads that fail are the inventory's to tell.
func (l *Line) sayGroups() {
	list, _, err := l.Groups()
	if len(list) == 0 && err == nil {
		names, _ := all.Split(l.Config.Provider) // was read at the start
		l.Changes.Say("groups", "no node group was found: "+all.NoGroups(names...), "", "nothing can be scaled")
	} else {
		l.Changes.Say("groups", "", "node groups are found", "")
	}
	file := l.File()
	l.Changes.Say("sections", l.Config.IdleSections(&file), "every section of "+l.Config.GroupsFile+" has its provider", "settings without a provider")
	l.Changes.Say("groups.yaml", config.UnknownGroups(&file, list, err), "every group that "+l.Config.GroupsFile+" names is there", "settings without a group")
	for _, g := range list {
		g.Stale, g.TemplateStale, g.FailuresStale = "", "", ""
		var faults []string
		for _, f := range doctor.Group(g) {
			switch {
			case f.Level == doctor.LevelOK:
			case f.Remedy != "":
				faults = append(faults, f.Text+" ("+f.Remedy+")")
			default:
				faults = append(faults, f.Text)
			}
		}
		l.Changes.Say("group "+string(g.ID), strings.Join(faults, "; "), "group "+string(g.ID)+" is in order", "group "+string(g.ID))
	}
}
