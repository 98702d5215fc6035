package aws

import (
	"bytes"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	xmlType  = "text/xml;charset=UTF-8"
	jsonType = "application/x-amz-json-1.1"
)

// service is one API behind the endpoint.
type service struct {
	name, version, namespace string
	wrapped                  bool // answers have a Result and a ResponseMetadata element
	actions                  map[string]action
}

// action is one operation of a service. Its parameters are listed by pattern
// ("Filter.N.Value.N"; "LaunchTemplateData.*" takes everything below);
// what is not listed is refused.
type action struct {
	write  bool
	params []string
	query  func(c *Cloud, r *request) ([]el, *apiError)
	bare   bool // has no Result element
	json   func(c *Cloud, r *request) (any, *apiError)
}

// request is one authenticated call on its way to a handler.
type request struct {
	p     *params
	body  []byte // JSON services
	world *world // the live world for a write, what a reader sees otherwise
	who   *credentials
	empty bool // EmptyList
	short bool // ShortList
}

// incoming is a request before anybody has looked at it.
type incoming struct {
	scope   scope
	signed  bool
	service string
	action  string
	version string
	form    url.Values
	params  map[string]string
	body    []byte
	arrived time.Time
}

func (c *Cloud) read(r *http.Request) (incoming, error) {
	in := incoming{arrived: time.Now()}
	body, err := io.ReadAll(io.LimitReader(r.Body, 4<<20))
	if err != nil {
		return in, err
	}
	in.body = body
	in.scope, in.signed = parseAuthorization(r.Header.Get("Authorization"))
	in.service = in.scope.service
	if target := r.Header.Get("X-Amz-Target"); target != "" {
		if !speaksJSON(in.service) {
			in.service = "ssm"
		}
		in.action = target[strings.LastIndex(target, ".")+1:]
		in.params = secretlessJSON(body)
		return in, nil
	}
	in.form = r.URL.Query()
	if strings.HasPrefix(r.Header.Get("Content-Type"), "application/x-www-form-urlencoded") {
		form, err := url.ParseQuery(string(body))
		if err != nil {
			return in, err
		}
		for k, v := range form {
			in.form[k] = append(in.form[k], v...)
		}
	}
	in.action, in.version = in.form.Get("Action"), in.form.Get("Version")
	in.params = secretless(in.form)
	if _, known := services[in.service]; !known {
		in.service = "ec2"
		for name, s := range services {
			if in.version != "" && s.version == in.version {
				in.service = name
			}
		}
	}
	return in, nil
}

