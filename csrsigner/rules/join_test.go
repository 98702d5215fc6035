package rules

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

const workersGroup = "system:bootstrappers:autoscaler-agent:workers"

// honestJoin is what the kubelet of a new machine asks for, and what is known then.
func honestJoin() (Request, Facts) {
	r := Request{
		Name: "node-csr-1", UID: "u2", Signer: ClientSigner, Username: TokenPrefix + "abcdef",
		Groups: []string{TokensGroup, workersGroup, AuthGroup}, Usages: []string{"digital signature", "client auth"}, Created: noon,
		Parsed: Parsed{CommonNames: []string{UserPrefix + host}, Organizations: []string{NodesGroup}, Key: "ECDSA P-256", Bits: 256, KeyHash: "k1"},
	}
	f := honestFacts()
	f.Node = nil
	f.Self = &Self{Node: "leader", Names: []string{"leader", "leader.example.org"}}
	f.Join = &Join{Group: workersGroup, Window: 2 * time.Hour}
	return r, f
}

func TestJoinApprovesTheHonest(t *testing.T) {
	for name, change := range map[string]func(*Request, *Facts){
		"new machine":      func(*Request, *Facts) {},
		"key encipherment": func(r *Request, _ *Facts) { r.Usages = append(r.Usages, "key encipherment") },
		"RSA":              func(r *Request, _ *Facts) { r.Parsed.Key, r.Parsed.Bits = "RSA", 2048 },
		"RSA enciphers": func(r *Request, _ *Facts) {
			r.Parsed.Key, r.Parsed.Bits = "RSA", 2048
			r.Usages = append(r.Usages, "key encipherment")
		},
		"other groups unread": func(_ *Request, f *Facts) { f.Inventory.Incomplete = "group b: throttled" },
		"pending instance":    func(_ *Request, f *Facts) { f.Inventory.Instance.Phase = cluster.PhasePending },
		"window's start":      func(_ *Request, f *Facts) { f.Inventory.Instance.Created = noon.Add(time.Second - 1) },
		"window's end":        func(_ *Request, f *Facts) { f.Inventory.Instance.Created = noon.Add(-2 * time.Hour) },
		"same key again":      func(_ *Request, f *Facts) { f.Join.Issued = &Issue{Key: "k1", Node: host} },
		"same key again, while another asks": func(_ *Request, f *Facts) {
			f.Join.Issued, f.Join.Rivals = &Issue{Key: "k1", Node: host}, []string{"node-csr-2"}
		},
		"token for it":       func(_ *Request, f *Facts) { f.Join.Token.Instance = ownID },
		"token for its name": func(_ *Request, f *Facts) { f.Join.Token.Machine = "I-0a.ec2.internal" },
		"stands by": func(_ *Request, f *Facts) {
			f.Inventory.Instance.Phase, f.Inventory.Instance.Runs = cluster.PhaseStopped, true
		},
		"in the cluster's own domain":    func(_ *Request, f *Facts) { f.Forbidden.DNSDomain = "ec2.internal" },
		"a control plane of other Nodes": func(_ *Request, f *Facts) { f.ControlPlane = []string{"leader", "cp-2"} },
		"an operator's machine without launch time": func(_ *Request, f *Facts) {
			f.Inventory.Instance.Created, f.Inventory.Vouched = time.Time{}, true
		},
		"agent off the cluster": func(_ *Request, f *Facts) { f.Self = nil },
	} {
		t.Run(name, func(t *testing.T) {
			r, f := honestJoin()
			change(&r, &f)
			if v := Decide(r, f); v.Do != Approve {
				t.Errorf("got %v %s %s", v.Do, v.Rule, v.Why)
			}
		})
	}
}

