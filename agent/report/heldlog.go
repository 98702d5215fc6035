package report

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"

	"github.com/sirupsen/logrus"

	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
)

// How much of what a round holds gets a line of its own, so that a round of 200 groups in
// trouble fits on one screen.
const (
	namedHeld   = 3 // things held for one reason that have a line each; more share one
	reasonLines = 8 // lines of one kind and rule; the rest shares one
)

// HeldLog writes a line when something begins to be held or is held for another reason of its
// own, and one when it no longer is.
type HeldLog struct {
	Log  *logrus.Entry
	told map[heldKey]toldHeld
}

// heldKey is one thing that is held by one rule.
type heldKey struct{ kind, name, rule string }

// toldHeld is what was last logged of it.
type toldHeld struct {
	why  string
	size int // of the count, by powers of two: a crowd that doubles is news
}

// Write logs the differences between held and the held of the last call.
func (l *HeldLog) Write(held []decision.Held) {
	debug := l.Log.Logger.IsLevelEnabled(logrus.DebugLevel)
	var lines []decision.Held
	for _, h := range held {
		if debug || !isDetail(h.Rule) { // nearly all nodes are held by routine
			lines = append(lines, h)
		}
	}
	held = lines
	now := make(map[heldKey]toldHeld, len(held))
	keyOf := func(h decision.Held) heldKey { return heldKey{h.Kind, subject(h), h.Rule} }
	for _, h := range held {
		key, say := keyOf(h), toldHeld{ownReason(h), bits.Len(uint(h.Count))}
		if other, twice := now[key]; twice { // two classes of pods of one workload
			say.size = max(say.size, other.size)
			if other.why != say.why {
				say.why = other.why + "; " + say.why
			}
		}
		now[key] = say
	}
	fresh := map[heldKey]bool{}
	for key, say := range now {
		before, known := l.told[key]
		if known && before.why == say.why && before.size >= say.size {
			now[key] = before // fewer are no news, and neither is the same number again
		} else {
			fresh[key] = true
		}
	}
	var news []decision.Held
	for _, h := range held {
		if fresh[keyOf(h)] {
			news = append(news, h)
		}
	}
	for _, r := range linesOf(news) {
		if r.detail {
			l.Log.WithFields(r.fields).Debug(r.text)
		} else {
			l.Log.WithFields(r.fields).Info(r.text)
		}
	}
	l.ended(now)
	l.told = now
}

// ended logs what is no longer held, where its beginning was a line at info.
func (l *HeldLog) ended(now map[heldKey]toldHeld) {
	var over []string
	names := map[heldKey][]string{} // by kind and rule
	for key := range l.told {
		_, still := now[key]
		switch {
		case still || isDetail(key.rule):
		case key.kind == "cluster":
			over = append(over, "the cluster is no longer held by "+key.rule)
		case key.kind == "group" || key.kind == "pod":
			at := heldKey{kind: key.kind, rule: key.rule}
			names[at] = append(names[at], key.name)
		}
	}
	pods := map[string]bool{}
	for key := range now {
		if key.kind == "pod" {
			pods[key.rule] = true
		}
	}
	for at, list := range names {
		slices.Sort(list)
		switch {
		case at.kind == "pod" && !pods[at.rule]:
			over = append(over, "no pod is held any more by "+at.rule)
		case at.kind == "pod":
		case len(list) > namedHeld:
			over = append(over, fmt.Sprintf("%d groups are no longer held by %s: %s", len(list), at.rule, Names(list)))
		default:
			for _, name := range list {
				over = append(over, "group "+name+" is no longer held by "+at.rule)
			}
		}
	}
	slices.Sort(over)
	for _, text := range over {
		l.Log.Info(text)
	}
}

// subject is what a line is about. Pods of one workload are one subject: a pod that replaces
// another is held for what was told already.
func subject(h decision.Held) string {
	if h.Kind == "pod" {
		return workload(h.Name)
	}
	return h.Name
}

// workload is a pod's name without what its controller has made up: the hash of a ReplicaSet,
// five letters, an ordinal.
func workload(pod string) string {
	parts := strings.Split(pod, "-")
	for n := len(parts) - 1; n > 0 && n >= len(parts)-2 && madeUp(parts[n]); n-- {
		parts = parts[:n]
	}
	return strings.Join(parts, "-")
}

// madeUp tells whether a part of a name is a number or of the letters that Kubernetes makes
// names of (k8s.io/apimachinery/pkg/util/rand has no vowels and no 0, 1 and 3).
func madeUp(part string) bool {
	if part == "" {
		return false
	}
	if strings.Trim(part, "0123456789") == "" {
		return true
	}
	return len(part) >= 5 && len(part) <= 10 && strings.Trim(part, "bcdfghjklmnpqrstvwxz2456789") == ""
}

// ownReason is what a reason says of the held thing itself. The state of groups is left out
// of a pod's: a group that comes to its maximum has its own line. So are numbers that change
// with every pod; the end of a group's pause is told.
func ownReason(h decision.Held) string {
	switch {
	case h.Kind == "group":
		return h.Why
	case h.Rule == decision.RuleNoRoom:
		return "" // each names the pod that was tried first; that one says no more than another
	case len(h.Groups) == 0:
		return plain(h.Why)
	}
	var own []string
	for _, g := range h.Groups {
		if g.Rule == "" || strings.HasPrefix(g.Rule, "F") {
			own = append(own, plain(g.Why))
		}
	}
	slices.Sort(own)
	return strings.Join(slices.Compact(own), "; ")
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
