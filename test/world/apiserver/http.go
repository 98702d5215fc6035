package apiserver

import (
	"encoding/json"
	"io"
	"mime"
	"net/http"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/kubernetes/scheme"
)

const protobufType = "application/vnd.kubernetes.protobuf"

// call is a request that has been read.
type call struct {
	*http.Request
	collection      *collection
	namespace, name string
	subresource     string
	user            string
	groups          []string
	body            []byte
	wants           bool // protobuf
	w               http.ResponseWriter
}

// ServeHTTP implements http.Handler. A watch is not served by it: see Watch.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c := &call{Request: r, w: w, wants: wantsProtobuf(r)}
	out, code, err := s.serve(c)
	if err != nil {
		c.fail(err)
		return
	}
	c.answer(code, out)
}

func wantsProtobuf(r *http.Request) bool {
	for accept := range strings.SplitSeq(r.Header.Get("Accept"), ",") {
		switch media, _, _ := mime.ParseMediaType(strings.TrimSpace(accept)); media {
		case protobufType:
			return true
		case "application/json":
			return false
		}
	}
	return false
}

// answer sends an object. raw is protobuf or JSON already.
func (c *call) answer(code int, out any) {
	var body []byte
	kind := "application/json"
	switch o := out.(type) {
	case []byte:
		body = o
		if c.wants {
			kind = protobufType
		}
	case runtime.Object:
		if c.wants {
			body, kind = encode(o), protobufType
			break
		}
		body, _ = json.Marshal(o)
	default:
		body, _ = json.Marshal(o)
	}
	c.w.Header().Set("Content-Type", kind)
	c.w.WriteHeader(code)
	_, _ = c.w.Write(body)
}

func (c *call) fail(err error) {
	status, ok := err.(apierrors.APIStatus)
	if !ok {
		status = apierrors.NewInternalError(err)
	}
	st := status.Status()
	st.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	if d := st.Details; d != nil && d.RetryAfterSeconds > 0 {
		c.w.Header().Set("Retry-After", "1")
	}
	c.answer(int(st.Code), &st)
}