// spoiltJoins has one case per way to break a rule of the closed join.
var spoiltJoins = []struct {
	rule, name string
	do         Action
	change     func(*Request, *Facts)
}{
	{"J0", "approved", Leave, func(r *Request, _ *Facts) { r.Settled = "approved" }},
	{"J0", "a kubelet's rotation", Leave, func(r *Request, _ *Facts) { r.Username = UserPrefix + host }},
	{"J0", "open join", Leave, func(_ *Request, f *Facts) { f.Join = nil }},
	{"J0", "kubeadm's token", Leave, func(r *Request, _ *Facts) {
		r.Groups = []string{TokensGroup, "system:bootstrappers:kubeadm:default-node-token", AuthGroup}
	}},
	{"J1", "unsound", Deny, func(r *Request, _ *Facts) { r.Parsed.Problem = "not PEM" }},
	{"J2", "no bootstrapper", Deny, func(r *Request, _ *Facts) { r.Groups = []string{workersGroup, AuthGroup} }},
	{"J2", "not authenticated", Deny, func(r *Request, _ *Facts) { r.Groups = []string{TokensGroup, workersGroup} }},
	{"J2", "master too", Deny, func(r *Request, _ *Facts) { r.Groups = append(r.Groups, "system:masters") }},
	{"J3", "no node", Deny, func(r *Request, _ *Facts) { r.Parsed.CommonNames = []string{"kubernetes-admin"} }},
	{"J3", "two names", Deny, func(r *Request, _ *Facts) { r.Parsed.CommonNames = append(r.Parsed.CommonNames, "x") }},
	{"J3", "no common name", Deny, func(r *Request, _ *Facts) { r.Parsed.CommonNames = nil }},
	{"J3", "masters", Deny, func(r *Request, _ *Facts) { r.Parsed.Organizations = []string{"system:masters"} }},
	{"J3", "two organizations", Deny, func(r *Request, _ *Facts) { r.Parsed.Organizations = append(r.Parsed.Organizations, "x") }},
	{"J3", "country", Deny, func(r *Request, _ *Facts) { r.Parsed.OtherSubject = []string{"2.5.4.6"} }},
	{"J3", "no name", Deny, func(r *Request, _ *Facts) { r.Parsed.CommonNames = []string{UserPrefix} }},
	{"J4", "server auth", Deny, func(r *Request, _ *Facts) { r.Usages = append(r.Usages, "server auth") }},
	{"J4", "no client auth", Deny, func(r *Request, _ *Facts) { r.Usages = r.Usages[:1] }},
	{"J4", "Ed25519 enciphers", Deny, func(r *Request, _ *Facts) {
		r.Parsed.Key = "Ed25519"
		r.Usages = append(r.Usages, "key encipherment")
	}},
	{"J5", "small RSA", Deny, func(r *Request, _ *Facts) { r.Parsed.Key, r.Parsed.Bits = "RSA", 1024 }},
	{"J6", "a name", Deny, func(r *Request, _ *Facts) { r.Parsed.DNS = []string{host} }},
	{"J6", "an address", Deny, func(r *Request, _ *Facts) { r.Parsed.IPs = []netip.Addr{addr("10.0.0.5")} }},
	{"J6", "empty names", Deny, func(r *Request, _ *Facts) { r.Parsed.SANExtensions = 1 }},
	{"J6", "an email", Deny, func(r *Request, _ *Facts) { r.Parsed.OtherNames = []string{"email"} }},
	{"J6", "an extension", Deny, func(r *Request, _ *Facts) { r.Parsed.OtherExtensions = []string{"2.5.29.19"} }},
	{"J7", "too long", Deny, func(r *Request, _ *Facts) { s := int32(3601); r.ExpirationSeconds = &s }},
	{"J8", "leader", Deny, func(r *Request, _ *Facts) { r.Parsed.CommonNames = []string{UserPrefix + "leader"} }},
	{"J8", "leader's host name", Deny, func(r *Request, _ *Facts) { r.Parsed.CommonNames = []string{UserPrefix + "leader.example.org"} }},
	{"J8", "leader's Node name", Deny, func(r *Request, f *Facts) {
		r.Parsed.CommonNames = []string{UserPrefix + "boss"}
		f.Self = &Self{Node: "boss"}
	}},
	{"J8", "API server", Deny, func(r *Request, _ *Facts) { r.Parsed.CommonNames = []string{UserPrefix + "api.example.com"} }},
	{"J8", "kubernetes", Deny, func(r *Request, _ *Facts) { r.Parsed.CommonNames = []string{UserPrefix + "kubernetes"} }},
	{"J8", "a control-plane Node", Deny, func(_ *Request, f *Facts) { f.Node = &Node{Name: host, ControlPlane: true} }},
	{"J8", "another control-plane machine's host name", Deny, func(_ *Request, f *Facts) { f.ControlPlane = []string{"cp-2", host} }},
	{"J8", "not known yet", Later, func(_ *Request, f *Facts) { f.Forbidden = nil }},
	{"J9", "expired", Later, func(_ *Request, f *Facts) { f.Join.Token.Problem = "token abcdef has expired" }},
	{"J9", "another key than the token's", Later, func(_ *Request, f *Facts) { f.Join.Token.Key = "another" }},
	{"J9", "made with an older token of the ID", Later, func(r *Request, f *Facts) { f.Join.Token.Made = r.Created.Add(time.Second) }},
	{"J10", "not read", Later, func(_ *Request, f *Facts) { f.Inventory = nil }},
	{"J10", "cannot be read", Later, func(_ *Request, f *Facts) { f.Inventory = &Witness{Problem: "throttled"} }},
	{"J10", "stale", Later, func(_ *Request, f *Facts) { f.Inventory.Stale = "throttled" }},
	{"J10", "old", Later, func(_ *Request, f *Facts) { f.Now = noon.Add(31 * time.Second) }},
	{"J11", "nobody", Later, func(_ *Request, f *Facts) { f.Inventory = &Witness{} }},
	{"J11", "nobody in what could be read", Later, func(_ *Request, f *Facts) { f.Inventory = &Witness{Incomplete: "group b: throttled"} }},
	{"J11", "two", Later, func(_ *Request, f *Facts) { f.Inventory.Claimants = append(f.Inventory.Claimants, nextID) }},
	{"J11", "another", Later, func(_ *Request, f *Facts) { f.Inventory.Claimants = []cluster.InstanceID{nextID} }},
	{"J11", "lost", Later, func(_ *Request, f *Facts) { f.Inventory.Instance = nil }},
	{"J11", "no member", Later, func(_ *Request, f *Facts) { f.Inventory.Instance.Member = false }},
	{"J11", "going", Later, func(_ *Request, f *Facts) { f.Inventory.Instance.Phase = cluster.PhaseDeleting }},
	{"J11", "another's token", Later, func(_ *Request, f *Facts) { f.Join.Token.Instance = nextID }},
	{"J11", "another machine's token", Later, func(_ *Request, f *Facts) { f.Join.Token.Machine = "other" }},
	{"J12", "before the launch", Later, func(_ *Request, f *Facts) { f.Inventory.Instance.Created = noon.Add(time.Second) }},
	{"J12", "after the window", Later, func(_ *Request, f *Facts) { f.Inventory.Instance.Created = noon.Add(-2*time.Hour - time.Second) }},
	{"J12", "no launch time", Later, func(_ *Request, f *Facts) { f.Inventory.Instance.Created = time.Time{} }},
	{"J12", "an operator's machine after the window", Later, func(_ *Request, f *Facts) {
		f.Inventory.Instance.Created, f.Inventory.Vouched = noon.Add(-3*time.Hour), true
	}},
	{"J13", "another key", Later, func(_ *Request, f *Facts) { f.Join.Issued = &Issue{Key: "k0", CSR: "node-csr-0"} }},
	{"J13", "another name", Later, func(_ *Request, f *Facts) {
		f.Join.Issued = &Issue{Key: "k1", Node: "i-0a.ec2.internal", CSR: "node-csr-0"}
	}},
	{"J13", "its own dead Node, key not known", Later, func(_ *Request, f *Facts) { f.Node = &Node{Name: host, ProviderID: string(ownID)} }},
	{"J13", "its own Ready Node, key not known", Later, func(_ *Request, f *Facts) { f.Node = &Node{Name: host, Ready: true, ProviderID: string(ownID)} }},
	{"J13", "its Node of another name, key not known", Later, func(_ *Request, f *Facts) { f.Join.Bearers = []string{"i-0a.ec2.internal"} }},
	{"J13", "its Node of this name, by the cache", Later, func(_ *Request, f *Facts) { f.Join.Bearers = []string{host} }},
	{"J13", "same key, and a Node of another name", Later, func(_ *Request, f *Facts) {
		f.Join.Issued, f.Join.Bearers = &Issue{Key: "k1", Node: host}, []string{host, "i-0a.ec2.internal"}
	}},
	{"J13", "no ledger", Later, func(_ *Request, f *Facts) { f.Join.Fault = "disk is full" }},
	{"J14", "live Node", Later, func(_ *Request, f *Facts) {
		f.Node, f.Join.Issued = &Node{Name: host, Ready: true, ProviderID: string(ownID)}, &Issue{Key: "k1", Node: host}
	}},
	{"J14", "live Node of another machine", Later, func(_ *Request, f *Facts) { f.Node = &Node{Name: host, Ready: true, ProviderID: string(nextID)} }},
	{"J14", "stale Node", Later, func(_ *Request, f *Facts) { f.Node = &Node{Name: host, ProviderID: string(nextID)} }},
	{"J14", "Node without provider ID", Later, func(_ *Request, f *Facts) { f.Node = &Node{Name: host} }},
	{"J14", "deleting", Later, func(_ *Request, f *Facts) {
		f.Node, f.Join.Issued = &Node{Name: host, ProviderID: string(ownID), Deleting: true}, &Issue{Key: "k1", Node: host}
	}},
	{"J14", "its own dead Node, same key", Later, func(_ *Request, f *Facts) {
		f.Node, f.Join.Bearers = &Node{Name: host, ProviderID: string(ownID)}, []string{host}
		f.Join.Issued = &Issue{Key: "k1", Node: host}
	}},
	{"J14", "refused by the API server", Later, func(_ *Request, f *Facts) { f.Join.Unlisted = "has a Lease" }},
	{"J15", "newer request", Later, func(_ *Request, f *Facts) { f.Newer = "node-csr-2" }},
	{"J15", "allowance", Later, func(_ *Request, f *Facts) { f.Spent = true }},
	{"J16", "another asks", Later, func(_ *Request, f *Facts) { f.Join.Rivals = []string{"node-csr-2"} }},
	{"J16", "another asks, and an old Node is in the way", Later, func(_ *Request, f *Facts) {
		f.Join.Rivals, f.Node = []string{"node-csr-2"}, &Node{Name: host, ProviderID: string(nextID)}
	}},
}

