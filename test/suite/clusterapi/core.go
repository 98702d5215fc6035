package clusterapi

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/controlplane"
)

// Core is a running core manager.
type Core struct {
	Log  string // file
	cmd  *exec.Cmd
	done chan struct{}
	err  error
}

// namespace is the manager's own.
const namespace = "capi-system"

// Start installs the CustomResourceDefinitions of the manager's own version in the
// control plane, starts the manager with the rights of an administrator, and makes the
// API server ask its webhooks once they answer. dir keeps its certificate and its log.
func Start(ctx context.Context, cp *controlplane.ControlPlane, m Manager, dir string) (*Core, error) {
	client, err := dynamic.NewForConfig(cp.RESTConfig())
	if err != nil {
		return nil, err
	}
	if err := installCRDs(ctx, client, m); err != nil {
		return nil, err
	}
	_, err = cp.Client().CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return nil, err
	}
	certificate, err := writeCertificate(dir)
	if err != nil {
		return nil, err
	}
	ports, err := freePorts(2)
	if err != nil {
		return nil, err
	}
	c := &Core{Log: filepath.Join(dir, "core-manager.log"), done: make(chan struct{})}
	if err := c.spawn(m.File, "--kubeconfig="+cp.Kubeconfig(), "--webhook-port="+strconv.Itoa(ports[0]), "--webhook-cert-dir="+dir,
		"--health-addr=127.0.0.1:"+strconv.Itoa(ports[1]), "--diagnostics-address=0", "--leader-elect=false",
		"--kube-api-qps=500", "--kube-api-burst=1000", "--v=2"); err != nil {
		return nil, err
	}
	err = c.healthy(ctx, "http://127.0.0.1:"+strconv.Itoa(ports[1])+"/readyz")
	if err == nil {
		err = installWebhooks(ctx, client, m, ports[0], certificate)
	}
	if err != nil {
		return nil, errors.Join(err, c.Stop())
	}
	return c, nil
}

// spawn starts the program so that it dies with this process. On Linux the death
// signal is tied to the thread that forked, so the goroutine keeps its thread.
func (c *Core) spawn(file string, args ...string) error {
	log, err := os.OpenFile(c.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	c.cmd = exec.Command(file, args...)
	c.cmd.Stdout, c.cmd.Stderr = log, log
	c.cmd.Env = append(os.Environ(), "POD_NAMESPACE="+namespace)
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := c.cmd.Start()
		started <- err
		if err == nil {
			c.err = c.cmd.Wait()
			close(c.done)
		}
	}()
	if err := <-started; err != nil {
		return fmt.Errorf("start the core manager: %w", err)
	}
	return nil
}

// Stop ends the manager and waits for its end.
func (c *Core) Stop() error {
	select {
	case <-c.done:
		return fmt.Errorf("the core manager had ended before: %w", errors.Join(c.err, errors.New(c.Tail(20))))
	default:
	}
	_ = c.cmd.Process.Signal(syscall.SIGTERM)
	t := time.NewTimer(10 * time.Second)
	defer t.Stop()
	select {
	case <-c.done:
	case <-t.C:
		_ = c.cmd.Process.Kill()
		<-c.done
	}
	return nil
}

// Tail is the last n lines of the manager's log.
func (c *Core) Tail(n int) string {
	text, _ := os.ReadFile(c.Log)
	lines := bytes.Split(bytes.TrimRight(text, "\n"), []byte("\n"))
	return string(bytes.Join(lines[max(0, len(lines)-n):], []byte("\n")))
}

func (c *Core) healthy(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		answer, err := http.DefaultClient.Do(request)
		if err == nil {
			answer.Body.Close()
			if answer.StatusCode == http.StatusOK {
				return nil
			}
			err = errors.New(answer.Status)
		}
		select {
		case <-c.done:
			return fmt.Errorf("the core manager ended: %w\n%s", c.err, c.Tail(20))
		case <-ctx.Done():
			return fmt.Errorf("the core manager is not ready: %w\n%s", err, c.Tail(20))
		case <-tick.C:
		}
	}
}

