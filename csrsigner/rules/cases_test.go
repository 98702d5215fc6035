package rules

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// spoilt has one case per way to break a rule, by the rule's ID.
var spoilt = []struct {
	rule, name string
	do         Action
	change     func(*Request, *Facts)
}{
	{"R0", "another signer", Leave, func(r *Request, _ *Facts) { r.Signer = "kubernetes.io/legacy-unknown" }},
	{"R0", "approved", Leave, func(r *Request, _ *Facts) { r.Settled = "approved" }},
	{"R0", "bootstrap user", Leave, func(r *Request, _ *Facts) { r.Username = "system:bootstrap:abcdef" }},
	{"R1", "unsound", Deny, func(r *Request, _ *Facts) { r.Parsed = Parsed{Problem: "not PEM"} }},
	{"R2", "not a node", Deny, func(r *Request, _ *Facts) { r.Groups = []string{AuthGroup} }},
	{"R2", "an administrator", Deny, func(r *Request, _ *Facts) { r.Groups = append(r.Groups, "system:masters") }},
	{"R9", "trailing dot", Deny, func(r *Request, _ *Facts) { r.Parsed.DNS = []string{host + "."} }},
	{"R2", "not authenticated", Deny, func(r *Request, _ *Facts) { r.Groups = []string{NodesGroup} }},
	{"R3", "another's name", Deny, func(r *Request, _ *Facts) { r.Parsed.CommonNames = []string{UserPrefix + "other"} }},
	{"R3", "two names", Deny, func(r *Request, _ *Facts) { r.Parsed.CommonNames = append(r.Parsed.CommonNames, "x") }},
	{"R3", "masters", Deny, func(r *Request, _ *Facts) { r.Parsed.Organizations = []string{"system:masters"} }},
	{"R3", "two organizations", Deny, func(r *Request, _ *Facts) { r.Parsed.Organizations = append(r.Parsed.Organizations, "x") }},
	{"R3", "country", Deny, func(r *Request, _ *Facts) { r.Parsed.OtherSubject = []string{"2.5.4.6"} }},
	{"R3", "upper case node", Deny, func(r *Request, f *Facts) { rename(r, f, "Worker") }},
	{"R3", "no node", Deny, func(r *Request, f *Facts) { rename(r, f, "") }},
	{"R4", "client auth", Deny, func(r *Request, _ *Facts) { r.Usages = append(r.Usages, "client auth") }},
	{"R4", "subset", Deny, func(r *Request, _ *Facts) { r.Usages = r.Usages[:1] }},
	{"R4", "twice", Deny, func(r *Request, _ *Facts) { r.Usages = append(r.Usages, "server auth") }},
	{"R4", "Ed25519 enciphers", Deny, func(r *Request, _ *Facts) { r.Parsed.Key = "Ed25519"; r.Usages = append(r.Usages, "key encipherment") }},
	{"R5", "small RSA", Deny, func(r *Request, _ *Facts) { r.Parsed.Key, r.Parsed.Bits = "RSA", 1024 }},
	{"R5", "weak RSA", Deny, func(r *Request, _ *Facts) {
		r.Parsed.Key, r.Parsed.Bits, r.Parsed.Weakness = "RSA", 2048, "its public exponent is 3"
	}},
	{"R5", "P-224", Deny, func(r *Request, _ *Facts) { r.Parsed.Key = "ECDSA P-224" }},
	{"R6", "email", Deny, func(r *Request, _ *Facts) { r.Parsed.OtherNames = []string{"email"} }},
	{"R6", "extension", Deny, func(r *Request, _ *Facts) { r.Parsed.OtherExtensions = []string{"2.5.29.19"} }},
	{"R6", "two SANs", Deny, func(r *Request, _ *Facts) { r.Parsed.SANExtensions = 2 }},
	{"R7", "none", Deny, func(r *Request, _ *Facts) { r.Parsed.DNS, r.Parsed.IPs = nil, nil }},
	{"R7", "33", Deny, func(r *Request, _ *Facts) { r.Parsed.DNS = slices.Repeat([]string{host}, 32) }},
	{"R7", "33 different", Deny, func(r *Request, f *Facts) {
		r.Parsed.DNS = nil
		for n := range MaxNames {
			r.Parsed.DNS = append(r.Parsed.DNS, fmt.Sprintf("n%d.example.org", n))
		}
		f.Inventory.Instance.Names = r.Parsed.DNS
	}},
	{"R7", "33 addresses", Deny, func(r *Request, _ *Facts) { r.Parsed.IPs = slices.Repeat([]netip.Addr{addr("10.0.0.5")}, 32) }},
	{"R7", "a name twice", Deny, func(r *Request, _ *Facts) { r.Parsed.DNS = []string{host, strings.ToUpper(host) + "."} }},
	{"R7", "an address twice", Deny, func(r *Request, _ *Facts) { r.Parsed.IPs = []netip.Addr{addr("10.0.0.5"), addr("::ffff:10.0.0.5")} }},
	{"R8", "too long", Deny, func(r *Request, _ *Facts) { s := int32(3601); r.ExpirationSeconds = &s }},
	{"R8", "too short", Deny, func(r *Request, _ *Facts) { s := int32(599); r.ExpirationSeconds = &s }},
	{"R9", "not known yet", Later, func(_ *Request, f *Facts) { f.Forbidden = nil }},
	{"R10", "no Node", Later, func(_ *Request, f *Facts) { f.Node = nil }},
	{"R10", "deleting", Later, func(_ *Request, f *Facts) { f.Node.Deleting = true }},
	{"R10", "another Node's UID", Later, func(r *Request, _ *Facts) { r.UserUID = "n0" }},
	{"R10", "another Node", Later, func(_ *Request, f *Facts) { f.Node.Name = "other" }},
	{"R11", "no provider ID", Later, func(_ *Request, f *Facts) { f.Node.ProviderID = "" }},
	{"R11", "no provider ID but a provider's own word", Later, func(_ *Request, f *Facts) {
		f.Node.ProviderID = "pending-machine-ns_m-1"
		f.Inventory.Instance.ID, f.Inventory.Claimants = "pending-machine-ns_m-1", []cluster.InstanceID{"pending-machine-ns_m-1"}
	}},
	{"R11", "unknown instance", Later, func(_ *Request, f *Facts) { f.Inventory.Instance = nil }},
	{"R11", "another instance", Later, func(_ *Request, f *Facts) { f.Node.ProviderID = string(nextID) }},
	{"R11", "no member", Later, func(_ *Request, f *Facts) { f.Inventory.Instance.Member = false }},
	{"R11", "stopped", Later, func(_ *Request, f *Facts) { f.Inventory.Instance.Phase = cluster.PhaseStopped }},
	{"R11", "going", Later, func(_ *Request, f *Facts) { f.Inventory.Instance.Phase = cluster.PhaseDeleting }},
	{"R11", "gone though it runs", Later, func(_ *Request, f *Facts) {
		f.Inventory.Instance.Phase, f.Inventory.Instance.Runs = cluster.PhaseGone, true
	}},
	{"R11", "no state", Later, func(_ *Request, f *Facts) { f.Inventory.Instance.Phase = cluster.PhaseUnknown }},
	{"R11", "somebody else's", Later, func(_ *Request, f *Facts) { f.Inventory.Instance.NodeNames = []string{"other"} }},
	{"R12", "launched later", Later, func(_ *Request, f *Facts) { f.Inventory.Instance.Created = noon.Add(time.Second) }},
	{"R12", "no launch time", Later, func(_ *Request, f *Facts) { f.Inventory.Instance.Created = time.Time{} }},
	{"R12", "two claim it", Later, func(_ *Request, f *Facts) { f.Inventory.Claimants = append(f.Inventory.Claimants, nextID) }},
	{"R12", "an operator's machine, launched later", Later, func(_ *Request, f *Facts) {
		f.Inventory.Instance.Created, f.Inventory.Vouched = noon.Add(time.Hour), true
	}},
	{"R12", "an operator's machine, two claim it", Later, func(_ *Request, f *Facts) {
		f.Inventory.Instance.Created, f.Inventory.Vouched = time.Time{}, true
		f.Inventory.Claimants = append(f.Inventory.Claimants, nextID)
	}},
	{"R13", "foreign name", Later, func(r *Request, _ *Facts) { r.Parsed.DNS = []string{"auth.example.org"} }},
	{"R13", "prefix", Later, func(r *Request, _ *Facts) { r.Parsed.DNS = []string{host + ".example.org"} }},
	{"R13", "the cluster's domain, not of the machine", Later, func(r *Request, _ *Facts) { r.Parsed.DNS = []string{"x.cluster.local"} }},
	{"R14", "foreign address", Later, func(r *Request, _ *Facts) { r.Parsed.IPs = []netip.Addr{addr("10.0.0.6")} }},
	{"R15", "not read", Later, func(_ *Request, f *Facts) { f.Inventory = nil }},
	{"R15", "cannot be read", Later, func(_ *Request, f *Facts) { f.Inventory = &Witness{Problem: "throttled"} }},
	{"R15", "stale", Later, func(_ *Request, f *Facts) { f.Inventory.Stale = "throttled" }},
	{"R15", "old", Later, func(_ *Request, f *Facts) { f.Now = noon.Add(31 * time.Second) }},
	{"R16", "control plane", Later, func(_ *Request, f *Facts) { f.Node.ControlPlane = true }},
	{"R16", "leader without label", Later, func(r *Request, f *Facts) { leaderAsks(r, f); f.Node.ControlPlane = false }},
	{"R16", "leader's name on another machine", Later, func(r *Request, f *Facts) { leaderAsks(r, f); f.Node.MachineID = "m2" }},
	{"R16", "leader cannot read itself", Later, func(r *Request, f *Facts) { leaderAsks(r, f); f.Self.Problem = "no netlink" }},
	{"R16", "leader asks for a foreign name", Later, func(r *Request, f *Facts) { leaderAsks(r, f); r.Parsed.DNS = []string{"auth.example.org"} }},
	{"R16", "leader asks for a foreign address", Later, func(r *Request, f *Facts) { leaderAsks(r, f); r.Parsed.IPs = []netip.Addr{addr("10.0.0.5")} }},
	{"R16", "leader asks for the API server's name that is not its own", Later, func(r *Request, f *Facts) { leaderAsks(r, f); r.Parsed.DNS = []string{"api.example.com"} }},
	{"R9", "leader asks for kubernetes", Deny, func(r *Request, f *Facts) { leaderAsks(r, f); r.Parsed.DNS = []string{"kubernetes"} }},
	{"R9", "leader asks for loopback", Deny, func(r *Request, f *Facts) { leaderAsks(r, f); r.Parsed.IPs = []netip.Addr{addr("127.0.0.1")} }},
	{"R9", "leader asks for a service address", Deny, func(r *Request, f *Facts) { leaderAsks(r, f); r.Parsed.IPs = []netip.Addr{addr("10.96.0.1")} }},
	{"R9", "a service address in sixteen bytes", Deny, func(r *Request, _ *Facts) { r.Parsed.IPs = []netip.Addr{addr("::ffff:10.96.0.1")} }},
	{"R9", "the API server's address in sixteen bytes", Deny, func(r *Request, _ *Facts) { r.Parsed.IPs = []netip.Addr{addr("::ffff:10.0.0.1")} }},
	{"R9", "loopback in sixteen bytes", Deny, func(r *Request, _ *Facts) { r.Parsed.IPs = []netip.Addr{addr("::ffff:127.0.0.1")} }},
	{"R14", "foreign address in sixteen bytes", Later, func(r *Request, _ *Facts) { r.Parsed.IPs = []netip.Addr{addr("::ffff:10.0.0.6")} }},
	{RuleElder, "an older Node of the machine", Later, func(_ *Request, f *Facts) {
		f.Elder = &Elder{Name: "ip-10-0-0-5", By: "provider ID " + string(ownID), Instance: true}
	}},
	{"R9", "a worker asks for the leader's address", Deny, func(r *Request, _ *Facts) { r.Parsed.IPs = []netip.Addr{addr("10.0.0.1")} }},
	{RuleListed, "another instance than the list's", Later, func(r *Request, f *Facts) {
		peerAsks(r, f)
		f.Listed.Instance, f.Node.ProviderID = ownID, string(nextID)
	}},
	{RuleListed, "no provider ID where the list has one", Later, func(r *Request, f *Facts) { peerAsks(r, f); f.Listed.Instance = ownID }},
	{RuleListed, "a name that no line has", Later, func(r *Request, f *Facts) { peerAsks(r, f); r.Parsed.DNS = append(r.Parsed.DNS, "auth.example.org") }},
	{RuleListed, "an address that no line has", Later, func(r *Request, f *Facts) { peerAsks(r, f); r.Parsed.IPs = append(r.Parsed.IPs, addr("10.0.0.77")) }},
	{RuleListed, "a worker's address", Later, func(r *Request, f *Facts) { peerAsks(r, f); r.Parsed.IPs = []netip.Addr{addr("10.0.0.5")} }},
	{RuleListed, "the name of a Node, though its line has it", Deny, func(r *Request, f *Facts) {
		peerAsks(r, f)
		f.Taken["cp-2.example.org"] = "cp-2.example.org"
	}},
	{"R9", "another leader asks for this one's name", Deny, func(r *Request, f *Facts) { peerAsks(r, f); r.Parsed.DNS = []string{"cp-2", "leader"} }},
	{"R9", "another leader asks for this one's address", Deny, func(r *Request, f *Facts) { peerAsks(r, f); r.Parsed.IPs = []netip.Addr{addr("10.0.0.1")} }},
	{"R9", "another leader asks for a third one's name", Deny, func(r *Request, f *Facts) { peerAsks(r, f); r.Parsed.DNS = []string{"CP-3"} }},
	{"R9", "another leader asks for a third one's address", Deny, func(r *Request, f *Facts) { peerAsks(r, f); r.Parsed.IPs = []netip.Addr{addr("::ffff:10.0.0.3")} }},
	{"R9", "another leader asks for the endpoint", Deny, func(r *Request, f *Facts) { peerAsks(r, f); r.Parsed.DNS = []string{"api.example.com"} }},
	{"R9", "the endpoint, though the list has it", Deny, func(r *Request, f *Facts) {
		peerAsks(r, f)
		f.Listed.Names, r.Parsed.DNS = append(f.Listed.Names, "api.example.com"), []string{"API.example.com"}
	}},
	{"R9", "the endpoint's address, though the list has it", Deny, func(r *Request, f *Facts) {
		peerAsks(r, f)
		f.Forbidden.Endpoint, f.Listed.Addresses, r.Parsed.IPs = "10.0.0.100", append(f.Listed.Addresses, addr("10.0.0.100")), []netip.Addr{addr("::ffff:10.0.0.100")}
	}},
	{"R9", "another leader asks for kubernetes, though the list has it", Deny, func(r *Request, f *Facts) {
		peerAsks(r, f)
		f.Listed.Names, r.Parsed.DNS = append(f.Listed.Names, "kubernetes"), []string{"kubernetes"}
	}},
	{"R9", "another leader asks for a service address, though the list has it", Deny, func(r *Request, f *Facts) {
		peerAsks(r, f)
		f.Listed.Addresses, r.Parsed.IPs = append(f.Listed.Addresses, addr("10.96.0.1")), []netip.Addr{addr("10.96.0.1")}
	}},
	{"R9", "a worker under a listed name", Deny, func(r *Request, f *Facts) { peerAsks(r, f); f.Node.ControlPlane = false }},
	{"R16", "a leader that is not on the list", Later, func(r *Request, f *Facts) { peerAsks(r, f); f.Listed = nil }},
	{"R16", "another's line", Later, func(r *Request, f *Facts) {
		peerAsks(r, f)
		f.Listed.Node, f.Listed.Names = "cp-3", append(f.Listed.Names, "cp-2")
	}},
	{"R9", "a leader that is not on the list asks for the endpoint", Deny, func(r *Request, f *Facts) { peerAsks(r, f); f.Listed = nil; r.Parsed.DNS = []string{"api.example.com"} }},
	{"R9", "the label is of another Node", Deny, func(r *Request, f *Facts) { peerAsks(r, f); f.Node.Name = "cp-3" }},
	{"R17", "newer request", Later, func(_ *Request, f *Facts) { f.Newer = "csr-2" }},
	{"R17", "allowance", Later, func(_ *Request, f *Facts) { f.Spent = true }},
	{"R9", "name of a Node", Deny, func(r *Request, f *Facts) {
		r.Parsed.DNS = []string{"other"}
		f.Taken = map[string]string{"other": "other"}
	}},
	{"R9", "after a good name", Deny, func(r *Request, _ *Facts) { r.Parsed.DNS = []string{host, "zz.svc"} }},
	{"R9", "after a good address", Deny, func(r *Request, _ *Facts) { r.Parsed.IPs = []netip.Addr{addr("10.0.0.5"), addr("127.0.0.1")} }},
	{"R9", "another's after nobody's", Deny, func(r *Request, f *Facts) {
		r.Parsed.DNS = []string{"aa-nobodys", "zz-other"}
		f.Inventory.Owners["zz-other"] = nextID
	}},
	{"R9", "another's address after nobody's", Deny, func(r *Request, f *Facts) {
		r.Parsed.IPs = []netip.Addr{addr("10.0.0.8"), addr("10.0.0.9")}
		f.Inventory.Owners["10.0.0.9"] = nextID
	}},
	{"R9", "shared Node name", Later, func(r *Request, f *Facts) {
		f.Inventory.Instance.Names, f.Inventory.Owners[host] = nil, nextID
	}},
	{"R9", "shared name", Later, func(r *Request, f *Facts) {
		r.Parsed.DNS = []string{"ec2-203-0-113-5.compute-1.amazonaws.com"}
		f.Inventory.Owners[r.Parsed.DNS[0]] = nextID
	}},
	{"R9", "own name is a Node's too", Later, func(r *Request, f *Facts) {
		r.Parsed.DNS = []string{"i-0a.ec2.internal"}
		f.Taken = map[string]string{"i-0a.ec2.internal": "i-0a.ec2.internal"}
	}},
	{"R9", "name of an instance", Deny, func(r *Request, f *Facts) { r.Parsed.DNS = []string{"other"}; f.Inventory.Owners["other"] = nextID }},
	{"R9", "address of an instance", Deny, func(r *Request, f *Facts) {
		r.Parsed.IPs = []netip.Addr{addr("10.0.0.6")}
		f.Inventory.Owners["10.0.0.6"] = nextID
	}},
	{"R9", "own address is another's too", Later, func(_ *Request, f *Facts) { f.Inventory.Owners["10.0.0.5"] = nextID }},
}
