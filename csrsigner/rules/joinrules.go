package rules

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// This file holds the checks of the closed join: the client certificate that a kubelet
// asks for with a bootstrap token. It is as pure as decide.go.

// What a request that is made with a bootstrap token bears (k8s.io/cluster-bootstrap/token/api).
const (
	TokenPrefix     = "system:bootstrap:"
	TokensGroup     = "system:bootstrappers"
	clientAuthUsage = "client auth"
)

// RuleStale is the rule that holds a join because a Node stands in its way. That of
// another machine has to go first.
const RuleStale = "J14"

// RuleIssued and RuleRival hold a join until an operator has looked: nothing that time
// brings can tell the machine from a thief. They are told at once.
const (
	RuleIssued = "J13"
	RuleRival  = "J16"
)

// joinChecks is the whole order of judgement of client certificates. Up to J8 a request
// is judged by itself; a denial is final for the key that asked, so that everything
// which heals is held. RuleInventory's part is J10. J16 stands before J14, so that no Node
// has to go for a machine that may not come.
var joinChecks = []check{
	{"J0", "a machine asks with one of our join tokens for its client certificate, and nothing is decided yet", everybody, notOurJoin},
	{"J15", "nobody asks later for the same name", everybody, newestOnly},
	{"J15", "the allowance of decisions for the name is not used up", everybody, withinAllowance},
	{"J1", "one sound PKCS #10 block, signed by its own key", everybody, soundRequest},
	{"J2", "the requester is authenticated by a bootstrap token", everybody, tokenGroups},
	{"J3", "the subject is one node, of system:nodes alone", everybody, joinSubject},
	{"J4", "the usages are those of a kubelet's client certificate", everybody, joinUsages},
	{"J5", "the key is strong", everybody, key},
	{"J6", "no names, addresses or extensions are asked for", everybody, nothingElse},
	{"J7", "the life that is asked for is within bounds", everybody, expiration},
	{"J8", "the name is not the control plane's", everybody, notControlPlaneName},
	{"J9", "the token is one that the agent minted, and lives; one that was made for a key, the request has", everybody, liveToken},
	{"J10", "what the cloud says was read lately", everybody, freshJoinInventory},
	{"J11", "one running instance of a managed group, and no other, is expected under the name", everybody, expectedInstance},
	{"J12", "the request came within the launch window of the instance", everybody, launchWindow},
	{"J13", "the instance has no certificate yet, or asks again with the same key for the same Node", everybody, onePerInstance},
	{"J16", "nobody asks with another key for a name of the instance", everybody, noRival},
	{"J14", "no Node bears the name", everybody, noNode},
}

