// Package capi reads and writes the objects of Cluster API: typed objects of both
// contracts (v1beta1 and v1beta2), the failures that they report, and a Client of one API
// server that finds out which versions it serves.
//
// It refuses to import Cluster API's own module, to watch, to cache an object and to
// repeat a call.
package capi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"
)

// pageSize is the number of objects in one response: at some 5 KB each a page is 2.5 MB.
const pageSize = 500

// knownFor is how long the versions and kinds that a cluster serves are cached.
const knownFor = 5 * time.Minute

// answers knows what every API server answers with: Status.
var answers = func() *runtime.Scheme {
	s := runtime.NewScheme()
	metav1.AddToGroupVersion(s, schema.GroupVersion{Version: "v1"})
	return s
}()

// Call describes one call to the API, for metrics.
type Call struct {
	Action string // "list machines", "put machinedeployments/scale"
	Took   time.Duration
	Err    error
}

// Client makes calls to one API server. It repeats none: client-go's retry of throttled
// calls is off.
type Client struct {
	rest    *rest.RESTClient
	timeout time.Duration
	Hook    func(Call) // called after every call; nil: none

	mu     sync.Mutex
	groups map[string]Served // by API group
}

// Served has the versions and kinds of one API group that a cluster serves.
type Served struct {
	Versions []string          // the preferred one first
	Plural   map[string]string // by "version/Kind"
	at       time.Time
}

// NewClient returns a Client whose calls last no longer than timeout.
func NewClient(cfg *rest.Config, timeout time.Duration) (*Client, error) {
	cfg = rest.CopyConfig(cfg)
	cfg.NegotiatedSerializer = serializer.NewCodecFactory(answers).WithoutConversion()
	cfg.AcceptContentTypes, cfg.ContentType = "application/json", "application/json"
	cfg.UserAgent = "autoscaler-agent/clusterapi"
	cfg.RateLimiter = flowcontrol.NewFakeAlwaysRateLimiter()
	// Some management clusters have only v1beta1, which is deprecated; client-go would
	// print a warning to stderr at every call.
	cfg.WarningHandler = rest.NoWarnings{}
	c, err := rest.UnversionedRESTClientFor(cfg)
	if err != nil {
		return nil, err
	}
	return &Client{rest: c, timeout: timeout, groups: map[string]Served{}}, nil
}

// do makes one call and returns the body of the response.
func (c *Client) do(ctx context.Context, action string, request *rest.Request) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	start := time.Now()
	result := request.MaxRetries(0).Do(ctx)
	body, err := result.Raw()
	if err != nil {
		err = result.Error() // this error has the server's own text
	}
	if err != nil && ctx.Err() != nil && !errors.Is(err, ctx.Err()) {
		err = fmt.Errorf("%w: %w", ctx.Err(), err)
	}
	if c.Hook != nil {
		c.Hook(Call{Action: action, Took: time.Since(start), Err: err})
	}
	if err != nil {
		return nil, &CallError{Action: action, Err: err}
	}
	return body, nil
}

// read decodes a response. An error means that it was cut short, or is not from an API
// server.
func read[T any](action string, body []byte, to *T) error {
	if err := json.Unmarshal(body, to); err != nil {
		return &CallError{Action: action, Err: &TornError{err}}
	}
	return nil
}

// Path returns the path of a resource. An empty namespace means all of them.
func Path(group, version, namespace, resource string, name ...string) []string {
	out := []string{"/apis", group, version}
	if group == "" {
		out = []string{"/api", version}
	}
	if namespace != "" {
		out = append(out, "namespaces", namespace)
	}
	return append(append(out, resource), name...)
}

// Get reads one object.
func Get[T any](ctx context.Context, c *Client, action string, segments ...string) (*T, error) {
	body, err := c.do(ctx, action, c.rest.Get().AbsPath(segments...))
	if err != nil {
		return nil, err
	}
	out := new(T)
	return out, read(action, body, out)
}

// List reads all pages. It is a consistent read, because it gives no resource version.
func List[T any](ctx context.Context, c *Client, action, selector string, segments ...string) ([]T, error) {
	var out []T
	for next, page := "", 1; ; page++ {
		request := c.rest.Get().AbsPath(segments...).Param("limit", fmt.Sprint(pageSize))
		if selector != "" {
			request.Param("labelSelector", selector)
		}
		if next != "" {
			request.Param("continue", next)
		}
		body, err := c.do(ctx, action, request)
		if err != nil {
			return nil, err
		}
		var answer struct {
			Metadata struct {
				Continue string `json:"continue"`
			} `json:"metadata"`
			Items []T `json:"items"`
		}
		if err := read(action, body, &answer); err != nil {
			return nil, err
		}
		out = append(out, answer.Items...)
		if next = answer.Metadata.Continue; next == "" {
			return out, nil
		}
	}
}