// serve does what a request asks for.
func (s *Server) serve(c *call) (out any, code int, err error) {
	if c.Body != nil {
		if c.body, err = io.ReadAll(c.Body); err != nil {
			return nil, 0, err
		}
	}
	if s.opts.BeforeGet != nil && c.Method == http.MethodGet {
		if at := strings.Split(strings.Trim(c.URL.Path, "/"), "/"); len(at) >= 4 && at[len(at)-4] == "namespaces" {
			s.opts.BeforeGet(at[len(at)-2], at[len(at)-3], at[len(at)-1])
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.authenticate(c) {
		return nil, 0, apierrors.NewUnauthorized("Unauthorized")
	}
	if out := s.discovery(c.URL.Path); out != nil {
		c.wants = false
		return out, http.StatusOK, nil
	}
	parts := strings.Split(strings.Trim(c.URL.Path, "/"), "/")
	group := ""
	switch {
	case len(parts) > 2 && parts[0] == "api" && parts[1] == "v1":
		parts = parts[2:]
	case len(parts) > 3 && parts[0] == "apis" && parts[2] == "v1":
		group, parts = parts[1], parts[3:]
	default:
		return nil, 0, apierrors.NewGenericServerResponse(http.StatusNotFound, c.Method, schema.GroupResource{}, "", "the server could not find the requested resource", 0, true)
	}
	if len(parts) > 2 && parts[0] == "namespaces" {
		c.namespace, parts = parts[1], parts[2:]
	}
	resource := group + "/" + parts[0]
	if review := s.review(c, resource); review != nil {
		return review, http.StatusCreated, nil
	}
	if c.collection = s.collections[resource]; c.collection == nil {
		return nil, 0, apierrors.NewGenericServerResponse(http.StatusNotFound, c.Method, schema.GroupResource{Group: group, Resource: parts[0]}, "", "the server could not find the requested resource", 0, true)
	}
	if len(parts) > 1 {
		c.name = parts[1]
	}
	if len(parts) > 2 {
		c.subresource = parts[2]
	}
	return s.do(c)
}

func (s *Server) do(c *call) (out any, code int, err error) {
	switch c.Method {
	case http.MethodGet:
		if c.name == "" {
			out, err = s.list(c)
			return out, http.StatusOK, err
		}
		e := c.collection.objects[keyOf(c.namespace, c.name)]
		if e == nil {
			return nil, 0, apierrors.NewNotFound(c.collection.kind.resource(), c.name)
		}
		if c.wants {
			return e.bytes(), http.StatusOK, nil
		}
		return e.Object, http.StatusOK, nil
	case http.MethodPost:
		out, err = s.post(c)
		return out, http.StatusCreated, err
	case http.MethodPut:
		var o Object
		if o, err = c.object(); err == nil {
			out, err = s.update(c.collection, o, c.subresource, c.dry())
		}
		return out, http.StatusOK, err
	case http.MethodPatch:
		out, err = s.patch(c)
		return out, http.StatusOK, err
	case http.MethodDelete:
		options := metav1.DeleteOptions{}
		if err := c.decode(&options); err != nil {
			return nil, 0, err
		}
		options.DryRun = append(options.DryRun, c.URL.Query()["dryRun"]...)
		if c.name == "" {
			return success, http.StatusOK, s.removeAll(c, options)
		}
		out, err = s.remove(c.collection, c.namespace, c.name, options)
		return out, http.StatusOK, err
	}
	return nil, 0, apierrors.NewMethodNotSupported(c.collection.kind.resource(), c.Method)
}

func (c *call) dry() bool { return slices.Contains(c.URL.Query()["dryRun"], metav1.DryRunAll) }

// decode reads the body into an object; an empty body changes nothing.
func (c *call) decode(into runtime.Object) error {
	if len(c.body) == 0 {
		return nil
	}
	if strings.HasPrefix(c.Header.Get("Content-Type"), "application/json") {
		if err := json.Unmarshal(c.body, into); err != nil {
			return apierrors.NewBadRequest(err.Error())
		}
		return nil
	}
	if _, _, err := protobufs.Decode(c.body, nil, into); err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	return nil
}

// object reads the body as an object of the kind of the call.
func (c *call) object() (Object, error) {
	made, err := scheme.Scheme.New(c.collection.kind.gvk())
	if err != nil {
		return nil, err
	}
	o := made.(Object)
	if err := c.decode(o); err != nil {
		return nil, err
	}
	if c.name != "" && o.GetName() != c.name {
		return nil, apierrors.NewBadRequest("the name of the object (" + o.GetName() + ") does not match the name on the URL (" + c.name + ")")
	}
	if c.collection.kind.namespaced {
		if o.GetNamespace() == "" {
			o.SetNamespace(c.namespace)
		}
		if o.GetNamespace() != c.namespace {
			return nil, apierrors.NewBadRequest("the namespace of the object does not match the namespace on the request")
		}
	}
	return o, nil
}

// discovery answers /version, /api/v1 and the like; nil: it is none of them.
func (s *Server) discovery(path string) any {
	if path == "/version" {
		minor := strings.Split(s.opts.Version, ".")[1]
		return version.Info{Major: "1", Minor: minor, GitVersion: s.opts.Version, Platform: "linux/amd64"}
	}
	if path == "/readyz" || path == "/livez" || path == "/healthz" {
		return "ok"
	}
	switch path {
	case "/api":
		return &metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"}}
	case "/apis":
		list := &metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}}
		for _, k := range kinds {
			known := slices.ContainsFunc(list.Groups, func(g metav1.APIGroup) bool { return g.Name == k.Group })
			if v := (metav1.GroupVersionForDiscovery{GroupVersion: k.GroupVersion.String(), Version: k.Version}); k.Group != "" && !known {
				list.Groups = append(list.Groups, metav1.APIGroup{Name: k.Group, Versions: []metav1.GroupVersionForDiscovery{v}, PreferredVersion: v})
			}
		}
		return list
	}
	group := strings.TrimPrefix(path, "/apis/")
	if path == "/api/v1" {
		group = "/v1"
	}
	group, ok := strings.CutSuffix(group, "/v1")
	if !ok {
		return nil
	}
	list := &metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: strings.TrimPrefix(group+"/v1", "/")}
	for _, k := range kinds {
		if k.Group == group {
			list.APIResources = append(list.APIResources, metav1.APIResource{Name: k.plural, Kind: k.kind, Namespaced: k.namespaced,
				Verbs: metav1.Verbs{"create", "delete", "get", "list", "patch", "update", "watch"}})
		}
	}
	if len(list.APIResources) == 0 {
		return nil
	}
	return list
}

// authenticate finds out who calls: a bootstrap token's machine, or the user that a bearer token
// names.
func (s *Server) authenticate(c *call) bool {
	token, ok := strings.CutPrefix(c.Header.Get("Authorization"), "Bearer ")
	if !ok {
		c.user, c.groups = "system:anonymous", []string{"system:unauthenticated"}
		return true
	}
	id, secret, isToken := strings.Cut(token, ".")
	if !isToken {
		c.user, c.groups = token, []string{"system:authenticated"}
		return true
	}
	c.user, c.groups = s.bootstrapUser(id, secret)
	return c.user != ""
}

// bootstrapUser is whom a bootstrap token stands for; empty: nobody.
func (s *Server) bootstrapUser(id, secret string) (user string, groups []string) {
	e := s.collections["/secrets"].objects["kube-system/bootstrap-token-"+id]
	if e == nil {
		return "", nil
	}
	data := e.Object.(*corev1.Secret).Data
	if string(data["token-secret"]) != secret || string(data["usage-bootstrap-authentication"]) != "true" || expired(data) {
		return "", nil
	}
	groups = []string{"system:bootstrappers"}
	if extra := string(data["auth-extra-groups"]); extra != "" {
		groups = append(groups, strings.Split(extra, ",")...)
	}
	return "system:bootstrap:" + id, append(groups, "system:authenticated")
}
