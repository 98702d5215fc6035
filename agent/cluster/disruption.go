package cluster

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The reasons for which a node goes, by the names that a DisruptionBudget has for them.
const (
	ReasonRequested = "requested" // somebody asked for it
	ReasonSick      = "sick"      // not Ready, or with a condition that makes it sick, for long enough
	ReasonDrifted   = "drifted"   // not what its group would start today
	ReasonExpired   = "expired"   // too old
	ReasonDear      = "dear"      // fewer or cheaper machines would do (consolidation)
	ReasonIdle      = "idle"      // its pods have room elsewhere
)

// Reasons are all reasons, in the order in which nodes go.
var Reasons = []string{ReasonRequested, ReasonSick, ReasonDrifted, ReasonExpired, ReasonDear, ReasonIdle}

// DisruptionBudget says how many nodes may be disrupted at once, for which reasons, and when.
type DisruptionBudget struct {
	Nodes   int      `json:"nodes"`             // so many nodes, or so many percent of them, rounded down, and at least one
	Percent bool     `json:"percent,omitempty"` // Nodes is a percentage
	Reasons []string `json:"reasons,omitempty"` // sorted as in Reasons; empty: all but ReasonRequested
	// Cron is when the budget begins to hold, and For how long it holds; empty: it always does.
	Cron string        `json:"cron,omitempty"`
	For  time.Duration `json:"for,omitempty"`
	Zone string        `json:"zone,omitempty"` // the time zone of Cron; empty: UTC
}

// DisruptionBudgets are the budgets of one owner.
type DisruptionBudgets []DisruptionBudget

// Decode parses the list; envconfig calls it.
func (d *DisruptionBudgets) Decode(value string) (err error) {
	*d, err = ParseDisruptionBudgets(value)
	return err
}

// Concerns tells whether a budget is for a reason.
func (b *DisruptionBudget) Concerns(reason string) bool {
	if len(b.Reasons) == 0 {
		return reason != ReasonRequested
	}
	return slices.Contains(b.Reasons, reason)
}

// Of is how many of so many nodes the budget lets go at once.
func (b *DisruptionBudget) Of(nodes int) int {
	if b.Percent {
		return max(b.Nodes*nodes/100, min(b.Nodes, 1))
	}
	return b.Nodes
}

// String writes a budget in the form that ParseDisruptionBudgets reads.
func (b *DisruptionBudget) String() string {
	out := strconv.Itoa(b.Nodes)
	if b.Percent {
		out += "%"
	}
	if len(b.Reasons) > 0 {
		out += " of " + strings.Join(b.Reasons, ",")
	}
	if b.Cron != "" {
		out += " at " + b.Cron + " for " + b.For.String()
	}
	if b.Zone != "" {
		out += " in " + b.Zone
	}
	return out
}

// budgetForm is what a budget looks like, for errors.
const budgetForm = "write for example 10%, or 2 of drifted,expired, or 20% at 0 22 * * mon-fri for 6h in Europe/Berlin; several with a semicolon between them"

// ParseDisruptionBudgets reads "NODES[%] [of REASON,..] [at CRON for DURATION [in ZONE]]; ...". Whether CRON and ZONE
// exist is for package schedule to say.
func ParseDisruptionBudgets(text string) (DisruptionBudgets, error) {
	var out DisruptionBudgets
	for item := range strings.SplitSeq(text, ";") {
		if item = strings.TrimSpace(item); item == "" {
			continue
		}
		b, err := parseDisruptionBudget(item)
		if err != nil {
			return nil, fmt.Errorf("%q is no disruption budget: %w; %s", item, err, budgetForm)
		}
		out = append(out, b)
	}
	return out, neverOpen(out)
}

func parseDisruptionBudget(text string) (b DisruptionBudget, err error) {
	text, b.Zone, _ = cutWord(text, "in")
	text, duration, timed := cutWord(text, "for")
	text, cron, scheduled := cutWord(text, "at")
	text, reasons, named := cutWord(text, "of")
	number, percent := strings.CutSuffix(strings.TrimSpace(text), "%")
	b.Percent, b.Cron = percent, cron
	if b.Nodes, err = strconv.Atoi(strings.TrimSpace(number)); err != nil || b.Nodes < 0 || percent && b.Nodes > 100 {
		return b, errors.New("it begins with a number of nodes, or with a percentage up to 100%")
	}
	if timed != scheduled || scheduled && cron == "" || b.Zone != "" && !scheduled {
		return b, errors.New("a time has a schedule and a duration (at CRON for DURATION), and a zone only beside them")
	}
	if timed {
		if b.For, err = time.ParseDuration(duration); err != nil || b.For < time.Minute || b.For > 366*24*time.Hour {
			return b, fmt.Errorf("%q is no duration from 1m to 8784h", duration)
		}
	}
	if !named {
		return b, nil
	}
	for r := range strings.SplitSeq(reasons, ",") {
		if r = strings.TrimSpace(r); !slices.Contains(Reasons, r) {
			return b, fmt.Errorf("%q is no reason; the reasons are %s", r, strings.Join(Reasons, ", "))
		}
		b.Reasons = append(b.Reasons, r)
	}
	slices.SortFunc(b.Reasons, func(x, y string) int { return slices.Index(Reasons, x) - slices.Index(Reasons, y) })
	b.Reasons = slices.Compact(b.Reasons)
	return b, nil
}

// cutWord splits a text at the last " word ".
func cutWord(text, word string) (before, after string, found bool) {
	i := strings.LastIndex(text, " "+word+" ")
	if i < 0 {
		return text, "", false
	}
	return text[:i], strings.TrimSpace(text[i+len(word)+2:]), true
}

// neverOpen refuses a list by which nodes never go for some reason, although it has a time: where no budget holds no
// node is disrupted, so that a budget of 0 at some time needs another one beside it.
func neverOpen(list DisruptionBudgets) error {
	for _, reason := range Reasons {
		timed, most := false, 0
		for i := range list {
			if b := &list[i]; b.Concerns(reason) {
				timed, most = timed || b.Cron != "", max(most, b.Nodes)
			}
		}
		if timed && most == 0 {
			return fmt.Errorf("no node would ever go because it is %s: where no budget holds none does; add one that says how many may go at other times, for example 10%%", reason)
		}
	}
	return nil
}
