package rules

import (
	"bytes"
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// This file holds the checks that compare names and addresses. It is as pure as
// decide.go.

// CanonicalName lower-cases a name and cuts one trailing dot: the only liberties that
// a comparison takes.
func CanonicalName(name string) string {
	return strings.TrimSuffix(strings.ToLower(name), ".")
}

// CanonicalAddress unmaps an IPv4 address written as IPv6.
func CanonicalAddress(a netip.Addr) netip.Addr { return a.Unmap() }

// forbidden refuses what belongs to the cluster itself. The cluster's one CA signs
// the API server's certificate too, so a worker with one of these names could stand
// in for it.
func forbidden(req Request, f Facts) (Action, string) {
	if f.Forbidden == nil {
		return Later, "the API server's own names are not known yet"
	}
	for _, raw := range req.Parsed.DNS {
		if why := f.Forbidden.name(raw, f.exempt(req, CanonicalName(raw))); why != "" {
			return Deny, why
		}
	}
	for _, raw := range req.Parsed.IPs {
		if why := f.Forbidden.address(raw, f.exempt(req, CanonicalAddress(raw).String())); why != "" {
			return Deny, why
		}
	}
	return Deny, ""
}

// exempt tells whether a name or address that the API servers have is left to another rule. A
// kubelet of the control plane shares its machine's names with an API server: those of the
// agent's own machine the machine itself judges (R16), those of another machine the operator's
// list (R21). A machine that is not on the list is held (R16) and not denied: it may be put
// there. The endpoint is no single machine's.
func (f Facts) exempt(req Request, what string) bool {
	switch {
	case f.own(req):
		return true
	case !f.controlPlaneAsks(req) || what == f.Forbidden.Endpoint:
		return false
	}
	return f.Listed == nil || f.Listed.Has(what)
}

// name says why a name is the cluster's own; exempt passes those of the API server's
// certificate.
func (b *Forbidden) name(raw string, exempt bool) string {
	name := CanonicalName(raw)
	// No kubelet writes the dot at the end, and no client takes a name with it for one.
	if !IsSubdomain(name) || strings.HasSuffix(raw, ".") {
		return fmt.Sprintf("name %q is not a host name", raw)
	}
	if last := name[strings.LastIndexByte(name, '.')+1:]; number(last) {
		return fmt.Sprintf("name %q is an address written as a name: it ends in a number", raw)
	}
	if !exempt && slices.Contains(b.Names, name) {
		return fmt.Sprintf("name %q belongs to the API server", raw)
	}
	for _, r := range []string{"localhost", "kubernetes", "svc", "invalid"} { // the attested join's listener has a name in the last one
		if within(name, r) {
			return fmt.Sprintf("name %q lies in %q, which is no machine's", raw, r)
		}
	}
	// Without a domain it is empty, which no host name ends in.
	if domain := CanonicalName(b.DNSDomain); within(name, domain) && served(name, domain) {
		return fmt.Sprintf("name %q lies in %q, where the cluster names its services", raw, domain)
	}
	if name == "kubernetes.default" {
		return fmt.Sprintf("name %q belongs to the API server", raw)
	}
	return ""
}

// served tells whether a name in the cluster's domain may be one that the cluster's DNS
// answers for: the domain itself, what lies in its zones svc and pod (the DNS
// specification of Kubernetes knows no others), and what begins like the API server's or
// the loopback's name. A machine may have any other name there, where its owner gave the
// cluster the domain of the machines: R13 and J11 ask the cloud whether it has.
func served(name, domain string) bool {
	rest := strings.TrimSuffix(strings.TrimSuffix(name, domain), ".")
	first, _, _ := strings.Cut(rest, ".")
	return rest == "" || within(rest, "svc") || within(rest, "pod") || first == "kubernetes" || first == "localhost"
}

// within tells whether a name is the domain or lies below it.
func within(name, domain string) bool { return name == domain || strings.HasSuffix(name, "."+domain) }

// address says why an address is the cluster's own or nobody's; exempt passes those of
// the API server's certificate.
func (b *Forbidden) address(raw netip.Addr, exempt bool) string {
	a := CanonicalAddress(raw)
	if !a.IsValid() || a.Zone() != "" {
		return fmt.Sprintf("address %q is malformed or has a zone", raw)
	}
	if !exempt && slices.ContainsFunc(b.Addresses, func(o netip.Addr) bool { return leadsTo(a, CanonicalAddress(o)) }) {
		return fmt.Sprintf("address %s belongs to the API server, or leads to one that does", a)
	}
	contains := func(p netip.Prefix) bool { return p.Contains(a) }
	if i := slices.IndexFunc(b.Ranges, contains); i >= 0 {
		return fmt.Sprintf("address %s lies in %s, which is for services", a, b.Ranges[i])
	}
	if slices.ContainsFunc(b.Allowed, contains) {
		return ""
	}
	if !slices.ContainsFunc(machines, contains) || slices.ContainsFunc(noMachines, contains) {
		return fmt.Sprintf("address %s is loopback, link-local, multicast, embeds another address or is reserved: it names no machine", a)
	}
	return ""
}

// number tells whether a label is one that a reader of addresses takes for a number (0x7f, 127).
func number(label string) bool {
	digits, hexadecimal := strings.CutPrefix(label, "0x")
	allowed := "0123456789"
	if hexadecimal {
		allowed += "abcdef"
	}
	return strings.Trim(digits, allowed) == ""
}

// leadsTo tells whether who dials a may reach b: it is the same, or an address of IPv6 that ends in the bytes of
// an address of IPv4, as those of NAT64 (RFC 6052) and ISATAP (RFC 5214) do.
func leadsTo(a, b netip.Addr) bool {
	return a == b || a.Is6() && b.Is4() && bytes.HasSuffix(a.AsSlice(), b.AsSlice())
}

// A machine has an address in one of machines and in none of noMachines (IANA's registries of special-purpose
// addresses). The policies of units/admission-policy.yaml say the same.
var machines, noMachines = prefixes("0.0.0.0/0", "2000::/3", "fc00::/7"), prefixes(
	"0.0.0.0/8", "127.0.0.0/8", "169.254.0.0/16", "224.0.0.0/3",
	"2001::/23",     // the IETF's protocols; Teredo embeds an address of IPv4
	"2002::/16",     // 6to4, which embeds one, too
	"fd00:ec2::/32", // the services that EC2 gives each machine
)

func prefixes(texts ...string) (out []netip.Prefix) {
	for _, t := range texts {
		out = append(out, netip.MustParsePrefix(t))
	}
	return out
}

// othersNames keeps a request from asking for what belongs to another machine. The
// inventory is the judge; another Node's name counts, its self-reported addresses
// do not (else any Node could block any other, k0s#8333). What our own instance
// owns too is a transition (a reused name or address) and heals; one name that only
// another has can never become right, whatever else is asked for.
func othersNames(req Request, f Facts) (Action, string) {
	own, shared := f.Inventory.Instance, ""
	for _, raw := range req.Parsed.DNS {
		name, why := CanonicalName(raw), ""
		if node := f.Taken[name]; node != "" {
			why = fmt.Sprintf("name %q is the name of Node %s", raw, node)
		} else if id := f.Inventory.Owners[name]; id != "" {
			why = fmt.Sprintf("name %q belongs to instance %s", raw, id)
		}
		if why != "" && !ownsName(own.NodeNames, name) && !ownsName(own.Names, name) {
			return Deny, why
		}
		shared = cmp.Or(shared, why)
	}
	for _, raw := range req.Parsed.IPs {
		why := ""
		if id := f.Inventory.Owners[CanonicalAddress(raw).String()]; id != "" {
			why = fmt.Sprintf("address %s belongs to instance %s", raw, id)
		}
		if why != "" && !slices.Contains(own.Addresses, CanonicalAddress(raw)) {
			return Deny, why
		}
		shared = cmp.Or(shared, why)
	}
	if shared != "" {
		return Later, shared + ", and to this one"
	}
	return Later, ""
}

func ownsName(names []string, name string) bool {
	return slices.ContainsFunc(names, func(n string) bool { return CanonicalName(n) == name })
}

func witnessedNames(req Request, f Facts) (Action, string) {
	own := f.Inventory.Instance
	for _, raw := range req.Parsed.DNS {
		// R11 has bound the Node's own name to the instance.
		if name := CanonicalName(raw); !ownsName(own.Names, name) && !ownsName(own.NodeNames, name) {
			return Later, fmt.Sprintf("name %q is none of the names of %s (%s)", raw, own.ID, strings.Join(own.Names, ", "))
		}
	}
	return Later, ""
}

func witnessedAddresses(req Request, f Facts) (Action, string) {
	own := f.Inventory.Instance
	for _, raw := range req.Parsed.IPs {
		if !slices.Contains(own.Addresses, CanonicalAddress(raw)) {
			return Later, fmt.Sprintf("address %s is none of the addresses of %s (%v)", raw, own.ID, own.Addresses)
		}
	}
	return Later, ""
}

// IsSubdomain tells whether s is a lower-case DNS-1123 subdomain of at most 253
// bytes, which is what a Node may be called.
func IsSubdomain(s string) bool {
	if s == "" || len(s) > 253 {
		return false
	}
	for label := range strings.SplitSeq(s, ".") {
		if label == "" || len(label) > 63 || label[0] == '-' || label[len(label)-1] == '-' {
			return false
		}
		for _, c := range []byte(label) {
			if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' {
				return false
			}
		}
	}
	return true
}