func (c *Cloud) serve(w http.ResponseWriter, r *http.Request) {
	in, err := c.read(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	act, known := services[in.service].actions[in.action]
	c.mu.Lock()
	call := Call{
		Service: in.service, Action: in.action, At: in.arrived, Params: in.params,
		RequestID: c.uuid(), AccessKeyID: in.scope.keyID, Write: act.write,
	}
	who, problem, detail := c.authenticate(r, in.body, in.scope, in.signed)
	var faults []Fault
	if problem == authOK {
		faults = c.strikes(in.service, in.action, in.form.Has("NextToken") || in.params["NextToken"] != "")
		if c.overdrawn(in, act.write) {
			faults = append(faults, Fault{Kind: Throttle})
		}
	}
	c.mu.Unlock()

	delay := c.opts.Latency
	for _, f := range faults {
		if f.Kind == Slow {
			delay += f.Delay
		}
		if f.OnStrike != nil {
			f.OnStrike()
		}
	}
	select {
	case <-time.After(delay):
	case <-r.Context().Done():
	case <-c.done:
	}
	has := func(k Kind) bool {
		return slices.ContainsFunc(faults, func(f Fault) bool { return f.Kind == k })
	}
	out := answer{drop: has(ConnectionReset)}
	switch {
	case problem != authOK:
		out.err = authError(in.service, problem, detail)
	case out.drop:
	default:
		for _, f := range faults {
			if out.err = c.faultError(f.Kind, in.service, in.action, who); out.err != nil {
				break
			}
		}
		switch {
		case out.err != nil:
		case !known || !speaksJSON(in.service) && in.version != services[in.service].version:
			out.err = unknownAction(in.service, in.action, in.version)
		default:
			out.payload, out.err = c.handle(in, act, &request{
				p: parseParams(in.form), body: in.body, who: who, empty: has(EmptyList), short: has(ShortList)})
			call.Done = out.err == nil
			out.drop, out.truncate = has(AnswerLost), has(TruncatedBody)
		}
	}
	c.respond(w, in, act, call, out)
}

// answer is what a call has come to.
type answer struct {
	payload        any
	err            *apiError
	drop, truncate bool
}

// handle checks the parameters against what is emulated and runs the handler.
// A client token that was seen before gets the answer that it got then.
func (c *Cloud) handle(in incoming, act action, r *request) (any, *apiError) {
	for name := range in.form {
		if name == "Action" || name == "Version" || slices.Contains(act.params, pattern(name)) {
			continue
		}
		wild := slices.ContainsFunc(act.params, func(p string) bool {
			prefix, ok := strings.CutSuffix(p, "*")
			return ok && strings.HasPrefix(pattern(name), prefix)
		})
		if !wild && strings.Join(in.form[name], "") != "" {
			return nil, fail("UnsupportedOperation", "This emulated AWS does not emulate the parameter "+name+" of "+in.action+".")
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if r.world = c.world; !act.write {
		r.world = c.view(in.service)
	}
	if in.service == "ec2" && r.p.boolean("DryRun") {
		return nil, &apiError{"DryRunOperation", "Request would have succeeded, but DryRun flag is set.", http.StatusPreconditionFailed}
	}
	token := in.action + " " + r.p.str("ClientToken")
	if before, done := c.tokens[token]; done {
		return before, nil
	}
	var payload any
	var err *apiError
	if act.json != nil {
		payload, err = act.json(c, r)
	} else {
		payload, err = act.query(c, r)
	}
	if act.write {
		c.changed()
	}
	if err == nil && r.p.str("ClientToken") != "" {
		c.tokens[token] = payload
	}
	return payload, err
}

// encode renders a success in the service's envelope.
func encode(in incoming, act action, payload any, requestID string) (contentType string, body []byte) {
	s := services[in.service]
	if act.json != nil {
		body, _ = json.Marshal(payload)
		return jsonType, body
	}
	kids, _ := payload.([]el)
	if !s.wrapped {
		return xmlType, x(in.action+"Response", x("requestId", requestID), kids).document(s.namespace)
	}
	meta := x("ResponseMetadata", x("RequestId", requestID))
	if act.bare {
		return xmlType, x(in.action+"Response", meta).document(s.namespace)
	}
	return xmlType, x(in.action+"Response", x(in.action+"Result", kids), meta).document(s.namespace)
}

func (c *Cloud) respond(w http.ResponseWriter, in incoming, act action, call Call, out answer) {
	var contentType string
	var body []byte
	status := http.StatusOK
	if out.err != nil {
		status = out.err.status
		call.Code = out.err.code
		contentType, body = encodeError(in.service, out.err, call.RequestID)
	} else {
		contentType, body = encode(in, act, out.payload, call.RequestID)
	}
	if call.Status = status; out.drop || out.truncate {
		call.Status, call.Code = 0, ""
	}
	c.mu.Lock()
	c.record(call)
	c.mu.Unlock()
	if out.drop {
		reset(w, nil)
		return
	}
	if c.opts.OnExchange != nil {
		c.opts.OnExchange(Exchange{in.service, in.action, status, contentType, bytes.Clone(body), call.RequestID})
	}
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("X-Amzn-Requestid", call.RequestID)
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	if out.truncate {
		reset(w, body[:len(body)/2])
		return
	}
	w.Write(body)
}

// reset sends what there is and kills the connection, so that the caller sees
// a reset and not an orderly end.
func reset(w http.ResponseWriter, first []byte) {
	if len(first) > 0 {
		w.Write(first)
		http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		tcp.SetLinger(0)
	}
	conn.Close()
}
