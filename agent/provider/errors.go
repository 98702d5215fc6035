package provider

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// Kind sorts errors by what the caller should do about them. The zero value is
// Other: nothing is assumed.
type Kind int

// The kinds of error.
const (
	Other     Kind = iota // not classified
	Transient             // throttled, timed out, 5xx: the next round is the retry
	Conflict              // the world is not as the caller believed: read again
	NotFound              // no such group or instance
	Invalid               // the request can never succeed as it is
	Exhausted             // quota or capacity: another group may do
	Denied                // credentials or permissions: an operator must act
	Busy                  // the cloud finishes something else first: the same request is good again after that
)

var kindNames = [...]string{"other", "transient", "conflict", "not found", "invalid", "exhausted", "denied", "busy"}

// String returns the word used in logs and in cluster.Outcome.Kind.
func (k Kind) String() string {
	if k < 0 || int(k) >= len(kindNames) {
		return fmt.Sprintf("kind %d", int(k))
	}
	return kindNames[k]
}

// Error is what every provider method returns, alone or joined.
type Error struct {
	Op string // "read", "resize", "delete", "resolve template"
	// Provider is the name of the provider, set by wrap.Join; empty where there is only
	// one.
	Provider string
	Group    cluster.GroupID
	Instance cluster.InstanceID
	Kind     Kind
	// Remedy tells an operator what to do, where that is known ("allow
	// autoscaling:SetDesiredCapacity on this group in the leader's IAM policy").
	Remedy string
	// Unsure marks a change without an answer: it may have been made, or may yet be.
	Unsure bool
	Err    error
}

// Error renders "provider: op group instance: kind: cause (remedy)".
func (e *Error) Error() string {
	s := e.Op
	if e.Provider != "" {
		s = e.Provider + ": " + s
	}
	if e.Group != "" {
		s += " " + string(e.Group)
	}
	if e.Instance != "" {
		s += " " + string(e.Instance)
	}
	s += ": " + e.Kind.String()
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	if e.Remedy != "" {
		s += " (" + e.Remedy + ")"
	}
	return s
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// KindOf returns the kind of the first *Error in err's tree, Other when there is
// none and for nil.
func KindOf(err error) Kind {
	var e *Error
	if errors.As(err, &e) {
		return e.Kind
	}
	return Other
}

// Errors lists every *Error in err's tree, in order: the causes of an *Error are
// not searched further.
func Errors(err error) []*Error {
	switch e := err.(type) {
	case nil:
		return nil
	case *Error:
		return []*Error{e}
	case interface{ Unwrap() []error }:
		var out []*Error
		for _, child := range e.Unwrap() {
			out = append(out, Errors(child)...)
		}
		return out
	}
	return Errors(errors.Unwrap(err))
}

// Unsure returns the part of a failed change that may have been made or may yet be: all of
// it, or the listed instances.
func Unsure(err error) (instances []cluster.InstanceID, all bool) {
	list := Errors(err)
	for _, e := range list {
		switch {
		case !e.Unsure:
		case e.Instance == "":
			all = true
		default:
			instances = append(instances, e.Instance)
		}
	}
	if len(list) == 0 && (errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)) {
		all = true // the error does not say how far the change had come
	}
	return instances, all
}

// Duplicate is the cause of an Error of a node group whose name several providers have.
type Duplicate struct{ Providers []string }

func (d Duplicate) Error() string {
	return fmt.Sprintf("providers %s have a node group of this name", strings.Join(d.Providers, " and "))
}
