package doctor

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/internal/testing/kubetest"
)

// TestCheckControlPlane: of several leaders it is told what keeps one of them from being lost, and
// whose certificate is held.
func TestCheckControlPlane(t *testing.T) {
	node := func(name, address, id string) *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{cluster.LabelControlPlane: ""}}, Spec: corev1.NodeSpec{ProviderID: id},
			Status: corev1.NodeStatus{Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: address}, {Type: corev1.NodeHostName, Address: name}}}}
	}
	const two, whole = "controlPlane:\n- {node: cp-1, addresses: [10.0.0.11]}\n- {node: cp-2, addresses: [10.0.0.12]}\n",
		"controlPlane:\n- {node: cp-1, addresses: [10.0.0.11]}\n- {node: cp-2, addresses: [10.0.0.12]}\n- {node: cp-3, instance: 'aws:///a/i-3', addresses: [10.0.0.13]}\n"
	three := []runtime.Object{node("cp-1", "10.0.0.11", ""), node("cp-2", "10.0.0.12", ""), node("cp-3", "10.0.0.13", "aws:///a/i-3")}
	for name, c := range map[string]struct {
		nodes    []runtime.Object
		endpoint string
		file     string
		level    Level
		text     string // empty: nothing is told
	}{
		"one":                  {three[:1], "k8s.example.net:6443", "", LevelOK, ""},
		"three":                {three, "k8s.example.net:6443", whole, LevelOK, "3 leaders, each with its addresses"},
		"two":                  {three[:2], "k8s.example.net:6443", two, LevelWarning, "2 bear the loss of no more machines than 1 do"},
		"no list":              {three, "k8s.example.net:6443", "", LevelWarning, "no line is about Node cp-1"},
		"one is missing":       {three, "k8s.example.net:6443", two, LevelWarning, "no line is about Node cp-3"},
		"another address":      {append([]runtime.Object{node("cp-1", "10.0.0.99", "")}, three[1:]...), "k8s.example.net:6443", whole, LevelWarning, "the line of Node cp-1 lacks 10.0.0.99"},
		"another instance":     {append([]runtime.Object{node("cp-3", "10.0.0.13", "aws:///a/i-9")}, three[:2]...), "k8s.example.net:6443", whole, LevelWarning, `says instance aws:///a/i-3, and the Node "aws:///a/i-9"`},
		"endpoint of a leader": {three, "10.0.0.12:6443", whole, LevelWarning, "is the address of Node cp-2"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := bothServices()
			if cfg.GroupsFile = filepath.Join(t.TempDir(), "groups.yaml"); c.file != "" {
				if err := os.WriteFile(cfg.GroupsFile, []byte(c.file), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			config := clientcmdapi.NewConfig()
			config.Clusters[""] = &clientcmdapi.Cluster{Server: "https://" + c.endpoint, CertificateAuthorityData: inPEM(certificate(t, time.Now(), time.Now().Add(time.Hour)))}
			text, err := clientcmd.Write(*config)
			if err != nil {
				t.Fatal(err)
			}
			info := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "cluster-info", Namespace: "kube-public"}, Data: map[string]string{"kubeconfig": string(text)}}
			got := checkControlPlane(t.Context(), cfg, kubetest.Client(fake.NewClientset(append([]runtime.Object{info}, c.nodes...)...)))
			if c.text == "" {
				if len(got) > 0 {
					t.Errorf("%+v", got)
				}
				return
			}
			expect(t, name, got, c.level, c.text)
			if len(got) != 1 && name != "no list" {
				t.Errorf("%+v", got)
			}
		})
	}
}
