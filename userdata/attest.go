package userdata

import (
	"crypto/sha256"
	"crypto/x509"
	_ "embed" // attest.sh
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// AttestSteps defines the shell function attest, by which a machine on AWS gets its join
// token from the leader (docs/attested-join.md).
//
//go:embed attest.sh
var AttestSteps string

// attestation gets JOIN_TOKEN from the leader. The delimiter is no line of PEM.
func (j Join) attestation() string {
	bundle, _ := j.caBundle() // validate has read it
	return "JOIN_ATTEST=" + shellQuote(j.Attest) + "\ncat >\"$dir/ca.crt\" <<'CA'\n" + bundle + "CA\n" + AttestSteps + "attest\n"
}

// caBundle is the certificates of CACert and nothing else of it.
func (j Join) caBundle() (string, error) {
	var bundle strings.Builder
	pinned := false
	for rest := j.CACert; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			return "", fmt.Errorf("holds a %s: give certificates alone, as in /etc/kubernetes/pki/ca.crt", block.Type)
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return "", errors.New("holds a certificate that cannot be read: give /etc/kubernetes/pki/ca.crt of the control plane")
		}
		sum := sha256.Sum256(cert.RawSubjectPublicKeyInfo)
		pinned = pinned || slices.Contains(j.CACertHashes, "sha256:"+hex.EncodeToString(sum[:]))
		bundle.Write(pem.EncodeToMemory(&pem.Block{Type: block.Type, Bytes: block.Bytes}))
	}
	switch {
	case bundle.Len() == 0:
		return "", errors.New("no certificate in PEM: give /etc/kubernetes/pki/ca.crt of the control plane")
	case !pinned && len(j.CACertHashes) > 0:
		return "", errors.New("none of its certificates has a hash of join.caCertHashes: give the CA of the same cluster")
	}
	return bundle.String(), nil
}

// validateToken judges what the machine gets its token from.
func (s Spec) validateToken(bad report) {
	j := s.Join
	if j.Attest == "" {
		if len(j.CACert) > 0 {
			bad("join.caCert", "only a machine that attests reads it: give join.attest too, or leave it out")
		}
		if !isToken(j.Token) && (!TokenPerServer(s.Cloud) || j.Token != TokenPlaceholder) {
			bad("join.token", "not a bootstrap token (six characters, a dot, sixteen characters, all of a-z0-9): use JOIN_TOKEN of the agent's published env file, or kubeadm token create")
		}
		return
	}
	seen := map[string]bool{}
	for at := range strings.SplitSeq(j.Attest, ",") {
		if why := badEndpoint(at); why != "" {
			bad("join.attest", "%q %s: give host:port of the leader's attest listener, for example leader.example.net:6444; of several leaders each, with commas", at, why)
		} else if seen[at] {
			bad("join.attest", "%q stands twice: keep one", at)
		}
		seen[at] = true
	}
	if s.Cloud != "aws" {
		bad("join.attest", "only instances of AWS can attest: leave it out on %s", s.Cloud)
	}
	if j.Token != "" {
		bad("join.token", "a machine that attests gets its token from the leader: leave the token or join.attest out")
	}
	if _, err := j.caBundle(); err != nil {
		bad("join.caCert", "%v", err)
	}
}
