package trouble

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/page/fleet"
)

var noon = time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)

// pod is a pod that no group helps, with each group's rule and words.
func pod(name string, count int, groups ...decision.Refusal) decision.Held {
	var why []string
	for _, g := range groups {
		why = append(why, "group "+g.Name+": "+g.Why)
	}
	return decision.Held{Kind: "pod", Name: name, Count: count, Rule: decision.RuleNoGroup, Why: strings.Join(why, "; "), Groups: groups}
}

func refuse(name, rule, why string) decision.Refusal {
	return decision.Refusal{Name: name, Rule: rule, Why: why}
}

// TestOf: what is said of one kind of fact each, of several at once, and of what passes by itself.
func TestOf(t *testing.T) {
	small, full := refuse("w", "F6", "Insufficient cpu"), refuse("w", "U7", "at its maximum of 5")
	away := refuse("w", "U9", "backed off until 2026-11-27T12:05:00Z (quota): Quota exceeded")
	for name, c := range map[string]struct {
		f    Facts
		want string // What | a part of Cause | a part of Remedy | Rule, a line each
	}{
		"nothing":                          {Facts{}, ""},
		"pods that no group serves":        {Facts{Held: []decision.Held{pod("shop/a", 3, small)}}, "No node group can serve 3 pods|shop/a and 2 more pods: group w: Insufficient cpu|Lower the pod's requests|F6"},
		"of two kinds":                     {Facts{Held: []decision.Held{pod("shop/a", 3, small), pod("shop/b", 1, refuse("w", "F3", "taint"), refuse("v", "F3", "taint"))}}, "No node group can serve 4 pods|2 kinds of pods, first shop/a|toleration|F3"},
		"and there is no group":            {Facts{Held: []decision.Held{{Kind: "pod", Name: "a", Count: 1, Rule: "U5", Why: "there is no node group"}}}, "No node group can serve 1 pod|there is no node group|Make a node group|U5"},
		"help is coming":                   {Facts{Held: []decision.Held{pod("shop/a", 3, small, refuse("v", "", "grows by 1 in this round"))}}, ""},
		"a maximum":                        {Facts{Held: []decision.Held{pod("shop/a", 3, full, refuse("gpu", "F3", "taint"))}}, "Group w is at its limit, and 3 pods wait|at its maximum of 5|Raise the maximum|U7"},
		"two maxima":                       {Facts{Held: []decision.Held{pod("shop/a", 1, full, refuse("v", "U7", "at its maximum of 9"))}}, "Groups v and w are at their limits, and 1 pod waits|at its maximum|Raise the maximum|U7"},
		"the cluster's limit":              {Facts{Held: []decision.Held{pod("shop/a", 2, refuse("w", "U8", "the cluster's limit of 4 nodes is reached"))}}, "Group w is at its limit, and 2 pods wait|limit of 4 nodes|AUTOSCALER_SCALING_MAX_|U8"},
		"at its maximum, and no pod waits": {Facts{Held: []decision.Held{{Kind: "group", Name: "w", Rule: "U7", Why: "at its maximum of 5"}}}, ""},
		"the cloud refuses": {Facts{Backoff: []decision.Backoff{{Group: "w", Cause: cluster.CauseQuota, Until: noon.Add(time.Minute), Text: "Quota exceeded"}}, Held: []decision.Held{pod("shop/a", 2, away), {Kind: "group", Name: "w", Rule: "U9", Why: away.Why}}},
			"The cloud refuses machines of group w, and 2 pods wait|quota: Quota exceeded; it is tried again at 12:01:00|Ask the cloud for a higher quota|U9"},
		"a pause of the cloud's":   {Facts{Held: []decision.Held{pod("shop/a", 2, refuse("w", "U10", "Launch is suspended"))}}, "2 pods wait, and group w cannot grow now|Launch is suspended|Resume the Launch process|U10"},
		"a backoff that has ended": {Facts{Backoff: []decision.Backoff{{Group: "w", Cause: cluster.CauseQuota, Until: noon}}}, ""},
		"machines that never join": {Facts{Backoff: []decision.Backoff{{Group: "w", Cause: cluster.CauseNoJoin, Until: noon.Add(time.Hour), Text: "i-1 has not become a Node"}}}, "Machines of group w never join|i-1 has not become a Node|the join token|I1"},
		"the next trial of one that never joined": {Facts{Backoff: []decision.Backoff{{Group: "w", Cause: cluster.CauseNoJoin, Last: noon.Add(-time.Hour), Until: noon.Add(-time.Minute), Text: "i-1 has not become a Node"}},
			Machines: []fleet.Machine{{Group: "w", State: fleet.Upcoming, Created: noon}, {Group: "w", State: fleet.Ready, Created: noon.Add(-2 * time.Hour)}, {Group: "v", State: fleet.Ready, Created: noon}}},
			"Machines of group w never join|i-1 has not become a Node; it is tried again now|the join token|I1"},
		"one has joined since": {Facts{Backoff: []decision.Backoff{{Group: "w", Cause: cluster.CauseNoJoin, Last: noon.Add(-time.Hour), Until: noon.Add(-time.Minute)}},
			Machines: []fleet.Machine{{Group: "w", State: fleet.Upcoming, Created: noon}, {Group: "w", State: fleet.Ready, Created: noon.Add(-2 * time.Minute)}}}, ""},
		"the cloud has made one since": {Facts{Backoff: []decision.Backoff{{Group: "w", Cause: cluster.CauseQuota, Last: noon.Add(-time.Hour), Until: noon.Add(-time.Minute)}}, Machines: []fleet.Machine{{Group: "w", State: fleet.Upcoming, Created: noon}}}, ""},
		"certificates": {Facts{Certificates: []Certificate{{Request: "csr-1", Node: "n", Kind: "serving certificate", Rule: "R13", Why: "the name x is not the instance's", Since: noon.Add(-time.Hour)}, {Request: "csr-2", Rule: "R13", Since: noon.Add(-time.Hour)}, {Request: "csr-3", Rule: "R15", Since: noon.Add(-time.Second)}}},
			"2 certificate requests are held|serving certificate of node n, since 11:00:00: the name x|AUTOSCALER_CSR_EXTRA_NAMES|R13"},
		"a frozen reaper":           {Facts{Breakers: []Breaker{{"B2", "9 Nodes are gone at once"}}}, "Node deletion is frozen: no dead Node is deleted|9 Nodes are gone at once|Look what took so many Nodes|B2"},
		"a breaker that passes":     {Facts{Breakers: []Breaker{{"B3", "the clock jumped"}}}, "Node deletion is frozen: no dead Node is deleted|the clock jumped|It goes on by itself|B3"},
		"a standby that should act": {Facts{Hindered: true, Why: "waiting for Lease x: a has not renewed it"}, "This agent should act and does not|a has not renewed it|restart this one|"},
		"old facts":                 {Facts{Stale: "the API server has not answered since 12:00", Cloud: "group a: denied\ngroup b: denied\n"}, "The facts of Kubernetes are old|not answered since|API server answers|H1\nThe facts of the cloud are old|group a: denied; group b: denied|credentials|U13"},
		"a setting":                 {Facts{Settings: "groups.yaml:3: no"}, "groups.yaml is not in force|groups.yaml:3|The last good file holds|"},
		"a service":                 {Facts{Late: []string{"scaler: 5m"}}, "A service of the agent makes no progress|scaler: 5m|systemd|"},
		"other reasons": {Facts{Held: []decision.Held{{Kind: "group", Name: "w", Rule: "U12", Why: "minimum 3"}, {Kind: "group", Name: "v", Rule: "U12", Why: "minimum 4"}, {Kind: "cluster", Name: "cluster", Rule: "H2", Why: "5 of 6"}, {Kind: "node", Name: "n", Rule: "D5", Why: "annotated"}}},
			"Too many nodes are not Ready: nothing is deleted|5 of 6|most of them are|H2\nThe bounds of groups v and w are invalid|w: minimum 3|Correct minimum|U12"},
		"a person's pause": {Facts{Held: []decision.Held{{Kind: "group", Name: "w", Rule: "U21", Why: "paused: maintenance"}}}, ""},
		"an unjudged pod":  {Facts{Held: []decision.Held{{Kind: "pod", Name: "a", Count: 4, Rule: "U6", Why: "x"}}}, "Pod a (and 3 more pods) cannot be judged, and gets no machine|a: x|Remove the scheduling feature|U6"},
	} {
		c.f.Now = noon
		got := List(c.f)
		var lines []string
		if c.want != "" {
			lines = strings.Split(c.want, "\n")
		}
		if len(got) != len(lines) {
			t.Errorf("%s: %d troubles, want %d: %+v", name, len(got), len(lines), got)
			continue
		}
		for i, line := range lines {
			part := strings.Split(line, "|")
			if g := got[i]; g.What != part[0] || !strings.Contains(g.Cause, part[1]) || !strings.Contains(g.Remedy, part[2]) || g.Rule != part[3] || g.Command == "" {
				t.Errorf("%s: %+v, want %v", name, g, part)
			}
		}
	}
}

