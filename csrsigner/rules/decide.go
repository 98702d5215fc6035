package rules

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"
)

// Action is what becomes of a request.
type Action int

// The four outcomes. Deny is final in Kubernetes (kubernetes/kubernetes#68558), so
// only what can never become right is denied; what may heal is Later.
const (
	Leave   Action = iota // none of our business, or already decided
	Later                 // keep pending and judge again
	Approve               // every name and address is witnessed
	Deny                  // can never become right
)

var actionNames = [...]string{"leave", "later", "approve", "deny"}

// String returns the word used in logs and metrics.
func (a Action) String() string {
	if a < 0 || int(a) >= len(actionNames) {
		return fmt.Sprintf("action %d", int(a))
	}
	return actionNames[a]
}

// Verdict is the judgement of one request: what to do, by which rule and why, in
// words that an operator can act on.
type Verdict struct {
	Do   Action
	Rule string
	Why  string
}

// Hold returns the verdict as one that keeps the request pending, with words that say why
// in place of what does not fit beside them.
func (v Verdict) Hold(words string) Verdict {
	v.Do, v.Why = Later, Clip(v.Why, whyBytes-len(words))+words
	return v
}

// The constants of the signer and of the names in a request (k8s.io/api
// certificates/v1; pkg/apis/certificates/helpers.go of Kubernetes).
const (
	ServingSigner = "kubernetes.io/kubelet-serving"
	ClientSigner  = "kubernetes.io/kube-apiserver-client-kubelet"
	UserPrefix    = "system:node:"
	NodesGroup    = "system:nodes"
	AuthGroup     = "system:authenticated"
	mastersGroup  = "system:masters"
)

// Limits of the rules.
const (
	// MaxNames is how many names and addresses a request may ask for (R7).
	MaxNames = 32
	// minExpiration is the shortest life the signer grants, in seconds (signer.go duration()
	// of Kubernetes).
	minExpiration = 600
)

// scope says whom a check concerns.
type scope int

const (
	everybody   scope = iota
	workersOnly       // every Node but the agent's own
	leaderOnly        // the agent's own Node
	listedOnly        // another Node of the control plane that groups.yaml lists
)

// A check passes (no words) or ends the judgement.
type check struct {
	rule string
	what string // what must hold
	who  scope
	test func(Request, Facts) (Action, string)
}

// checks is the whole order of judgement of serving certificates. Up to R9 a request
// is judged by itself and by what never changes; from R10 on by what heals with time.
// R15 and R17 stand where they do so that a stale inventory is named before what it
// says, and so that a flood is refused before it costs a cloud call. R18 and R19 are
// not judgements: package csrsigner has them, where it writes and reports a decision.
var checks = []check{
	{"R0", "a kubelet asks for a serving certificate, and nothing is decided yet", everybody, notOurs},
	{"R17", "the Node has no younger request", everybody, newestOnly},
	{"R17", "the Node's allowance of decisions is not used up", everybody, withinAllowance},
	{"R1", "one sound PKCS #10 block, signed by its own key", everybody, soundRequest},
	{"R2", "the requester is authenticated as a node", everybody, nodeGroups},
	{"R3", "the subject is the requester itself, of system:nodes alone", everybody, subject},
	{"R4", "the usages are those of a serving certificate", everybody, usages},
	{"R5", "the key is strong", everybody, key},
	{"R6", "nothing but names and addresses is asked for", everybody, onlyNamesAndAddresses},
	{"R7", "1 to 32 names and addresses, each once", everybody, nameCount},
	{"R8", "the life that is asked for is within bounds", everybody, expiration},
	{"R9", "no name or address is the cluster's own", everybody, forbidden},
	{"R10", "the Node lives", everybody, liveNode},
	{"R16", "the Node is not of the control plane", workersOnly, notControlPlane},
	{"R16", "the Node is the machine that the agent runs on", leaderOnly, ownMachine},
	{"R16", "the machine itself has every name and address", leaderOnly, ownNames},
	{RuleListed, "the operator's list of control-plane machines names the Node and its instance", listedOnly, listedMachine},
	{RuleListed, "the list has every name and address", listedOnly, listedNames},
	{"R15", "what the cloud says was read lately", workersOnly, freshInventory},
	{"R11", "Node and instance name each other, and the instance runs in a managed group", workersOnly, witnessedInstance},
	{"R12", "the instance was there before the request, and no other claims the name", workersOnly, oneInstance},
	{RuleElder, "no older Node whose kubelet lives is of the same instance", workersOnly, noElder},
	{"R9", "no name or address belongs to another machine", workersOnly, othersNames},
	{"R13", "the cloud vouches for every name", workersOnly, witnessedNames},
	{"R14", "the cloud vouches for every address", workersOnly, witnessedAddresses},
}

// servingRules have a row for each rule of checks.
var servingRules = []Rule{
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
}

// RuleElder holds a Node beside another one of its machine until an operator has looked.
const RuleElder = "R20"

// RuleInventory is the rule of the verdict that asks for the cloud's inventory.
const RuleInventory = "R15"

