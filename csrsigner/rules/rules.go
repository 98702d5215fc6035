package rules

import "slices"

// Telling is how the journal tells that a rule holds a request.
type Telling int

const (
	// Heals is a line at info, and a Warning once it has lasted for Config.WarnAfter: what is
	// missing comes with time.
	Heals Telling = iota + 1
	// Operator is a Warning at once: nothing that time brings changes it.
	Operator
	// OperatorOfOwn is that for a Node which the request's own machine has, else Heals.
	OperatorOfOwn
	// Final holds nothing: it denies, or leaves a request to others.
	Final
)

// Rule is what is told of a rule beside its checks, which say what must hold.
type Rule struct {
	ID    string
	Tells Telling
	// Remedy is what an operator does, for the journal catalog; empty: nothing.
	Remedy string
}

// Rules are all rules that the verdict of a judgement may name.
var Rules = slices.Concat(servingRules, joinRules)

// Approved names the verdict of a request that passed every check: in the journal, in metrics and in
// MESSAGE_ID. It stays what it is when rules are added.
const (
	ApprovedServing = "serving"
	ApprovedJoin    = "join"
)

// RuleByID is a row of Rules; the zero Rule: there is none.
func RuleByID(id string) Rule {
	if i := slices.IndexFunc(Rules, func(r Rule) bool { return r.ID == id }); i >= 0 {
		return Rules[i]
	}
	return Rule{}
}

// NeedsOperator tells that a held request waits for an operator's decision.
func (v Verdict) NeedsOperator(f Facts) bool {
	tells := RuleByID(v.Rule).Tells
	return tells == Operator || tells == OperatorOfOwn && OwnNode(f)
}
