// Package trouble says what is wrong now: each trouble with its cause, in the figures and words of
// whoever noticed it, and with what an operator does about it. The page and `status` show it first.
//
// It refuses to judge anew: that a pod waits, a group is held or a Node is not deleted is decided
// elsewhere, and arrives as a reason with a rule. It reads no clock and does no I/O. Its work grows
// with the reasons, its answer has at most one trouble for each kind and rule.
package trouble

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/page/fleet"
)

// Facts are what is looked at.
type Facts struct {
	Now time.Time
	// Hindered tells that this agent does not act although it should; Why says what hinders it.
	Hindered bool
	Why      string
	Stale    string   // why the facts of Kubernetes are old
	Cloud    string   // what is wrong with the last read of the cloud, a fault a line
	Settings string   // why groups.yaml is not in force, a mistake a line
	Late     []string // services that make no progress
	Held     []decision.Held
	Backoff  []decision.Backoff
	Machines []fleet.Machine // looked at only where Backoff is not empty
	// Certificates are the requests that were held and still wait; Alarm is of a flood of them.
	Certificates []Certificate
	Alarm        string
	// Breakers stop the deletion of dead Nodes.
	Breakers []Breaker
}

// Certificate is a certificate request that is held.
type Certificate struct {
	Request, Node, Kind, Rule, Why string
	Since                          time.Time
}

// Breaker is a rule that stops every deletion of a Node.
type Breaker struct{ Rule, Why string }

// Trouble is one thing that is wrong.
type Trouble struct {
	What    string `json:"what"`
	Cause   string `json:"cause,omitempty"`
	Remedy  string `json:"remedy,omitempty"`
	Command string `json:"command,omitempty"` // that tells more
	Rule    string `json:"rule,omitempty"`
}

// Bounds of one trouble's text.
const (
	shownNames = 3
	causeRunes = 320
)

// passing is how long a certificate request may be held before that is a trouble: the cloud's
// inventory is read meanwhile.
const passing = 30 * time.Second

// List lists what is wrong, the gravest first.
func List(f Facts) []Trouble {
	var out []Trouble
	add := func(list ...Trouble) {
		for _, t := range list {
			t.Cause = clip(t.Cause)
			out = append(out, t)
		}
	}
	if f.Hindered {
		add(Trouble{What: "This agent should act and does not", Cause: f.Why, Command: "autoscaler-agent check",
			Remedy: "No pod gets a machine until an agent acts. Correct what the cause names; if it names no error, look at the agent on the other leader and restart this one (systemctl restart autoscaler-agent)."})
	}
	if f.Stale != "" {
		add(Trouble{What: "The facts of Kubernetes are old", Cause: f.Stale, Command: "autoscaler-agent check", Rule: decision.RuleStale,
			Remedy: "Nothing is deleted, and new pods are not seen. Look whether the API server answers (kubectl get --raw /readyz) and whether the agent may read it."})
	}
	for _, late := range f.Late {
		add(Trouble{What: "A service of the agent makes no progress", Cause: late, Command: "journalctl -u autoscaler-agent", Remedy: "systemd restarts the agent if it goes on. Look at what the journal says last of the service."})
	}
	if cloud := oneLine(f.Cloud); cloud != "" {
		add(Trouble{What: "The facts of the cloud are old", Cause: cloud, Command: "autoscaler-agent check", Rule: decision.RuleGroupStale,
			Remedy: "Groups that are not read are neither grown nor shrunk. Look at the cloud's answer, the agent's credentials and the way to the cloud."})
	}
	refusing, waiting := backoffs(f), podsOf(f)
	if waiting.stuck.pods > 0 && len(refusing) > 0 && waiting.stuck.only(decision.RuleBackoff, decision.RuleQuota) {
		refusing[0].What += ", and " + waits(waiting.stuck.pods)
		waiting.stuck = kind{}
	}
	add(refusing...)
	add(waiting.troubles()...)
	add(certificates(f)...)
	for _, b := range f.Breakers {
		add(Trouble{What: "Node deletion is frozen: no dead Node is deleted", Cause: b.Why, Rule: b.Rule, Command: "journalctl -u autoscaler-agent SERVICE=nodecleaner",
			Remedy: cmp.Or(remedyOf(b.Rule), "It goes on by itself when the cause has passed. A Node that is surely dead can be deleted by hand (kubectl delete node NAME).")})
	}
	add(others(f)...)
	if settings := oneLine(f.Settings); settings != "" {
		add(Trouble{What: "groups.yaml is not in force", Cause: settings, Command: "autoscaler-agent check", Remedy: "The last good file holds. Correct the lines that the cause names."})
	}
	return out
}

// refused are the remedies of what a cloud says when it gives no machine.
var refused = map[cluster.Cause]string{
	cluster.CauseCapacity: "The cloud has no such machine now. Other groups are tried meanwhile: offer one in another zone, or of another type.",
	cluster.CauseQuota:    "Ask the cloud for a higher quota, or lower the maximum of the groups that draw on it.",
	cluster.CauseInvalid:  "Correct the group in the cloud (launch template, image, network, key), as the cloud's words say.",
	cluster.CauseRefused:  "Give the agent's role the right that the cloud's words name: autoscaler-agent check lists those that are missing.",
	cluster.CauseNoJoin:   "Look where the start of the machine stopped: its console, the join token and the way to the API server.",
}

