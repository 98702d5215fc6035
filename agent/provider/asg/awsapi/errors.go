package awsapi

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"

	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
)

// codes sorts AWS's error codes. Sources: the "Common errors" pages of EC2 and
// Auto Scaling, and the SDK's own list of throttling codes.
var codes = map[string]provider.Kind{
	"Throttling":                   provider.Transient,
	"ThrottlingException":          provider.Transient,
	"ThrottledException":           provider.Transient,
	"RequestThrottled":             provider.Transient,
	"RequestThrottledException":    provider.Transient,
	"RequestLimitExceeded":         provider.Transient,
	"TooManyRequestsException":     provider.Transient,
	"BandwidthLimitExceeded":       provider.Transient,
	"EC2ThrottledException":        provider.Transient,
	"PriorRequestNotComplete":      provider.Transient,
	"SlowDown":                     provider.Transient,
	"ResourceContention":           provider.Transient,
	"ScalingActivityInProgress":    provider.Transient,
	"InternalFailure":              provider.Transient,
	"InternalError":                provider.Transient,
	"ServiceUnavailable":           provider.Transient,
	"Unavailable":                  provider.Transient,
	"RequestTimeout":               provider.Transient,
	"RequestTimeoutException":      provider.Transient,
	"AccessDenied":                 provider.Denied,
	"AccessDeniedException":        provider.Denied,
	"UnauthorizedOperation":        provider.Denied,
	"Client.UnauthorizedOperation": provider.Denied,

	"AlreadyExists":                               provider.Conflict, // another agent has made the group
	"InsufficientInstanceCapacity":                provider.Exhausted,
	"InstanceLimitExceeded":                       provider.Exhausted,
	"VcpuLimitExceeded":                           provider.Exhausted,
	"MaxSpotInstanceCountExceeded":                provider.Exhausted,
	"LimitExceeded":                               provider.Exhausted,
	"InvalidInstanceID.NotFound":                  provider.NotFound,
	"InvalidInstanceID.Malformed":                 provider.Invalid,
	"InvalidInstanceType":                         provider.Invalid,
	"InvalidParameterValue":                       provider.Invalid,
	"InvalidParameterCombination":                 provider.Invalid,
	"MissingParameter":                            provider.Invalid,
	"InvalidAMIID.NotFound":                       provider.Invalid,
	"InvalidAMIID.Unavailable":                    provider.Invalid,
	"InvalidAMIID.Malformed":                      provider.Invalid,
	"InvalidLaunchTemplateId.Malformed":           provider.Invalid,
	"InvalidLaunchTemplateId.NotFound":            provider.Invalid,
	"InvalidLaunchTemplateId.VersionNotFound":     provider.Invalid,
	"InvalidLaunchTemplateName.NotFoundException": provider.Invalid,
}

// badCredentials are the codes with which AWS refuses the credentials themselves.
var badCredentials = map[string]string{
	"ExpiredToken":                "the credentials have expired: renew them, or use an instance role, which renews itself",
	"ExpiredTokenException":       "the credentials have expired: renew them, or use an instance role, which renews itself",
	"RequestExpired":              "the request's time is wrong: set this machine's clock (chrony, systemd-timesyncd)",
	"InvalidClientTokenId":        "AWS does not know this access key: check the AWS_* variables or the instance role, and that the region belongs to the account's partition",
	"UnrecognizedClientException": "AWS does not know this access key: check the AWS_* variables or the instance role",
	"SignatureDoesNotMatch":       "the secret key is wrong, the region is wrong, or this machine's clock is off: check AWS_SECRET_ACCESS_KEY, AUTOSCALER_AWS_REGION and the clock",
	"IncompleteSignature":         "the credentials are malformed: check the AWS_* variables",
	"AuthFailure":                 "AWS did not accept the credentials in this region: check the access key, AUTOSCALER_AWS_REGION and that the account has the region enabled",
	"MissingAuthenticationToken":  "the request carried no credentials: check the AWS_* variables or the instance role",
	"OptInRequired":               "the account is not enabled for this service or region: check AUTOSCALER_AWS_REGION",
}

const NoCredentials = "no usable AWS credentials were found: attach an instance role to this machine, or set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"

const unreachable = "see that this machine reaches AWS: routes, proxy, AWS_ENDPOINT_URL"

