package userdata

import (
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestDigestLeavesOutTheJoin: in each format the digest stays when the join values change, also
// where each server gets a token of its own, and changes with everything else.
func TestDigestLeavesOutTheJoin(t *testing.T) {
	for _, cloud := range []string{"aws", "openstack"} {
		for _, format := range Formats() {
			t.Run(cloud+" "+format, func(t *testing.T) {
				s := sample()
				s.Cloud, s.Format = cloud, format
				if format == "ignition" {
					s.System = "flatcar"
				}
				first := digest(rendered(t, s))
				join := s
				join.Join = Join{Endpoint: "10.9.8.7:6443", Token: "asa003.fedcba9876543210", CACertHashes: []string{"sha256:" + strings.Repeat("1", 64)}}
				if got := digest(rendered(t, join)); got != first {
					t.Errorf("other join values: %s, before %s", got, first)
				}
				if cloud == "openstack" {
					join.Join.Token = TokenPlaceholder
					if got := digest(rendered(t, join)); got != first {
						t.Errorf("a token for each server: %s, before %s", got, first)
					}
				}
				for name, edit := range map[string]func(*Spec){
					"label":   func(s *Spec) { s.Labels = map[string]string{"pool": "other"} },
					"version": func(s *Spec) { s.KubernetesVersion = "v1.35.2" },
					"hook":    func(s *Spec) { s.BeforeJoin = []byte("#!/bin/sh\ntrue\n") },
				} {
					other := s
					edit(&other)
					if got := digest(rendered(t, other)); got == first {
						t.Errorf("another %s: the digest stays", name)
					}
				}
			})
		}
	}
}

// An attesting machine's address of the leader and the CA's certificate are join values too.
func TestDigestOfAttestingMachines(t *testing.T) {
	s := attested(t)
	first := digest(rendered(t, s))
	s.Join.Attest = "10.9.8.7:7443"
	s.Join.Endpoint = "10.9.8.7:6443"
	if got := digest(rendered(t, s)); got != first {
		t.Errorf("another leader: %s, before %s", got, first)
	}
	section := string(rendered(t, s))
	if plain, ok, _ := Unpack([]byte(section)); ok {
		section = string(plain)
	}
	if !strings.Contains(section, "-----BEGIN CERTIFICATE-----") {
		t.Fatal("no certificate to leave out")
	}
	if left := string(withoutJoin([]byte(section))); strings.Contains(left, "CERTIFICATE") || strings.Contains(left, "10.9.8.7") {
		t.Errorf("left: %s", left)
	}
}

func TestDigestOfAnOperatorsOwn(t *testing.T) {
	own := []byte("#!/bin/sh\nkubeadm join 10.0.0.1:6443 --token abcdef.0123456789abcdef --discovery-token-ca-cert-hash sha256:1\n")
	if got := digest(bytes.ReplaceAll(own, []byte("abcdef.0123456789abcdef"), []byte("zyxwvu.fedcba9876543210"))); got != digest(own) {
		t.Errorf("another token: %s, before %s", got, digest(own))
	}
	if digest(append(bytes.Clone(own), "true\n"...)) == digest(own) {
		t.Error("another script has the same digest")
	}
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, _ = z.Write(own)
	_ = z.Close()
	if digest(packed.Bytes()) != digest(own) {
		t.Error("compressed as a whole it has another digest")
	}
	if digest(nil) == digest(own) {
		t.Error("no user data is like some")
	}
}

// TestDigestIsStable pins the digests of files that stay as they are. If it fails, every release
// before this one has written other digests on the machines of Nova: give the property another
// name there (metaUserData in agent/provider/nova), so that those count as not told.
func TestDigestIsStable(t *testing.T) {
	own := "#!/bin/sh\nkubeadm join --token abcdef.0123456789abcdef\n"
	for text, want := range map[string]string{
		own: "sha256:4015707922732de3",
		"#!/bin/sh\n\n" + JoinBegin + "\nJOIN_ENDPOINT='a:1'\nJOIN_CERT_HASH='sha256:2'\nJOIN_TOKEN='abcdef.0123456789abcdef'\ntrue\n" + JoinEnd + "\n": "sha256:8ef58a43936bd0e2",
	} {
		if got := digest([]byte(text)); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
	packed, err := os.ReadFile(filepath.Join("testdata", "digest.cloud-config"))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := digest(packed), "sha256:63f0e709242677f3"; got != want {
		t.Errorf("testdata/digest.cloud-config: %s, want %s", got, want)
	}
}
