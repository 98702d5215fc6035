package history

import (
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
)

// Mark is one decision that was carried out, or failed. Equal ones of one round are one.
type Mark struct {
	At    time.Time `json:"at"`
	Do    string    `json:"do"` // "grow", "cordon", "uncordon", "terminate"
	Group string    `json:"group,omitempty"`
	Node  string    `json:"node,omitempty"` // the first, where Count > 1
	Count int       `json:"count,omitempty"`
	From  int       `json:"from,omitempty"`
	To    int       `json:"to,omitempty"`
	Rule  string    `json:"rule,omitempty"`
	Why   string    `json:"why,omitempty"`
	Error string    `json:"error,omitempty"` // why it failed
	// Instances are the clouds' own IDs of the machines that were ended, with blanks between.
	Instances string `json:"instances,omitempty"`
}

// Ended is the decision by which the agent ended the machine of a cloud's own ID.
func (h *History) Ended(id string) (Mark, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := range h.marks {
		if m := h.marks[(h.oldest+len(h.marks)-1-i)%len(h.marks)]; m.Error == "" && id != "" && slices.Contains(strings.Fields(m.Instances), id) {
			return m, true
		}
	}
	return Mark{}, false
}

// Acted remembers what became of a plan. Evictions are left out: each follows a cordon.
func (h *History) Acted(p decision.Plan, outcomes []cluster.Outcome) {
	reasons := reasonsOf(p)
	var fresh []Mark
	index := map[Mark]int{} // equal ones of this round
	for _, o := range outcomes {
		switch o.Action {
		case "grow", "cordon", "uncordon", "terminate":
		default:
			continue
		}
		name := o.Action + " " + string(o.Group)
		if o.Action != "grow" {
			name = o.Action + " " + string(o.Node) + " " + string(o.Instance)
		}
		r := reasons[name]
		kind := Mark{Do: o.Action, Group: cut(string(o.Group), nameBytes), Rule: r.rule, Error: cut(o.Error, wordBytes)}
		if i, ok := index[kind]; ok {
			fresh[i].Count++
			fresh[i].Instances = withID(fresh[i].Instances, o)
			continue
		}
		index[kind] = len(fresh)
		m := kind
		m.At, m.Node, m.Count, m.From, m.To, m.Why = o.At.UTC(), cut(string(o.Node), nameBytes), 1, o.From, o.To, cut(r.why, wordBytes)
		if m.Node == "" {
			m.Node = cut(string(o.Instance), nameBytes)
		}
		m.Instances = withID("", o)
		fresh = append(fresh, m)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, m := range fresh {
		h.marked++
		if len(h.marks) < maxMarks {
			h.marks = append(h.marks, m)
			continue
		}
		h.marks[h.oldest] = m
		h.oldest = (h.oldest + 1) % maxMarks
	}
}

// withID adds the machine of a termination, where there is room.
func withID(list string, o cluster.Outcome) string {
	if id := o.Instance.Last(); o.Action == "terminate" && len(list)+1+len(id) <= idsBytes {
		return strings.TrimSpace(list + " " + id)
	}
	return list
}

type reason struct{ rule, why string }

// reasonsOf are the reasons of a plan's actions, by the words that an outcome has of them.
func reasonsOf(p decision.Plan) map[string]reason {
	out := map[string]reason{}
	for _, a := range p.Actions {
		switch a := a.(type) {
		case decision.Grow:
			out["grow "+string(a.Group)] = reason{a.Rule, a.Why}
		case decision.Cordon:
			out["cordon "+string(a.Node)+" "] = reason{a.Rule, a.Why}
		case decision.Uncordon:
			out["uncordon "+string(a.Node)+" "] = reason{a.Rule, a.Why}
		case decision.Terminate:
			out["terminate "+string(a.Node)+" "+string(a.Instance)] = reason{a.Rule, a.Why}
		}
	}
	return out
}

// cut keeps the beginning of a text in memory of its own, so that a long one is not kept
// alive by a short part of it.
func cut(s string, most int) string {
	if len(s) <= most {
		return s
	}
	most -= len("…")
	for most > 0 && !utf8.RuneStart(s[most]) {
		most--
	}
	return strings.Clone(s[:most]) + "…"
}
