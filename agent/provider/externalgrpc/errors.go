package externalgrpc

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
)

// kinds sorts gRPC's codes. UNKNOWN is what a Go server answers for any plain error.
var kinds = map[int]provider.Kind{
	codeInvalidArgument: provider.Invalid, codeFailedPrecondition: provider.Invalid, codeOutOfRange: provider.Invalid,
	codeAlreadyExists: provider.Invalid, codeUnimplemented: provider.Invalid,
	codeDeadlineExceeded: provider.Transient, codeUnavailable: provider.Transient, codeInternal: provider.Transient,
	codeDataLoss: provider.Transient, codeResourceExhausted: provider.Transient, codeCanceled: provider.Transient,
	codeNotFound: provider.NotFound, codeAborted: provider.Conflict,
	codePermissionDenied: provider.Denied, codeUnauthenticated: provider.Denied,
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
	case codeCanceled:
		if errors.Is(err, context.Canceled) {
			e.Kind = provider.Other
		}
	case codePermissionDenied:
		e.Remedy = "the plug-in, or the cloud behind it, does not allow this: see the plug-in's own log, and give it or the agent's certificate the right"
	case codeUnauthenticated:
		e.Remedy = "the plug-in does not know who asks, or its cloud does not know the plug-in: check the agent's certificate (" + prefix + "CERT_FILE) and the plug-in's credentials"
	case codeUnimplemented:
		e.Remedy = "the plug-in at this address does not serve " + s.method + " of " + strings.Trim(service, "/") + ": check " + prefix + "ADDRESS, or ask its author"
	case codeUnavailable:
		e.Kind, e.Remedy = connection(s.err)
	case codeUnknown:
		if strings.Contains(strings.ToLower(s.text), "not found") {
			e.Kind = provider.NotFound // Cluster Autoscaler's own wrapper of its clouds says it so
		}
	case codeResourceExhausted:
		if op == "resize" && s.method == methodIncrease {
			e.Kind = provider.Exhausted
		}
	}
	return e
}

// unsure marks the error of a write that nobody answered: it may be carried out yet, and
// the protocol's sizes are differences. What the plug-in refuses in so many words, it did
// not do.
func unsure(e *provider.Error) *provider.Error {
	var s *status
	var op *net.OpError
	if !errors.As(e.Err, &s) || e.Kind == provider.Denied || errors.As(s.err, &op) && op.Op == "dial" {
		return e
	}
	switch s.code {
	case codeCanceled, codeDeadlineExceeded, codeUnavailable, codeInternal, codeDataLoss:
		e.Unsure = true
	default:
		e.Unsure = s.err != nil
	}
	return e
}

// connection judges why no connection came about.
func connection(err error) (provider.Kind, string) {
	var bad *tls.CertificateVerificationError
	var file fileError
	switch {
	case err == nil: // the plug-in itself says that it is unavailable
		return provider.Transient, ""
	case errors.Is(err, errSpeaksTLS):
		return provider.Denied, "configure " + prefix + "CERT_FILE, " + prefix + "KEY_FILE and " + prefix + "CA_FILE, and take " + prefix + "INSECURE away"
	case errors.Is(err, errHTTP1):
		return provider.Denied, "write the address of the plug-in's gRPC port into " + prefix + "ADDRESS: this one is of something else (its metrics, a proxy)"
	case errors.As(err, &bad):
		return provider.Denied, "the plug-in's certificate is not good: renew it, or check " + prefix + "CA_FILE and " + prefix + "SERVER_NAME"
	case errors.As(err, &file):
		return provider.Denied, "check " + prefix + "CERT_FILE, " + prefix + "KEY_FILE and " + prefix + "CA_FILE, and that the agent's user may read them"
	case strings.Contains(err.Error(), "remote error: tls:"):
		return provider.Denied, "the plug-in does not accept the agent's certificate: renew " + prefix + "CERT_FILE, or have it signed by an authority that the plug-in trusts"
	case strings.Contains(err.Error(), "first record does not look like a TLS handshake"):
		return provider.Denied, "the plug-in does not speak TLS at this address: give it a certificate, or set " + prefix + "INSECURE=true if it is on this machine"
	}
	return provider.Transient, "see that the plug-in runs and that this machine reaches it: " + prefix + "ADDRESS"
}

func invalid(op string, id cluster.GroupID, remedy, format string, args ...any) error {
	return &provider.Error{Op: op, Group: id, Kind: provider.Invalid, Remedy: remedy, Err: fmt.Errorf(format, args...)}
}

// causeOf sorts an instance's errorInfo by its class and the plug-in's words. The class
// puts stockout and quota together (Cluster Autoscaler backs off from both alike).
func causeOf(i instance) cluster.Cause {
	text := strings.ToLower(i.code + " " + i.message)
	has := func(words ...string) bool {
		for _, w := range words {
			if strings.Contains(text, w) {
				return true
			}
		}
		return false
	}
	switch {
	case has("quota", "limitexceeded", "limit exceeded", "limit_exceeded"):
		return cluster.CauseQuota
	case i.class == classOutOfResources:
		return cluster.CauseCapacity
	case has("unauthorized", "forbidden", "permission", "credential", "access denied"):
		return cluster.CauseRefused
	case has("invalid"):
		return cluster.CauseInvalid
	}
	return cluster.CauseOther
}
