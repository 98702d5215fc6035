package rules

import (
	"net/netip"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestClip(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"", ""}, {"short", "short"}, {"12345678", "12345678"}, {"123456789", "12345…"},
		{"1234ü789", "1234…"}, {"💥💥💥", "💥…"}, {"a\xffb", "a\ufffdb"},
	} {
		if got := Clip(c.in, 8); got != c.want {
			t.Errorf("%q: %q, want %q", c.in, got, c.want)
		}
	}
}

// TestLongTexts: whatever a requester fills 64 KiB with, a verdict's text stays short and
// whole: it goes into a condition, an Event and the journal.
func TestLongTexts(t *testing.T) {
	long := strings.Repeat("x💥\n", 10000)
	for name, change := range map[string]func(*Request){
		"common name":  func(r *Request) { r.Parsed.CommonNames = []string{long} },
		"organization": func(r *Request) { r.Parsed.Organizations = []string{long} },
		"DNS name":     func(r *Request) { r.Parsed.DNS = []string{long} },
		"a name twice": func(r *Request) { r.Parsed.DNS = []string{long, long} },
		"problem":      func(r *Request) { r.Parsed.Problem = long },
		"usages":       func(r *Request) { r.Usages = strings.Split(long, "\n") },
		"unknown name": func(r *Request) { r.Parsed.DNS = []string{strings.Repeat(strings.Repeat("a", 60)+".", 4) + "b"} },
		"address zone": func(r *Request) { r.Parsed.IPs = []netip.Addr{addr("fe80::1").WithZone(long)} },
		"other names":  func(r *Request) { r.Parsed.OtherNames = []string{long} },
		"extensions":   func(r *Request) { r.Parsed.OtherExtensions = []string{long} },
	} {
		for _, signer := range []string{ServingSigner, ClientSigner} {
			r, f := honestRequest(), honestFacts()
			if signer == ClientSigner {
				r, f = honestJoin()
			}
			change(&r)
			v, steps := Trace(r, f)
			if len(v.Why) > whyBytes || !utf8.ValidString(v.Why) || v.Why == "" || v.Do == Approve {
				t.Errorf("%s, %s: %v with %d bytes", name, signer, v.Do, len(v.Why))
			}
			for _, s := range steps {
				if len(s.Why) > whyBytes {
					t.Errorf("%s, %s: step %s has %d bytes", name, signer, s.Rule, len(s.Why))
				}
			}
		}
	}
}
