package statusline

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sirupsen/logrus/hooks/test"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/config"
	"github.com/autoscaler-agent/autoscaler-agent/agent/groups"
	"github.com/autoscaler-agent/autoscaler-agent/agent/report"
)

// calm is the line of an agent in order that reads the groups of a cloud, and what the
// journal gets.
func calm() (*Line, *test.Hook) {
	log, hook := test.NewNullLogger()
	l := &Line{Config: config.Config{GroupsFile: "groups.yaml"}, Changes: report.NewChanges(log.WithField("service", "agent")), File: func() groups.File { return groups.File{} }}
	l.Config.Provider = "asg"
	l.MayAct, l.Stale, l.Fault = func() (bool, string) { return true, "" }, none, none
	l.Groups = func() ([]cluster.NodeGroup, time.Time, error) {
		return []cluster.NodeGroup{{ID: "workers"}}, time.Unix(1, 0), nil
	}
	return l, hook
}

func none() string { return "" }

func say(text string) func() string { return func() string { return text } }

// TestTheGravestTroubleIsTold: of several troubles the line names the one that the others
// may follow from.
func TestTheGravestTroubleIsTold(t *testing.T) {
	l, _ := calm()
	for _, trouble := range []struct {
		begins func()
		want   string
	}{
		{func() {}, "acting"},
		{func() { l.Alarm, l.Stopped = none, none }, "acting"},
		{func() { l.Stopped = say("B1 stops the deletion of Nodes") }, "acting; B1 stops the deletion of Nodes"},
		{func() { l.Alarm = say("300 requests") }, "acting; alarm: 300 requests"},
		{func() { l.Fault = say("groups.yaml:3: no such field") }, "acting; groups.yaml is not in force: it has mistakes, and the last good one holds (autoscaler-agent status)"},
		{func() { l.MayAct = func() (bool, string) { return false, "standing by" } }, "not acting: standing by"},
		{func() { l.Groups = func() ([]cluster.NodeGroup, time.Time, error) { return nil, time.Time{}, nil } }, "waiting for the first read of the cloud"},
		{func() {
			l.Groups = func() ([]cluster.NodeGroup, time.Time, error) { return nil, time.Time{}, errors.New("no route") }
		}, "degraded: cloud: no route"},
		{func() { l.Stale = say("the API server is silent") }, "degraded: the API server is silent"},
	} {
		trouble.begins()
		if got := l.Text(); got != trouble.want {
			t.Errorf("%q, want %q", got, trouble.want)
		}
	}
}

// TestChangesAreLoggedOnce: what an operator should correct is in the journal when it comes
// and when it is gone, however often the line is asked for.
func TestChangesAreLoggedOnce(t *testing.T) {
	l, hook := calm()
	var logged []string
	look := func() {
		hook.Reset()
		logged = nil
		for range 3 {
			l.Text()
		}
		for _, e := range hook.AllEntries() {
			logged = append(logged, e.Message)
		}
	}
	look()
	found := l.Groups
	l.MayAct = func() (bool, string) { return false, "standing by" }
	l.Groups = func() ([]cluster.NodeGroup, time.Time, error) { return nil, time.Unix(2, 0), nil }
	look()
	if len(logged) != 2 || !slices.Contains(logged, "not acting: standing by") || !slices.ContainsFunc(logged, func(s string) bool { return strings.HasPrefix(s, "nothing can be scaled: no node group was found: ") }) {
		t.Errorf("a trouble is told as %q", logged)
	}
	l.MayAct, l.Groups = func() (bool, string) { return true, "" }, found
	if look(); !slices.Equal(logged, []string{"acting", "node groups are found"}) {
		t.Errorf("its end is told as %q", logged)
	}
	l.Groups = func() ([]cluster.NodeGroup, time.Time, error) { // why a read failed is the inventory's to tell
		return []cluster.NodeGroup{{ID: "workers", Min: 2, Max: 1, Stale: "throttled"}}, time.Unix(3, 0), nil
	}
	look()
	if len(logged) != 1 || !strings.HasPrefix(logged[0], "group workers: min 2 is above max 1 (set a min") || strings.Contains(logged[0], "throttled") {
		t.Errorf("a fault of a group is told as %q", logged)
	}
	l.Groups = found
	if look(); !slices.Equal(logged, []string{"group workers is in order"}) {
		t.Errorf("its end is told as %q", logged)
	}
}
