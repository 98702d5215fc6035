package aws

import (
	"fmt"
	"net/http"
	"time"
)

// Kind is what goes wrong.
type Kind string

// The kinds of faults. Those marked "before" leave the world untouched, those
// marked "after" happen to a call whose work is done.
const (
	Throttle           Kind = "Throttle"           // before: each service's own throttling error
	ServerError500     Kind = "ServerError500"     // before
	Unavailable503     Kind = "Unavailable503"     // before
	ConnectionReset    Kind = "ConnectionReset"    // before: the connection dies without an answer
	Forbidden          Kind = "Forbidden"          // before: the policy does not allow it
	ExpiredCredentials Kind = "ExpiredCredentials" // before: as if the session token had run out
	PartialPage        Kind = "PartialPage"        // before: first pages come, every further page is a 500
	Slow               Kind = "Slow"               // before: the answer takes Delay longer
	EmptyList          Kind = "EmptyList"          // a success that lists nothing
	ShortList          Kind = "ShortList"          // a success that lists half and claims to be complete
	TruncatedBody      Kind = "TruncatedBody"      // after: the connection dies in the middle of the answer
	AnswerLost         Kind = "AnswerLost"         // after: the connection dies instead of the answer
)

// Fault is something to go wrong with calls that match.
type Fault struct {
	Service, Action string        // globs, case-insensitive; "" is all
	Kind            Kind          // what happens
	After           int           // let so many matching calls pass first
	Times           int           // then hit so many, 0 is all
	Probability     float64       // of hitting one, by the seed; 0 is always
	For             time.Duration // from Inject on, 0 is for ever
	Delay           time.Duration // of Slow
	OnStrike        func()        // told of each call that it hits, before anything happens
}

type armed struct {
	Fault
	until        time.Time
	seen, struck int
}

// Inject arms a fault. The returned function disarms it and tells how often
// it struck. A Kind that does not exist panics.
func (c *Cloud) Inject(f Fault) (stop func() int) {
	switch f.Kind {
	case Throttle, ServerError500, Unavailable503, ConnectionReset, Forbidden, ExpiredCredentials,
		PartialPage, Slow, EmptyList, ShortList, TruncatedBody, AnswerLost:
	default:
		panic(fmt.Sprintf("aws: inject fault: unknown kind %q", f.Kind))
	}
	a := &armed{Fault: f}
	if f.For > 0 {
		a.until = time.Now().Add(f.For)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.faults = append(c.faults, a)
	return func() int {
		c.mu.Lock()
		defer c.mu.Unlock()
		for i, other := range c.faults {
			if other == a {
				c.faults = append(c.faults[:i:i], c.faults[i+1:]...)
				break
			}
		}
		return a.struck
	}
}

// Struck tells how often the armed faults of a kind have struck: a test waits by it for a call
// that is under way.
func (c *Cloud) Struck(kind Kind) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := 0
	for _, a := range c.faults {
		if a.Kind == kind {
			n += a.struck
		}
	}
	return n
}

// ClearFaults disarms every fault.
func (c *Cloud) ClearFaults() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.faults = nil
}

// strikes returns the faults that hit this call. The caller holds c.mu.
func (c *Cloud) strikes(service, action string, nextPage bool) []Fault {
	var out []Fault
	for _, a := range c.faults {
		if !matches(a.Service, service) || !matches(a.Action, action) ||
			!a.until.IsZero() && time.Now().After(a.until) || a.Kind == PartialPage && !nextPage {
			continue
		}
		a.seen++
		if a.seen <= a.After || a.Times > 0 && a.struck >= a.Times ||
			a.Probability > 0 && c.rng.Float64() >= a.Probability {
			continue
		}
		a.struck++
		out = append(out, a.Fault)
	}
	return out
}

// faultError is the error that a fault answers with, nil for those that
// answer otherwise.
func (c *Cloud) faultError(kind Kind, service, action string, who *credentials) *apiError {
	switch kind {
	case Throttle:
		switch {
		case service == "ec2":
			return &apiError{"RequestLimitExceeded", "Request limit exceeded.", http.StatusServiceUnavailable}
		case speaksJSON(service):
			return fail("ThrottlingException", "Rate exceeded")
		}
		return fail("Throttling", "Rate exceeded")
	case ServerError500, PartialPage:
		switch {
		case service == "ec2":
			return &apiError{"InternalError", "An internal error has occurred", http.StatusInternalServerError}
		case speaksJSON(service):
			return &apiError{"InternalServerError", "An error occurred on the server side.", http.StatusInternalServerError}
		}
		return &apiError{"InternalFailure", "We encountered an internal error. Please try again.", http.StatusInternalServerError}
	case Unavailable503:
		if service == "ec2" {
			return &apiError{"Unavailable", "The service is unavailable. Please try again shortly.", http.StatusServiceUnavailable}
		}
		return &apiError{"ServiceUnavailable", "The service is unavailable. Please try again shortly.", http.StatusServiceUnavailable}
	case ExpiredCredentials:
		return authError(service, authExpired, "")
	case Forbidden:
		message := fmt.Sprintf("User: %s is not authorized to perform: %s:%s because no identity-based policy allows the %s:%s action",
			who.ARN, service, action, service, action)
		switch {
		case service == "ec2":
			return &apiError{"UnauthorizedOperation", "You are not authorized to perform this operation. " + message, http.StatusForbidden}
		case speaksJSON(service):
			return fail("AccessDeniedException", message)
		}
		return &apiError{"AccessDenied", message, http.StatusForbidden}
	}
	return nil
}
