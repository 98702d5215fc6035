package capi

import (
	"context"
	"errors"
	"net"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// CallError is the error of one call; Action names the call.
type CallError struct {
	Action string
	Err    error
}

func (e *CallError) Error() string { return e.Action + ": " + plain(e.Err) }
func (e *CallError) Unwrap() error { return e.Err }

// TornError is the error of a response that cannot be decoded.
type TornError struct{ err error }

func (e *TornError) Error() string {
	return "the answer was cut short or is not an API server's: " + e.err.Error()
}
func (e *TornError) Unwrap() error { return e.err }

// MissingError is the error of a kind or a version that the cluster does not serve.
type MissingError struct{ Text string }

func (e *MissingError) Error() string { return e.Text }

// plain leaves out local ports, which differ from call to call, so that equal errors have
// equal texts.
func plain(err error) string {
	var op *net.OpError
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return "no answer in time"
	case errors.Is(err, context.Canceled):
		return context.Canceled.Error()
	case errors.As(err, &op):
		where := ""
		if op.Addr != nil {
			where = " " + op.Addr.String()
		}
		return op.Op + where + ": " + op.Err.Error()
	}
	return err.Error()
}

// StatusCode returns the HTTP status of an API server's answer; 0: err is none.
func StatusCode(err error) int32 {
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return status.Status().Code
	}
	return 0
}

// NotFound tells whether the API server answered that there is no such object or kind.
func NotFound(err error) bool { return StatusCode(err) == 404 }