// failing tells whether the newest failure of a group is still the truth: its pause runs, or the group tries again and
// has had no success since. A machine that the cloud has made is one, and of machines that do not join one that has joined.
func failing(f *Facts, b *decision.Backoff) bool {
	if b.Active(f.Now) {
		return true
	}
	tries := false
	for i := range f.Machines {
		m := &f.Machines[i]
		if m.Group != string(b.Group) {
			continue
		}
		coming := m.State == fleet.Upcoming
		tries = tries || coming
		if m.Created.After(b.Last) && (!coming || b.Cause != cluster.CauseNoJoin) {
			return false
		}
	}
	return tries
}

// backoffs are the groups that get no machines, by cause.
func backoffs(f Facts) (out []Trouble) {
	byCause := map[cluster.Cause][]decision.Backoff{}
	for _, b := range f.Backoff {
		if failing(&f, &b) {
			byCause[b.Cause] = append(byCause[b.Cause], b)
		}
	}
	for _, cause := range []cluster.Cause{cluster.CauseRefused, cluster.CauseInvalid, cluster.CauseQuota, cluster.CauseCapacity, cluster.CauseOther, cluster.CauseNoJoin} {
		list := byCause[cause]
		if len(list) == 0 {
			continue
		}
		slices.SortFunc(list, func(a, b decision.Backoff) int { return cmp.Compare(a.Group, b.Group) })
		var groups []string
		for _, b := range list {
			groups = append(groups, string(b.Group))
		}
		t := Trouble{What: "The cloud refuses machines of " + named("group", groups), Rule: decision.RuleBackoff, Remedy: refused[cause], Command: "autoscaler-agent explain group " + groups[0]}
		if cause == cluster.CauseNoJoin {
			t.What, t.Rule = "Machines of "+named("group", groups)+" never join", decision.RuleNoJoin
			if i := slices.IndexFunc(f.Machines, func(m fleet.Machine) bool { return m.Group == string(list[0].Group) && m.State == fleet.Upcoming }); i >= 0 {
				t.Command = "autoscaler-agent explain instance " + f.Machines[i].Name
			}
		}
		if t.Remedy == "" {
			t.Remedy = remedyOf(t.Rule)
		}
		again := "it is tried again now"
		if list[0].Active(f.Now) {
			again = "it is tried again at " + list[0].Until.UTC().Format("15:04:05")
		}
		t.Cause = fmt.Sprintf("%s: %s; %s", cause, list[0].Text, again)
		out = append(out, t)
	}
	return out
}

// certificates are the held requests, by rule.
func certificates(f Facts) (out []Trouble) {
	byRule := map[string][]Certificate{}
	var rules []string
	for _, c := range f.Certificates {
		if f.Now.Sub(c.Since) < passing {
			continue
		}
		if byRule[c.Rule] == nil {
			rules = append(rules, c.Rule)
		}
		byRule[c.Rule] = append(byRule[c.Rule], c)
	}
	slices.Sort(rules)
	for _, rule := range rules {
		list := byRule[rule]
		first := list[0]
		out = append(out, Trouble{What: held(len(list)), Rule: rule, Command: "autoscaler-agent explain csr " + first.Request,
			Cause: fmt.Sprintf("%s of node %s, since %s: %s", first.Kind, first.Node, first.Since.UTC().Format("15:04:05"), first.Why), Remedy: remedyOf(rule)})
	}
	if f.Alarm != "" {
		out = append(out, Trouble{What: "Certificate requests flood the cluster", Cause: f.Alarm, Rule: "R17", Command: "kubectl get csr", Remedy: "Honest requests are approved as ever. Look at who asks, and revoke what he asks with."})
	}
	return out
}

func held(n int) string {
	if n == 1 {
		return "1 certificate request is held"
	}
	return cluster.Plural(n, "certificate request") + " are held"
}

// named is "group a", "groups a, b and c" or "groups a, b, c and 7 more".
func named(kind string, names []string) string {
	names = slices.Compact(slices.Sorted(slices.Values(names)))
	switch {
	case len(names) == 1:
		return kind + " " + names[0]
	case len(names) <= shownNames:
		return kind + "s " + cluster.InWords(names)
	}
	return fmt.Sprintf("%ss %s and %d more", kind, strings.Join(names[:shownNames], ", "), len(names)-shownNames)
}

// oneLine joins the lines of a text.
func oneLine(s string) string {
	return strings.Join(strings.FieldsFunc(s, func(r rune) bool { return r == '\n' }), "; ")
}

// clip keeps the beginning of a long cause.
func clip(s string) string {
	if r := []rune(s); len(r) > causeRunes {
		return string(r[:causeRunes-1]) + "…"
	}
	return s
}
