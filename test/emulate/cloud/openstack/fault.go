package openstack

import (
	"fmt"
	"net/http"
	"path"
	"strings"
	"time"
)

// Kind is what goes wrong.
type Kind string

// The kinds of faults. All but AnswerLost happen before the work is done.
const (
	Throttle        Kind = "Throttle"        // 429 with Retry-After
	ThrottleOld     Kind = "ThrottleOld"     // 413 overLimit, as services before Queens and some proxies say it
	ServerError500  Kind = "ServerError500"  // 500
	Unavailable503  Kind = "Unavailable503"  // 503
	BadGateway502   Kind = "BadGateway502"   // a proxy's page in HTML
	Forbidden       Kind = "Forbidden"       // 403 of a policy
	Unauthorized    Kind = "Unauthorized"    // 401, whatever the token
	ConnectionReset Kind = "ConnectionReset" // the connection dies without an answer
	Slow            Kind = "Slow"            // the answer takes Delay longer
	EmptyList       Kind = "EmptyList"       // a list is empty that is not
	AnswerLost      Kind = "AnswerLost"      // the work is done, and the connection dies instead of the answer
)

// Fault is something to go wrong with requests that match.
type Fault struct {
	Region, Service, Action string // path.Match patterns; empty: all. Action is as in Call
	Kind                    Kind
	After                   int // let so many matching requests pass first
	Times                   int // then hit so many; 0: all
	Delay                   time.Duration
}

type armed struct {
	Fault
	seen, struck int
}

// Inject arms a fault. The returned function disarms it and tells how often it struck.
func (c *Cloud) Inject(f Fault) (stop func() int) {
	a := &armed{Fault: f}
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

// ClearFaults disarms every fault.
func (c *Cloud) ClearFaults() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.faults = nil
}

// strikes returns the faults that hit a request. The caller holds c.mu.
func (c *Cloud) strikes(region, service, action string) []Fault {
	var out []Fault
	for _, a := range c.faults {
		if !fits(a.Region, region) || !fits(a.Service, service) || !fitsAction(a.Action, action) {
			continue
		}
		a.seen++
		if a.seen <= a.After || a.Times > 0 && a.struck >= a.Times {
			continue
		}
		a.struck++
		out = append(out, a.Fault)
	}
	return out
}

func fits(pattern, s string) bool {
	if pattern == "" {
		return true
	}
	ok, err := path.Match(pattern, s)
	if err != nil {
		panic(fmt.Sprintf("openstack: inject fault: pattern %q: %v", pattern, err))
	}
	return ok
}

// fitsAction compares whole actions; one that ends in "*" is a prefix.
func fitsAction(pattern, action string) bool {
	if n := len(pattern); n > 0 && pattern[n-1] == '*' {
		return len(action) >= n-1 && action[:n-1] == pattern[:n-1]
	}
	return pattern == "" || pattern == action
}

func refusal(strikes []Fault) (Kind, bool) {
	for _, f := range strikes {
		switch f.Kind {
		case Slow, AnswerLost, ConnectionReset:
		default:
			return f.Kind, true
		}
	}
	return "", false
}

// refuse answers as a service does of which kind is true.
func (q *call) refuse(kind Kind) {
	switch kind {
	case Throttle, ThrottleOld:
		q.w.header.Set("Retry-After", "3")
		status := http.StatusTooManyRequests
		if kind == ThrottleOld {
			status = http.StatusRequestEntityTooLarge
		}
		q.answer(status, map[string]any{"overLimit": map[string]any{"code": status, "message": "This request was rate-limited.", "details": "", "retryAfter": "3"}})
	case ServerError500:
		q.fail(http.StatusInternalServerError, "Unexpected API Error. Please report this at http://bugs.launchpad.net/nova/ and attach the Nova API log if possible.\n<class 'oslo_db.exception.DBConnectionError'>")
	case Unavailable503:
		q.fail(http.StatusServiceUnavailable, "The server is currently unavailable. Please try again at a later time.")
	case BadGateway502:
		q.w.status = http.StatusBadGateway
		q.w.body.WriteString("<html><body><h1>502 Bad Gateway</h1>\nThe server returned an invalid or incomplete response.\n</body></html>")
	case Forbidden:
		q.fail(http.StatusForbidden, "Policy doesn't allow "+generic(q.path)+" to be performed.")
	case Unauthorized:
		q.fail(http.StatusUnauthorized, "The request you have made requires authentication.")
	case EmptyList:
		name, _, _ := strings.Cut(strings.Trim(q.path, "/"), "/")
		q.answer(http.StatusOK, map[string]any{name: []any{}})
	default:
		panic("openstack: inject fault: unknown kind " + string(kind))
	}
}
