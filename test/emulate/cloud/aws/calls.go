package aws

import (
	"maps"
	"net/url"
	"path"
	"strings"
	"time"
)

// Call is one request as it was answered.
type Call struct {
	Service, Action string
	At              time.Time // arrival
	Params          map[string]string
	Status          int    // HTTP status; 0 when the connection was dropped
	Code            string // error code, "" for success
	RequestID       string
	AccessKeyID     string
	Write           bool
	Done            bool // the handler ran and did its work, whatever the caller got to see
}

// String is one line: action, parameters sorted, outcome.
func (k Call) String() string {
	var b strings.Builder
	b.WriteString(k.Service + ":" + k.Action)
	for _, name := range sortedKeys(k.Params) {
		b.WriteString(" " + name + "=" + k.Params[name])
	}
	switch {
	case k.Code != "":
		b.WriteString(" -> " + k.Code)
	case k.Status == 0:
		b.WriteString(" -> connection dropped")
	}
	return b.String()
}

// maxCalls bounds the log of a long run; the oldest reads go first.
const maxCalls = 50000

// Calls returns the calls for which keep says true, oldest first; nil keeps
// all. Parameters that carry secrets are withheld.
func (c *Cloud) Calls(keep func(Call) bool) []Call {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []Call
	for _, k := range c.calls {
		if keep == nil || keep(k) {
			k.Params = maps.Clone(k.Params)
			out = append(out, k)
		}
	}
	return out
}

// Writes is a filter for Calls: all calls that can change something.
func Writes(k Call) bool { return k.Write }

// Action returns a filter for Calls by globs over service and action.
func Action(service, action string) func(Call) bool {
	return func(k Call) bool { return matches(service, k.Service) && matches(action, k.Action) }
}

// Counts tells how often each "service:Action" was called since the start,
// failures included.
func (c *Cloud) Counts() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.counts)
}

// ResetCalls forgets the calls and counts so far.
func (c *Cloud) ResetCalls() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls, c.counts = nil, map[string]int{}
}

// record appends to the log. The caller holds c.mu.
func (c *Cloud) record(k Call) {
	c.counts[k.Service+":"+k.Action]++
	if len(c.calls) >= maxCalls {
		kept := c.calls[:0]
		for i, old := range c.calls {
			if old.Write || i >= maxCalls/2 {
				kept = append(kept, old)
			}
		}
		c.calls = kept
	}
	c.calls = append(c.calls, k)
	if k.Write {
		c.logf("%s", k)
	}
}

// secretless flattens a form for the log.
func secretless(form url.Values) map[string]string {
	out := map[string]string{}
	for name, values := range form {
		if name == "Action" || name == "Version" || len(values) == 0 {
			continue
		}
		v := values[0]
		if strings.HasSuffix(name, "UserData") {
			v = "(withheld)"
		}
		out[name] = v
	}
	return out
}

// matches compares with a glob; "" matches everything.
func matches(glob, name string) bool {
	if glob == "" {
		return true
	}
	ok, err := path.Match(strings.ToLower(glob), strings.ToLower(name))
	return err == nil && ok
}
