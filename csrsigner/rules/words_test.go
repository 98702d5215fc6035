package rules

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// TestOrderMeansNothing: not even the words of a verdict depend on the order in which a
// requester, the cloud or this host lists things.
func TestOrderMeansNothing(t *testing.T) {
	for name, c := range map[string]struct {
		build func() (Request, Facts)
		rule  string
	}{
		"names": {func() (Request, Facts) {
			r, f := honestRequest(), honestFacts()
			r.Parsed.DNS = []string{"b.example.org", "a.example.org"}
			return r, f
		}, "R13"},
		"the cloud's names": {func() (Request, Facts) {
			r, f := honestRequest(), honestFacts()
			r.Parsed.DNS = []string{"a.example.org"}
			f.Inventory.Instance.Names = []string{"z", "y"}
			return r, f
		}, "R13"},
		"the cloud's addresses": {func() (Request, Facts) {
			r, f := honestRequest(), honestFacts()
			r.Parsed.IPs = []netip.Addr{addr("10.9.9.9"), addr("10.8.8.8")}
			return r, f
		}, "R14"},
		"Node names": {func() (Request, Facts) {
			r, f := honestRequest(), honestFacts()
			f.Inventory.Instance.NodeNames = []string{"z", "y"}
			return r, f
		}, "R11"},
		"service ranges": {func() (Request, Facts) {
			r, f := honestRequest(), honestFacts()
			r.Parsed.IPs = []netip.Addr{addr("10.96.0.9")}
			f.Forbidden.Ranges = append(f.Forbidden.Ranges, netip.MustParsePrefix("10.96.0.0/16"))
			return r, f
		}, "R9"},
		"claimants": {func() (Request, Facts) {
			r, f := honestJoin()
			f.Inventory.Claimants = []cluster.InstanceID{nextID, ownID}
			return r, f
		}, "J11"},
		"Nodes of one instance": {func() (Request, Facts) {
			r, f := honestJoin()
			f.Join.Bearers = []string{"b", "a"}
			return r, f
		}, "J13"},
		"rivals": {func() (Request, Facts) {
			r, f := honestJoin()
			f.Join.Rivals = []string{"b", "a", "c", "e", "d"}
			return r, f
		}, "J16"},
		"the host's names": {func() (Request, Facts) {
			r, f := honestRequest(), honestFacts()
			leaderAsks(&r, &f)
			r.Parsed.DNS = []string{"a.example.org"}
			return r, f
		}, "R16"},
		"usages": {func() (Request, Facts) {
			r, f := honestRequest(), honestFacts()
			r.Usages = []string{"z", "y"}
			return r, f
		}, "R4"},
		"shared and another's": {func() (Request, Facts) {
			r, f := honestRequest(), honestFacts()
			r.Parsed.DNS = []string{host, "other"}
			f.Inventory.Owners = map[string]cluster.InstanceID{host: nextID, "other": nextID}
			return r, f
		}, "R9"},
	} {
		t.Run(name, func(t *testing.T) {
			r, f := c.build()
			v := Decide(r, f)
			turnAround(&r, &f)
			if again := Decide(r, f); again != v || v.Rule != c.rule {
				t.Errorf("%+v and %+v, want %s", v, again, c.rule)
			}
		})
	}
}

// TestOthersNamesDenyFirst: a name that only another machine has is denied although
// another one is shared.
func TestOthersNamesDenyFirst(t *testing.T) {
	r, f := honestRequest(), honestFacts()
	r.Parsed.DNS = []string{host, "zz-other"}
	f.Inventory.Owners = map[string]cluster.InstanceID{host: nextID, "zz-other": nextID}
	if v := Decide(r, f); v.Do != Deny || v.Rule != "R9" {
		t.Errorf("%+v", v)
	}
	r.Parsed.DNS, r.Parsed.IPs = []string{host}, []netip.Addr{addr("10.0.0.6")}
	f.Inventory.Owners["10.0.0.6"] = nextID
	if v := Decide(r, f); v.Do != Deny || v.Rule != "R9" {
		t.Errorf("%+v", v)
	}
}

func TestWordsOfApproval(t *testing.T) {
	r, f := honestRequest(), honestFacts()
	if v := Decide(r, f); v.Rule != ApprovedServing || !strings.Contains(v.Why, string(ownID)+" of group workers vouches") {
		t.Errorf("worker: %+v", v)
	}
	leaderAsks(&r, &f)
	if v := Decide(r, f); v.Rule != ApprovedServing || !strings.Contains(v.Why, "this machine itself") {
		t.Errorf("leader: %+v", v)
	}
	r, f = honestJoin()
	if v := Decide(r, f); v.Rule != ApprovedJoin || !strings.Contains(v.Why, "is expected as Node "+host) {
		t.Errorf("join: %+v", v)
	}
}

