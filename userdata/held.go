package userdata

import (
	"bytes"
	"regexp"
	"strings"
)

// Held is what rendered user data holds of a join.
type Held struct {
	// Join has the token where the user data has one: not where its machines attest, and not
	// where each server gets its own.
	Join Join
	// KubernetesVersion is that of the worker, "v1.36.3".
	KubernetesVersion string
	// PerServer tells that each server gets a token of its own in place of TokenPlaceholder.
	PerServer bool
}

var (
	heldValue   = regexp.MustCompile(`(?m)^(JOIN_ENDPOINT|JOIN_CERT_HASH|JOIN_ATTEST)='([^'\n]*)'$`)
	heldVersion = regexp.MustCompile(`(?m)^` + madeBegin + `(v[0-9.]+) on `)
)

// Read finds in rendered user data of any format what WithJoin would change there.
func Read(text []byte) (Held, error) {
	script, err := scriptIn(text)
	if err != nil {
		return Held{}, err
	}
	section := between(script, JoinBegin, JoinEnd)
	var h Held
	for _, m := range heldValue.FindAllSubmatch(section, -1) {
		switch value := string(m[2]); string(m[1]) {
		case "JOIN_ENDPOINT":
			h.Join.Endpoint = value
		case "JOIN_CERT_HASH":
			h.Join.CACertHashes = strings.Split(value, ",")
		case "JOIN_ATTEST":
			h.Join.Attest = value
		}
	}
	if v := heldVersion.FindSubmatch(script); v != nil {
		h.KubernetesVersion = string(v[1])
	}
	if m := tokenPlaces.FindSubmatch(text); m != nil {
		h.Join.Token = string(m[2])
	}
	h.PerServer = h.Join.Token == "" && bytes.Contains(text, []byte(TokenPlaceholder))
	return h, nil
}