// Classify turns an error of the SDK into the contract's. action is the IAM action
// of the call that failed.
func Classify(op string, group cluster.GroupID, action string, err error) *provider.Error {
	e := &provider.Error{Op: op, Group: group, Kind: provider.Other, Err: err}
	var api smithy.APIError
	if errors.As(err, &api) {
		e.Err = apiText{action: action, api: api, err: err}
		e.Kind, e.Remedy = kindOfAPI(api, action, err)
		return e
	}
	var dns *net.DNSError
	var netErr net.Error
	e.Err = plainText{action: action, err: err}
	switch {
	case errors.Is(err, context.Canceled):
	case strings.Contains(err.Error(), "get credentials"):
		e.Kind = provider.Denied
		e.Remedy = NoCredentials
	case errors.As(err, &dns) && dns.IsNotFound:
		e.Kind = provider.Transient
		e.Remedy = "the endpoint's name " + dns.Name + " does not exist: check AUTOSCALER_AWS_REGION, AWS_ENDPOINT_URL and this machine's DNS"
	case errors.As(err, &netErr) && !serverError(err) && !torn(err):
		e.Kind = provider.Transient
		e.Remedy = unreachable
	case errors.Is(err, context.DeadlineExceeded), serverError(err), torn(err):
		e.Kind = provider.Transient
	}
	return e
}

func kindOfAPI(api smithy.APIError, action string, err error) (provider.Kind, string) {
	code := strings.TrimSuffix(api.ErrorCode(), "Fault")
	if remedy, ok := badCredentials[code]; ok {
		if strings.Contains(strings.ToLower(api.ErrorMessage()), "region") {
			remedy = "the region is wrong: check AUTOSCALER_AWS_REGION (or AWS_REGION) against the region of the groups"
		}
		return provider.Denied, remedy
	}
	if kind, ok := codes[code]; ok {
		if kind == provider.Denied {
			return kind, "allow " + action + " in the leader's IAM policy; `autoscaler-agent iam-policy leader` prints it"
		}
		return kind, ""
	}
	if code == "ValidationError" {
		text := strings.ToLower(api.ErrorMessage())
		if strings.Contains(text, "not found") || strings.Contains(text, "does not exist") {
			return provider.NotFound, ""
		}
		return provider.Invalid, ""
	}
	if serverError(err) {
		return provider.Transient, ""
	}
	return provider.Other, ""
}

// BadLogin reports whether AWS refused the credentials themselves. Such an error is no
// evidence about the object of the call, and credentials renew themselves.
func BadLogin(e *provider.Error) bool {
	var api smithy.APIError
	if !errors.As(e.Err, &api) {
		return true
	}
	_, bad := badCredentials[strings.TrimSuffix(api.ErrorCode(), "Fault")]
	return bad
}

// torn reports whether an answer ended too early, or is not AWS's (a proxy's page).
func torn(err error) bool {
	var decoding *smithy.DeserializationError
	return errors.As(err, &decoding) || errors.Is(err, io.ErrUnexpectedEOF)
}

// Unsure marks the error of a write without an answer: it may yet be carried out. A write is
// answered if AWS gave a status below 500, and harmless if it was never sent.
func Unsure(e *provider.Error) *provider.Error {
	var api smithy.APIError
	var dns *net.DNSError
	var op *net.OpError
	switch {
	case errors.As(e.Err, &api) && !serverError(e.Err):
	case e.Kind == provider.Denied, errors.As(e.Err, &dns), errors.As(e.Err, &op) && op.Op == "dial":
	default:
		e.Unsure = true
	}
	return e
}

func serverError(err error) bool {
	var answer *smithyhttp.ResponseError
	return errors.As(err, &answer) && (answer.HTTPStatusCode() >= 500 || answer.HTTPStatusCode() == http.StatusTooManyRequests)
}

// apiText is AWS's own code and words with the call that they answer; the SDK's
// text adds a request ID and an HTTP status to it, which change every time and
// would make equal errors look different.
type apiText struct {
	action string
	api    smithy.APIError
	err    error
}

func (t apiText) Error() string {
	return t.action + ": " + t.api.ErrorCode() + ": " + t.api.ErrorMessage()
}

func (t apiText) Unwrap() error { return t.err }

// plainText is an error of the transport without the SDK's account of its
// attempts and without the local port, so that equal errors read equal.
type plainText struct {
	action string
	err    error
}

func (t plainText) Error() string {
	var op *net.OpError
	var dns *net.DNSError
	switch {
	case errors.Is(t.err, context.DeadlineExceeded):
		return t.action + ": no answer in time"
	case errors.Is(t.err, context.Canceled):
		return t.action + ": " + context.Canceled.Error()
	case errors.As(t.err, &dns):
		return t.action + ": " + dns.Error()
	case errors.As(t.err, &op):
		where := ""
		if op.Addr != nil {
			where = " " + op.Addr.String()
		}
		return t.action + ": " + op.Op + where + ": " + op.Err.Error()
	}
	if torn(t.err) {
		return t.action + ": the answer was cut short or is not one of AWS"
	}
	if _, after, ok := strings.Cut(t.err.Error(), "get credentials: "); ok {
		after, _, _ = strings.Cut(after, ", operation error") // the SDK's account of its attempts
		return t.action + ": " + after
	}
	return t.action + ": " + t.err.Error()
}

func (t plainText) Unwrap() error { return t.err }