func TestActionNames(t *testing.T) {
	for a, want := range map[Action]string{Leave: "leave", Later: "later", Approve: "approve", Deny: "deny", -1: "action -1", 4: "action 4"} {
		if got := a.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestSubdomain(t *testing.T) {
	label := strings.Repeat("a", 63)
	longest := strings.Join([]string{label, label, label, label[:61]}, ".")
	for name, want := range map[string]bool{
		"a": true, "a-1.b": true, "0": true, label: true, longest: true,
		"": false, longest + "a": false, label + "a": false, "a-": false, "-a": false, "a.": false, ".a": false, "a..b": false,
		"A": false, "a_b": false, "a/b": false, "a{b": false, "a:b": false, "a`b": false, "*.a": false, "bü": false,
	} {
		if got := IsSubdomain(name); got != want {
			t.Errorf("%q (%d bytes): %v", name, len(name), got)
		}
	}
}

// TestWordsNameTheRemedy: what an operator has to know stands in the verdict.
func TestWordsNameTheRemedy(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Request, *Facts)
		want   string
	}{
		"no provider ID":   {func(_ *Request, f *Facts) { f.Node.ProviderID = "" }, "--provider-id"},
		"no such instance": {func(_ *Request, f *Facts) { f.Inventory = &Witness{} }, "in no managed node group"},
		"unread groups":    {func(_ *Request, f *Facts) { f.Inventory = &Witness{Incomplete: "group b: throttled"} }, "group b: throttled"},
		"read, others not": {func(_ *Request, f *Facts) {
			f.Inventory.Incomplete = "group b: throttled"
			f.Inventory.Instance.Member = false
		}, "not a member"},
		"control plane":     {func(_ *Request, f *Facts) { f.Node.ControlPlane = true }, "kubectl certificate approve csr-1"},
		"leader's address":  {func(r *Request, f *Facts) { leaderAsks(r, f); r.Parsed.IPs = []netip.Addr{addr("10.0.0.5")} }, "AUTOSCALER_CSR_SELF_NAMES"},
		"leader's name":     {func(r *Request, f *Facts) { leaderAsks(r, f); r.Parsed.DNS = []string{"x.example.org"} }, "AUTOSCALER_CSR_SELF_NAMES"},
		"another domain":    {func(_ *Request, f *Facts) { f.Inventory.Instance.NodeNames = []string{"other"} }, "AUTOSCALER_CSR_EXTRA_NAMES={{node}}.DOMAIN"},
		"leader's own Node": {func(r *Request, f *Facts) { leaderAsks(r, f); f.Node.ControlPlane = false }, "AUTOSCALER_NODE_NAME"},
	} {
		r, f := honestRequest(), honestFacts()
		c.change(&r, &f)
		if v := Decide(r, f); !strings.Contains(v.Why, c.want) {
			t.Errorf("%s: %q does not say %q", name, v.Why, c.want)
		}
	}
	for name, c := range map[string]struct {
		change func(*Request, *Facts)
		want   string
	}{
		"another key": {func(_ *Request, f *Facts) { f.Join.Issued = &Issue{Key: "k0", CSR: "c0"} }, "kubectl certificate approve node-csr-1"},
		"too late":    {func(_ *Request, f *Facts) { f.Inventory.Instance.Created = noon.Add(-3 * time.Hour) }, "kubectl certificate approve node-csr-1"},
		"no launch":   {func(_ *Request, f *Facts) { f.Inventory.Instance.Created = time.Time{} }, "does not say when"},
		"unread":      {func(_ *Request, f *Facts) { f.Inventory = &Witness{Incomplete: "group b: throttled"} }, "group b: throttled"},
		"nobody":      {func(_ *Request, f *Facts) { f.Inventory = &Witness{} }, "no instance of a managed node group is expected"},
		"open":        {func(_ *Request, f *Facts) { f.Join = nil }, "AUTOSCALER_CSR_JOIN"},
		"too early":   {func(_ *Request, f *Facts) { f.Inventory.Instance.Created = noon.Add(time.Minute) }, "kubectl certificate approve node-csr-1"},
		"other name":  {func(_ *Request, f *Facts) { f.Join.Issued = &Issue{Key: "k1", Node: "other", CSR: "c0"} }, "as Node other by request c0: if the machine really joins anew, kubectl certificate approve node-csr-1"},
		"bearer":      {func(_ *Request, f *Facts) { f.Join.Bearers = []string{"other"} }, "Node other carries the provider ID"},
		"rival":       {func(_ *Request, f *Facts) { f.Join.Rivals = []string{"r1"} }, "node-csr-1 and r1 ask with different keys"},
		"rivals":      {func(_ *Request, f *Facts) { f.Join.Rivals = []string{"r1", "r2", "r3", "r4", "r5"} }, "r1, r2, r3 and 2 more ask"},
		"three":       {func(_ *Request, f *Facts) { f.Join.Rivals = []string{"r1", "r2", "r3"} }, "r1, r2, r3 ask"},
		"cp host":     {func(_ *Request, f *Facts) { f.ControlPlane = []string{host} }, "of the control plane"},
		"no long name hides the command": {func(_ *Request, f *Facts) {
			f.Join.Issued = &Issue{Key: "k1", Node: strings.Repeat("n", 250), CSR: strings.Repeat("c", 250)}
		}, "kubectl certificate approve node-csr-1"},
		"no long rival hides the command": {func(_ *Request, f *Facts) {
			f.Join.Rivals = []string{strings.Repeat("a", 250), strings.Repeat("b", 250), strings.Repeat("c", 250), "d"}
		}, "kubectl certificate deny the others, or approve the right one"},
		"Ready Node": {func(_ *Request, f *Facts) { f.Node = &Node{Name: host, Ready: true} }, "and Ready"},
		"going Node": {func(_ *Request, f *Facts) { f.Node = &Node{Name: host, Deleting: true} }, "being deleted"},
	} {
		r, f := honestJoin()
		c.change(&r, &f)
		if v := Decide(r, f); !strings.Contains(v.Why, c.want) {
			t.Errorf("join, %s: %q does not say %q", name, v.Why, c.want)
		}
	}
}
