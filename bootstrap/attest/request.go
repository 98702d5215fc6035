package attest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/internal/lazyregexp"
)

// Request is what a machine sends. Everything else of the request to STS is the
// listener's own.
type Request struct {
	Date          string `json:"date"`          // X-Amz-Date
	SecurityToken string `json:"securityToken"` // X-Amz-Security-Token
	Authorization string `json:"authorization"`
	Cluster       string `json:"cluster"`
	Key           string `json:"key"`
	Nonce         string `json:"nonce"`
}

// The fixed parts of the request to STS.
const (
	stsBody        = "Action=GetCallerIdentity&Version=2011-06-15"
	stsContentType = "application/x-www-form-urlencoded"
	dateFormat     = "20060102T150405Z"
	headerCluster  = "X-Autoscaler-Agent-Cluster"
	headerKey      = "X-Autoscaler-Agent-Key"
	headerNonce    = "X-Autoscaler-Agent-Nonce"
	// signedHeaders must be signed, and nothing else.
	signedHeaders = "content-type;host;x-amz-date;x-amz-security-token;x-autoscaler-agent-cluster;x-autoscaler-agent-key;x-autoscaler-agent-nonce"
	maxRequest    = 8 << 10
	maxSkew       = 5 * time.Minute
)

var (
	hashPattern          = lazyregexp.New(`\Asha256:[0-9a-f]{64}\z`)
	keyPattern           = lazyregexp.New(`\A[0-9a-f]{64}\z`)
	noncePattern         = lazyregexp.New(`\A[0-9a-f]{80}\z`)
	securityTokenPattern = lazyregexp.New(`\A[A-Za-z0-9+/=_.-]{16,}\z`)
	authorizationPattern = lazyregexp.New(`\AAWS4-HMAC-SHA256 Credential=ASIA[A-Z0-9]{12,124}/([0-9]{8})/([a-z0-9-]{4,32})/sts/aws4_request, ?SignedHeaders=([a-z0-9;-]{1,400}), ?Signature=[0-9a-f]{64}\z`)
)

// parse reads one request and refuses all that is not exactly of the form.
func parse(body io.Reader, region string) (Request, error) {
	var r Request
	limited := io.LimitReader(body, maxRequest+1)
	raw, err := io.ReadAll(limited)
	if err != nil {
		return r, errors.New("the request cannot be read")
	}
	if len(raw) > maxRequest {
		return r, fmt.Errorf("the request is larger than %d bytes", maxRequest)
	}
	d := json.NewDecoder(strings.NewReader(string(raw)))
	d.DisallowUnknownFields()
	if err := d.Decode(&r); err != nil {
		return r, errors.New("the request is not the JSON object of the protocol")
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return r, errors.New("something follows the request")
	}
	return r, r.fault(region)
}

func (r Request) fault(region string) error {
	auth := authorizationPattern.FindStringSubmatch(r.Authorization)
	_, dateErr := time.Parse(dateFormat, r.Date)
	switch {
	case dateErr != nil || len(r.Date) != len(dateFormat):
		return errors.New("date is not of the form 20260102T150405Z")
	case len(r.SecurityToken) > 4096 || !securityTokenPattern.MatchString(r.SecurityToken):
		return errors.New("securityToken is not that of temporary credentials")
	case !hashPattern.MatchString(r.Cluster):
		return errors.New("cluster is not sha256: and 64 hexadecimal digits")
	case !keyPattern.MatchString(r.Key):
		return errors.New("key is not 64 hexadecimal digits")
	case !noncePattern.MatchString(r.Nonce):
		return errors.New("nonce is not one of this protocol")
	case auth == nil:
		return errors.New("authorization is not an AWS4-HMAC-SHA256 signature of temporary credentials for STS")
	case auth[1] != r.Date[:8]:
		return errors.New("authorization is of another day than date")
	case auth[2] != region:
		return fmt.Errorf("authorization is for region %s, not for %s", auth[2], region)
	case auth[3] != signedHeaders:
		return errors.New("authorization signs other headers than the protocol's")
	}
	return nil
}

// skew is how far the request's clock is off.
func (r Request) skew(now time.Time) time.Duration {
	at, err := time.Parse(dateFormat, r.Date)
	if err != nil {
		return maxSkew * 2
	}
	return now.Sub(at).Abs()
}
