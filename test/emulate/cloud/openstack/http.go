package openstack

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Call is one request that was answered.
type Call struct {
	At      time.Time
	Region  string
	Service string // "identity", "compute", "image", "network", "volume", or one that was added
	Action  string // "POST /servers", the IDs of a path as {id}
	Status  int    // 0: the connection was ended without an answer
}

// String is one line.
func (c Call) String() string {
	return fmt.Sprintf("%s %s %s %s %d", c.At.Format("15:04:05.000"), c.Region, c.Service, c.Action, c.Status)
}

// Calls returns every request so far.
func (c *Cloud) Calls() []Call {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]Call(nil), c.calls...)
}

// Count tells how many requests so far had this action, in any region and service.
func (c *Cloud) Count(action string) int {
	n := 0
	for _, call := range c.Calls() {
		if call.Action == action {
			n++
		}
	}
	return n
}

// call is one request under way. The cloud is locked while it is answered.
type call struct {
	*http.Request
	w       *recorder
	cloud   *Cloud
	service string
	path    string // below the service's own
	token   *token
	version [2]int // microversion
	body    []byte
}

// recorder keeps an answer until it is known whether a fault lets it out.
type recorder struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (r *recorder) Header() http.Header         { return r.header }
func (r *recorder) Write(b []byte) (int, error) { return r.body.Write(b) }
func (r *recorder) WriteHeader(status int)      { r.status = status }

func (c *Cloud) serve(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, req.Body, 1<<20))
	if err != nil {
		return
	}
	q := &call{Request: req, w: &recorder{header: http.Header{}, status: http.StatusOK}, cloud: c, body: body}
	region := c.place(q)
	action := req.Method + " " + generic(q.path)
	c.mu.Lock()
	strikes := c.strikes(region, q.service, action)
	c.mu.Unlock()
	lost := false
	for _, f := range strikes {
		switch f.Kind {
		case Slow:
			select {
			case <-time.After(f.Delay):
			case <-req.Context().Done():
			}
		case AnswerLost:
			lost = true
		case ConnectionReset:
			c.note(region, q, action, 0)
			panic(http.ErrAbortHandler)
		}
	}
	c.mu.Lock()
	if kind, ok := refusal(strikes); ok {
		q.refuse(kind)
	} else {
		c.dispatch(region, q)
	}
	c.mu.Unlock()
	if lost {
		c.note(region, q, action, 0)
		panic(http.ErrAbortHandler)
	}
	c.note(region, q, action, q.w.status)
	header := w.Header()
	for name, values := range q.w.header {
		header[name] = values
	}
	if q.w.body.Len() > 0 {
		header.Set("Content-Type", "application/json")
	}
	w.WriteHeader(q.w.status)
	_, _ = w.Write(q.w.body.Bytes())
}

func (c *Cloud) note(region string, q *call, action string, status int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	one := Call{At: time.Now(), Region: region, Service: q.service, Action: action, Status: status}
	c.calls = append(c.calls, one)
	if c.opts.Log != nil {
		fmt.Fprintf(c.opts.Log, "%s %s\n", one, q.URL.RawQuery)
	}
}

// place finds the region and the service that a path is for.
func (c *Cloud) place(q *call) (region string) {
	if rest, ok := strings.CutPrefix(q.URL.Path, "/identity"); ok {
		q.service, q.path = "identity", rest
		return ""
	}
	if rest, ok := strings.CutPrefix(q.URL.Path, "/metadata/"); ok {
		q.service, q.path = "metadata", rest
		return ""
	}
	parts := strings.SplitN(q.URL.Path, "/", 4) // "", region, service, rest
	if len(parts) < 3 {
		return ""
	}
	q.service = parts[2]
	if len(parts) == 4 {
		q.path = "/" + parts[3]
	}
	for _, version := range []string{"/v2.1", "/v2.0", "/v2.9", "/v2", "/v3", "/v1"} {
		if rest, ok := strings.CutPrefix(q.path, version); ok && (rest == "" || rest[0] == '/') && rest != "" && rest != "/" {
			q.path = rest
			break
		}
	}
	return parts[1]
}