// Decide judges one request. Equal arguments, equal verdict; nothing is read or
// changed but the arguments.
func Decide(req Request, f Facts) Verdict { return judge(req, f, func(check, string, string) {}) }

// The results of a Step.
const (
	passed     = "passed"
	Stopped    = "stopped"
	notAsked   = "does not apply"
	notReached = "not reached"
)

// Step is one check of a judgement and what came of it.
type Step struct {
	Rule   string `json:"rule"`
	What   string `json:"what"` // what must hold
	Result string `json:"result"`
	Why    string `json:"why,omitempty"` // of the check that stopped
}

// Trace is Decide with every check on the way, unreached checks included.
func Trace(req Request, f Facts) (Verdict, []Step) {
	var steps []Step
	v := judge(req, f, func(c check, result, why string) {
		steps = append(steps, Step{Rule: c.rule, What: c.what, Result: result, Why: why})
	})
	return v, steps
}

// listFor returns the checks that a request has to pass, and what passing is called.
func listFor(req Request) ([]check, string) {
	if req.Signer == ClientSigner {
		return joinChecks, ApprovedJoin
	}
	return checks, ApprovedServing
}

// judge goes through the checks in their order and tells seen about each. The first
// that finds a reason ends the judgement; a request that passes all is approved.
func judge(req Request, f Facts, seen func(c check, result, why string)) Verdict {
	req, f = inOrder(req, f)
	list, all := listFor(req)
	var v Verdict
	for _, c := range list {
		if v.Why != "" {
			seen(c, notReached, "")
			continue
		}
		if c.who != everybody && c.who != f.scopeOf(req) {
			seen(c, notAsked, "")
			continue
		}
		do, why := c.test(req, f)
		if why = Clip(why, whyBytes); why == "" {
			seen(c, passed, "")
			continue
		}
		v = Verdict{Do: do, Rule: c.rule, Why: why}
		seen(c, Stopped, why)
	}
	if v.Why != "" {
		return v
	}
	return Verdict{Do: Approve, Rule: all, Why: Clip(approval(req, f), whyBytes)}
}

// inOrder returns the arguments with every list sorted: in which order a requester, a
// cloud or an operator lists things means nothing, not even for the words of a verdict.
func inOrder(req Request, f Facts) (Request, Facts) {
	p := &req.Parsed
	for _, list := range []*[]string{&req.Groups, &req.Usages, &p.CommonNames, &p.Organizations, &p.OtherSubject, &p.DNS, &p.OtherNames, &p.OtherExtensions} {
		*list = slices.Sorted(slices.Values(*list))
	}
	p.IPs = slices.SortedFunc(slices.Values(p.IPs), netip.Addr.Compare)
	if f.Forbidden != nil {
		b := *f.Forbidden
		b.Ranges = slices.SortedFunc(slices.Values(b.Ranges), netip.Prefix.Compare)
		f.Forbidden = &b
	}
	if f.Join != nil {
		j := *f.Join
		j.Bearers, j.Rivals = slices.Sorted(slices.Values(j.Bearers)), slices.Sorted(slices.Values(j.Rivals))
		f.Join = &j
	}
	if f.Self != nil {
		self := *f.Self
		self.Names = slices.Sorted(slices.Values(self.Names))
		f.Self = &self
	}
	if f.Listed != nil {
		m := *f.Listed
		m.Names = slices.Sorted(slices.Values(m.Names))
		m.Addresses = slices.SortedFunc(slices.Values(m.Addresses), netip.Addr.Compare)
		f.Listed = &m
	}
	if f.Inventory == nil {
		return req, f
	}
	inv := *f.Inventory
	inv.Claimants = slices.Sorted(slices.Values(inv.Claimants))
	if inv.Instance != nil {
		in := *inv.Instance
		in.NodeNames, in.Names = slices.Sorted(slices.Values(in.NodeNames)), slices.Sorted(slices.Values(in.Names))
		in.Addresses = slices.SortedFunc(slices.Values(in.Addresses), netip.Addr.Compare)
		inv.Instance = &in
	}
	f.Inventory = &inv
	return req, f
}

func notOurs(req Request, _ Facts) (Action, string) {
	switch {
	case req.Signer != ServingSigner:
		return Leave, fmt.Sprintf("signer %q is not ours", req.Signer)
	case req.Settled != "":
		return Leave, "already " + req.Settled
	case !strings.HasPrefix(req.Username, UserPrefix):
		return Leave, fmt.Sprintf("requester %q is not a node", req.Username)
	}
	return Leave, ""
}

// newestOnly lets a Node have one request judged at a time, its youngest: an honest
// kubelet waits for no other, and a flood hurts only its author.
func newestOnly(_ Request, f Facts) (Action, string) {
	if f.Newer != "" {
		return Later, "the same Node has a newer request, " + f.Newer
	}
	return Later, ""
}

func withinAllowance(req Request, f Facts) (Action, string) {
	if f.Spent {
		return Later, fmt.Sprintf("Node %s has used up its allowance of decisions", req.Node())
	}
	return Later, ""
}

func soundRequest(req Request, _ Facts) (Action, string) {
	return Deny, req.Parsed.Problem
}

