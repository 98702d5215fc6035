package userdata

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"regexp"
	"strings"
)

var (
	// packedPattern is a gzip stream in base64, as pack writes it.
	packedPattern = regexp.MustCompile(`H4sI[A-Za-z0-9+/]{40,}={0,2}`)
	// tokenPlaces are where each format has the join token.
	tokenPlaces = regexp.MustCompile(`((?:\nJOIN_TOKEN='|"content": "|"source": "data:,))([a-z0-9]{6}\.[a-z0-9]{16})(['"])`)
)

// WithJoin returns rendered user data of any format with other join values: endpoint, CA hashes
// and token. Everything else stays as it is; the values that it has already change no byte.
func WithJoin(text []byte, j Join) ([]byte, error) {
	if !isToken(j.Token) || j.Endpoint == "" || len(j.CACertHashes) == 0 {
		return nil, errors.New("userdata: token, endpoint or CA hashes are missing")
	}
	sections := 0
	var failed error
	if n := bytes.Count(text, []byte("\n"+JoinBegin+"\n")); n > 0 {
		sections = n
		text, failed = withEndpoint(text, j)
	}
	out := packedPattern.ReplaceAllFunc(text, func(packed []byte) []byte {
		script, err := Gunzip(base64.NewDecoder(base64.StdEncoding, bytes.NewReader(packed)))
		if err != nil || !bytes.Contains(script, []byte("\n"+JoinBegin+"\n")) {
			return packed // an operator's own
		}
		sections++
		changed, err := withEndpoint(script, j)
		if err != nil {
			failed = err
			return packed
		}
		if bytes.Equal(changed, script) {
			return packed
		}
		again, err := pack(string(changed))
		failed = errors.Join(failed, err)
		return []byte(again)
	})
	if failed != nil {
		return nil, failed
	}
	if sections != 1 {
		return nil, fmt.Errorf("userdata: %d join sections, want one: make it with autoscaler-agent userdata render", sections)
	}
	if n := len(tokenPlaces.FindAll(out, -1)); n != 1 {
		return nil, fmt.Errorf("userdata: %d join tokens, want one: make it with autoscaler-agent userdata render", n)
	}
	return tokenPlaces.ReplaceAll(out, []byte("${1}"+j.Token+"${3}")), nil
}

// withEndpoint changes endpoint and hashes in the one join section of a script.
func withEndpoint(script []byte, j Join) ([]byte, error) {
	section := between(script, JoinBegin, JoinEnd)
	if section == nil {
		return nil, errors.New("userdata: the join section was cut")
	}
	if bytes.Contains(section, []byte("\nJOIN_ATTEST=")) {
		return nil, errors.New("userdata: its machines attest: no token belongs into it")
	}
	changed := string(section)
	for name, value := range map[string]string{"JOIN_ENDPOINT": j.Endpoint, "JOIN_CERT_HASH": strings.Join(j.CACertHashes, ",")} {
		line := regexp.MustCompile(`(?m)^` + name + `='[^'\n]*'$`)
		if n := len(line.FindAllString(changed, -1)); n != 1 {
			return nil, fmt.Errorf("userdata: the join section sets %s %d times, want once", name, n)
		}
		changed = line.ReplaceAllLiteralString(changed, name+"="+shellQuote(value))
	}
	return bytes.Replace(script, section, []byte(changed), 1), nil
}
