package openstack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/gophercloud/gophercloud/v2"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
)

const (
	noCredentials  = "name a cloud of clouds.yaml in AUTOSCALER_OPENSTACK_CLOUD, or set OS_AUTH_URL, OS_APPLICATION_CREDENTIAL_ID and OS_APPLICATION_CREDENTIAL_SECRET"
	badCredentials = "Keystone does not accept the credentials: they are wrong, expired or were revoked (with a cluster that was made anew, so were its own); renew them"
	unreachable    = "see that this machine reaches OpenStack's API: routes, proxy, the auth URL and the endpoints of the catalog"
)

// Classify turns an error of gophercloud into the contract's. An error that has been
// classified already keeps its kind and remedy.
func Classify(op string, group cluster.GroupID, err error) *provider.Error {
	var done *provider.Error
	if errors.As(err, &done) {
		out := *done
		out.Op, out.Group = op, group
		if done.Op != op && done.Op != "" {
			out.Err = fmt.Errorf("%s: %w", done.Op, done.Err)
		}
		return &out
	}
	e := &provider.Error{Op: op, Group: group, Kind: provider.Other, Err: plain{err}}
	if lost, ok := relogin(err); ok {
		inner := Classify("log in to OpenStack", "", lost.ErrReauth)
		e.Kind, e.Remedy = inner.Kind, inner.Remedy
		e.Err = fmt.Errorf("log in to OpenStack again: %w", inner.Err)
		if e.Kind == provider.NotFound || e.Kind == provider.Denied || e.Kind == provider.Invalid {
			e.Kind, e.Remedy = provider.Denied, badCredentials
		}
		return e
	}
	var answer gophercloud.ErrUnexpectedResponseCode
	var noEndpoint *gophercloud.ErrEndpointNotFound
	var endpoint gophercloud.ErrEndpointNotFound
	var service gophercloud.ErrServiceNotFound
	var netErr net.Error
	switch {
	case errors.As(err, &answer):
		e.Err = answerText{answer}
		e.Kind, e.Remedy = kindOf(answer)
	case errors.As(err, &noEndpoint), errors.As(err, &endpoint), errors.As(err, &service):
		e.Kind = provider.Invalid
		e.Remedy = "the catalog has no such service in this region: check AUTOSCALER_OPENSTACK_REGION (OS_REGION_NAME) against `openstack catalog list`"
	case errors.Is(err, context.Canceled):
	case errors.Is(err, context.DeadlineExceeded), torn(err):
		e.Kind = provider.Transient
	case errors.As(err, &netErr):
		e.Kind, e.Remedy = provider.Transient, unreachable
	}
	return e
}

// relogin finds a login that was tried again and failed; gophercloud returns a pointer
// to that error, and its documents show a value.
func relogin(err error) (gophercloud.ErrUnableToReauthenticate, bool) {
	var pointer *gophercloud.ErrUnableToReauthenticate
	if errors.As(err, &pointer) && pointer != nil {
		return *pointer, true
	}
	var value gophercloud.ErrUnableToReauthenticate
	return value, errors.As(err, &value)
}

// kindOf sorts an HTTP answer. Sources: the API references of Nova, Neutron, Magnum and
// Keystone, and answers of the real services.
func kindOf(a gophercloud.ErrUnexpectedResponseCode) (provider.Kind, string) {
	text := strings.ToLower(Message(a.Body))
	switch {
	case a.Actual == http.StatusUnauthorized:
		return provider.Denied, badCredentials
	case quotaText(text) && (a.Actual == http.StatusForbidden || a.Actual == http.StatusConflict || a.Actual == http.StatusRequestEntityTooLarge):
		return provider.Exhausted, ""
	case a.Actual == http.StatusForbidden:
		return provider.Denied, "allow " + where(a) + " to the agent's user: by a role of the project, and by an access rule where the application credential has any"
	case a.Actual == http.StatusNotFound:
		return provider.NotFound, ""
	case a.Actual == http.StatusConflict:
		return provider.Conflict, ""
	case a.Actual == http.StatusTooManyRequests, a.Actual == http.StatusRequestEntityTooLarge, a.Actual == http.StatusRequestTimeout, a.Actual >= 500:
		return provider.Transient, ""
	case a.Actual >= 400:
		return provider.Invalid, ""
	}
	return provider.Other, ""
}

// quotaText reports whether a text has OpenStack's words for a limit of the project.
func quotaText(lower string) bool {
	return strings.Contains(lower, "quota") || strings.Contains(lower, "limit exceeded") || strings.Contains(lower, "overlimit") ||
		strings.Contains(lower, "maximum number of")
}

