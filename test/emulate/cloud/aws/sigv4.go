package aws

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// maxSkew is how far a request's clock may be off.
const maxSkew = 5 * time.Minute

// scope is the Authorization header of Signature Version 4, taken apart.
type scope struct {
	keyID, date, region, service string
	signedHeaders                []string
	signature                    string
}

func parseAuthorization(header string) (scope, bool) {
	var s scope
	rest, ok := strings.CutPrefix(header, "AWS4-HMAC-SHA256 ")
	if !ok {
		return s, false
	}
	for _, part := range strings.Split(rest, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		switch name {
		case "Credential":
			f := strings.Split(value, "/")
			if len(f) != 5 || f[4] != "aws4_request" {
				return s, false
			}
			s.keyID, s.date, s.region, s.service = f[0], f[1], f[2], f[3]
		case "SignedHeaders":
			s.signedHeaders = strings.Split(value, ";")
		case "Signature":
			s.signature = value
		}
	}
	return s, s.keyID != "" && s.signature != "" && slices.Contains(s.signedHeaders, "host")
}

// authProblem names what is wrong with a request's credentials; words holds
// what each service calls it.
type authProblem int

const (
	authOK authProblem = iota
	authMissing
	authUnknownKey
	authBadToken
	authWrongSecret
	authExpired
	authSkewed
	authWrongRegion
	authRevoked
)

// authenticate verifies a request. The caller holds c.mu. detail completes
// the message where AWS puts facts of the request into it.
func (c *Cloud) authenticate(r *http.Request, body []byte, s scope, parsed bool) (*credentials, authProblem, string) {
	if !parsed {
		return nil, authMissing, ""
	}
	k := c.keys[s.keyID]
	if k == nil || k.revoked {
		return nil, authUnknownKey, ""
	}
	if k.SessionToken != r.Header.Get("X-Amz-Security-Token") {
		return nil, authBadToken, ""
	}
	if !k.Expires.IsZero() && time.Now().After(k.Expires) {
		return nil, authExpired, ""
	}
	region := c.opts.Region
	if s.service == "pricing" {
		region = "us-east-1" // the price list service has endpoints in few regions
	}
	if s.region != region && s.service != "iam" { // IAM has one endpoint for all regions
		return nil, authWrongRegion, fmt.Sprintf("Credential should be scoped to a valid region, not '%s'. ", s.region)
	}
	sent := r.Header.Get("X-Amz-Date")
	at, err := time.Parse("20060102T150405Z", sent)
	if err != nil || !strings.HasPrefix(sent, s.date) {
		return nil, authWrongSecret, ""
	}
	const short = "20060102T150405Z"
	now := time.Now().UTC()
	if at.Before(now.Add(-maxSkew)) {
		return nil, authSkewed, fmt.Sprintf("Signature expired: %s is now earlier than %s (%s - 5 min.)",
			sent, now.Add(-maxSkew).Format(short), now.Format(short))
	}
	if at.After(now.Add(maxSkew)) {
		return nil, authSkewed, fmt.Sprintf("Signature not yet current: %s is still later than %s (%s + 5 min.)",
			sent, now.Add(maxSkew).Format(short), now.Format(short))
	}
	if !hmac.Equal([]byte(signature(r, body, s, k.SecretAccessKey)), []byte(s.signature)) {
		return nil, authWrongSecret, ""
	}
	return k, authOK, ""
}

// signature computes what a caller with this secret would have sent.
func signature(r *http.Request, body []byte, s scope, secret string) string {
	var headers strings.Builder
	for _, name := range s.signedHeaders {
		var value string
		switch name {
		case "host":
			value = r.Host
		case "content-length":
			value = strconv.FormatInt(r.ContentLength, 10)
		default:
			values := slices.Clone(r.Header.Values(name))
			for i, v := range values {
				values[i] = strings.Join(strings.Fields(v), " ")
			}
			value = strings.Join(values, ",")
		}
		headers.WriteString(name + ":" + value + "\n")
	}
	path := r.URL.EscapedPath()
	if path == "" {
		path = "/"
	}
	canonical := strings.Join([]string{
		r.Method, path, canonicalQuery(r.URL.Query()), headers.String(),
		strings.Join(s.signedHeaders, ";"), sum(body),
	}, "\n")
	credential := strings.Join([]string{s.date, s.region, s.service, "aws4_request"}, "/")
	toSign := strings.Join([]string{"AWS4-HMAC-SHA256", r.Header.Get("X-Amz-Date"), credential, sum([]byte(canonical))}, "\n")
	key := []byte("AWS4" + secret)
	for _, part := range []string{s.date, s.region, s.service, "aws4_request", toSign} {
		h := hmac.New(sha256.New, key)
		h.Write([]byte(part))
		key = h.Sum(nil)
	}
	return hex.EncodeToString(key)
}

func canonicalQuery(q url.Values) string {
	var pairs []string
	for name, values := range q {
		for _, v := range values {
			pairs = append(pairs, awsEscape(name)+"="+awsEscape(v))
		}
	}
	slices.Sort(pairs)
	return strings.Join(pairs, "&")
}

func awsEscape(s string) string { return strings.ReplaceAll(url.QueryEscape(s), "+", "%20") }

func sum(b []byte) string {
	h := sha256.Sum256(b)
	return hex.EncodeToString(h[:])
}
