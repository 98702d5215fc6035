package doctor

import (
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"

	"github.com/autoscaler-agent/autoscaler-agent/agent/config"
	"github.com/autoscaler-agent/autoscaler-agent/bootstrap"
	"github.com/autoscaler-agent/autoscaler-agent/internal/testing/kubetest"
)

// TestCheckTokens: a token of others that never expires is a warning that names it; one whose
// end may not be read is named as that; the agent's own and those with an end are no warning.
func TestCheckTokens(t *testing.T) {
	token := func(id string, expires string) *corev1.Secret {
		s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "bootstrap-token-" + id}, Type: "bootstrap.kubernetes.io/token",
			Data: map[string][]byte{"token-id": []byte(id), "token-secret": []byte("0123456789abcdef"), "usage-bootstrap-signing": []byte("true"), "usage-bootstrap-authentication": []byte("true")}}
		if expires != "" {
			s.Data["expiration"] = []byte(expires)
		}
		return s
	}
	soon := time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	own := token("asa000", soon)
	own.Labels = map[string]string{bootstrap.TokenLabel: "true"}
	info := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-public", Name: "cluster-info"}, Data: map[string]string{
		"kubeconfig": "apiVersion: v1\nkind: Config\nclusters: [{name: '', cluster: {server: 'https://api:6443'}}]\n", "jws-kubeconfig-asa000": "x",
		"jws-kubeconfig-aaaaaa": "x", "jws-kubeconfig-bbbbbb": "x", "jws-kubeconfig-cccccc": "x"}}
	client := fake.NewClientset(info, own, token("aaaaaa", ""), token("bbbbbb", soon), token("cccccc", ""))
	client.PrependReactor("get", "secrets", func(a k8stesting.Action) (bool, runtime.Object, error) {
		name := a.(k8stesting.GetAction).GetName()
		return name == "bootstrap-token-cccccc", nil, apierrors.NewForbidden(corev1.Resource("secrets"), name, errors.New("by rbac.yaml"))
	})
	found := checkTokens(t.Context(), config.Config{Services: config.Services{Bootstrap: bootstrap.Config{Enabled: true}}}, kubetest.Client(client))
	if len(found) != 2 || found[0].Level != LevelWarning || !strings.Contains(found[0].Text, "token aaaaaa is not the agent's and never expires") || found[0].Remedy != "kubeadm token delete aaaaaa" {
		t.Errorf("%+v", found)
	}
	last := found[len(found)-1]
	if last.Level != LevelOK || !strings.Contains(last.Text, "1 of the agent's live; cccccc of others") || strings.Contains(last.Text, "bbbbbb") {
		t.Errorf("%+v", last)
	}
}