func nodeGroups(req Request, _ Facts) (Action, string) {
	for _, g := range []string{NodesGroup, AuthGroup} {
		if !slices.Contains(req.Groups, g) {
			return Deny, fmt.Sprintf("requester is not in group %s", g)
		}
	}
	if slices.Contains(req.Groups, mastersGroup) {
		return Deny, fmt.Sprintf("requester is in group %s, as no kubelet is", mastersGroup)
	}
	return Deny, ""
}

func subject(req Request, _ Facts) (Action, string) {
	p := req.Parsed
	switch {
	case len(p.CommonNames) != 1 || p.CommonNames[0] != req.Username:
		return Deny, fmt.Sprintf("common name %q is not the requester %q", p.CommonNames, req.Username)
	case len(p.Organizations) != 1 || p.Organizations[0] != NodesGroup:
		return Deny, fmt.Sprintf("organization %q is not %s alone", p.Organizations, NodesGroup)
	case len(p.OtherSubject) > 0:
		return Deny, fmt.Sprintf("subject has attributes other than CN and O: %q", p.OtherSubject)
	case !IsSubdomain(req.Node()):
		return Deny, fmt.Sprintf("node name %q is not a DNS subdomain", req.Node())
	}
	return Deny, ""
}

func usages(req Request, _ Facts) (Action, string) {
	got := slices.Clone(req.Usages)
	slices.Sort(got)
	if slices.Equal(got, []string{"digital signature", "server auth"}) {
		return Deny, ""
	}
	encipher := slices.Equal(got, []string{"digital signature", "key encipherment", "server auth"})
	// Old kubelets ask for key encipherment with ECDSA keys too (kubernetes#111660).
	if encipher && (req.Parsed.Key == "RSA" || strings.HasPrefix(req.Parsed.Key, "ECDSA")) {
		return Deny, ""
	}
	return Deny, fmt.Sprintf("usages %q with a key of kind %s are not those of a kubelet's serving certificate", req.Usages, req.Parsed.Key)
}

func key(req Request, _ Facts) (Action, string) {
	if req.Parsed.Weakness != "" {
		return Deny, fmt.Sprintf("the key of kind %s is weak: %s", req.Parsed.Key, req.Parsed.Weakness)
	}
	switch req.Parsed.Key {
	case "ECDSA P-256", "ECDSA P-384", "ECDSA P-521", "Ed25519":
		return Deny, ""
	case "RSA":
		if req.Parsed.Bits >= 2048 {
			return Deny, ""
		}
	}
	return Deny, fmt.Sprintf("key of kind %q with %d bits is too weak or unknown", req.Parsed.Key, req.Parsed.Bits)
}

func onlyNamesAndAddresses(req Request, _ Facts) (Action, string) {
	p := req.Parsed
	switch {
	case len(p.OtherNames) > 0:
		return Deny, fmt.Sprintf("asks for names that are neither DNS nor IP: %q", p.OtherNames)
	case len(p.OtherExtensions) > 0:
		return Deny, fmt.Sprintf("asks for extensions or attributes beside its names: %q", p.OtherExtensions)
	case p.SANExtensions > 1:
		return Deny, fmt.Sprintf("has %d subject alternative name extensions", p.SANExtensions)
	}
	return Deny, ""
}

// nameCount also refuses what stands twice: a kubelet asks for sets.
func nameCount(req Request, _ Facts) (Action, string) {
	n := len(req.Parsed.DNS) + len(req.Parsed.IPs)
	if n < 1 || n > MaxNames {
		return Deny, fmt.Sprintf("asks for %d names and addresses, not for 1 to %d", n, MaxNames)
	}
	seen := make(map[string]bool, n)
	for _, raw := range req.Parsed.DNS {
		if seen[CanonicalName(raw)] {
			return Deny, fmt.Sprintf("asks for the name %q twice", raw)
		}
		seen[CanonicalName(raw)] = true
	}
	for _, raw := range req.Parsed.IPs {
		address := "address " + CanonicalAddress(raw).String()
		if seen[address] {
			return Deny, fmt.Sprintf("asks for the %s twice", address)
		}
		seen[address] = true
	}
	return Deny, ""
}

func expiration(req Request, f Facts) (Action, string) {
	if req.ExpirationSeconds == nil {
		return Deny, ""
	}
	most := int64(f.MaxExpiration / time.Second)
	if s := int64(*req.ExpirationSeconds); s < minExpiration || s > most {
		return Deny, fmt.Sprintf("expirationSeconds %d is outside %d..%d", s, minExpiration, most)
	}
	return Deny, ""
}

func liveNode(req Request, f Facts) (Action, string) {
	switch {
	case f.Node == nil || f.Node.Name != req.Node():
		return Later, fmt.Sprintf("there is no Node %s yet", req.Node())
	case f.Node.Deleting:
		return Later, fmt.Sprintf("Node %s is being deleted", req.Node())
	case req.UserUID != "" && req.UserUID != f.Node.UID:
		return Later, fmt.Sprintf("the requester's UID %q is not that of Node %s: a kubelet's certificate has none", req.UserUID, req.Node())
	}
	return Later, ""
}
