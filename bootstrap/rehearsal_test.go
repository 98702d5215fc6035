package bootstrap

import (
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// stage is an API server as far as a join needs it; test/suite/services rehearses against a
// real one.
type stage struct {
	secret  string // that cluster-info is signed with
	ca      string // in cluster-info, base64
	user    string
	denied  string // a path that is refused
	swapped bool   // the second reading is another one
	reads   int
	server  *httptest.Server
	created []string
}

func newStage(t *testing.T, change func(*stage)) (*stage, Join) {
	t.Helper()
	s := &stage{secret: "0123456789abcdef", user: "system:bootstrap:abcdef"}
	s.server = httptest.NewTLSServer(s)
	t.Cleanup(s.server.Close)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.server.Certificate().Raw})
	s.ca = base64.StdEncoding.EncodeToString(ca)
	hashes, err := caHashes(ca)
	if err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(s)
	}
	return s, Join{Token: "abcdef.0123456789abcdef", CAHashes: append([]string{"sha256:" + strings.Repeat("0", 64)}, hashes...), Endpoint: s.server.Listener.Addr().String()}
}

func (s *stage) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	answer := func(v any) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(v)
	}
	if s.denied != "" && strings.HasSuffix(r.URL.Path, s.denied) {
		http.Error(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"no"}`, http.StatusForbidden)
		return
	}
	switch {
	case strings.HasSuffix(r.URL.Path, "/cluster-info"):
		s.reads++
		text := fmt.Sprintf("apiVersion: v1\nkind: Config\nclusters:\n- name: \"\"\n  cluster:\n    server: %s\n    certificate-authority-data: %s\n", s.server.URL, s.ca)
		if s.swapped && s.reads > 1 {
			text += "# another one\n"
		}
		token := corev1.Secret{Data: map[string][]byte{keyID: []byte("abcdef"), keySecret: []byte(s.secret)}}
		answer(corev1.ConfigMap{TypeMeta: metav1.TypeMeta{Kind: "ConfigMap", APIVersion: "v1"}, Data: map[string]string{"kubeconfig": text, "jws-kubeconfig-abcdef": signature(token, text)}})
	case r.URL.Path == "/version":
		answer(map[string]string{"gitVersion": "v1.36.3"})
	case strings.HasSuffix(r.URL.Path, "/selfsubjectreviews"):
		answer(authenticationv1.SelfSubjectReview{TypeMeta: metav1.TypeMeta{Kind: "SelfSubjectReview", APIVersion: "authentication.k8s.io/v1"},
			Status: authenticationv1.SelfSubjectReviewStatus{UserInfo: authenticationv1.UserInfo{Username: s.user, Groups: []string{"system:authenticated", WorkersGroup}}}})
	case strings.HasSuffix(r.URL.Path, "/certificatesigningrequests"):
		s.created = append(s.created, r.URL.RawQuery)
		answer(certificatesv1.CertificateSigningRequest{TypeMeta: metav1.TypeMeta{Kind: "CertificateSigningRequest", APIVersion: "certificates.k8s.io/v1"}})
	default:
		answer(corev1.ConfigMap{TypeMeta: metav1.TypeMeta{Kind: "ConfigMap", APIVersion: "v1"}})
	}
}

// TestRehearse: each thing that a machine stumbles over stops the rehearsal at its own step.
func TestRehearse(t *testing.T) {
	for name, c := range map[string]struct {
		stage func(*stage)
		join  func(*Join)
		steps int
		want  string
	}{
		"all is well":                    {nil, nil, 8, ""},
		"no token is published":          {nil, func(j *Join) { j.Token = "" }, 4, ""},
		"nobody listens":                 {nil, func(j *Join) { j.Endpoint = "127.0.0.1:1" }, 1, "refused"},
		"cluster-info is not public":     {func(s *stage) { s.denied = "cluster-info" }, nil, 1, "kubeadm init phase bootstrap-token"},
		"a wrong secret":                 {func(s *stage) { s.secret = "fedcba9876543210" }, nil, 2, "does not verify"},
		"a token that has ended":         {nil, func(j *Join) { j.Token = "ghijkl.0123456789abcdef" }, 2, "bootstrapsigner"},
		"a wrong pin":                    {nil, func(j *Join) { j.CAHashes = j.CAHashes[:1] }, 3, "none of the pinned hashes"},
		"another CA's certificate":       {func(s *stage) { s.ca = otherCA(t) }, func(j *Join) { j.CAHashes = append(j.CAHashes, hashOf(t, otherBundle)) }, 4, "certificate"},
		"a name that is not in it":       {nil, func(j *Join) { j.Endpoint = strings.Replace(j.Endpoint, "127.0.0.1", "localhost", 1) }, 4, "localhost"},
		"tampered cluster-info":          {func(s *stage) { s.swapped = true }, nil, 4, "stands between"},
		"the token does not log in":      {func(s *stage) { s.denied = "selfsubjectreviews" }, nil, 6, "abcdef"},
		"it logs in as somebody else":    {func(s *stage) { s.user = "system:anonymous" }, nil, 6, "system:anonymous"},
		"kubeadm's settings are refused": {func(s *stage) { s.denied = "kubelet-config" }, nil, 7, "no"},
		"requests are refused":           {func(s *stage) { s.denied = "certificatesigningrequests" }, nil, 8, "no"},
	} {
		t.Run(name, func(t *testing.T) {
			s, join := newStage(t, c.stage)
			if c.join != nil {
				c.join(&join)
			}
			steps := Rehearse(t.Context(), join)
			last := steps[len(steps)-1]
			if len(steps) != c.steps || (last.Err == nil) != (c.want == "") || last.Err != nil && !strings.Contains(last.Err.Error(), c.want) {
				t.Errorf("%d steps, the last %q: %v, want %d and %q", len(steps), last.What, last.Err, c.steps, c.want)
			}
			for _, step := range steps {
				if strings.Contains(fmt.Sprint(step), "0123456789abcdef") {
					t.Errorf("a step tells the secret: %v", step)
				}
			}
			for _, query := range s.created {
				if !strings.Contains(query, "dryRun=All") {
					t.Errorf("a request was written: %q", query)
				}
			}
		})
	}
}

var otherBundle []byte

func otherCA(t *testing.T) string {
	otherBundle = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate(t).Raw})
	return base64.StdEncoding.EncodeToString(otherBundle)
}

func hashOf(t *testing.T, bundle []byte) string {
	hashes, err := caHashes(bundle)
	if err != nil {
		t.Fatal(err)
	}
	return hashes[0]
}

// TestReadJoin: a file that somebody wrote by hand is read, and what it lacks is named.
func TestReadJoin(t *testing.T) {
	own, err := Render(join())
	if err != nil {
		t.Fatal(err)
	}
	if j, lacks := ReadJoin(own); len(lacks) != 0 || fmt.Sprintf("%+v", j) != fmt.Sprintf("%+v", join()) || j.Token != join().Token {
		t.Errorf("the agent's own: %v %v", j, lacks)
	}
	j, lacks := ReadJoin([]byte("export JOIN_TOKEN='abcdef.0123456789abcdef'\nJOIN_CERT_HASH=\"sha256:00\"\nJOIN_ENDPOINT=leader:6443\n"))
	if j.Token != join().Token || j.Endpoint != "leader:6443" || len(lacks) != 2 || !strings.Contains(lacks[0], "--kubernetes-version") || !strings.Contains(lacks[1], "JOIN_TOKEN_EXPIRES") {
		t.Errorf("the seed's: %v %v", j, lacks)
	}
	if j, lacks := ReadJoin([]byte("JOIN_TOKEN=\n")); j.Token != "" || len(lacks) != 3 {
		t.Errorf("between growths: %v %v", j, lacks)
	}
	if j, lacks := ReadJoin([]byte("JOIN_TOKEN=x\n")); j.Token != "" || !strings.Contains(strings.Join(lacks, ";"), "no bootstrap token") {
		t.Errorf("no token: %v %v", j, lacks)
	}
}
