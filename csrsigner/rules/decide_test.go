package rules

import (
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

const (
	host   = "ip-10-0-0-5.ec2.internal"
	ownID  = cluster.InstanceID("aws:///us-east-1a/i-0a")
	nextID = cluster.InstanceID("aws:///us-east-1a/i-0b")
)

func addr(s string) netip.Addr { return netip.MustParseAddr(s) }

// honestRequest is what a kubelet asks for; each case spoils one thing.
func honestRequest() Request {
	return Request{
		Name: "csr-1", UID: "u1", Signer: ServingSigner, Username: UserPrefix + host,
		Groups: []string{NodesGroup, AuthGroup}, Usages: []string{"digital signature", "server auth"}, Created: noon,
		Parsed: Parsed{CommonNames: []string{UserPrefix + host}, Organizations: []string{NodesGroup}, Key: "ECDSA P-256", Bits: 256,
			DNS: []string{host}, IPs: []netip.Addr{addr("10.0.0.5")}, SANExtensions: 1},
	}
}

func ownInstance() *cluster.Instance {
	return &cluster.Instance{ID: ownID, Phase: cluster.PhaseRunning, Member: true, Created: noon.Add(-time.Minute),
		NodeNames: []string{host, "i-0a.ec2.internal"}, Names: []string{host, "i-0a.ec2.internal", "ec2-203-0-113-5.compute-1.amazonaws.com"},
		Addresses: []netip.Addr{addr("10.0.0.5"), addr("203.0.113.5"), addr("2001:db8::5")}}
}

func honestFacts() Facts {
	return Facts{
		Now: noon.Add(time.Second), MaxExpiration: time.Hour, MaxAge: 30 * time.Second,
		Forbidden: &Forbidden{Names: []string{"api.example.com", "leader"}, Addresses: []netip.Addr{addr("10.0.0.1")},
			Ranges: []netip.Prefix{netip.MustParsePrefix("10.96.0.0/12"), netip.MustParsePrefix("fd00:96::/108")}, DNSDomain: "cluster.local"},
		Node: &Node{Name: host, UID: "n1", ProviderID: string(ownID)},
		Inventory: &Witness{Instance: ownInstance(), Group: "workers", ReadAt: noon,
			Claimants: []cluster.InstanceID{ownID}, Owners: map[string]cluster.InstanceID{}},
	}
}

func TestDecideApprovesTheHonest(t *testing.T) {
	for name, change := range map[string]func(*Request, *Facts){
		"name and address":    func(*Request, *Facts) {},
		"address only":        func(r *Request, _ *Facts) { r.Parsed.DNS = nil },
		"name only":           func(r *Request, _ *Facts) { r.Parsed.IPs = nil },
		"public name and EIP": func(r *Request, _ *Facts) { r.Parsed.DNS = ownInstance().Names; r.Parsed.IPs = ownInstance().Addresses },
		"upper case":          func(r *Request, _ *Facts) { r.Parsed.DNS = []string{strings.ToUpper(host)} },
		"RSA with encipher": func(r *Request, _ *Facts) {
			r.Parsed.Key, r.Parsed.Bits = "RSA", 2048
			r.Usages = append(r.Usages, "key encipherment")
		},
		"ECDSA with encipher":     func(r *Request, _ *Facts) { r.Usages = append(r.Usages, "key encipherment") },
		"Ed25519":                 func(r *Request, _ *Facts) { r.Parsed.Key = "Ed25519" },
		"an hour":                 func(r *Request, _ *Facts) { s := int32(3600); r.ExpirationSeconds = &s },
		"pending instance":        func(_ *Request, f *Facts) { f.Inventory.Instance.Phase = cluster.PhasePending },
		"the launch's own second": func(_ *Request, f *Facts) { f.Inventory.Instance.Created = noon.Add(time.Second - 1) },
		"waits on its way out": func(_ *Request, f *Facts) {
			f.Inventory.Instance.Phase, f.Inventory.Instance.Runs = cluster.PhaseDeleting, true
		},
		"stands by": func(_ *Request, f *Facts) {
			f.Inventory.Instance.Phase, f.Inventory.Instance.Runs = cluster.PhaseStopped, true
		},
		"in the cluster's own domain": func(r *Request, f *Facts) {
			f.Forbidden.DNSDomain = "ec2.internal"
			rename(r, f, host)
		},
		"leader in the cluster's own domain": func(r *Request, f *Facts) {
			leaderAsks(r, f)
			f.Forbidden.DNSDomain, r.Parsed.DNS = "example.org", []string{"leader.example.org"}
		},
		"loopback is allowed":  func(r *Request, f *Facts) { loopbackHost(r, f) },
		"resource name":        func(r *Request, f *Facts) { rename(r, f, "i-0a.ec2.internal") },
		"inventory at the age": func(_ *Request, f *Facts) { f.Now = noon.Add(30 * time.Second) },
		"32 names": func(r *Request, f *Facts) {
			for n := range MaxNames - 2 {
				r.Parsed.DNS = append(r.Parsed.DNS, fmt.Sprintf("n%d.example.org", n))
			}
			f.Inventory.Instance.Names = r.Parsed.DNS
		},
		"IPv4 in sixteen bytes": func(r *Request, _ *Facts) { r.Parsed.IPs = []netip.Addr{addr("::ffff:10.0.0.5")} },
		"ten minutes":           func(r *Request, _ *Facts) { s := int32(minExpiration); r.ExpirationSeconds = &s },
		"requester with UID":    func(r *Request, f *Facts) { r.UserUID = f.Node.UID },
		"self of another":       func(_ *Request, f *Facts) { f.Self = &Self{Node: "leader"} },
		"an operator's machine without launch time": func(_ *Request, f *Facts) {
			f.Inventory.Instance.Created, f.Inventory.Vouched = time.Time{}, true
		},
		"a Node name that is no name": func(_ *Request, f *Facts) { f.Inventory.Instance.Names = nil },
		"leader":                      leaderAsks,
		"leader, host name":           func(r *Request, f *Facts) { leaderAsks(r, f); r.Parsed.DNS = []string{"leader.example.org"} },
		"leader, no machine IDs":      func(r *Request, f *Facts) { leaderAsks(r, f); f.Self.MachineID = "" },
		"leader, Node without ID":     func(r *Request, f *Facts) { leaderAsks(r, f); f.Node.MachineID = "" },
		"another leader":              peerAsks,
		"another leader, by its short name alone": func(r *Request, f *Facts) {
			peerAsks(r, f)
			r.Parsed.DNS, r.Parsed.IPs = []string{"CP-2"}, nil
		},
		"another leader, cloud is away": func(r *Request, f *Facts) { peerAsks(r, f); f.Inventory = nil },
		"another leader in a cloud": func(r *Request, f *Facts) {
			peerAsks(r, f)
			f.Listed.Instance, f.Node.ProviderID = "openstack:///6b9e6ac0-62ae-4d92-9b3a-2b6c6e0b7c11", "openstack://RegionOne/6B9E6AC0-62AE-4D92-9B3A-2B6C6E0B7C11"
		},
		"another leader, whose list is longer": func(r *Request, f *Facts) {
			peerAsks(r, f)
			f.Listed.Addresses = append(f.Listed.Addresses, addr("203.0.113.9"))
		},
		"leader, cloud is away": func(r *Request, f *Facts) { leaderAsks(r, f); f.Inventory = nil },
	} {
		t.Run(name, func(t *testing.T) {
			r, f := honestRequest(), honestFacts()
			change(&r, &f)
			if v := Decide(r, f); v.Do != Approve {
				t.Errorf("got %v %s %s", v.Do, v.Rule, v.Why)
			}
		})
	}
}

// leaderAsks is the request of the agent's own machine, which shares a name and an
// address with the API server.
func leaderAsks(r *Request, f *Facts) {
	rename(r, f, "leader")
	r.Parsed.IPs = []netip.Addr{addr("10.0.0.1")}
	f.Node.ControlPlane, f.Node.MachineID, f.Node.ProviderID = true, "m1", ""
	f.Self = &Self{Node: "leader", Names: []string{"leader", "leader.example.org"}, Addresses: []netip.Addr{addr("10.0.0.1"), addr("127.0.0.1"), addr("10.96.0.1")}, MachineID: "m1"}
	f.Inventory.Instance = nil
}

// peerAsks is the request of another control-plane machine that the operator lists. It shares a
// name and an address with an API server; the endpoint is neither.
func peerAsks(r *Request, f *Facts) {
	leaderAsks(r, f)
	rename(r, f, "cp-2")
	r.Parsed.DNS = []string{"cp-2", "cp-2.example.org"}
	r.Parsed.IPs = []netip.Addr{addr("10.0.0.2")}
	f.Forbidden.Names = append(f.Forbidden.Names, "cp-2", "cp-2.example.org", "cp-3")
	f.Forbidden.Addresses = append(f.Forbidden.Addresses, addr("10.0.0.2"), addr("10.0.0.3"), addr("10.0.0.100"))
	f.Forbidden.Endpoint = "api.example.com"
	f.Listed = &Machine{Node: "cp-2", Names: []string{"cp-2.example.org"}, Addresses: []netip.Addr{addr("10.0.0.2")}}
	f.Taken = map[string]string{}
}

func loopbackHost(r *Request, f *Facts) {
	f.Forbidden.Allowed = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	r.Parsed.IPs = []netip.Addr{addr("127.0.1.5")}
	f.Inventory.Instance.Addresses = r.Parsed.IPs
}

func rename(r *Request, f *Facts, name string) {
	r.Username, r.Parsed.CommonNames, r.Parsed.DNS, f.Node.Name = UserPrefix+name, []string{UserPrefix + name}, []string{name}, name
}

// byRule runs the cases of one rule, of which there must be some.
func byRule(t *testing.T, rule string) {
	t.Helper()
	n := 0
	for _, c := range spoilt {
		if c.rule != rule {
			continue
		}
		n++
		t.Run(c.name, func(t *testing.T) {
			r, f := honestRequest(), honestFacts()
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

func TestR21(t *testing.T) { byRule(t, RuleListed) }
func TestR20(t *testing.T) { byRule(t, RuleElder) }
func TestR0(t *testing.T)  { byRule(t, "R0") }
func TestR1(t *testing.T)  { byRule(t, "R1") }
func TestR2(t *testing.T)  { byRule(t, "R2") }
func TestR3(t *testing.T)  { byRule(t, "R3") }
func TestR4(t *testing.T)  { byRule(t, "R4") }
func TestR5(t *testing.T)  { byRule(t, "R5") }
func TestR6(t *testing.T)  { byRule(t, "R6") }
func TestR7(t *testing.T)  { byRule(t, "R7") }
func TestR8(t *testing.T)  { byRule(t, "R8") }
func TestR9(t *testing.T)  { byRule(t, "R9") }
func TestR10(t *testing.T) { byRule(t, "R10") }
func TestR11(t *testing.T) { byRule(t, "R11") }
func TestR12(t *testing.T) { byRule(t, "R12") }
func TestR13(t *testing.T) { byRule(t, "R13") }
func TestR14(t *testing.T) { byRule(t, "R14") }
func TestR15(t *testing.T) { byRule(t, "R15") }
func TestR16(t *testing.T) { byRule(t, "R16") }
func TestR17(t *testing.T) { byRule(t, "R17") }

// TestEveryCheckHasATest keeps the list and the tests by rule together.
func TestEveryCheckHasATest(t *testing.T) {
	has := map[string]bool{}
	for _, c := range spoilt {
		has[c.rule] = true
	}
	for _, c := range spoiltJoins {
		has[c.rule] = true
	}
	for _, list := range [][]check{checks, joinChecks} {
		for _, c := range list {
			if !has[c.rule] || c.what == "" {
				t.Errorf("rule %s (%q) has no case", c.rule, c.what)
			}
		}
	}
}

// TestTraceIsTheJudgement: the verdict of a trace is Decide's, it has every check, and
// exactly one stopped it, or none.
func TestTraceIsTheJudgement(t *testing.T) {
	try := func(r Request, f Facts, list []check) {
		v, steps := Trace(r, f)
		if d := Decide(r, f); d != v || len(steps) != len(list) {
			t.Errorf("trace says %+v in %d steps, decide %+v in %d", v, len(steps), d, len(list))
		}
		stopped := -1
		for i, s := range steps {
			switch {
			case s.Result == Stopped && stopped < 0 && s.Rule == v.Rule && s.Why == v.Why:
				stopped = i
			case s.Result == Stopped:
				t.Errorf("step %d stopped as well: %+v", i, s)
			case (s.Result == notReached) != (stopped >= 0):
				t.Errorf("step %d is %s, step %d stopped", i, s.Result, stopped)
			}
		}
		if (stopped < 0) != (v.Do == Approve) {
			t.Errorf("%+v, but step %d stopped", v, stopped)
		}
	}
	try(honestRequest(), honestFacts(), checks)
	for _, c := range spoilt {
		r, f := honestRequest(), honestFacts()
		c.change(&r, &f)
		if r.Signer == ServingSigner {
			try(r, f, checks)
		}
	}
	for _, c := range spoiltJoins {
		r, f := honestJoin()
		c.change(&r, &f)
		if r.Signer == ClientSigner {
			try(r, f, joinChecks)
		}
	}
}

// TestForbidden lets the inventory vouch for everything: R9 wins.
func TestForbidden(t *testing.T) {
	for _, name := range []string{"localhost", "a.localhost", "kubernetes", "Kubernetes.", "kubernetes.default", "kubernetes.default.svc",
		"kubernetes.default.svc.cluster.local", "x.svc", "cluster.local", "svc.cluster.local", "x.svc.cluster.local", "pod.cluster.local",
		"10-0-0-5.default.pod.cluster.local", "kubernetes.cluster.local", "kubernetes.default.cluster.local", "localhost.cluster.local", "api.example.com", "API.example.com.", "leader",
		"*.ec2.internal", "*", "", ".", "a..b", "-a", "a_b", "bücher.example", "autoscaler-agent-attest.invalid", "Invalid", "x.invalid.", "127.1", "2130706433", "x.1", "0x7f000001", "a.0X7F", "0x", "10.0.0.5", "a b", "a\x00b", host + ".."} {
		r, f := honestRequest(), honestFacts()
		r.Parsed.DNS = []string{name}
		f.Inventory.Instance.Names = []string{name, CanonicalName(name)}
		if v := Decide(r, f); v.Do != Deny || v.Rule != "R9" {
			t.Errorf("name %q: %v %s %s", name, v.Do, v.Rule, v.Why)
		}
	}
	for _, ip := range []string{"127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1", "0.0.0.0", "::", "169.254.169.254", "fe80::1", "fe80::1%eth0",
		"224.0.0.1", "ff02::1", "255.255.255.255", "10.96.0.1", "10.111.255.1", "::ffff:10.96.0.1", "fd00:96::1", "10.0.0.1", "::ffff:10.0.0.1",
		"::10.0.0.5", "64:ff9b::a00:5", "2001:db8::5%eth0", "64:ff9b:1::a00:5", "2001:db8:64::10.0.0.1", "fd00::5efe:10.0.0.1", "2001:db8::200:5efe:10.0.0.1", "2002:a00:5::1", "2001::5", "2001:1ff::1",
		"fd00:ec2::254", "fec0::5", "100::5", "240.0.0.5", "0.1.2.3"} {
		r, f := honestRequest(), honestFacts()
		r.Parsed.IPs = []netip.Addr{addr(ip)}
		f.Inventory.Instance.Addresses = []netip.Addr{addr(ip), addr(ip).Unmap(), addr(ip).WithZone("")}
		if v := Decide(r, f); v.Do != Deny || v.Rule != "R9" {
			t.Errorf("address %s: %v %s %s", ip, v.Do, v.Rule, v.Why)
		}
	}
	r, f := honestRequest(), honestFacts()
	r.Parsed.IPs = []netip.Addr{{}}
	if v := Decide(r, f); v.Do != Deny || v.Rule != "R9" {
		t.Errorf("zero address: %v %s", v.Do, v.Rule)
	}
}

// TestMachinesAddresses: what lies beside the ranges that no machine has is a machine's.
func TestMachinesAddresses(t *testing.T) {
	for _, ip := range []string{"1.0.0.5", "100.64.0.5", "126.0.0.5", "128.0.0.5", "169.253.0.5", "169.255.0.5", "223.255.255.5", "2000::5", "2001:200::5", "2001:db8::10.0.0.5", "2003::5", "3fff::5", "fc00::5", "fd00:ec1::254", "fd00:ec3::254"} {
		r, f := honestRequest(), honestFacts()
		r.Parsed.IPs, f.Inventory.Instance.Addresses = []netip.Addr{addr(ip)}, []netip.Addr{addr(ip)}
		if v := Decide(r, f); v.Do != Approve {
			t.Errorf("address %s: %v %s %s", ip, v.Do, v.Rule, v.Why)
		}
	}
	r, f := honestRequest(), honestFacts()
	r.Parsed.DNS = []string{"0xg.example", "w1.example", "invalid-1.example", "a.1b"}
	f.Inventory.Instance.Names = r.Parsed.DNS
	if v := Decide(r, f); v.Do != Approve {
		t.Errorf("%v %s %s", v.Do, v.Rule, v.Why)
	}
}

// TestElderByItsOwnWord: a Node without provider ID that reports the machine's address holds nothing that the cloud vouches
// for, and the approval names it; beyond that the rules hold as ever.
func TestElderByItsOwnWord(t *testing.T) {
	r, f := honestRequest(), honestFacts()
	f.Elder = &Elder{Name: "older", By: "address 10.0.0.5"}
	if v := Decide(r, f); v.Do != Approve || !strings.Contains(v.Why, "kubectl delete node older") {
		t.Errorf("%+v", v)
	}
	r.Parsed.IPs = append(r.Parsed.IPs, addr("10.0.0.6"))
	if v := Decide(r, f); v.Do != Later || v.Rule != "R14" {
		t.Errorf("%+v", v)
	}
}

// TestNamesOutsideTheClusterDomain: what is kept for services in the cluster's domain is
// like any other name elsewhere.
func TestNamesOutsideTheClusterDomain(t *testing.T) {
	for _, domain := range []string{"cluster.local", "Cluster.Local.", ""} {
		for _, name := range []string{"kubernetes.example.org", "kubernetes-1.example.org", "localhost.example.org", "x.pod", "a.svc.example.org", "xcluster.local", "node-1.cluster.local"} {
			r, f := honestRequest(), honestFacts()
			f.Forbidden.DNSDomain, r.Parsed.DNS, f.Inventory.Instance.Names = domain, []string{name}, []string{name}
			if v := Decide(r, f); v.Do != Approve {
				t.Errorf("%q in domain %q: %v %s %s", name, domain, v.Do, v.Rule, v.Why)
			}
		}
	}
}

func TestWitnessOf(t *testing.T) {
	own, next, gone := *ownInstance(), *ownInstance(), *ownInstance()
	next.ID, next.Addresses = nextID, []netip.Addr{addr("10.0.0.6")}
	gone.ID, gone.Phase, gone.Addresses = "aws:///us-east-1a/i-0c", cluster.PhaseGone, []netip.Addr{addr("10.0.0.7")}
	failed := gone
	failed.ID, failed.Phase = "aws:///us-east-1a/i-0d", cluster.PhaseFailed
	groups := []cluster.NodeGroup{
		{ID: "b", ReadAt: noon, Instances: []cluster.Instance{next, gone, failed}, Stale: "throttled"},
		{ID: "a", ReadAt: noon, Instances: []cluster.Instance{own}},
	}
	asked := Parsed{DNS: []string{host}, IPs: []netip.Addr{addr("10.0.0.6"), addr("10.0.0.7")}}
	got := Sources{}.Witness(groups, string(ownID), host, asked)
	if got.Instance == nil || got.Instance.ID != ownID || got.Group != "a" || got.Stale != "" {
		t.Errorf("instance %+v of group %q", got.Instance, got.Group)
	}
	if want := []cluster.InstanceID{ownID, nextID}; !slices.Equal(got.Claimants, want) {
		t.Errorf("claimants %v, want %v", got.Claimants, want)
	}
	if got.Owners["10.0.0.6"] != nextID || got.Owners["10.0.0.7"] != "" || got.Owners[host] != nextID {
		t.Errorf("owners %v", got.Owners)
	}
	if want := map[string]cluster.InstanceID{host: nextID, "10.0.0.6": nextID}; !reflect.DeepEqual(got.Owners, want) {
		t.Errorf("owners %v, want %v", got.Owners, want)
	}
	if got.Incomplete != "group b: throttled" {
		t.Errorf("incomplete %q", got.Incomplete)
	}
	slices.Reverse(groups)
	if again := (Sources{}).Witness(groups, string(ownID), host, asked); !reflect.DeepEqual(got, again) {
		t.Errorf("the order of groups matters:\n%+v\n%+v", got, again)
	}
	if lost := (Sources{}).Witness(groups, "aws:///us-east-1a/i-0z", host, asked); lost.Instance != nil || !strings.Contains(lost.Incomplete, "throttled") {
		t.Errorf("an instance that is not there: %+v", lost)
	}
}

// TestWitnessOfTwoGroups: an instance that several groups list is taken from the one it is
// a member of, and of several owners the smallest ID is named, whatever the order.
func TestWitnessOfTwoGroups(t *testing.T) {
	member, guest := *ownInstance(), *ownInstance()
	guest.Member = false
	owner := func(id cluster.InstanceID) cluster.Instance {
		i := *ownInstance()
		i.ID, i.NodeNames, i.Addresses = id, nil, nil
		i.Names = []string{"shared.example.org"}
		return i
	}
	asked := Parsed{DNS: []string{"shared.example.org"}}
	for name, groups := range map[string][]cluster.NodeGroup{
		"member first": {{ID: "a", Instances: []cluster.Instance{member}}, {ID: "b", Instances: []cluster.Instance{guest}}},
		"member last":  {{ID: "a", Instances: []cluster.Instance{member}}, {ID: "0", Instances: []cluster.Instance{guest}}},
		"three lists":  {{ID: "0", Instances: []cluster.Instance{guest}}, {ID: "a", Instances: []cluster.Instance{member}}, {ID: "b", Instances: []cluster.Instance{guest}}},
		"owners":       {{ID: "a", Instances: []cluster.Instance{owner("z"), owner("x"), owner("y"), member}}},
	} {
		w := Sources{}.Witness(groups, string(ownID), host, asked)
		if w.Instance == nil || !w.Instance.Member || w.Group != "a" {
			t.Errorf("%s: taken from %q: %+v", name, w.Group, w.Instance)
		}
		if want := []cluster.InstanceID{ownID}; !slices.Equal(w.Claimants, want) {
			t.Errorf("%s: claimants %v", name, w.Claimants)
		}
		if name == "owners" && w.Owners["shared.example.org"] != "x" {
			t.Errorf("owners %v", w.Owners)
		}
	}
}
