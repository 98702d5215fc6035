package csrsigner

import "github.com/autoscaler-agent/autoscaler-agent/csrsigner/rules"

// telling is how the journal tells that a rule holds a request.
type telling int

const (
	// heals is a line at info, and a Warning once it has lasted for Config.WarnAfter: what is
	// missing comes with time.
	heals telling = iota + 1
	// operator is a Warning at once: nothing that time brings changes it.
	operator
	// operatorOfOwn is that for a Node which the request's own machine has, else heals.
	operatorOfOwn
	// final holds nothing: it denies, approves, or leaves a request to others.
	final
)

// tellings has every rule that a verdict may name. A rule that is not in it would wait without a
// word for Config.WarnAfter; TestEveryRuleIsClassified asks for its line.
var tellings = map[string]telling{
	"R0": final, "R1": final, "R2": final, "R3": final, "R4": final, "R5": final, "R6": final, "R7": final, "R8": final,
	"R9": heals, "R10": heals, "R11": heals, "R12": heals, "R13": heals, "R14": heals, rules.RuleInventory: heals, "R16": heals, "R17": heals,
	rules.RuleElder: operator, rules.RuleListed: operator,

	"J0": final, "J1": final, "J2": final, "J3": final, "J4": final, "J5": final, "J6": final, "J7": final,
	"J8": heals, "J9": heals, rules.RuleJoinInventory: heals, "J11": heals, "J12": heals, "J15": heals,
	rules.RuleIssued: operator, rules.RuleRival: operator, rules.RuleStale: operatorOfOwn,
}

// needsOperator tells that a held request waits for an operator's decision.
func needsOperator(v rules.Verdict, f rules.Facts) bool {
	how := tellings[v.Rule]
	return how == operator || how == operatorOfOwn && rules.OwnNode(f)
}