func joinsByRule(t *testing.T, rule string) {
	t.Helper()
	n := 0
	for _, c := range spoiltJoins {
		if c.rule != rule {
			continue
		}
		n++
		t.Run(c.name, func(t *testing.T) {
			r, f := honestJoin()
			c.change(&r, &f)
			if v := Decide(r, f); v.Do != c.do || v.Rule != c.rule || v.Why == "" {
				t.Errorf("got %v %s %q, want %v %s", v.Do, v.Rule, v.Why, c.do, c.rule)
			}
		})
	}
	if n == 0 {
		t.Errorf("rule %s has no case", rule)
	}
}

func TestJ0(t *testing.T)  { joinsByRule(t, "J0") }
func TestJ1(t *testing.T)  { joinsByRule(t, "J1") }
func TestJ2(t *testing.T)  { joinsByRule(t, "J2") }
func TestJ3(t *testing.T)  { joinsByRule(t, "J3") }
func TestJ4(t *testing.T)  { joinsByRule(t, "J4") }
func TestJ5(t *testing.T)  { joinsByRule(t, "J5") }
func TestJ6(t *testing.T)  { joinsByRule(t, "J6") }
func TestJ7(t *testing.T)  { joinsByRule(t, "J7") }
func TestJ8(t *testing.T)  { joinsByRule(t, "J8") }
func TestJ9(t *testing.T)  { joinsByRule(t, "J9") }
func TestJ10(t *testing.T) { joinsByRule(t, "J10") }
func TestJ11(t *testing.T) { joinsByRule(t, "J11") }
func TestJ12(t *testing.T) { joinsByRule(t, "J12") }
func TestJ13(t *testing.T) { joinsByRule(t, "J13") }
func TestJ14(t *testing.T) { joinsByRule(t, "J14") }
func TestJ15(t *testing.T) { joinsByRule(t, "J15") }
func TestJ16(t *testing.T) { joinsByRule(t, "J16") }

func TestJoinWitness(t *testing.T) {
	own, next := *ownInstance(), *ownInstance()
	next.ID, next.NodeNames = nextID, []string{"other"}
	groups := []cluster.NodeGroup{{ID: "a", ReadAt: noon, Instances: []cluster.Instance{next, own}}}
	w := Sources{}.JoinWitness(groups, host)
	if w.Instance == nil || w.Instance.ID != ownID || w.Group != "a" || !slices.Equal(w.Claimants, []cluster.InstanceID{ownID}) {
		t.Errorf("%+v", w)
	}
	if w := (Sources{}).JoinWitness(groups, "nobody"); w.Instance != nil || len(w.Claimants) != 0 {
		t.Errorf("nobody's name: %+v", w)
	}
	groups[0].Instances[0].NodeNames = []string{host}
	if w := (Sources{}).JoinWitness(groups, host); w.Instance != nil || len(w.Claimants) != 2 {
		t.Errorf("two claim it: %+v", w)
	}
}
