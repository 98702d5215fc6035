package bootstrap

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/autoscaler-agent/autoscaler-agent/internal/kube"
)

// Step is one step of a rehearsed join.
type Step struct {
	What string // what a joining machine does
	Said string // what it found; empty where Err is set
	Err  error
}

const (
	rehearsalTimeout = 20 * time.Second // of one step
	dialTimeout      = 10 * time.Second // shorter, so that dropped packets are told from a slow answer
	maxClusterInfo   = 1 << 20
	rehearsalNode    = "autoscaler-agent-rehearsal"
)

// Rehearse does with published values what kubeadm join does with them, from this machine,
// up to the request for a certificate, which is a dry run. It stops at the first step that
// fails. Without a token the steps that need one are left out.
func Rehearse(ctx context.Context, join Join) []Step {
	return RehearseBy((&net.Dialer{Timeout: dialTimeout}).DialContext)(ctx, join)
}

// RehearseBy is Rehearse over connections that dial opens.
func RehearseBy(dial dialer) func(context.Context, Join) []Step {
	return func(ctx context.Context, join Join) []Step { return rehearse(ctx, dial, join, "") }
}

// rehearse compares the version of a worker as well, where it is given.
func rehearse(ctx context.Context, dial dialer, join Join, worker string) []Step {
	r := &rehearsal{dial: dial, join: join, worker: worker}
	steps := []struct {
		what  string
		token bool
		do    func(context.Context) (string, error)
	}{
		{stepRead, false, r.readUntrusted},
		{stepSignature, true, r.verifySignature},
		{stepPin, false, r.pin},
		{"read it again with that CA, at " + join.Endpoint, false, r.readTrusted},
		{stepServer, false, r.connectServer},
		{stepVersion, false, r.compareVersions},
		{stepLogin, true, r.login},
		{"read kubeadm's settings", true, r.readSettings},
		{"ask for a client certificate (dry run)", true, r.request},
	}
	var out []Step
	for _, s := range steps {
		if s.token && join.Token == "" || s.what == stepVersion && worker == "" {
			continue
		}
		said, err := within(ctx, s.do)
		if err != nil && join.Token != "" {
			if _, secret, ok := strings.Cut(join.Token, "."); ok && strings.Contains(err.Error(), secret) {
				err = errors.New("an error that names the token: it is withheld")
			}
		}
		if out = append(out, Step{What: s.what, Said: said, Err: err}); err != nil {
			return out
		}
	}
	return out
}

func within(ctx context.Context, do func(context.Context) (string, error)) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, rehearsalTimeout)
	defer cancel()
	return do(ctx)
}

// The steps that tryout tells the causes of.
const (
	stepRead      = "read cluster-info without trust"
	stepSignature = "verify its signature with the token"
	stepPin       = "find the pinned CA in it"
	stepServer    = "connect to the server that cluster-info names"
	stepVersion   = "compare the worker's Kubernetes version with the API server's"
	stepLogin     = "log in with the token"
)

type dialer = func(ctx context.Context, network, address string) (net.Conn, error)

// rehearsal is what the steps learn from each other.
type rehearsal struct {
	dial    dialer
	join    Join
	worker  string // version
	info    clusterInfo
	client  *kube.Client
	version string // of the API server
}

// readUntrusted is kubeadm's first read: nothing is believed before it is verified.
func (r *rehearsal) readUntrusted(ctx context.Context) (string, error) {
	info, err := r.read(ctx, &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS12}) // #nosec G402 -- as kubeadm does: the CA is verified by its hash before it is used
	if err != nil {
		return "", err
	}
	r.info = info
	return fmt.Sprintf("it names %s; signatures: %d", info.server, len(info.signatures)), nil
}

func (r *rehearsal) read(ctx context.Context, config *tls.Config) (clusterInfo, error) {
	transport := &http.Transport{TLSClientConfig: config, DisableKeepAlives: true, DialContext: r.dial}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+r.join.Endpoint+"/api/v1/namespaces/kube-public/configmaps/cluster-info", nil)
	if err != nil {
		return clusterInfo{}, err
	}
	res, err := (&http.Client{Transport: transport}).Do(req)
	if err != nil {
		return clusterInfo{}, noAPIServerOf(err)
	}
	defer func() { _ = res.Body.Close() }() // it was read
	body, err := io.ReadAll(io.LimitReader(res.Body, maxClusterInfo))
	switch {
	case err != nil:
		return clusterInfo{}, err
	case !kubernetesObject(body) && res.StatusCode >= http.StatusInternalServerError:
		return clusterInfo{}, noAPIServer("a proxy or load balancer says " + res.Status + ", as without a healthy API server behind it")
	case !kubernetesObject(body):
		return clusterInfo{}, noAPIServer("a web server says " + res.Status)
	case res.StatusCode == http.StatusForbidden || res.StatusCode == http.StatusUnauthorized:
		return clusterInfo{}, fmt.Errorf("anybody has to be able to read it, and the API server says %s: kubeadm init phase bootstrap-token", res.Status)
	case res.StatusCode != http.StatusOK:
		return clusterInfo{}, fmt.Errorf("the API server says %s", res.Status)
	}
	var object corev1.ConfigMap
	if err := yaml.Unmarshal(body, &object); err != nil {
		return clusterInfo{}, err
	}
	return parseClusterInfo(&object)
}