// joinRules have a row for each rule of joinChecks.
var joinRules = []Rule{
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

// RuleJoinInventory is RuleInventory of the closed join.
const RuleJoinInventory = "J10"

func notOurJoin(req Request, f Facts) (Action, string) {
	switch {
	case req.Settled != "":
		return Leave, "already " + req.Settled
	case !strings.HasPrefix(req.Username, TokenPrefix):
		return Leave, fmt.Sprintf("requester %q does not join: kubeadm's own rotation of client certificates is left to it", req.Username)
	case f.Join == nil:
		return Leave, "the join is open (AUTOSCALER_CSR_JOIN): the controller manager approves by kubeadm's bindings"
	case !slices.Contains(req.Groups, f.Join.Group):
		return Leave, fmt.Sprintf("the token is not of group %s: it is not one of ours", f.Join.Group)
	}
	return Leave, ""
}

func tokenGroups(req Request, _ Facts) (Action, string) {
	for _, g := range []string{TokensGroup, AuthGroup} {
		if !slices.Contains(req.Groups, g) {
			return Deny, fmt.Sprintf("requester is not in group %s", g)
		}
	}
	for _, g := range req.Groups {
		if g != AuthGroup && g != TokensGroup && !strings.HasPrefix(g, TokensGroup+":") {
			return Deny, fmt.Sprintf("requester is in group %s, which no bootstrap token gives", g)
		}
	}
	return Deny, ""
}

func joinSubject(req Request, _ Facts) (Action, string) {
	p := req.Parsed
	switch {
	case len(p.CommonNames) != 1 || !strings.HasPrefix(p.CommonNames[0], UserPrefix):
		return Deny, fmt.Sprintf("common name %q is not one node", p.CommonNames)
	case len(p.Organizations) != 1 || p.Organizations[0] != NodesGroup:
		return Deny, fmt.Sprintf("organization %q is not %s alone", p.Organizations, NodesGroup)
	case len(p.OtherSubject) > 0:
		return Deny, fmt.Sprintf("subject has attributes other than CN and O: %q", p.OtherSubject)
	case !IsSubdomain(req.Node()):
		return Deny, fmt.Sprintf("node name %q is not a DNS subdomain", req.Node())
	}
	return Deny, ""
}

// joinUsages are those of ValidateKubeletClientCSR (Kubernetes,
// pkg/apis/certificates/helpers.go).
func joinUsages(req Request, _ Facts) (Action, string) {
	got := slices.Clone(req.Usages)
	slices.Sort(got)
	if slices.Equal(got, []string{clientAuthUsage, "digital signature"}) {
		return Deny, ""
	}
	encipher := slices.Equal(got, []string{clientAuthUsage, "digital signature", "key encipherment"})
	if encipher && (req.Parsed.Key == "RSA" || strings.HasPrefix(req.Parsed.Key, "ECDSA")) {
		return Deny, ""
	}
	return Deny, fmt.Sprintf("usages %q with a key of kind %s are not those of a kubelet's client certificate", req.Usages, req.Parsed.Key)
}

func nothingElse(req Request, _ Facts) (Action, string) {
	p := req.Parsed
	switch {
	case len(p.DNS)+len(p.IPs)+len(p.OtherNames)+p.SANExtensions > 0:
		return Deny, "a client certificate has no subject alternative names"
	case len(p.OtherExtensions) > 0:
		return Deny, fmt.Sprintf("asks for extensions or attributes: %q", p.OtherExtensions)
	}
	return Deny, ""
}

// notControlPlaneName keeps a token from becoming the leader: under its name a Node has
// the rights over the leader's pods and their secrets.
func notControlPlaneName(req Request, f Facts) (Action, string) {
	switch {
	case f.Forbidden == nil:
		return Later, "the API server's own names are not known yet"
	case f.Self != nil && (req.Node() == f.Self.Node || ownsName(f.Self.Names, req.Node())):
		return Deny, fmt.Sprintf("%s is the machine that the agent runs on", req.Node())
	case f.Node != nil && f.Node.ControlPlane, slices.Contains(f.ControlPlane, req.Node()):
		return Deny, fmt.Sprintf("Node %s is of the control plane: a machine of it joins with kubeadm's own token", req.Node())
	}
	return Deny, f.Forbidden.name(req.Node(), false)
}

func liveToken(req Request, f Facts) (Action, string) {
	t := f.Join.Token
	if t.Problem == "" && req.Created.Before(t.Made) {
		return Later, fmt.Sprintf("the request is older than the token of that ID: it was made with another one (%s)", t.Made.UTC().Format(time.RFC3339))
	}
	if t.Problem == "" {
		return Later, KeyFault(t, req.Parsed.KeyHash)
	}
	return Later, t.Problem
}

// KeyFault says that a token was made for another key than the request's: a machine that
// has attested has told which key its kubelet will ask with.
func KeyFault(t Token, key string) string {
	if t.Key == "" || t.Key == key {
		return ""
	}
	return fmt.Sprintf("the token was made for the machine that has key %s, and the request is of key %s", Clip(t.Key, keyDigits), Clip(key, keyDigits))
}

// keyDigits is how much of a key's hash a verdict names.
const keyDigits = 16

func freshJoinInventory(req Request, f Facts) (Action, string) { return freshInventory(req, f) }

func expectedInstance(req Request, f Facts) (Action, string) {
	inv := f.Inventory
	switch {
	case len(inv.Claimants) == 0 && inv.Incomplete != "":
		return Later, fmt.Sprintf("no instance that could be read is expected as Node %s: %s", req.Node(), inv.Incomplete)
	case len(inv.Claimants) == 0:
		return Later, fmt.Sprintf("no instance of a managed node group is expected as Node %s", req.Node())
	case len(inv.Claimants) > 1:
		return Later, fmt.Sprintf("several instances are expected as Node %s: %v", req.Node(), inv.Claimants)
	case inv.Instance == nil || inv.Instance.ID != inv.Claimants[0]:
		return Later, fmt.Sprintf("instance %s is not among those that could be read", inv.Claimants[0])
	}
	in := inv.Instance
	switch {
	case !in.Member:
		return Later, fmt.Sprintf("instance %s is not a member of group %s now", in.ID, inv.Group)
	case !runs(*in):
		return Later, fmt.Sprintf("instance %s is not running (%q)", in.ID, in.Phase)
	}
	return Later, TokenFault(f.Join.Token, *in)
}

// Unexpected is the verdict of J11 alone. f.Inventory names no instance that is expected
// under the name of the request.
func Unexpected(req Request, f Facts) Verdict {
	do, why := expectedInstance(req, f)
	return Verdict{Do: do, Rule: "J11", Why: Clip(why, whyBytes)}
}

// TokenFault says that a token was made for another machine than the instance.
func TokenFault(t Token, in cluster.Instance) string {
	switch {
	case t.Instance != "" && t.Instance != in.ID:
		return fmt.Sprintf("the token was made for instance %s, not for %s", t.Instance, in.ID)
	case t.Machine != "" && !ownsName(in.NodeNames, CanonicalName(t.Machine)):
		return fmt.Sprintf("the token was made for machine %s, which instance %s is not (%s)", t.Machine, in.ID, strings.Join(in.NodeNames, ", "))
	}
	return ""
}

func launchWindow(req Request, f Facts) (Action, string) {
	in := f.Inventory.Instance
	switch age := req.Created.Sub(in.Created); {
	case in.Created.IsZero() && f.Inventory.Vouched:
		return Later, "" // the cloud has no launch times; the operator's list names the machine
	case in.Created.IsZero():
		return Later, fmt.Sprintf("the cloud does not say when instance %s was launched", in.ID)
	case TooEarly(req.Created, in.Created):
		return Later, fmt.Sprintf("instance %s was launched (%s) after the request was made (%s): it is not the instance's own, unless the control plane's clock is behind; if it is, set the clock and kubectl certificate approve %s",
			in.ID, stamp(in.Created), stamp(req.Created), req.Name)
	case age > f.Join.Window:
		return Later, fmt.Sprintf("the request came %s after the launch of instance %s, more than %s: if the machine really joins anew, kubectl certificate approve %s",
			age.Round(time.Second), in.ID, f.Join.Window, req.Name)
	}
	return Later, ""
}

// onePerInstance is trust on first use: the first request under the name of an expected
// instance is taken for it, and no later one. A Node that carries the instance's
// provider ID proves that somebody came, also where nobody remembers who.
func onePerInstance(req Request, f Facts) (Action, string) {
	j, in := f.Join, f.Inventory.Instance
	if j.Fault != "" {
		return Later, j.Fault
	}
	why := ""
	switch old := j.Issued; {
	case old != nil && old.Key != req.Parsed.KeyHash:
		why = fmt.Sprintf("instance %s got its certificate at %s by request %s, with another key", in.ID, stamp(old.At), Clip(old.CSR, NameBytes))
	case old != nil && old.Node != req.Node():
		why = fmt.Sprintf("instance %s got its certificate as Node %s by request %s", in.ID, Clip(old.Node, NameBytes), Clip(old.CSR, NameBytes))
	default:
		if node := bearer(req, f); node != "" {
			why = fmt.Sprintf("Node %s carries the provider ID of instance %s: a client certificate was issued for it, to which key is not known", Clip(node, NameBytes), in.ID)
		}
	}
	if why == "" {
		return Later, ""
	}
	return Later, fmt.Sprintf("%s: if the machine really joins anew, kubectl certificate approve %s", why, req.Name)
}

// bearer names a Node that carries the instance's provider ID and is not the one that
// the key of the request got its certificate for; empty: there is none.
func bearer(req Request, f Facts) string {
	if f.Node != nil && f.Join.Issued == nil && SameMachine(f.Node.ProviderID, string(f.Inventory.Instance.ID)) {
		return f.Node.Name
	}
	for _, name := range f.Join.Bearers {
		if f.Join.Issued == nil || name != req.Node() {
			return name
		}
	}
	return ""
}

// noRival lets nobody in while two ask: which of them is the machine only an operator
// can see.
func noRival(req Request, f Facts) (Action, string) {
	rivals := f.Join.Rivals
	if len(rivals) == 0 || f.Join.Issued != nil { // J13: issued to this very key, which asks again
		return Later, ""
	}
	named := make([]string, 0, rivalsNamed)
	for _, r := range rivals[:min(len(rivals), rivalsNamed)] {
		named = append(named, Clip(r, NameBytes))
	}
	more := ""
	if n := len(rivals) - len(named); n > 0 {
		more = fmt.Sprintf(" and %d more", n)
	}
	return Later, fmt.Sprintf("%s and %s%s ask with different keys for instance %s, and one of them at most is the machine: kubectl certificate deny the others, or approve the right one",
		Clip(req.Name, NameBytes), strings.Join(named, ", "), more, f.Inventory.Instance.ID)
}

// rivalsNamed is how many rivals a verdict names.
const rivalsNamed = 3

// noNode lets nobody in under the name of a Node that is there, not even the machine
// itself on a later try: the API server refuses such an approval to the agent's user
// (units/admission-policy.yaml), because a thief of its credential would ask for it.
func noNode(req Request, f Facts) (Action, string) {
	n := f.Node
	switch {
	case n == nil && f.Join.Unlisted != "":
		return Later, fmt.Sprintf("the API server does not let Node %s join: its Lease in kube-node-lease goes with the Node that was there, within seconds; if it stays, kubectl -n kube-node-lease delete lease %s (%s)",
			req.Node(), req.Node(), Clip(f.Join.Unlisted, NameBytes))
	case n == nil:
		return Later, ""
	case n.Ready:
		return Later, fmt.Sprintf("Node %s is there already, and Ready", n.Name)
	case n.Deleting:
		return Later, fmt.Sprintf("the Node %s that was there is being deleted", n.Name)
	case OwnNode(f):
		return Later, fmt.Sprintf("Node %s of the machine itself is there already, and the agent may let in none under its name: if the machine really joins anew, kubectl certificate approve %s", n.Name, req.Name)
	}
	return Later, fmt.Sprintf("Node %s is that of instance %q, which has to be proven gone first", n.Name, n.ProviderID)
}

// OwnNode tells that the Node of the name is the machine's own.
func OwnNode(f Facts) bool {
	return f.Node != nil && f.Inventory != nil && f.Inventory.Instance != nil && SameMachine(f.Node.ProviderID, string(f.Inventory.Instance.ID))
}
