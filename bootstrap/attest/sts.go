package attest

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

const (
	stsTimeout   = 5 * time.Second
	maxSTSAnswer = 16 << 10
)

// stsError is what STS answered other than who the caller is.
type stsError struct {
	code  string
	later bool // it is no word on the signature
}

func (e *stsError) Error() string { return "STS answered " + e.code }

// sts sends the request that a machine has signed.
type sts struct {
	host   string // in the signature
	url    string
	client *http.Client
}

// newSTS makes a client of the region's STS. url is where it listens, "" for its own host.
func newSTS(host, url string) *sts {
	if url == "" {
		url = "https://" + host
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = maxInFlight
	transport.MaxResponseHeaderBytes = 16 << 10
	return &sts{host: host, url: strings.TrimSuffix(url, "/") + "/", client: &http.Client{
		Transport: transport, Timeout: stsTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// caller asks STS who signed r.
func (s *sts) caller(ctx context.Context, r Request) (Caller, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url, strings.NewReader(stsBody))
	if err != nil {
		return Caller{}, fmt.Errorf("ask STS: %w", err)
	}
	req.Host = s.host
	req.Header = http.Header{
		"Content-Type": {stsContentType}, "User-Agent": {"autoscaler-agent"},
		"X-Amz-Date": {r.Date}, "X-Amz-Security-Token": {r.SecurityToken}, "Authorization": {r.Authorization},
		headerCluster: {r.Cluster}, headerKey: {r.Key}, headerNonce: {r.Nonce},
	}
	res, err := s.client.Do(req)
	if err != nil {
		return Caller{}, &stsError{code: "nothing: " + cause(err), later: true}
	}
	defer func() { _ = res.Body.Close() }() // it was read
	body, err := io.ReadAll(io.LimitReader(res.Body, maxSTSAnswer))
	if err != nil {
		return Caller{}, &stsError{code: "half: " + cause(err), later: true}
	}
	return readCaller(res.StatusCode, body)
}

// cause is an error of net/http without the URL.
func cause(err error) string {
	if inner := errors.Unwrap(err); inner != nil {
		return inner.Error()
	}
	return err.Error()
}

func readCaller(status int, body []byte) (Caller, error) {
	if status != http.StatusOK {
		var fault struct {
			Code string `xml:"Error>Code"`
		}
		_ = xml.Unmarshal(body, &fault) // an answer that is no XML has no code
		later := status >= 500 || status == http.StatusTooManyRequests || strings.HasPrefix(fault.Code, "Throttl") || fault.Code == "RequestLimitExceeded"
		return Caller{}, &stsError{code: strings.TrimSpace(fmt.Sprintf("%d %s", status, clip(fault.Code))), later: later || fault.Code == "" && status < 400}
	}
	var answer struct {
		XMLName xml.Name `xml:"GetCallerIdentityResponse"`
		ARN     string   `xml:"GetCallerIdentityResult>Arn"`
		UserID  string   `xml:"GetCallerIdentityResult>UserId"`
		Account string   `xml:"GetCallerIdentityResult>Account"`
	}
	if err := xml.Unmarshal(body, &answer); err != nil || answer.ARN == "" {
		return Caller{}, &stsError{code: "something else than GetCallerIdentity's answer", later: true}
	}
	return Caller{Account: answer.Account, ARN: answer.ARN, UserID: answer.UserID}, nil
}
