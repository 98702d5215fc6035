package report

import "github.com/autoscaler-agent/autoscaler-agent/agent/decision"

// telling is how the journal tells what a rule holds.
type telling int

const (
	// news is a line when something begins to be held and one when it no longer is: an operator may
	// have to do something.
	news telling = iota + 1
	// routine is a line for debug: the pod will be scheduled, the node is in use, a pause runs. Explain
	// and status tell it at any time.
	routine
	// elsewhere is a line for debug too: another part of the agent logs it, with the remedy. The
	// inventory tells that a group's facts are old, the watch over the API server that the cluster's are.
	elsewhere
	// ofAction is a rule that an action names, whose own line tells it. Nothing is held by it.
	ofAction
)

// tellings has every rule of package decision. A rule that is not in it would be news at each node
// that it holds; TestEveryRuleIsClassified asks for its line.
var tellings = map[string]telling{
	decision.RuleRoomOnNode:    routine,
	decision.RuleRoomUpcoming:  routine,
	decision.RuleGrow:          ofAction,
	decision.RuleMin:           ofAction,
	decision.RuleNoGroup:       news,
	decision.RuleNotUnderstood: news,
	decision.RuleMax:           news,
	decision.RuleTotals:        news,
	decision.RuleBackoff:       news,
	decision.RulePaused:        news,
	decision.RuleTemplate:      news,
	decision.RuleBounds:        news,
	decision.RuleGroupStale:    elsewhere,
	decision.RuleExpendable:    news,
	decision.RuleNewPod:        routine,
	decision.RuleOneWay:        routine,
	decision.RuleExpander:      news,
	decision.RuleAhead:         news,
	decision.RuleQuota:         news,
	decision.RulePriorities:    news,
	decision.RuleOperator:      news,
	decision.RuleGroupHealth:   news,
	decision.RuleHeadroom:      news,
	decision.RuleBalance:       news,
	decision.RuleVolume:        news,
	decision.RuleDeferred:      routine,
	decision.RuleCloudBusy:     routine,
	decision.RuleBurst:         routine,
	decision.RulePatience:      routine,
	decision.RuleTooLarge:      news,

	decision.RuleStale:     elsewhere,
	decision.RuleUnhealthy: news,
	decision.RuleCooldown:  routine,
	decision.RuleFailed:    news,
	decision.RuleGrowing:   routine,
	decision.RuleBudget:    news,

	decision.RuleNoJoin:       news,
	decision.RuleNotStarted:   news,
	decision.RuleClaimed:      news,
	decision.RuleInstanceMin:  news,
	decision.RuleShort:        news,
	decision.RuleStarting:     routine,
	decision.RuleNeverStarted: news,

	decision.RuleUnneeded:    ofAction,
	decision.RuleUnready:     ofAction,
	decision.RuleUnneededFor: routine,
	decision.RuleBusy:        routine,
	decision.RuleOptOut:      news,
	decision.RuleBlocked:     news,
	decision.RuleNoRoom:      routine,
	decision.RuleAtMin:       routine,
	decision.RuleInUse:       routine,
	decision.RuleNotOurs:     news,
	decision.RuleResume:      ofAction,
	decision.RuleTookBack:    news,
	decision.RuleBatch:       routine,
	decision.RuleDraining:    news,
	decision.RuleHalfMark:    ofAction,
	decision.RuleInstance:    news,
	decision.RuleEmpty:       ofAction,
	decision.RuleTotalsMin:   routine,
	decision.RuleSoft:        routine,
	decision.RuleRequested:   ofAction,
	decision.RuleConsolidate: news,
	decision.RuleKeeps:       news,
	decision.RuleCompletion:  routine,
	decision.RuleInterrupted: news,
	decision.RuleDrifted:     ofAction,
	decision.RuleExpired:     ofAction,
	decision.RuleSick:        ofAction,
	decision.RuleReplace:     news,
	decision.RuleDisruption:  routine,
	decision.RuleCanary:      routine,
	decision.RuleHalted:      news,
	decision.RuleBreaker:     news,
	decision.RuleReplaceNode: ofAction,
	decision.RuleRolloutHeld: news,
	decision.RuleForced:      ofAction,
	decision.RuleElsewhere:   news,
}
