package externalgrpc

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"

	"connectrpc.com/connect"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/externalgrpc/protos"
)

// status is the end of a failed call: the plug-in's own words, or the error of the
// connection.
type status struct {
	method string
	code   connect.Code
	text   string
	err    error // nil: the plug-in answered
}

func (s *status) Error() string {
	text := s.method + ": " + strings.ToUpper(s.code.String())
	if s.text != "" {
		text += ": " + s.text
	}
	return text
}

func (s *status) Unwrap() error { return s.err }

// statusOf reads the error of connect. Connect's own codes for a response that it cannot
// read (UNIMPLEMENTED for a response without a message, INVALID_ARGUMENT for a message of
// other bytes) say nothing about the plug-in's methods: all of them become INTERNAL.
func statusOf(ctx context.Context, method string, err error) *status {
	s := &status{method: method, code: connect.CodeOf(err), text: err.Error()}
	var coded *connect.Error
	if errors.As(err, &coded) {
		s.text = coded.Message()
	}
	cause := ctx.Err()
	switch {
	case connect.IsWireError(err):
	case errors.Is(cause, context.Canceled):
		s.code, s.text, s.err = connect.CodeCanceled, cause.Error(), cause
	case cause != nil, s.code == connect.CodeDeadlineExceeded:
		s.code, s.text, s.err = connect.CodeDeadlineExceeded, "no answer in time", context.DeadlineExceeded
	case s.code == connect.CodeUnavailable && coded != nil:
		s.text, s.err = plainWords(coded.Unwrap()), coded.Unwrap()
	default:
		s.code, s.err = connect.CodeInternal, err
	}
	if s.code == connect.CodeDeadlineExceeded && s.err == nil {
		s.err = context.DeadlineExceeded // the plug-in's clock was the first to reach the limit
	}
	return s
}

// unimplemented tells whether the plug-in has no such method.
func unimplemented(err error) bool {
	var s *status
	return errors.As(err, &s) && s.code == connect.CodeUnimplemented
}

// kinds is the error kind of each code of gRPC. A Go server answers UNKNOWN for any plain
// error.
var kinds = map[connect.Code]provider.Kind{
	connect.CodeInvalidArgument: provider.Invalid, connect.CodeFailedPrecondition: provider.Invalid, connect.CodeOutOfRange: provider.Invalid,
	connect.CodeAlreadyExists: provider.Invalid, connect.CodeUnimplemented: provider.Invalid,
	connect.CodeDeadlineExceeded: provider.Transient, connect.CodeUnavailable: provider.Transient, connect.CodeInternal: provider.Transient,
	connect.CodeDataLoss: provider.Transient, connect.CodeResourceExhausted: provider.Transient, connect.CodeCanceled: provider.Transient,
	connect.CodeNotFound: provider.NotFound, connect.CodeAborted: provider.Conflict,
	connect.CodePermissionDenied: provider.Denied, connect.CodeUnauthenticated: provider.Denied,
}

// classify turns a failed call into the contract's error.
func classify(op string, group cluster.GroupID, err error) *provider.Error {
	e := &provider.Error{Op: op, Group: group, Err: err}
	var s *status
	if !errors.As(err, &s) {
		return e
	}
	e.Kind = kinds[s.code]
	switch s.code {
	case connect.CodeCanceled:
		if errors.Is(err, context.Canceled) {
			e.Kind = provider.Other
		}
	case connect.CodePermissionDenied:
		e.Remedy = "the plug-in, or the cloud behind it, does not allow this: read the plug-in's log, and grant the permission to the plug-in or to the agent's certificate"
	case connect.CodeUnauthenticated:
		e.Remedy = "the plug-in does not accept the agent's identity, or its cloud does not accept the plug-in's: check the agent's certificate (" + prefix + "CERT_FILE) and the plug-in's credentials"
	case connect.CodeUnimplemented:
		e.Remedy = "the plug-in at this address does not serve " + s.method + " of " + protos.CloudProviderName + ": check " + prefix + "ADDRESS, or ask its author"
	case connect.CodeUnavailable:
		e.Kind, e.Remedy = connection(s.err)
	case connect.CodeUnknown:
		if strings.Contains(strings.ToLower(s.text), "not found") {
			e.Kind = provider.NotFound // the text of Cluster Autoscaler's own wrapper of its clouds
		}
	case connect.CodeResourceExhausted:
		if op == "resize" && s.method == "NodeGroupIncreaseSize" {
			e.Kind = provider.Exhausted
		}
	}
	return e
}

