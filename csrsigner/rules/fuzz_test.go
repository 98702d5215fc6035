package rules

import (
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// FuzzDecide builds a request and facts from bytes: the first picks a worker, the leader
// or a joining machine, the rest pick what is wrong with it. Whatever they are: an
// approved request has no name or address outside the witness and none that is forbidden,
// an approved join has an expected instance without a certificate, equal input gives an
// equal verdict, and the order of slices means nothing.
func FuzzDecide(f *testing.F) {
	f.Add([]byte{}, host, "10.0.0.5", host)
	f.Add([]byte{0, 1, 2, 3, 4, 5}, "kubernetes", "127.0.0.1", "kubernetes")
	f.Add([]byte{1, 0xff}, "leader", "10.0.0.1", "other")
	f.Add([]byte{2}, "", "", "")
	f.Add([]byte{0}, strings.Repeat("\xf0\x9f\x92\xa5", 400), "10.0.0.5", host)
	f.Add([]byte{2, 0xff, 0x10}, "LOCALHOST.", "::ffff:10.96.0.1", "other")
	f.Fuzz(func(t *testing.T, spoil []byte, name, address, witness string) {
		r, facts, ok := dealt(spoil, name, address, witness)
		if !ok {
			return
		}
		v := Decide(r, facts)
		r2, facts2, _ := dealt(spoil, name, address, witness)
		if again := Decide(r2, facts2); again != v {
			t.Fatalf("equal input, unequal verdicts: %+v %+v", v, again)
		}
		if !reflect.DeepEqual(r, r2) || !reflect.DeepEqual(facts, facts2) {
			t.Fatal("the input was changed")
		}
		turnAround(&r2, &facts2)
		if again := Decide(r2, facts2); again != v {
			t.Fatalf("another order of slices, another verdict: %+v %+v", v, again)
		}
		if len(v.Why) > whyBytes || !utf8.ValidString(v.Why) {
			t.Fatalf("a text of %d bytes, or no UTF-8: %q", len(v.Why), v.Why)
		}
		if traced, steps := Trace(r, facts); traced != v || len(steps) == 0 {
			t.Fatalf("the trace says %+v, the verdict is %+v", traced, v)
		}
		switch {
		case v.Do != Approve:
		case r.Signer == ClientSigner:
			proveJoined(t, r, facts)
		default:
			proveApproved(t, r, facts)
		}
	})
}

// dealt makes the request and the facts; false: the bytes ask for what cannot be, for
// example to spoil an instance that another byte has taken away.
func dealt(spoil []byte, name, address, witness string) (r Request, f Facts, ok bool) {
	defer func() {
		if recover() != nil {
			ok = false // a case reached into what another case had removed
		}
	}()
	kind := byte(0)
	if len(spoil) > 0 {
		kind, spoil = spoil[0]%4, spoil[1:]
	}
	cases := len(spoilt)
	switch kind {
	case 2:
		r, f = honestJoin()
		cases = len(spoiltJoins)
	default:
		r, f = honestRequest(), honestFacts()
		if kind == 1 {
			leaderAsks(&r, &f)
			f.Self.Names = append(f.Self.Names, witness)
		}
		if kind == 3 {
			peerAsks(&r, &f)
			f.Listed.Names = append(f.Listed.Names, CanonicalName(witness))
		}
		r.Parsed.DNS = append(r.Parsed.DNS, name)
	}
	a, err := netip.ParseAddr(address)
	if err == nil && kind != 2 {
		r.Parsed.IPs = append(r.Parsed.IPs, a)
	}
	if in := f.Inventory.Instance; in != nil {
		in.Names = append(in.Names, witness)
	}
	for _, b := range spoil {
		switch {
		case int(b) < cases && kind == 2:
			spoiltJoins[b].change(&r, &f)
		case int(b) < cases:
			spoilt[b].change(&r, &f)
		case err == nil && b%2 == 1 && kind == 1:
			f.Self.Addresses = append(f.Self.Addresses, a)
		case err == nil && b%2 == 1:
			f.Inventory.Instance.Addresses = append(f.Inventory.Instance.Addresses, a)
		case b%4 == 0:
			f.Inventory.Owners[CanonicalName(name)] = nextID
		}
	}
	return r, f, true
}

// turnAround reverses every list.
func turnAround(r *Request, f *Facts) {
	p := &r.Parsed
	for _, list := range [][]string{r.Groups, r.Usages, p.CommonNames, p.Organizations, p.OtherSubject, p.DNS, p.OtherNames, p.OtherExtensions} {
		slices.Reverse(list)
	}
	slices.Reverse(p.IPs)
	if f.Forbidden != nil {
		slices.Reverse(f.Forbidden.Names)
		slices.Reverse(f.Forbidden.Addresses)
		slices.Reverse(f.Forbidden.Ranges)
	}
	slices.Reverse(f.ControlPlane)
	if f.Join != nil {
		slices.Reverse(f.Join.Bearers)
		slices.Reverse(f.Join.Rivals)
	}
	if f.Listed != nil {
		slices.Reverse(f.Listed.Names)
		slices.Reverse(f.Listed.Addresses)
	}
	if f.Self != nil {
		slices.Reverse(f.Self.Names)
		slices.Reverse(f.Self.Addresses)
	}
	if f.Inventory != nil {
		slices.Reverse(f.Inventory.Claimants)
		if in := f.Inventory.Instance; in != nil {
			slices.Reverse(in.NodeNames)
			slices.Reverse(in.Names)
			slices.Reverse(in.Addresses)
		}
	}
}

func proveApproved(t *testing.T, r Request, f Facts) {
	var names, nodeNames []string
	var addresses []netip.Addr
	leads := f.own(r)
	switch {
	case leads && !f.Node.ControlPlane:
		t.Fatal("the leader's name was enough")
	case leads:
		names, addresses = f.Self.Names, f.Self.Addresses
	case f.Node.ControlPlane:
		if f.Listed == nil || f.Listed.Node != r.Node() || f.Listed.Instance != "" && !SameMachine(string(f.Listed.Instance), f.Node.ProviderID) {
			t.Fatal("approved for a control-plane Node that nobody vouches for")
		}
		if ownsName(r.Parsed.DNS, f.Forbidden.Endpoint) || slices.ContainsFunc(r.Parsed.IPs, func(a netip.Addr) bool { return a.Unmap().String() == f.Forbidden.Endpoint }) {
			t.Fatal("approved for the endpoint")
		}
		leads, names, addresses = true, append([]string{f.Listed.Node}, f.Listed.Names...), f.Listed.Addresses
	default:
		own := f.Inventory.Instance
		names, nodeNames, addresses = own.Names, own.NodeNames, own.Addresses
		if !SameMachine(string(own.ID), f.Node.ProviderID) || f.Now.Sub(f.Inventory.ReadAt) > 30*time.Second || !ownsName(nodeNames, r.Node()) {
			t.Fatal("approved without a fresh binding")
		}
		if !own.Created.IsZero() && r.Created.Before(own.Created.Truncate(time.Second)) {
			t.Fatal("approved a request from before the launch")
		}
		if own.Phase == cluster.PhaseGone || own.Phase == cluster.PhaseUnknown || (own.Phase == cluster.PhaseStopped || own.Phase == cluster.PhaseDeleting) && !own.Runs {
			t.Fatal("approved for a machine that does not run")
		}
	}
	for _, n := range r.Parsed.DNS {
		c := CanonicalName(n)
		if c != r.Node() && !ownsName(names, c) && !ownsName(nodeNames, c) {
			t.Fatalf("name %q is approved without a witness", n)
		}
		if f.Forbidden.name(n, leads) != "" {
			t.Fatalf("name %q is approved though forbidden", n)
		}
	}
	for _, a := range r.Parsed.IPs {
		if !slices.Contains(addresses, a.Unmap()) || f.Forbidden.address(a, leads) != "" {
			t.Fatalf("address %s is approved without a witness or though forbidden", a)
		}
	}
	if r.Settled != "" {
		t.Fatal("decided twice")
	}
}

func proveJoined(t *testing.T, r Request, f Facts) {
	inv := f.Inventory
	switch {
	case inv.Instance == nil || !slices.Equal(inv.Claimants, []cluster.InstanceID{inv.Instance.ID}):
		t.Fatal("approved for an instance that is not the only one expected")
	case f.Join.Issued != nil && f.Join.Issued.Key != r.Parsed.KeyHash:
		t.Fatal("approved a second key for one instance")
	case f.Join.Issued != nil && f.Join.Issued.Node != r.Node():
		t.Fatal("approved a second name for one instance")
	case f.Join.Issued == nil && len(f.Join.Bearers) > 0:
		t.Fatal("approved beside a Node of the instance, without knowing whose it is")
	case f.Join.Issued == nil && len(f.Join.Rivals) > 0:
		t.Fatalf("approved while %q ask with other keys", f.Join.Rivals)
	case slices.Contains(f.ControlPlane, r.Node()):
		t.Fatalf("approved under a name of the control plane, %q", r.Node())
	case !inv.Instance.Created.IsZero() && r.Created.Before(inv.Instance.Created.Truncate(time.Second)):
		t.Fatal("approved a request from before the launch")
	case f.Node != nil || f.Join.Unlisted != "":
		t.Fatalf("approved beside Node %+v", f.Node)
	case f.Join.Token.Problem != "" || !slices.Contains(r.Groups, workersGroup):
		t.Fatal("approved without a token of ours")
	case f.Forbidden.name(r.Node(), false) != "":
		t.Fatalf("approved under the control plane's name %q", r.Node())
	case len(r.Parsed.DNS)+len(r.Parsed.IPs) > 0 || r.Settled != "":
		t.Fatal("approved names in a client certificate, or twice")
	}
}

// FuzzParse throws bytes at the parser: it never panics, and what it accepts has no
// problem and some key.
func FuzzParse(f *testing.F) {
	f.Add([]byte("-----BEGIN CERTIFICATE REQUEST-----\nMAA=\n-----END CERTIFICATE REQUEST-----\n"))
	f.Add(selfSigned(f))
	f.Fuzz(func(t *testing.T, raw []byte) {
		if p := Parse(raw); p.Problem == "" && p.Key == "" {
			t.Fatalf("accepted without a key: %+v", p)
		}
	})
}
