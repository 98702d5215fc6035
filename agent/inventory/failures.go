package inventory

import (
	"slices"
	"strings"

	"github.com/sirupsen/logrus"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
)

// failure is one provider or one group that cannot be read, and the kind of the error.
type failure struct {
	provider string
	group    cluster.GroupID
	kind     provider.Kind
}

// describe names the provider or the group that failed.
func (f failure) describe() string {
	out := "the cloud"
	if f.provider != "" {
		out = "provider " + f.provider
	}
	if f.group != "" {
		out = "group " + string(f.group) + " of " + out
	}
	return out
}

type failures map[failure]bool

// contains reports whether a provider or a group fails with an error of any kind.
func (all failures) contains(provider string, group cluster.GroupID) bool {
	for f := range all {
		if f.provider == provider && f.group == group {
			return true
		}
	}
	return false
}

// logFailures logs each failure once when it starts and once when it ends. Only Run
// calls it.
func (i *Inventory) logFailures(err error) {
	now, fresh := failures{}, []string{}
	note := func(f failure, why string) {
		if !now[f] && !i.logged[f] {
			fresh = append(fresh, why)
		}
		now[f] = true
	}
	for _, e := range provider.Errors(err) {
		note(failure{e.Provider, e.Group, e.Kind}, e.Error())
	}
	if err != nil && len(now) == 0 {
		note(failure{}, err.Error())
	}
	if len(fresh) > 0 {
		i.log.WithFields(logrus.Fields{"kind": provider.KindOf(err).String(), "why": strings.Join(fresh, "; ")}).
			Error("some node groups could not be read; their last good facts are used, and no group with stale facts is scaled up or down: " + strings.Join(fresh, "; "))
	}
	for f := range i.logged {
		if err != nil && !now[f] && !now.contains(f.provider, f.group) {
			i.log.Info(f.describe() + " can be read again")
		}
	}
	if err == nil && len(i.logged) > 0 {
		i.log.Info("all node groups can be read again")
	}
	i.logged = now
}

// logRemovedGroups logs the groups that a read without an error lists no more. The
// caller holds the mutex.
func (i *Inventory) logRemovedGroups(now []cluster.NodeGroup) {
	for _, g := range i.groups {
		if !slices.ContainsFunc(now, func(n cluster.NodeGroup) bool { return n.ID == g.ID }) {
			f := failure{provider: g.Provider, group: g.ID}
			i.log.WithField("group", g.ID).Warn(f.describe() + " no longer exists in the cloud: its nodes are not changed")
		}
	}
}
