package userdata

import (
	"bytes"
	"strings"
	"testing"
)

func rendered(t *testing.T, s Spec) []byte {
	t.Helper()
	out, err := Render(s)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestWithJoin: user data with other join values is what rendering with these values makes, in
// each format; its own values change nothing.
func TestWithJoin(t *testing.T) {
	other := Join{Endpoint: "10.9.8.7:6443", Token: "asa003.fedcba9876543210", CACertHashes: []string{"sha256:" + strings.Repeat("1", 64), "sha256:" + strings.Repeat("2", 64)}}
	for _, format := range Formats() {
		t.Run(format, func(t *testing.T) {
			s := sample()
			s.Format = format
			s.BeforeJoin = []byte("#!/bin/sh\n# JOIN_ENDPOINT='no' JOIN_TOKEN='abcdef.0123456789abcdef'\ntrue\n")
			if format == "ignition" {
				s.System = "flatcar"
			}
			first := rendered(t, s)
			own, err := WithJoin(first, s.Join)
			if err != nil || !bytes.Equal(own, first) {
				t.Fatalf("its own values changed it: %v", err)
			}
			s.Join = other
			want := rendered(t, s)
			got, err := WithJoin(first, other)
			if err != nil || !bytes.Equal(got, want) {
				t.Errorf("%v\n%s\nwant\n%s", err, got, want)
			}
		})
	}
}

func TestWithJoinRefuses(t *testing.T) {
	plain := sample()
	plain.Cloud = "openstack" // has room for the script as it is
	good := rendered(t, plain)
	other := sample().Join
	for name, c := range map[string]struct {
		text []byte
		join Join
		want string
	}{
		"nothing":         {nil, other, "0 join sections"},
		"somebody's own":  {[]byte("#!/bin/sh\nkubeadm join\n"), other, "0 join sections"},
		"twice":           {append(bytes.Clone(good), good...), other, "want once"},
		"cut":             {bytes.ReplaceAll(good, []byte(JoinEnd), nil), other, "was cut"},
		"packed, twice":   {append(rendered(t, sample()), rendered(t, sample())...), other, "2 join sections"},
		"another token":   {append(bytes.Clone(good), "\nJOIN_TOKEN='abcdef.0123456789abcdef'\n"...), other, "2 join tokens"},
		"attesting":       {rendered(t, attested(t)), other, "machines attest"},
		"no token":        {good, Join{Endpoint: other.Endpoint, CACertHashes: other.CACertHashes}, "missing"},
		"a token in rags": {good, Join{Endpoint: other.Endpoint, CACertHashes: other.CACertHashes, Token: "abc'; reboot"}, "missing"},
	} {
		if _, err := WithJoin(c.text, c.join); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}
