package csrsigner

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
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

// The constants of the signer and of the names in a request (k8s.io/api
// certificates/v1; pkg/apis/certificates/helpers.go of Kubernetes).
const (
	signerName = "kubernetes.io/kubelet-serving"
	userPrefix = "system:node:"
	nodesGroup = "system:nodes"
	authGroup  = "system:authenticated"
)

// Limits of the rules.
const (
	maxNames = 32 // R7
	// launchSkew is how far the cloud's clock may be ahead of the API server's (R12).
	launchSkew = 10 * time.Second
	// minExpiration is the shortest life the signer grants (signer.go duration()).
	minExpiration = 600
)

// Request is a CertificateSigningRequest as far as a judge needs it, its PEM
// already taken apart (facts.go).
type Request struct {
	Name     string
	UID      string
	Signer   string
	Username string
	Groups   []string
	Usages   []string
	// ExpirationSeconds is spec.expirationSeconds; nil leaves it to the signer.
	ExpirationSeconds *int32
	Created           time.Time
	// Settled says why there is nothing left to decide ("approved", "deleting");
	// empty while the request is pending.
	Settled string
	Parsed  Parsed
}

// Node returns the name of the Node that the requester is authenticated as.
func (r Request) Node() string { return strings.TrimPrefix(r.Username, userPrefix) }

// Parsed is the content of a PKCS #10 request.
type Parsed struct {
	// Problem says why the request is not one sound, self-signed PKCS #10 block.
	Problem string
	// Subject.
	CommonNames   []string
	Organizations []string
	OtherSubject  []string // attribute types other than CN and O, as OIDs
	// Key is "RSA", "ECDSA P-256", "Ed25519" or another name; Bits is the RSA size.
	Key  string
	Bits int
	// Subject alternative names as they stand in the request. OtherNames are tags of
	// kinds other than DNS and IP ("email", "URI", "tag 0").
	DNS        []string
	IPs        []netip.Addr
	OtherNames []string
	// OtherExtensions are OIDs of requested extensions that are not the subject
	// alternative name, and of attributes that are not an extension request;
	// SANExtensions counts the former.
	OtherExtensions []string
	SANExtensions   int
}

// Facts is everything beside the request that a verdict rests on.
type Facts struct {
	Now time.Time
	// MaxExpiration is the longest life that a request may ask for (R8).
	MaxExpiration time.Duration
	// Forbidden is nil while the API server's own names are not known.
	Forbidden *Forbidden
	// Node is the live Node of the requester; nil when there is none.
	Node *Node
	// Inventory is nil while the cloud has not been asked for this verdict.
	Inventory *Witness
	// MaxAge is the oldest inventory that an approval may rest on (R15).
	MaxAge time.Duration
	// Taken tells which other Node carries a name that the request asks for.
	Taken map[string]string
	// Newer names a younger pending request of the same Node (R17).
	Newer string
	// Spent tells that the Node's allowance of decisions is used up (R17).
	Spent bool
}

// Forbidden is what no worker may have in a certificate, whatever the inventory
// says (R9): it is the cluster's own.
type Forbidden struct {
	Names     []string // lower case, no trailing dot
	Addresses []netip.Addr
	Ranges    []netip.Prefix // service CIDRs
	DNSDomain string         // "cluster.local"
	// Allowed are ranges of special addresses (loopback, link-local) that machines
	// really have; for clusters that live on one host. It never overrides Addresses.
	Allowed []netip.Prefix
}

// Node is the part of a Node object that binds it to an instance.
type Node struct {
	Name         string
	UID          string
	ProviderID   string
	Deleting     bool
	ControlPlane bool
}

// Witness is what the cloud says about the machines that matter to one request.
type Witness struct {
	// Problem says why nothing at all is known; empty when something is.
	Problem string
	// Instance is the one whose ID is the Node's provider ID; nil when the inventory
	// has none. Group, Stale and ReadAt are of its group.
	Instance *cluster.Instance
	Group    cluster.GroupID
	Stale    string
	ReadAt   time.Time
	// Incomplete says which groups could not be read, when Instance is nil.
	Incomplete string
	// Claimants are the IDs of live instances whose Node may carry the same name.
	Claimants []cluster.InstanceID
	// Owners tells which other live instance a requested name or address belongs to.
	Owners map[string]cluster.InstanceID
}

