package report

import (
	"fmt"
	"maps"
	"math/bits"
	"slices"
	"strings"

	"github.com/sirupsen/logrus"

	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
)

// namedHeld is how many things held for one reason get a line each; more share one,
// so that twenty busy nodes are one line.
const namedHeld = 3

// logLine is one line of the journal about what a round did not do.
type logLine struct {
	key    string // equal keys say the same thing
	end    string // what is said when it is over; "" for nothing
	text   string
	fields logrus.Fields
	detail bool // told elsewhere, or routine: for debug only
}

// logLines turns what a plan holds into lines: nodes and instances that are held for
// one reason share a line when they are many, and numbers that change with every pod do
// not make a line new.
func logLines(held []decision.Held) []logLine {
	var out []logLine
	type class struct{ kind, rule, why string }
	many := map[class][]decision.Held{}
	var order []class
	for _, h := range held {
		if h.Kind != "node" && h.Kind != "instance" {
			out = append(out, logLineOf(h))
			continue
		}
		c := class{h.Kind, h.Rule, plain(h.Why)}
		if h.Rule == decision.RuleNoRoom {
			c.why = "" // each names the pod that was tried first; that one says no more than another
		}
		if many[c] == nil {
			order = append(order, c)
		}
		many[c] = append(many[c], h)
	}
	for _, c := range order {
		list := many[c]
		if len(list) <= namedHeld {
			for _, h := range list {
				out = append(out, logLineOf(h))
			}
			continue
		}
		names := make([]string, len(list))
		for i, h := range list {
			names[i] = h.Name
		}
		out = append(out, logLine{
			key:    c.kind + " " + c.rule + " " + c.why + " " + strings.Join(names, " "),
			text:   fmt.Sprintf("held %d %ss, %s and %d more", len(list), c.kind, list[0].Name, len(list)-1),
			fields: logrus.Fields{"rule": c.rule, "why": list[0].Why},
		})
		for _, h := range list {
			r := logLineOf(h)
			r.key, r.end, r.detail = "one of many "+r.key, "", true
			out = append(out, r)
		}
	}
	return out
}

// logLineOf is the line about one held thing.
func logLineOf(h decision.Held) logLine {
	r := logLine{fields: logrus.Fields{"rule": h.Rule, "why": h.Why}}
	name := h.Name
	switch h.Kind {
	case "pod":
		r.key = "pod " + h.Rule + " " + plain(h.Why) + fmt.Sprint(bits.Len(uint(h.Count)))
		if h.Rule != decision.RuleRoomOnNode && h.Rule != decision.RuleRoomUpcoming {
			r.end = "no pod is held any more by " + h.Rule
		}
	case "group":
		r.key = "group " + name + " " + h.Rule + " " + h.Why
		r.end = "group " + name + " is no longer held by " + h.Rule
		r.detail = h.Rule == decision.RuleGroupStale // the inventory says it, with its remedy
	case "cluster":
		r.key, name = "cluster "+h.Rule+" "+plain(h.Why), ""
		r.end = "the cluster is no longer held by " + h.Rule
		r.detail = h.Rule == decision.RuleStale // the watch over the API server says it
	default:
		r.key = h.Kind + " " + name + " " + h.Rule + " " + plain(h.Why)
	}
	r.text = strings.TrimSpace("held " + h.Kind + " " + name)
	if h.Count > 1 {
		r.text += fmt.Sprintf(" and %d more", h.Count-1)
	}
	if name != "" {
		r.fields[h.Kind] = name
	}
	return r
}

// plain takes the digits out of a text: a share, a count or a time that moves does
// not make the reason another one.
func plain(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return -1
		}
		return r
	}, s)
}

// HeldLog writes a line when something begins to be held and one when it no longer is.
type HeldLog struct {
	Log  *logrus.Entry
	told map[string]string // key to end
}

// Write logs the differences between held and the held of the last call.
func (l *HeldLog) Write(held []decision.Held) {
	now := map[string]string{}
	for _, r := range logLines(held) {
		_, old := l.told[r.key]
		now[r.key] = r.end
		if r.detail {
			now[r.key] = ""
		}
		switch {
		case old:
		case r.detail:
			l.Log.WithFields(r.fields).Debug(r.text)
		default:
			l.Log.WithFields(r.fields).Info(r.text)
		}
	}
	var over []string
	for _, end := range l.told {
		if end != "" && !slices.Contains(slices.Collect(maps.Values(now)), end) {
			over = append(over, end)
		}
	}
	slices.Sort(over)
	for _, end := range slices.Compact(over) {
		l.Log.Info(end)
	}
	l.told = now
}
