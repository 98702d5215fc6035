package e2e

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/controlplane"
)

// built is a program built from its Go module, once: the directory dir pins the versions. It is kept outside the checkout.
func built(t *testing.T, dir, pkg string) string {
	t.Helper()
	sum, err := os.ReadFile(dir + "/go.sum")
	if err != nil {
		t.Fatal(err)
	}
	root, err := controlplane.CacheDir(path.Base(pkg))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(root, 0o755); err != nil {
		t.Fatal(err)
	}
	h := sha256.Sum256(sum)
	file := filepath.Join(root, hex.EncodeToString(h[:6]))
	if _, err := os.Stat(file); err == nil {
		return file
	}
	began, tmp := time.Now(), file+fmt.Sprintf(".building-%d", os.Getpid())
	goCommand(t, dir, "build", "-mod=readonly", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w", "-o", tmp, pkg)
	if err := os.Rename(tmp, file); err != nil {
		t.Fatal(err)
	}
	t.Logf("built %s in %s", path.Base(pkg), time.Since(began).Round(time.Second))
	return file
}

// source is the directory of a module of those that dir pins.
func source(t *testing.T, dir, module string) string {
	t.Helper()
	return strings.TrimSpace(goCommand(t, dir, "list", "-mod=readonly", "-m", "-f", "{{.Dir}}", module))
}

func goCommand(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=")
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go %s: %v\n%s", args[0], err, said.Bytes())
	}
	return string(out)
}

// kubeconfig is one of a ServiceAccount, in a directory.
func (s *scene) kubeconfig(dir, namespace, account string) string {
	s.t.Helper()
	life := int64(3600)
	token, err := s.client.CoreV1().ServiceAccounts(namespace).CreateToken(s.t.Context(), account,
		&authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &life}}, metav1.CreateOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	file, cp := filepath.Join(dir, "kubeconfig"), s.w.ControlPlane
	err = clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"c": {Server: "https://" + strings.TrimPrefix(cp.Endpoint(), "https://"), CertificateAuthority: cp.CAFile()}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"u": {Token: token.Status.Token}},
		Contexts:       map[string]*clientcmdapi.Context{"x": {Cluster: "c", AuthInfo: "u"}},
		CurrentContext: "x",
	}, file)
	if err != nil {
		s.t.Fatal(err)
	}
	return file
}

// run runs a program until the returned function is called, and at most until the test ends; one that failed shows what it said last.
func (s *scene) run(dir, program string, args ...string) (stop func()) {
	s.t.Helper()
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		s.t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		stop()
		_ = cmd.Wait() // it was killed
		if said, err := os.ReadFile(log.Name()); err == nil && s.t.Failed() {
			s.t.Logf("%s:\n%s", program, said[max(0, len(said)-4000):])
		}
		_ = log.Close()
	})
	return stop
}

// freePort is free when it is returned.
func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}
