package clusterapi

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/flowcontrol"
)

// pageSize is how many objects one answer holds: at some 5 KB each a page is 2.5 MB.
const pageSize = 500

// knownFor is how long the versions and kinds that a cluster serves are believed.
const knownFor = 5 * time.Minute

// Call tells about one call to the API, for metrics.
type Call struct {
	Action string // "list machines", "put machinedeployments/scale"
	Took   time.Duration
	Err    error
}

// client speaks to one API server. It decodes into this package's own structs and
// retries nothing: client-go's own repetition of throttled calls is switched off.
type client struct {
	rest    *rest.RESTClient
	timeout time.Duration
	hook    func(Call)

	mu     sync.Mutex
	groups map[string]served // by API group
}

// served is what a cluster serves of one API group.
type served struct {
	versions []string          // the preferred one first
	plural   map[string]string // by "version/Kind"
	at       time.Time
}

func newClient(cfg *rest.Config, timeout time.Duration) (*client, error) {
	cfg = rest.CopyConfig(cfg)
	cfg.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	cfg.AcceptContentTypes, cfg.ContentType = "application/json", "application/json"
	cfg.UserAgent = "autoscaler-agent/clusterapi"
	cfg.RateLimiter = flowcontrol.NewFakeAlwaysRateLimiter()
	// v1beta1 is deprecated and still what some management clusters have; client-go
	// would say so on stderr at every call.
	cfg.WarningHandler = rest.NoWarnings{}
	c, err := rest.UnversionedRESTClientFor(cfg)
	if err != nil {
		return nil, err
	}
	return &client{rest: c, timeout: timeout, groups: map[string]served{}}, nil
}

// inCluster is the configuration of a pod; tests put another in its place.
var inCluster = rest.InClusterConfig

// configs finds the clusters: kubeconfig is the agent's own, the workload cluster's;
// an empty path is the pod's own cluster. The five arrangements of Cluster
// Autoscaler's documents come from these three values.
func (c Config) configs(kubeconfig string) (management, workload *rest.Config, err error) {
	load := func(path string) (*rest.Config, error) {
		if path == "" {
			return inCluster()
		}
		return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
			&clientcmd.ClientConfigLoadingRules{ExplicitPath: path}, &clientcmd.ConfigOverrides{}).ClientConfig()
	}
	path := c.CloudConfig
	if path == "" && !c.CloudConfigAuthoritative {
		path = kubeconfig
	}
	if management, err = load(path); err != nil {
		return nil, nil, fmt.Errorf("management cluster (AUTOSCALER_CLUSTERAPI_CLOUD_CONFIG %q): %w", path, err)
	}
	if workload, err = load(kubeconfig); err != nil {
		return nil, nil, fmt.Errorf("workload cluster (AUTOSCALER_KUBECONFIG %q): %w", kubeconfig, err)
	}
	return management, workload, nil
}

// do makes one call and returns the answer's body.
func (c *client) do(ctx context.Context, action string, request *rest.Request) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	start := time.Now()
	result := request.MaxRetries(0).Do(ctx)
	body, err := result.Raw()
	if err != nil {
		err = result.Error() // this one has read the server's own words
	}
	if err != nil && ctx.Err() != nil && !errors.Is(err, ctx.Err()) {
		err = fmt.Errorf("%w: %w", ctx.Err(), err)
	}
	if c.hook != nil {
		c.hook(Call{Action: action, Took: time.Since(start), Err: err})
	}
	if err != nil {
		return nil, &callError{action: action, err: err}
	}
	return body, nil
}

// read decodes an answer; one that cannot be read was cut short, or is not the API
// server's.
func read[T any](action string, body []byte, to *T) error {
	if err := json.Unmarshal(body, to); err != nil {
		return &callError{action: action, err: &tornError{err}}
	}
	return nil
}