// CauseOf sorts the words with which a service explains why a machine could not be
// started. Quota comes first: Nova wraps it in a "no valid host" now and then.
func CauseOf(text string) cluster.Cause {
	lower := strings.ToLower(text)
	has := func(list ...string) bool {
		for _, s := range list {
			if strings.Contains(lower, s) {
				return true
			}
		}
		return false
	}
	switch {
	case quotaText(lower):
		return cluster.CauseQuota
	case has("no valid host", "not enough hosts", "insufficient", "no more ip addresses", "no available", "exhausted all hosts", "exceeded maximum number of retries", "out of capacity"):
		return cluster.CauseCapacity
	case has("could not be found", "not found", "is not active", "invalid", "does not exist", "badrequest", "bad request"):
		return cluster.CauseInvalid
	}
	return cluster.CauseOther
}

var requestID = regexp.MustCompile(`\s*\(?(Request-ID:|Request ID:?|HTTP \d+\)\s*\(Request-ID:)?\s*req-[0-9a-f-]{8,}\)?`)

// Message is the text of a service in an error's body, without the request ID, which
// changes every time.
func Message(body []byte) string {
	var tree any
	text := ""
	if json.Unmarshal(body, &tree) == nil {
		text = messageIn(tree)
	}
	if text == "" {
		text = strings.TrimSpace(string(body))
		if strings.HasPrefix(text, "<") {
			text = "" // a proxy's page
		}
	}
	text = strings.Join(strings.Fields(requestID.ReplaceAllString(text, "")), " ")
	if len(text) > 400 {
		text = text[:400] + "..."
	}
	return text
}

// messageIn finds the words in the bodies of the services: {"forbidden": {"message"}},
// {"error": {"message"}}, {"errors": [{"detail"}]}, {"NeutronError": {"message"}}.
func messageIn(tree any) string {
	switch v := tree.(type) {
	case map[string]any:
		for _, key := range []string{"message", "detail", "title", "faultstring"} {
			if s, ok := v[key].(string); ok && s != "" {
				return s
			}
		}
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if s := messageIn(v[key]); s != "" {
				return s
			}
		}
	case []any:
		for _, child := range v {
			if s := messageIn(child); s != "" {
				return s
			}
		}
	}
	return ""
}

func where(a gophercloud.ErrUnexpectedResponseCode) string {
	u, err := url.Parse(a.URL)
	if err != nil {
		return a.Method
	}
	return action(a.Method, u)
}

// answerText is a service's status and words with the request that they answer, the
// same for equal failures.
type answerText struct {
	answer gophercloud.ErrUnexpectedResponseCode
}

func (t answerText) Error() string {
	s := fmt.Sprintf("%s: %d %s", where(t.answer), t.answer.Actual, http.StatusText(t.answer.Actual))
	if m := Message(t.answer.Body); m != "" {
		s += ": " + m
	}
	return s
}

func (t answerText) Unwrap() error { return t.answer }

// torn reports whether an answer ended too early, or is not OpenStack's.
func torn(err error) bool {
	var syntax *json.SyntaxError
	var typ *json.UnmarshalTypeError
	return errors.As(err, &syntax) || errors.As(err, &typ) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF)
}

// plain is an error of the transport without URL and local port, so that equal errors
// read equal.
type plain struct{ err error }

func (p plain) Error() string {
	var u *url.Error
	prefix := ""
	if errors.As(p.err, &u) {
		if parsed, err := url.Parse(u.URL); err == nil {
			prefix = action(strings.ToUpper(u.Op), parsed) + ": "
		}
	}
	var op *net.OpError
	var dns *net.DNSError
	switch {
	case errors.Is(p.err, context.Canceled):
		return prefix + context.Canceled.Error()
	case errors.Is(p.err, context.DeadlineExceeded), u != nil && u.Timeout():
		return prefix + "no answer in time"
	case errors.As(p.err, &dns):
		return prefix + dns.Error()
	case errors.As(p.err, &op):
		to := ""
		if op.Addr != nil {
			to = " " + op.Addr.String()
		}
		return prefix + op.Op + to + ": " + op.Err.Error()
	case torn(p.err):
		return prefix + "the answer was cut short or is not one of OpenStack"
	case u != nil:
		return prefix + u.Err.Error()
	}
	return p.err.Error()
}

func (p plain) Unwrap() error { return p.err }