// MergePatch sends a merge patch and returns the changed object.
func MergePatch[T any](ctx context.Context, c *Client, action string, patch any, segments ...string) (*T, error) {
	raw, err := json.Marshal(patch)
	if err != nil {
		return nil, err
	}
	body, err := c.do(ctx, action, c.rest.Patch(types.MergePatchType).AbsPath(segments...).Body(raw))
	if err != nil {
		return nil, err
	}
	out := new(T)
	return out, read(action, body, out)
}

// Put writes an object and returns it as the server has it.
func Put[T any](ctx context.Context, c *Client, action string, object T, segments ...string) (*T, error) {
	raw, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	body, err := c.do(ctx, action, c.rest.Put().AbsPath(segments...).SetHeader("Content-Type", "application/json").Body(raw))
	if err != nil {
		return nil, err
	}
	out := new(T)
	return out, read(action, body, out)
}

// Remove deletes an object if it still has that UID.
func (c *Client) Remove(ctx context.Context, action, uid string, segments ...string) error {
	raw, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": map[string]string{"uid": uid}})
	if err != nil {
		return err
	}
	_, err = c.do(ctx, action, c.rest.Delete().AbsPath(segments...).SetHeader("Content-Type", "application/json").Body(raw))
	return err
}

// Serves returns the versions and kinds of an API group.
func (c *Client) Serves(ctx context.Context, group string) (Served, error) {
	c.mu.Lock()
	s, ok := c.groups[group]
	c.mu.Unlock()
	if ok && time.Since(s.at) < knownFor {
		return s, nil
	}
	type version struct {
		Version string `json:"version"`
	}
	type apiGroup struct {
		Versions         []version `json:"versions"`
		PreferredVersion version   `json:"preferredVersion"`
	}
	answer, err := Get[apiGroup](ctx, c, "get the versions of "+group, "/apis", group)
	if err != nil {
		return Served{}, err
	}
	s = Served{Plural: map[string]string{}, at: time.Now()}
	for _, v := range append([]version{answer.PreferredVersion}, answer.Versions...) {
		if v.Version != "" && !slices.Contains(s.Versions, v.Version) {
			s.Versions = append(s.Versions, v.Version)
		}
	}
	for _, v := range s.Versions {
		if err := c.kinds(ctx, group, v, s.Plural); err != nil {
			return Served{}, err
		}
	}
	c.mu.Lock()
	c.groups[group] = s
	c.mu.Unlock()
	return s, nil
}

func (c *Client) kinds(ctx context.Context, group, version string, into map[string]string) error {
	type resources struct {
		Resources []struct {
			Name string `json:"name"`
			Kind string `json:"kind"`
		} `json:"resources"`
	}
	answer, err := Get[resources](ctx, c, "get the kinds of "+group+"/"+version, "/apis", group, version)
	if err != nil {
		return err
	}
	for _, r := range answer.Resources {
		if !strings.Contains(r.Name, "/") {
			into[version+"/"+r.Kind] = r.Name
		}
	}
	return nil
}

// Forget drops the cached versions of an API group, after a response that did not fit them.
func (c *Client) Forget(group string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.groups, group)
}

// Locate finds version and resource of a reference. A reference of v1beta2 names only the
// group, and gets the preferred version that has the kind. The version in a reference of
// v1beta1 is replaced when it is no longer served.
func (c *Client) Locate(ctx context.Context, r Ref) (group, version, plural string, err error) {
	group, version = r.APIGroup, ""
	if group == "" {
		group, version, _ = strings.Cut(r.APIVersion, "/")
	}
	s, err := c.Serves(ctx, group)
	if err != nil {
		return "", "", "", err
	}
	for _, v := range append([]string{version}, s.Versions...) {
		if plural = s.Plural[v+"/"+r.Kind]; plural != "" {
			return group, v, plural, nil
		}
	}
	return "", "", "", &CallError{Action: "find " + r.Kind, Err: &MissingError{Text: fmt.Sprintf("no version of %s has the kind %s", group, r.Kind)}}
}
