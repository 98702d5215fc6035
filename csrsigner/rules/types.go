package rules

import (
	"net/netip"
	"strings"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// This file holds the values that a judgement rests on. It is as pure as decide.go.

// Request is a CertificateSigningRequest as far as a judge needs it, its PEM
// already taken apart (parse.go).
type Request struct {
	Name     string
	UID      string
	Signer   string
	Username string
	// UserUID is what the API server's authenticator calls the requester's UID. A
	// kubelet's client certificate has none.
	UserUID string
	Groups  []string
	Usages  []string
	// ExpirationSeconds is spec.expirationSeconds; nil leaves it to the signer.
	ExpirationSeconds *int32
	Created           time.Time
	// Settled says why there is nothing left to decide ("approved", "deleting");
	// empty while the request is pending.
	Settled string
	Parsed  Parsed
}

// Node returns the name of the Node that the request is about: of a serving request
// the requester's, which is authenticated as it; of a client request the one that its
// common name asks for, which nothing has proven yet.
func (r Request) Node() string {
	if r.Signer == ClientSigner {
		if len(r.Parsed.CommonNames) != 1 {
			return ""
		}
		return strings.TrimPrefix(r.Parsed.CommonNames[0], UserPrefix)
	}
	return strings.TrimPrefix(r.Username, UserPrefix)
}

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
	// Weakness says why a key of a strong kind is not; empty: it is.
	Weakness string
	// KeyHash is the SHA-256 of the public key (SubjectPublicKeyInfo), in hex: two
	// requests with one key come from one machine.
	KeyHash string
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
	// Node is the live Node of the request's name; nil when there is none.
	Node *Node
	// Self is the machine that the agent runs on; nil: its Node is not known.
	Self *Self
	// Listed is what the operator's list of control-plane machines says of the request's Node;
	// nil: nothing.
	Listed *Machine
	// Inventory is nil while the cloud has not been asked for this verdict.
	Inventory *Witness
	// MaxAge is the oldest inventory that an approval may rest on (R15).
	MaxAge time.Duration
	// Taken tells which other Node carries a name that the request asks for.
	Taken map[string]string
	// Elder is another Node that is older, whose kubelet lives, and that says to be of the same machine; nil: there is none (R20).
	Elder *Elder
	// Newer names a younger pending request of the same Node (R17).
	Newer string
	// Spent tells that the Node's allowance of decisions is used up (R17).
	Spent bool
	// ControlPlane are the names of every Node of the control plane, host names included,
	// lower case (J8).
	ControlPlane []string
	// Join holds what a client request is judged by; nil: the join is open, and such
	// requests are kubeadm's business.
	Join *Join
}

// Forbidden is what no worker may have in a certificate, whatever the inventory
// says (R9): it is the cluster's own.
type Forbidden struct {
	Names     []string // lower case, no trailing dot
	Addresses []netip.Addr
	// Endpoint is the host of the control plane's endpoint, a name or an address as text: no
	// machine of the control plane but the agent's own may have it.
	Endpoint  string
	Ranges    []netip.Prefix // service CIDRs
	DNSDomain string         // "cluster.local"
	// Unread says which sources of the above could not be read; empty: all were.
	Unread string
	// Allowed are ranges of special addresses (loopback, link-local) that machines
	// really have; for clusters that live on one host. It never overrides Addresses.
	Allowed []netip.Prefix
}

// Node is the part of a Node object that binds it to an instance.
type Node struct {
	Name         string
	UID          string
	ProviderID   string
	MachineID    string
	Deleting     bool
	ControlPlane bool
	Ready        bool
}

// Elder is a Node that says to be of the same machine as another one.
type Elder struct {
	Name string
	By   string // what the two have in common, in words
	// Instance tells that it is the provider ID. A system UUID and an address are the Node's own word.
	Instance bool
}

// Self is what the leader's own host says about itself (R16): the witness for the one
// machine that no node group has.
type Self struct {
	// Node is the name of the Node that this machine is.
	Node string
	// Names are its host names, Addresses those of its interfaces.
	Names     []string
	Addresses []netip.Addr
	// MachineID is /etc/machine-id's; empty: not known.
	MachineID string
	// Problem says why Names and Addresses could not be read.
	Problem string
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
	// Vouched tells that an operator's list of machines covers the instance: facts that
	// the cloud cannot tell about it (a launch time) are not asked for.
	Vouched bool
	// Incomplete says which groups could not be read, when Instance is nil.
	Incomplete string
	// Claimants are the IDs of live instances whose Node may carry the same name.
	Claimants []cluster.InstanceID
	// Owners tells which other live instance a requested name or address belongs to.
	Owners map[string]cluster.InstanceID
}

// Join is what the closed join knows about one client request (rules J).
type Join struct {
	// Group is the auth group that tells our tokens from others.
	Group string
	// Window is how long after its launch an instance may ask.
	Window time.Duration
	Token  Token
	// Issued is the certificate that the instance already has; nil: none is known. Of
	// several it is the one with the key of the request.
	Issued *Issue
	// Bearers are the Nodes that carry the instance's provider ID.
	Bearers []string
	// Rivals are the other pending requests for a name of the instance, made since its
	// launch, with other keys and with tokens that let it in as well.
	Rivals []string
	// Fault says why it is not known who has joined already, or cannot be kept.
	Fault string
	// Unlisted is the API server's refusal to put the Node on the list of joins.
	Unlisted string
}

// Token is a bootstrap token as far as the join needs it.
type Token struct {
	// Problem says why the token is not one of ours that lives: a request that was made
	// with it is held.
	Problem string
	// Instance is the one that the token was made for, Machine its name; empty: any of
	// ours.
	Instance cluster.InstanceID
	Machine  string
	// Key is the hash of the one key that the token was made for (Parsed.KeyHash); empty: any.
	Key string
	// Made is when. Token IDs are used again.
	Made time.Time
}

// Issue is one client certificate that was approved for an instance.
type Issue struct {
	Node string    `json:"node"`
	Key  string    `json:"key"` // Parsed.KeyHash
	CSR  string    `json:"csr"`
	At   time.Time `json:"at"`
}

// Same tells that two certificates are for one Node and one key.
func (i Issue) Same(other Issue) bool { return i.Node == other.Node && i.Key == other.Key }