// A check passes (zero Action) or ends the judgement.
type check struct {
	rule string
	test func(Request, Facts) (Action, string)
}

// checks is the whole order of judgement. Up to R9 a request is judged by itself and
// by what never changes; from R10 on by what heals with time. R15 and R17 stand
// where they do so that a stale inventory is named before what it says, and so that
// a flood is refused before it costs a cloud call.
var checks = []check{
	{"R0", notOurs},
	{"R17", newestOnly},
	{"R17", withinAllowance},
	{"R1", soundRequest},
	{"R2", nodeGroups},
	{"R3", subject},
	{"R4", usages},
	{"R5", key},
	{"R6", onlyNamesAndAddresses},
	{"R7", nameCount},
	{"R8", expiration},
	{"R9", forbidden},
	{"R10", liveNode},
	{"R16", notControlPlane},
	{"R15", freshInventory},
	{"R11", witnessedInstance},
	{"R12", oneInstance},
	{"R9", othersNames},
	{"R13", witnessedNames},
	{"R14", witnessedAddresses},
}

// RuleInventory is the rule of the verdict that asks for the cloud's inventory.
const RuleInventory = "R15"

// Decide judges one request. Equal arguments, equal verdict; nothing is read or
// changed but the arguments.
func Decide(req Request, f Facts) Verdict {
	for _, c := range checks {
		do, why := c.test(req, f)
		if why != "" {
			return Verdict{Do: do, Rule: c.rule, Why: why}
		}
	}
	return Verdict{Do: Approve, Rule: "R0-R17", Why: fmt.Sprintf("%s of group %s vouches for every name and address",
		f.Inventory.Instance.ID, f.Inventory.Group)}
}

func notOurs(req Request, _ Facts) (Action, string) {
	switch {
	case req.Signer != signerName:
		return Leave, fmt.Sprintf("signer %q is not ours", req.Signer)
	case req.Settled != "":
		return Leave, "already " + req.Settled
	case !strings.HasPrefix(req.Username, userPrefix):
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
	for _, g := range []string{nodesGroup, authGroup} {
		if !slices.Contains(req.Groups, g) {
			return Deny, fmt.Sprintf("requester is not in group %s", g)
		}
	}
	return Deny, ""
}

func subject(req Request, _ Facts) (Action, string) {
	p := req.Parsed
	switch {
	case len(p.CommonNames) != 1 || p.CommonNames[0] != req.Username:
		return Deny, fmt.Sprintf("common name %q is not the requester %q", p.CommonNames, req.Username)
	case len(p.Organizations) != 1 || p.Organizations[0] != nodesGroup:
		return Deny, fmt.Sprintf("organization %q is not %s alone", p.Organizations, nodesGroup)
	case len(p.OtherSubject) > 0:
		return Deny, fmt.Sprintf("subject has attributes other than CN and O: %q", p.OtherSubject)
	case !subdomain(req.Node()):
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

func nameCount(req Request, _ Facts) (Action, string) {
	if n := len(req.Parsed.DNS) + len(req.Parsed.IPs); n < 1 || n > maxNames {
		return Deny, fmt.Sprintf("asks for %d names and addresses, not for 1 to %d", n, maxNames)
	}
	return Deny, ""
}

func expiration(req Request, f Facts) (Action, string) {
	if req.ExpirationSeconds == nil {
		return Deny, ""
	}
	most := int64(f.MaxExpiration / time.Second)
	if s := int64(*req.ExpirationSeconds); s < minExpiration || s > most {
		return Deny, fmt.Sprintf("asks for a life of %d s, not of %d to %d", s, minExpiration, most)
	}
	return Deny, ""
}

func liveNode(req Request, f Facts) (Action, string) {
	switch {
	case f.Node == nil || f.Node.Name != req.Node():
		return Later, fmt.Sprintf("there is no Node %s yet", req.Node())
	case f.Node.Deleting:
		return Later, fmt.Sprintf("Node %s is being deleted", req.Node())
	}
	return Later, ""
}

func notControlPlane(req Request, f Facts) (Action, string) {
	if f.Node.ControlPlane {
		return Later, fmt.Sprintf("Node %s is of the control plane, no node group vouches for it: check the request and run kubectl certificate approve %s", f.Node.Name, req.Name)
	}
	return Later, ""
}
