package doctor

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/autoscaler-agent/autoscaler-agent/internal/testing/kubetest"
)

func kubeletNode(name, address string, ready corev1.ConditionStatus) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{
		Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}},
		Addresses:  []corev1.NodeAddress{{Type: corev1.NodeHostName, Address: name}, {Type: corev1.NodeInternalIP, Address: address}},
	}}
}

func TestCheckKubelets(t *testing.T) {
	var (
		mu      sync.Mutex
		dialled []string
	)
	dial := func(_ context.Context, address string, settings *tls.Config) error {
		mu.Lock()
		defer mu.Unlock()
		dialled = append(dialled, address+" for "+settings.ServerName)
		if strings.HasPrefix(address, "127.0.1.2") {
			return errors.New("x509: certificate signed by unknown authority")
		}
		return nil
	}
	check := func(nodes ...runtime.Object) Finding {
		t.Helper()
		found := checkKubelets(t.Context(), kubetest.Client(fake.NewClientset(nodes...)), x509.NewCertPool(), dial)
		if len(found) != 1 {
			t.Fatalf("%+v", found)
		}
		return found[0]
	}
	good, sick, off := kubeletNode("a", "127.0.1.1", corev1.ConditionTrue), kubeletNode("b", "127.0.1.2", corev1.ConditionTrue), kubeletNode("c", "127.0.1.2", corev1.ConditionFalse)
	if f := check(good, off); f.Level != LevelOK || !strings.Contains(f.Text, "may be switched on") || len(dialled) != 1 || dialled[0] != "127.0.1.1:10250 for 127.0.1.1" {
		t.Errorf("%+v, dialled %v", f, dialled)
	}
	if f := check(good, off); !strings.Contains(f.Text, "(1 that are not Ready were not asked)") {
		t.Errorf("%+v", f)
	}
	for _, nodes := range [][]runtime.Object{{off}, nil} {
		if f := check(nodes...); f.Level != LevelWarning || strings.Contains(f.Text, "all") || !strings.Contains(f.Text, fmt.Sprintf("no node is Ready (of %d)", len(nodes))) || f.Remedy == "" {
			t.Errorf("no Ready node: %+v", f)
		}
	}
	if f := check(good, sick); f.Level != LevelWarning || !strings.Contains(f.Text, "1 of 2") || !strings.Contains(f.Text, "b: x509") || f.Remedy == "" {
		t.Errorf("%+v", f)
	}
	if f := check(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "d"}, Status: corev1.NodeStatus{Conditions: good.Status.Conditions}}); !strings.Contains(f.Text, "no address") {
		t.Errorf("%+v", f)
	}
}

// TestDialKubelet: a certificate that the cluster's CA has not signed, or that is for
// another address, is told.
func TestDialKubelet(t *testing.T) {
	server := httptest.NewTLSServer(http.NotFoundHandler())
	defer server.Close()
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	address := server.Listener.Addr().String()
	if err := dialKubelet(t.Context(), address, &tls.Config{RootCAs: roots, ServerName: "127.0.0.1"}); err != nil {
		t.Error(err)
	}
	if err := dialKubelet(t.Context(), address, &tls.Config{RootCAs: roots, ServerName: "10.0.0.1"}); err == nil {
		t.Error("a certificate for another address passes")
	}
	if err := dialKubelet(t.Context(), address, &tls.Config{RootCAs: x509.NewCertPool(), ServerName: "127.0.0.1"}); err == nil {
		t.Error("a certificate of another CA passes")
	}
}
