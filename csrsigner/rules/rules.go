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
var Rules = []Rule{
	{"R0", Final, ""},
	{"R1", Final, "The request is malformed: look what posts it (kubectl get csr NAME -o yaml)."},
	{"R2", Final, "Only a kubelet may ask for a serving certificate: look what posts it."},
	{"R3", Final, "A node asked for a certificate of another name: look at that node."},
	{"R4", Final, "Look at the kubelet's version and at the usages of the request."},
	{"R5", Final, "Let the kubelet make a new key (ECDSA P-256 or RSA 2048 at least)."},
	{"R6", Final, "The request asks for more than names and addresses: look at that node."},
	{"R7", Final, "Look at the node's addresses (kubectl get node -o wide)."},
	{"R8", Final, "Lower the life that is asked for."},
	{"R9", Heals, "The request claims a name or address of the cluster or of another machine. Treat the node as an intruder until it is explained."},
	{"R10", Heals, "The Node has to exist and to live."},
	{"R11", Heals, "Compare the Node's provider ID with the instance in the cloud (autoscaler-agent explain csr)."},
	{"R12", Heals, "Look for two instances under one name, and at the clock of the control plane."},
	{"R13", Heals, "Name further names in AUTOSCALER_CSR_EXTRA_NAMES, if they are right."},
	{"R14", Heals, "Name further ranges in AUTOSCALER_CSR_ALLOWED_RANGES, or set AUTOSCALER_AWS_SECONDARY_ADDRESSES, if the addresses are right."},
	{RuleInventory, Heals, "The cloud was not read lately: see autoscaler-agent check."},
	{"R16", Heals, "List the control-plane machine in the section controlPlane of groups.yaml (docs/ha.md), or approve its request by hand."},
	{"R17", Heals, ""},
	{RuleElder, Operator, "Find out which of the two Nodes is the machine: kubectl get nodes -o custom-columns=NAME:.metadata.name,ID:.spec.providerID,AGE:.metadata.creationTimestamp. Then kubectl delete node the one that is a leftover."},
	{RuleListed, Operator, "Correct the machine's line in the section controlPlane of groups.yaml: the name, address or provider ID that the message tells."},

	{"J0", Final, ""},
	{"J1", Final, "The request is malformed: look what posts it (kubectl get csr NAME -o yaml)."},
	{"J2", Final, "Only a bootstrap token may ask for a first certificate here."},
	{"J3", Final, "The request asks for another subject than one node."},
	{"J4", Final, "Look at the kubelet's version and at the usages of the request."},
	{"J5", Final, "Let the kubelet make a new key (ECDSA P-256 or RSA 2048 at least)."},
	{"J6", Final, "The request asks for more than a client certificate: look what posts it."},
	{"J7", Final, "Lower the life that is asked for."},
	{"J8", Heals, "A request for the control plane's name. Treat the join token as stolen: autoscaler-agent explain csr."},
	{"J9", Heals, "Render the user data anew: its join token is not one that the agent minted, or it has expired."},
	{RuleJoinInventory, Heals, "The cloud was not read lately: see autoscaler-agent check."},
	{"J11", Heals, "The cloud knows no running machine of a managed group under the name (autoscaler-agent explain csr)."},
	{"J12", Heals, "Start the machine anew: only its first minutes count. Look at the clock of the control plane."},
	{RuleIssued, Operator, "The instance has a certificate already. Replace the machine, or approve the request by hand when you know the cause."},
	{RuleStale, OperatorOfOwn, "The old Node goes first, once its machine is proven gone. Delete it by hand when you know that it is."},
	{"J15", Heals, ""},
	{RuleRival, Operator, "Two keys ask for one machine. Deny the request that is not the machine's, or replace the machine."},
}

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