// unsure marks the error of a write without an answer: the plug-in may still carry it out,
// and the sizes of the protocol are differences. A write that the plug-in refused was not
// carried out.
func unsure(e *provider.Error) *provider.Error {
	var s *status
	var op *net.OpError
	if !errors.As(e.Err, &s) || e.Kind == provider.Denied || errors.As(s.err, &op) && op.Op == "dial" {
		return e
	}
	switch s.code {
	case connect.CodeCanceled, connect.CodeDeadlineExceeded, connect.CodeUnavailable, connect.CodeInternal, connect.CodeDataLoss:
		e.Unsure = true
	default:
		e.Unsure = s.err != nil
	}
	return e
}

// connection returns the kind and the remedy of a connection that failed.
func connection(err error) (provider.Kind, string) {
	var bad *tls.CertificateVerificationError
	var file fileError
	switch {
	case err == nil: // the plug-in's own answer
		return provider.Transient, ""
	case errors.Is(err, errSpeaksTLS):
		return provider.Denied, "configure " + prefix + "CERT_FILE, " + prefix + "KEY_FILE and " + prefix + "CA_FILE, and remove " + prefix + "INSECURE"
	case errors.Is(err, errHTTP1):
		return provider.Denied, "write the address of the plug-in's gRPC port into " + prefix + "ADDRESS: another server listens here (metrics, a proxy)"
	case errors.As(err, &bad):
		return provider.Denied, "the plug-in's certificate is not valid: renew it, or check " + prefix + "CA_FILE and " + prefix + "SERVER_NAME"
	case errors.As(err, &file):
		return provider.Denied, "check " + prefix + "CERT_FILE, " + prefix + "KEY_FILE and " + prefix + "CA_FILE, and that the agent's user may read them"
	case strings.Contains(err.Error(), "remote error: tls:"):
		return provider.Denied, "the plug-in does not accept the agent's certificate: renew " + prefix + "CERT_FILE, or use a certificate of an authority that the plug-in trusts"
	case strings.Contains(err.Error(), "first record does not look like a TLS handshake"):
		return provider.Denied, "the plug-in does not speak TLS at this address: give it a certificate, or set " + prefix + "INSECURE=true if it is on this machine"
	}
	return provider.Transient, "check that the plug-in runs and that this machine reaches it: " + prefix + "ADDRESS"
}

func invalid(op string, id cluster.GroupID, remedy, format string, args ...any) error {
	return &provider.Error{Op: op, Group: id, Kind: provider.Invalid, Remedy: remedy, Err: fmt.Errorf(format, args...)}
}

// causeOf reads errorInfo by its class and its text. The class puts lack of capacity and
// quota together, because Cluster Autoscaler backs off from both alike.
func causeOf(info *protos.InstanceErrorInfo) cluster.Cause {
	text := strings.ToLower(info.GetErrorCode() + " " + info.GetErrorMessage())
	has := func(words ...string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(text, w) })
	}
	switch {
	case has("quota", "limitexceeded", "limit exceeded", "limit_exceeded"):
		return cluster.CauseQuota
	case info.GetInstanceErrorClass() == classOutOfResources:
		return cluster.CauseCapacity
	case has("unauthorized", "forbidden", "permission", "credential", "access denied"):
		return cluster.CauseRefused
	case has("invalid"):
		return cluster.CauseInvalid
	}
	return cluster.CauseOther
}