func (c *Cloud) dispatch(region string, q *call) {
	switch q.service {
	case "identity":
		c.keystone(q)
		return
	case "metadata":
		c.metadata(q)
		return
	}
	r := c.regions[region]
	if r == nil {
		q.fail(http.StatusNotFound, "The resource could not be found.")
		return
	}
	var serve func(*call)
	var versions func(*call) bool
	switch q.service {
	case "compute":
		serve, versions = r.nova, r.novaVersions
	case "image":
		serve, versions = r.glance, r.plainVersions("v2.0", "v2.9")
	case "network":
		serve, versions = r.neutron, r.plainVersions("v2.0")
	case "volume":
		serve, versions = r.cinder, r.plainVersions("v3.0")
	default:
		for _, s := range c.services {
			if strings.HasPrefix(s.path, "/"+q.service) {
				serve, versions = func(q *call) { s.serve(r, q) }, func(*call) bool { return false }
			}
		}
	}
	if serve == nil {
		q.fail(http.StatusNotFound, "The resource could not be found.")
		return
	}
	if versions(q) {
		return
	}
	q.token = c.check(q.Header.Get("X-Auth-Token"))
	if q.token == nil {
		if open := c.services; strings.HasPrefix(q.path, "/") && len(q.path) <= 1 && open != nil && q.Header.Get("X-Auth-Token") == "" {
			serve(q) // a version document of an added service asks for no token
			return
		}
		q.w.header.Set("WWW-Authenticate", "Keystone uri=\""+c.address+"/identity\"")
		q.service = "identity" // the middleware's answer is Keystone's in form
		q.fail(http.StatusUnauthorized, "The request you have made requires authentication.")
		return
	}
	serve(q)
}

// plainVersions answers the version document of a service without microversions.
func (r *Region) plainVersions(ids ...string) func(*call) bool {
	return func(q *call) bool {
		if q.path != "" && q.path != "/" && q.path != "/v2" && q.path != "/v2.0" && q.path != "/v3" && q.path != "/v2/" && q.path != "/v2.0/" && q.path != "/v3/" {
			return false
		}
		var list []any
		for _, id := range ids {
			list = append(list, map[string]any{"id": id, "status": "CURRENT", "links": []any{map[string]any{"rel": "self", "href": r.url("/" + q.service + "/" + id)}}})
		}
		q.answer(http.StatusOK, map[string]any{"versions": list})
		return true
	}
}

func (r *Region) url(path string) string { return r.cloud.address + "/" + r.name + path }

// generic replaces what in a path is an ID by {id}.
func generic(path string) string {
	parts := strings.Split(path, "/")
	for i, p := range parts {
		if len(p) >= 32 || i > 1 && strings.ContainsAny(p, "0123456789") && !strings.HasPrefix(p, "v") {
			parts[i] = "{id}"
		}
	}
	return strings.Join(parts, "/")
}

// answer writes JSON.
func (q *call) answer(status int, v any) {
	q.w.status = status
	raw, err := json.Marshal(v)
	if err != nil {
		raw = []byte(strconv.Quote(err.Error()))
	}
	q.w.body.Reset()
	q.w.body.Write(raw)
}

// decode reads the body, or answers 400.
func (q *call) decode(v any) bool {
	if err := json.Unmarshal(q.body, v); err != nil {
		q.fail(http.StatusBadRequest, "Malformed request body: "+err.Error())
		return false
	}
	return true
}

// novaFaults are the names that Nova and Cinder give to errors.
var novaFaults = map[int]string{400: "badRequest", 401: "unauthorized", 403: "forbidden", 404: "itemNotFound", 405: "badMethod",
	409: "conflictingRequest", 413: "overLimit", 429: "overLimit", 503: "serviceUnavailable"}

// fail answers an error in the form of the service that is asked.
func (q *call) fail(status int, message string) {
	switch q.service {
	case "compute", "volume":
		name := novaFaults[status]
		if name == "" {
			name = "computeFault"
		}
		q.answer(status, map[string]any{name: map[string]any{"code": status, "message": message}})
	case "network":
		q.answer(status, map[string]any{"NeutronError": map[string]any{"type": neutronType(status, message), "message": message, "detail": ""}})
	case "image":
		q.answer(status, map[string]any{"code": strconv.Itoa(status) + " " + http.StatusText(status), "title": http.StatusText(status), "message": message})
	case "identity":
		q.answer(status, map[string]any{"error": map[string]any{"code": status, "title": http.StatusText(status), "message": message}})
	default:
		q.answer(status, map[string]any{"errors": []any{map[string]any{"status": status, "code": "", "title": http.StatusText(status), "detail": message, "links": []any{}}}})
	}
}

func neutronType(status int, message string) string {
	switch {
	case strings.Contains(message, "Quota exceeded"):
		return "OverQuota"
	case status == http.StatusNotFound:
		return strings.Fields(message)[0] + "NotFound"
	case status == http.StatusConflict && strings.Contains(message, "No more IP"):
		return "IpAddressGenerationFailure"
	}
	return "HTTP" + http.StatusText(status)
}
