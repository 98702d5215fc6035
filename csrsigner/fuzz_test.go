package csrsigner

import (
	"net/netip"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// FuzzDecide builds a request and facts from bytes. Whatever they are: an approved
// request has no name or address outside the witness and none that is forbidden,
// and equal input gives an equal verdict.
func FuzzDecide(f *testing.F) {
	f.Add([]byte{}, host, "10.0.0.5", host)
	f.Add([]byte{1, 2, 3, 4, 5}, "kubernetes", "127.0.0.1", "kubernetes")
	f.Add([]byte{0xff, 0x10}, "LOCALHOST.", "::ffff:10.96.0.1", "other")
	f.Fuzz(func(t *testing.T, spoil []byte, name, address, witnessName string) {
		build := func() (Request, Facts) {
			r, facts := honestRequest(), honestFacts()
			r.Parsed.DNS = append(r.Parsed.DNS, name)
			facts.Inventory.Instance.Names = append(facts.Inventory.Instance.Names, witnessName)
			if a, err := netip.ParseAddr(address); err == nil {
				r.Parsed.IPs = append(r.Parsed.IPs, a)
			}
			for _, b := range spoil {
				if int(b) < len(spoilt) {
					spoilt[b].change(&r, &facts)
				} else if b%2 == 1 && facts.Inventory != nil && facts.Inventory.Instance != nil {
					if a, err := netip.ParseAddr(address); err == nil {
						facts.Inventory.Instance.Addresses = append(slices.Clone(facts.Inventory.Instance.Addresses), a)
					}
				}
			}
			return r, facts
		}
		if slices.ContainsFunc(spoil, func(b byte) bool { return !safe(b, spoil) }) {
			return
		}
		r, facts := build()
		v := Decide(r, facts)
		r2, facts2 := build()
		if again := Decide(r2, facts2); again != v {
			t.Fatalf("equal input, unequal verdicts: %+v %+v", v, again)
		}
		if !reflect.DeepEqual(r, r2) || !reflect.DeepEqual(facts, facts2) {
			t.Fatal("the input was changed")
		}
		if v.Do == Approve {
			proveApproved(t, r, facts)
		}
	})
}

// safe drops combinations that the cases themselves cannot take: most reach into an
// inventory or a Node that another case has removed.
func safe(b byte, spoil []byte) bool {
	if int(b) >= len(spoilt) {
		return true
	}
	for _, o := range spoil {
		if int(o) >= len(spoilt) {
			continue
		}
		if n := spoilt[o].name; n == "not read" || n == "cannot be read" || n == "unknown instance" || n == "no Node" || n == "not known yet" {
			return len(spoil) == 1
		}
	}
	return true
}

func proveApproved(t *testing.T, r Request, f Facts) {
	own := f.Inventory.Instance
	for _, n := range r.Parsed.DNS {
		c := canonical(n)
		if c != r.Node() && !ownsName(own.Names, c) && !ownsName(own.NodeNames, c) {
			t.Fatalf("name %q is approved without a witness", n)
		}
		if f.Forbidden.name(n, f.own(r)) != "" {
			t.Fatalf("name %q is approved though forbidden", n)
		}
	}
	for _, a := range r.Parsed.IPs {
		if !slices.Contains(own.Addresses, a.Unmap()) || f.Forbidden.address(a, f.own(r)) != "" {
			t.Fatalf("address %s is approved without a witness or though forbidden", a)
		}
	}
	if own.ID != cluster.InstanceID(f.Node.ProviderID) || f.Now.Sub(f.Inventory.ReadAt) > 30*time.Second || r.Settled != "" {
		t.Fatal("approved without a fresh binding")
	}
}

// FuzzParse throws bytes at the parser: it never panics, and what it accepts has no
// problem and some key.
func FuzzParse(f *testing.F) {
	f.Add([]byte("-----BEGIN CERTIFICATE REQUEST-----\nMAA=\n-----END CERTIFICATE REQUEST-----\n"))
	f.Add(selfSigned(f))
	f.Fuzz(func(t *testing.T, raw []byte) {
		if p := parse(raw); p.Problem == "" && p.Key == "" {
			t.Fatalf("accepted without a key: %+v", p)
		}
	})
}
