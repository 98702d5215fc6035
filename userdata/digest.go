package userdata

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"regexp"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

var (
	// joinLine sets a value of the join in the join section.
	joinLine = regexp.MustCompile(`(?m)^(JOIN_ENDPOINT|JOIN_CERT_HASH|JOIN_ATTEST|JOIN_TOKEN)='[^'\n]*'$`)
	// certificates are those by which an attesting machine knows its leader.
	certificates = regexp.MustCompile(`(?:-----BEGIN CERTIFICATE-----\n[A-Za-z0-9+/=\n]*-----END CERTIFICATE-----\n)+`)
	// bootstrapToken is kubeadm's form of a join token, wherever an operator's own script has it.
	bootstrapToken = regexp.MustCompile(`\b[a-z0-9]{6}\.[a-z0-9]{16}\b`)
)

// digest is the same for two user data that make the same machine: it leaves out what changes
// from one join to the next, and that no machine reads again once it has joined (the token, the
// endpoint of the API server, the hashes and certificates of its CA). What a compressed part
// holds counts, and not its bytes. Of an operator's own user data the join tokens are left out
// and nothing else.
//
// Providers write digests on machines and compare them releases later: a change of this function
// would replace every machine that there is (aws/karpenter-provider-aws#5373). TestDigestIsStable
// pins its values.
func digest(text []byte) string {
	if plain, err := Gunzip(bytes.NewReader(text)); err == nil {
		text = plain // cloud-init takes user data that is compressed as a whole
	}
	text = packedPattern.ReplaceAllFunc(text, func(packed []byte) []byte {
		plain, err := Gunzip(base64.NewDecoder(base64.StdEncoding, bytes.NewReader(packed)))
		if err != nil {
			return packed
		}
		return withoutJoin(plain)
	})
	sum := sha256.Sum256(withoutJoin(text))
	return "sha256:" + hex.EncodeToString(sum[:8])
}

// Properties are what user data tells of the machines that it makes: its digest and, of the
// agent's own, the version of Kubernetes.
func Properties(text []byte) cluster.Spec {
	out := cluster.Spec{cluster.PropertyUserData: digest(text)}
	if held, err := Read(text); err == nil && held.KubernetesVersion != "" {
		out[cluster.PropertyKubernetes] = held.KubernetesVersion
	}
	return out
}

// withoutJoin empties what Digest leaves out. The settings make no machine: the script that they made does.
func withoutJoin(script []byte) []byte {
	script = settingsLine.ReplaceAll(script, []byte("$1"))
	if section := between(script, JoinBegin, JoinEnd); section != nil {
		plain := certificates.ReplaceAll(joinLine.ReplaceAll(section, []byte("$1=")), nil)
		script = bytes.Replace(script, section, plain, 1)
	}
	script = bytes.ReplaceAll(script, []byte(TokenPlaceholder), nil)
	return bootstrapToken.ReplaceAll(script, nil)
}
