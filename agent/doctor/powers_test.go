package doctor

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/internal/testing/kubetest"
)

// TestCheckPowers: pods on workers are named with the gravest right of their service account; those of the control
// plane, and those whose service accounts may do nothing grave, are not.
func TestCheckPowers(t *testing.T) {
	const bound = "system:serviceaccount:"
	may := map[string]string{ // by user: verb resource/subresource namespace
		bound + "ops:argo":           "* * ",
		bound + "ops:vault":          "get secrets kube-system",
		bound + "kube-system:leader": "* * ",
		bound + "shop:default":       "create nodes/proxy ",
	}
	pod := func(namespace, name, account, node string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: corev1.PodSpec{ServiceAccountName: account, NodeName: node}}
	}
	client := func(pods ...runtime.Object) *fake.Clientset {
		c := fake.NewClientset(append(pods, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "leader", Labels: map[string]string{cluster.LabelControlPlane: ""}}},
			&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "w1"}})...)
		c.PrependReactor("create", "subjectaccessreviews", func(a k8stesting.Action) (bool, runtime.Object, error) {
			r := a.(k8stesting.CreateAction).GetObject().(*authorizationv1.SubjectAccessReview)
			x := r.Spec.ResourceAttributes
			what := x.Verb + " " + x.Resource
			if x.Subresource != "" {
				what += "/" + x.Subresource
			}
			r.Status.Allowed = may[r.Spec.User] == what+" "+x.Namespace
			return true, r, nil
		})
		return c
	}
	harmless := []runtime.Object{pod("kube-system", "apiserver", "leader", "leader"), pod("shop", "web", "web", "w1")}
	if f := checkPowers(t.Context(), kubetest.Client(client(harmless...))); len(f) > 0 {
		t.Errorf("%+v", f)
	}
	grave := append(harmless, pod("ops", "argo-1", "argo", "w1"), pod("ops", "argo-2", "argo", "w1"), pod("ops", "vault-0", "vault", ""), pod("shop", "job", "", "w1"))
	f := checkPowers(t.Context(), kubetest.Client(client(grave...)))
	const want = "ops/argo-1 (service account argo may do everything), ops/vault-0 (service account vault may get secrets in kube-system), shop/job (service account default may create nodes/proxy everywhere)"
	if len(f) != 1 || f[0].Level != LevelWarning || !strings.HasSuffix(f[0].Text, ": "+want) {
		t.Errorf("got  %+v\nwant %s", f, want)
	}
	var crowd []runtime.Object
	for i := range accountsAsked + 7 {
		name := fmt.Sprintf("a-%03d", i)
		may[bound+"ops:"+name] = "* * "
		crowd = append(crowd, pod("ops", name, name, "w1"))
	}
	if f := checkPowers(t.Context(), kubetest.Client(client(crowd...))); len(f) != 1 || !strings.HasSuffix(f[0].Text, fmt.Sprintf(", %d more, 7 service accounts were not looked at", accountsAsked-accountsNamed)) {
		t.Errorf("%+v", f)
	}
	refused := client(grave...)
	refused.PrependReactor("create", "subjectaccessreviews", func(k8stesting.Action) (bool, runtime.Object, error) { return true, nil, errors.New("forbidden") })
	if f := checkPowers(t.Context(), kubetest.Client(refused)); len(f) != 1 || !strings.Contains(f[0].Text, "cannot be asked for: forbidden") {
		t.Errorf("%+v", f)
	}
}