func freePorts(n int) ([]int, error) {
	var out []int
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer l.Close()
		out = append(out, l.Addr().(*net.TCPAddr).Port)
	}
	return out, nil
}

// writeCertificate makes the webhooks' serving certificate, which is its own CA.
func writeCertificate(dir string) ([]byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "capi-webhooks"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, err
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return certificate, errors.Join(os.WriteFile(filepath.Join(dir, "tls.crt"), certificate, 0o600),
		os.WriteFile(filepath.Join(dir, "tls.key"), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}), 0o600))
}

// Objects reads every object of a YAML file of the manager's module.
func (m Manager) Objects(path string) ([]*unstructured.Unstructured, error) {
	raw, err := os.ReadFile(filepath.Join(m.Source, filepath.FromSlash(path)))
	if err != nil {
		return nil, err
	}
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(raw)))
	var out []*unstructured.Unstructured
	for {
		doc, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", path, err)
		}
		var object map[string]any
		if err := yaml.Unmarshal(doc, &object); err != nil {
			return nil, fmt.Errorf("read %s: %w", path, err)
		}
		if object != nil {
			out = append(out, &unstructured.Unstructured{Object: object})
		}
	}
}

// CRDs are Cluster API's own CustomResourceDefinitions, as its module has them.
func (m Manager) CRDs() ([]*unstructured.Unstructured, error) {
	const dir = "config/crd/bases"
	files, err := os.ReadDir(filepath.Join(m.Source, filepath.FromSlash(dir)))
	if err != nil {
		return nil, err
	}
	var out []*unstructured.Unstructured
	for _, f := range files {
		objects, err := m.Objects(dir + "/" + f.Name())
		if err != nil {
			return nil, err
		}
		out = append(out, objects...)
	}
	return out, nil
}

func installCRDs(ctx context.Context, client dynamic.Interface, m Manager) error {
	crds, err := m.CRDs()
	if err != nil {
		return err
	}
	resource := client.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	for _, crd := range crds {
		// The label by which core and provider contracts are found; kustomize adds it.
		crd.SetLabels(map[string]string{"cluster.x-k8s.io/provider": "cluster-api", "cluster.x-k8s.io/v1beta1": "v1beta1", "cluster.x-k8s.io/v1beta2": "v1beta2"})
		if _, err := resource.Apply(ctx, crd.GetName(), crd, metav1.ApplyOptions{FieldManager: "clusterctl", Force: true}); err != nil {
			return fmt.Errorf("install %s: %w", crd.GetName(), err)
		}
	}
	return nil
}

// installWebhooks registers the manager's webhooks at the address where it listens.
func installWebhooks(ctx context.Context, client dynamic.Interface, m Manager, port int, ca []byte) error {
	configurations, err := m.Objects("config/webhook/manifests.yaml")
	if err != nil {
		return err
	}
	for _, u := range configurations {
		hooks, _, err := unstructured.NestedSlice(u.Object, "webhooks")
		if err != nil {
			return err
		}
		for _, h := range hooks {
			hook := h.(map[string]any)
			path, _, _ := unstructured.NestedString(hook, "clientConfig", "service", "path")
			hook["clientConfig"] = map[string]any{"url": fmt.Sprintf("https://127.0.0.1:%d%s", port, path), "caBundle": base64.StdEncoding.EncodeToString(ca)}
		}
		if err := unstructured.SetNestedSlice(u.Object, hooks, "webhooks"); err != nil {
			return err
		}
		kinds := map[string]string{"MutatingWebhookConfiguration": "mutatingwebhookconfigurations", "ValidatingWebhookConfiguration": "validatingwebhookconfigurations"}
		u.SetName("capi-" + u.GetName())
		resource := client.Resource(schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: kinds[u.GetKind()]})
		if _, err := resource.Create(ctx, u, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("install the webhooks: %w", err)
		}
	}
	return nil
}
