package openstack

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	gopheropenstack "github.com/gophercloud/gophercloud/v2/openstack"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/tokens"

	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
)

// Call is one finished request.
type Call struct {
	Action string // method and path without IDs: "GET /v2.1/servers/detail"
	Took   time.Duration
	Err    error // of the transport, or an unexpected status; nil on success
}

// Session is a login that is made when it is first needed and renewed when its token
// runs out. Its methods are safe for concurrent use.
type Session struct {
	access  access
	timeout time.Duration
	hook    func(Call)

	login  provider.Lock // held while one call logs in: the others use its token
	mu     sync.Mutex
	client *gophercloud.ProviderClient
}

// NewSession finds the credentials and makes no request. hook, when not nil, is
// called after every request from the goroutine that made it.
func NewSession(c Config, hook func(Call)) (*Session, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	a, err := find(c, os.Getenv)
	if err != nil {
		return nil, &provider.Error{Op: "find OpenStack credentials", Kind: provider.Invalid, Err: err, Remedy: noCredentials}
	}
	return &Session{access: a, timeout: c.Timeout, hook: hook}, nil
}

// Source is the place where the credentials were found.
func (s *Session) Source() string { return s.access.source }

// Region is the region of the configuration; empty: the only one there is.
func (s *Session) Region() string { return s.access.endpoint.Region }

// Endpoint chooses endpoints in a region; empty: the session's own.
func (s *Session) Endpoint(region string) gophercloud.EndpointOpts {
	e := s.access.endpoint
	e.Region = first(region, e.Region)
	return e
}

// Client returns the logged-in client. A login that fails is an *provider.Error with a
// remedy, and is tried again by the next call.
func (s *Session) Client(ctx context.Context) (*gophercloud.ProviderClient, error) {
	if err := ctx.Err(); err != nil {
		return nil, Classify("log in to OpenStack", "", err)
	}
	if c := s.current(); c != nil {
		return c, nil
	}
	unlock, err := s.login.Lock(ctx, "log in to OpenStack", "")
	if err != nil {
		return nil, err
	}
	defer unlock()
	if c := s.current(); c != nil {
		return c, nil
	}
	c, err := gopheropenstack.NewClient(s.access.auth.IdentityEndpoint)
	if err != nil {
		return nil, &provider.Error{Op: "log in to OpenStack", Kind: provider.Invalid, Err: err, Remedy: noCredentials}
	}
	c.HTTPClient = http.Client{Timeout: s.timeout, Transport: s.transport(), CheckRedirect: stays}
	c.UserAgent.Prepend("autoscaler-agent")
	if err := gopheropenstack.Authenticate(ctx, c, s.access.auth); err != nil {
		return nil, s.loginFailed(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.client = c
	return c, nil
}

// Service returns a client for a service ("compute", "network", "image",
// "container-infra", "orchestration", "block-storage") in a region; empty: the
// session's own. The endpoint is the catalog's; gophercloud's own constructors ask every
// endpoint for its versions, with the context of the login, which may be over.
func (s *Session) Service(ctx context.Context, service, region string) (*gophercloud.ServiceClient, error) {
	client, err := s.Client(ctx)
	if err != nil {
		return nil, err
	}
	result, ok := client.GetAuthResult().(interface {
		ExtractServiceCatalog() (*tokens.ServiceCatalog, error)
	})
	if !ok {
		return nil, &provider.Error{Op: "read the service catalog", Kind: provider.Invalid, Err: errors.New("the login brought none")}
	}
	catalog, err := result.ExtractServiceCatalog()
	if err != nil {
		return nil, Classify("read the service catalog", "", err)
	}
	e := s.Endpoint(region)
	e.ApplyDefaults(service)
	url := endpointIn(catalog, e)
	if url == "" {
		c := Classify("find the endpoint of "+service, "", gophercloud.ErrEndpointNotFound{})
		c.Err = fmt.Errorf("the catalog lists no %s endpoint of service %s in region %q", e.Availability, service, e.Region)
		return nil, c
	}
	out := &gophercloud.ServiceClient{ProviderClient: client, Endpoint: url, Type: service}
	// These two stand in catalogs without their version.
	for typ, version := range map[string]string{"network": "v2.0/", "image": "v2/"} {
		if service == typ && !strings.HasSuffix(url, "/"+version) {
			out.ResourceBase = url + version
		}
	}
	return out, nil
}

// endpointIn finds the URL of the first endpoint that matches e, as Python's client
// does; empty: there is none.
func endpointIn(catalog *tokens.ServiceCatalog, e gophercloud.EndpointOpts) string {
	for _, entry := range catalog.Entries {
		if !slices.Contains(e.Types(), entry.Type) || e.Name != "" && entry.Name != e.Name {
			continue
		}
		for _, at := range entry.Endpoints {
			if gophercloud.Availability(at.Interface) == e.Availability && (e.Region == "" || at.Region == e.Region || at.RegionID == e.Region) {
				return gophercloud.NormalizeURL(at.URL)
			}
		}
	}
	return ""
}

func (s *Session) current() *gophercloud.ProviderClient {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.client
}

// loginFailed sorts a refused login. Keystone answers 401 to a wrong secret and, by
// version, 401 or 404 to an application credential that is no more; both are the
// operator's to mend.
func (s *Session) loginFailed(err error) *provider.Error {
	e := Classify("log in to OpenStack", "", err)
	if e.Kind == provider.NotFound || e.Kind == provider.Denied || e.Kind == provider.Invalid {
		e.Kind, e.Remedy = provider.Denied, badCredentials+"; they come from "+s.access.source
	}
	return e
}

// maxRedirects is net/http's own bound.
const maxRedirects = 10

// stays follows a redirect to the same machine that gives up no TLS. net/http takes the header X-Auth-Token along, and
// the body of a login: at another address they would be in the hands of whoever answers there.
func stays(next *http.Request, before []*http.Request) error {
	first := before[0].URL
	switch to := next.URL; {
	case to.Hostname() != first.Hostname(), first.Scheme == "https" && to.Scheme != "https":
		return fmt.Errorf("%s redirects to %s://%s, which would get the credentials: configure that address if it is right", first.Host, to.Scheme, to.Host)
	case len(before) >= maxRedirects:
		return fmt.Errorf("%s redirects %d times", first.Host, len(before))
	}
	return nil
}

func (s *Session) transport() http.RoundTripper {
	t := http.DefaultTransport.(*http.Transport).Clone()
	if s.access.tls != nil {
		t.TLSClientConfig = s.access.tls
	}
	if s.hook == nil {
		return t
	}
	return hooked{t, s.hook}
}

// hooked is a transport that reports every request to a hook.
type hooked struct {
	next http.RoundTripper
	hook func(Call)
}

func (t hooked) RoundTrip(r *http.Request) (*http.Response, error) {
	start := time.Now()
	answer, err := t.next.RoundTrip(r)
	call := Call{Action: action(r.Method, r.URL), Took: time.Since(start), Err: err}
	if err == nil && answer.StatusCode >= 400 {
		call.Err = gophercloud.ErrUnexpectedResponseCode{URL: r.URL.String(), Method: r.Method, Actual: answer.StatusCode}
	}
	t.hook(call)
	return answer, err
}

var idForm = regexp.MustCompile(`^([0-9a-fA-F]{8}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{12}|[0-9]+)$`)

// action is a request without what changes from one to the next.
func action(method string, u *url.URL) string {
	parts := strings.Split(u.Path, "/")
	for i, p := range parts {
		if idForm.MatchString(p) {
			parts[i] = "{id}"
		}
	}
	return method + " " + strings.Join(parts, "/")
}