// noAPIServer says what answers in place of an API server.
type noAPIServer string

func (e noAPIServer) Error() string { return "what answers is no API server: " + string(e) }

// noAPIServerOf tells the errors of a connection by which something else than an API server shows itself.
func noAPIServerOf(err error) error {
	var record tls.RecordHeaderError
	switch {
	case errors.Is(err, http.ErrSchemeMismatch):
		return noAPIServer("a web server without TLS")
	case errors.As(err, &record):
		return noAPIServer("it does not speak TLS")
	}
	return err
}

// kubernetesObject tells an answer of an API server, errors included, from a web page.
func kubernetesObject(body []byte) bool {
	var object metav1.TypeMeta
	return json.Unmarshal(body, &object) == nil && object.Kind != ""
}

func (r *rehearsal) verifySignature(context.Context) (string, error) {
	id, secret, _ := strings.Cut(r.join.Token, ".")
	jws, ok := r.info.signatures[id]
	if !ok {
		return "", fmt.Errorf("it is not signed with token %s: the token has ended, or the controller manager's bootstrapsigner does not run", id)
	}
	if err := verify(jws, r.info.kubeconfig, id, secret); err != nil {
		return "", fmt.Errorf("token %s: %w", id, err)
	}
	return "token " + id + " has signed it", nil
}

func (r *rehearsal) pin(context.Context) (string, error) {
	hashes, err := caHashes(r.info.ca)
	if err != nil {
		return "", err
	}
	for _, h := range r.join.CAHashes {
		if slices.Contains(hashes, h) {
			return h, nil
		}
	}
	return "", fmt.Errorf("none of the pinned hashes (%s) is that of a CA in it (%s)", strings.Join(r.join.CAHashes, ", "), strings.Join(hashes, ", "))
}

func (r *rehearsal) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(r.info.ca)
	return pool
}

func (r *rehearsal) readTrusted(ctx context.Context) (string, error) {
	again, err := r.read(ctx, &tls.Config{RootCAs: r.pool(), MinVersion: tls.VersionTLS12})
	switch {
	case err != nil:
		return "", err
	case again.kubeconfig != r.info.kubeconfig:
		return "", errors.New("it is another one than without trust: somebody stands between this machine and the API server")
	}
	return "the same", nil
}

func (r *rehearsal) connectServer(ctx context.Context) (string, error) {
	config := &rest.Config{Host: r.info.server, TLSClientConfig: rest.TLSClientConfig{CAData: r.info.ca}, BearerToken: r.join.Token, Timeout: rehearsalTimeout, Dial: r.dial}
	client, err := kube.New(config)
	if err != nil {
		return "", err
	}
	r.client = client
	answer, err := client.REST.Get().AbsPath("/version").DoRaw(ctx)
	if err != nil {
		return "", fmt.Errorf("kubelets will use it: %w", err)
	}
	var version struct {
		GitVersion string `json:"gitVersion"`
	}
	if err := json.Unmarshal(answer, &version); err != nil || version.GitVersion == "" {
		return "", fmt.Errorf("%s is no API server", r.info.server)
	}
	r.version = version.GitVersion
	return r.info.server, nil
}

func (r *rehearsal) login(ctx context.Context) (string, error) {
	id, _, _ := strings.Cut(r.join.Token, ".")
	me, err := r.client.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("token %s: %w", id, err)
	}
	if want := "system:bootstrap:" + id; me.Status.UserInfo.Username != want {
		return "", fmt.Errorf("the API server takes it for %s, not for %s", me.Status.UserInfo.Username, want)
	}
	groups := slices.DeleteFunc(slices.Clone(me.Status.UserInfo.Groups), func(g string) bool { return !groupPattern.MatchString(g) })
	return "as system:bootstrap:" + id + " of " + strings.Join(groups, ", "), nil
}

// readSettings reads what kubeadm join reads, where kubeadm made the cluster.
func (r *rehearsal) readSettings(ctx context.Context) (string, error) {
	for _, name := range []string{"kubeadm-config", "kubelet-config"} {
		if _, err := r.client.CoreV1().ConfigMaps(metav1.NamespaceSystem).Get(ctx, name, metav1.GetOptions{}); err != nil {
			return "", err
		}
	}
	return "kubeadm-config and kubelet-config", nil
}

func (r *rehearsal) request(ctx context.Context) (string, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return "", err
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: "system:node:" + rehearsalNode, Organization: []string{"system:nodes"}}}, key)
	if err != nil {
		return "", err
	}
	csr := &certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{GenerateName: "rehearsal-"}, Spec: certificatesv1.CertificateSigningRequestSpec{
		Request: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}), SignerName: certificatesv1.KubeAPIServerClientKubeletSignerName,
		Usages: []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth}}}
	if _, err := r.client.CertificatesV1().CertificateSigningRequests().Create(ctx, csr, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}); err != nil {
		return "", err
	}
	return "it would be accepted; nothing was written", nil
}