// TestCommand: of a machine that is waited for the command asks; of one that is gone its group's.
func TestCommand(t *testing.T) {
	f := Facts{Now: noon, Backoff: []decision.Backoff{{Group: "w", Cause: cluster.CauseNoJoin, Until: noon.Add(time.Hour)}}, Machines: []fleet.Machine{{Name: "n", Group: "w", State: fleet.Ready}, {Name: "i-9", Group: "v", State: fleet.Upcoming}}}
	if got := List(f); len(got) != 1 || got[0].Command != "autoscaler-agent explain group w" {
		t.Errorf("%+v", got)
	}
	f.Machines = append(f.Machines, fleet.Machine{Name: "i-1", Group: "w", State: fleet.Upcoming})
	if got := List(f); len(got) != 1 || got[0].Command != "autoscaler-agent explain instance i-1" {
		t.Errorf("%+v", got)
	}
}

// TestBounded: a thousand groups and pods with long reasons are a few troubles of a few words.
func TestBounded(t *testing.T) {
	f := Facts{Now: noon, Cloud: strings.Repeat("group a: denied\n", 1000)}
	for i := range 1000 {
		name := fmt.Sprintf("g-%d", i)
		f.Held = append(f.Held, pod(name, 5, refuse(name, "F6", strings.Repeat("x", 1000))), decision.Held{Kind: "group", Name: name, Rule: "U12", Why: strings.Repeat("y", 1000)})
		f.Backoff = append(f.Backoff, decision.Backoff{Group: cluster.GroupID(name), Cause: cluster.CauseRefused, Until: noon.Add(time.Hour), Text: strings.Repeat("ü", 1000)})
		f.Certificates = append(f.Certificates, Certificate{Rule: "R13", Why: strings.Repeat("z", 1000)})
	}
	got := List(f)
	size := len(fmt.Sprintf("%+v", got))
	if len(got) != 5 || size > 5*1000 || !strings.Contains(fmt.Sprint(got), "groups g-0, g-1, g-10 and 997 more") {
		t.Errorf("%d troubles, %d bytes: %+v", len(got), size, got)
	}
}