// path is where a resource lives. An empty namespace is all of them.
func path(group, version, namespace, resource string, name ...string) []string {
	out := []string{"/apis", group, version}
	if group == "" {
		out = []string{"/api", version}
	}
	if namespace != "" {
		out = append(out, "namespaces", namespace)
	}
	return append(append(out, resource), name...)
}

func get[T any](ctx context.Context, c *client, action string, segments ...string) (*T, error) {
	body, err := c.do(ctx, action, c.rest.Get().AbsPath(segments...))
	if err != nil {
		return nil, err
	}
	out := new(T)
	return out, read(action, body, out)
}

// list reads all pages. It is a consistent read: no resource version is given.
func list[T any](ctx context.Context, c *client, action, selector string, segments ...string) ([]T, error) {
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

// mergePatch sends a merge patch and decodes the object that came of it.
func mergePatch[T any](ctx context.Context, c *client, action string, patch any, segments ...string) (*T, error) {
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

func put[T any](ctx context.Context, c *client, action string, object T, segments ...string) (*T, error) {
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

// remove deletes an object if it is still the one with that UID.
func (c *client) remove(ctx context.Context, action, uid string, segments ...string) error {
	raw, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": map[string]string{"uid": uid}})
	if err != nil {
		return err
	}
	_, err = c.do(ctx, action, c.rest.Delete().AbsPath(segments...).SetHeader("Content-Type", "application/json").Body(raw))
	return err
}

// serves tells the versions of an API group, the preferred one first.
func (c *client) serves(ctx context.Context, group string) (served, error) {
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
	answer, err := get[apiGroup](ctx, c, "get the versions of "+group, "/apis", group)
	if err != nil {
		return served{}, err
	}
	s = served{plural: map[string]string{}, at: time.Now()}
	for _, v := range append([]version{answer.PreferredVersion}, answer.Versions...) {
		if v.Version != "" && !slices.Contains(s.versions, v.Version) {
			s.versions = append(s.versions, v.Version)
		}
	}
	for _, v := range s.versions {
		if err := c.kinds(ctx, group, v, s.plural); err != nil {
			return served{}, err
		}
	}
	c.mu.Lock()
	c.groups[group] = s
	c.mu.Unlock()
	return s, nil
}

func (c *client) kinds(ctx context.Context, group, version string, into map[string]string) error {
	type resources struct {
		Resources []struct {
			Name string `json:"name"`
			Kind string `json:"kind"`
		} `json:"resources"`
	}
	answer, err := get[resources](ctx, c, "get the kinds of "+group+"/"+version, "/apis", group, version)
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

// forget drops what was learnt of an API group: an answer did not fit it.
func (c *client) forget(group string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.groups, group)
}

// locate finds version and resource of a reference. v1beta2 names the group alone: the
// preferred version that has the kind is taken. A version that v1beta1 wrote down and
// that is no longer served is replaced by one that is.
func (c *client) locate(ctx context.Context, r ref) (group, version, plural string, err error) {
	group, version = r.APIGroup, ""
	if group == "" {
		group, version, _ = strings.Cut(r.APIVersion, "/")
	}
	s, err := c.serves(ctx, group)
	if err != nil {
		return "", "", "", err
	}
	for _, v := range append([]string{version}, s.versions...) {
		if plural = s.plural[v+"/"+r.Kind]; plural != "" {
			return group, v, plural, nil
		}
	}
	return "", "", "", &callError{action: "find " + r.Kind, err: &missingError{fmt.Sprintf("no version of %s has the kind %s", group, r.Kind)}}
}

// version is the one that is spoken of Cluster API's own group.
func (p *Provider) version(ctx context.Context) (served, string, error) {
	s, err := p.management.serves(ctx, p.set.keys.group)
	if err != nil {
		return s, "", err
	}
	v := cmp.Or(p.set.version, slices.Concat(s.versions, []string{""})[0])
	if s.plural[v+"/Machine"] == "" {
		return s, "", &callError{action: "find Machine", err: &missingError{fmt.Sprintf("version %q of %s has no Machines", v, p.set.keys.group)}}
	}
	return s, v, nil
}
