package doctor

import (
	"encoding/pem"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"

	"github.com/autoscaler-agent/autoscaler-agent/agent/config"
	"github.com/autoscaler-agent/autoscaler-agent/bootstrap"
	"github.com/autoscaler-agent/autoscaler-agent/csrsigner"
	"github.com/autoscaler-agent/autoscaler-agent/internal/testing/kubetest"
)

// TestCheckJoin: the mode that is active is what the API server's authorizer says, not
// what the configuration wishes.
func TestCheckJoin(t *testing.T) {
	for name, c := range map[string]struct {
		join     string
		approved bool // nodeclient is granted
		lacks    string
		level    Level
		want     string
	}{
		"closed":                 {"closed", false, "", LevelOK, "closed: the API server says"},
		"closed, yet approved":   {"closed", true, "", LevelError, "should be closed"},
		"closed, without rights": {"closed", false, "nodes", LevelError, "may not get nodes"},
		"open":                   {"open", true, "", LevelOK, "open: whoever has a join token"},
		"open, not approved":     {"open", false, "", LevelError, "no machine can join"},
	} {
		t.Run(name, func(t *testing.T) {
			var cfg config.Config
			cfg.CSR.Enabled, cfg.Bootstrap.Enabled, cfg.CSR.Join = true, true, c.join
			group := cfg.JoinGroups()[0]
			client := fake.NewClientset(&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "everybody-is-welcome"},
				RoleRef:  rbacv1.RoleRef{Kind: "ClusterRole", Name: "system:certificates.k8s.io:certificatesigningrequests:nodeclient"},
				Subjects: []rbacv1.Subject{{Kind: "Group", Name: "system:bootstrappers"}}})
			client.PrependReactor("create", "subjectaccessreviews", func(a clienttesting.Action) (bool, runtime.Object, error) {
				r := a.(clienttesting.CreateAction).GetObject().(*authorizationv1.SubjectAccessReview)
				if !strings.Contains(strings.Join(r.Spec.Groups, " "), group) || !strings.HasPrefix(r.Spec.User, "system:bootstrap:") {
					t.Errorf("asked for %s of %v", r.Spec.User, r.Spec.Groups)
				}
				r.Status.Allowed = r.Spec.ResourceAttributes.Resource != c.lacks
				if r.Spec.ResourceAttributes.Subresource == "nodeclient" {
					r.Status.Allowed = c.approved
				}
				return true, r, nil
			})
			found := checkJoin(t.Context(), cfg, kubetest.Client(client))
			if len(found) != 1 || found[0].Level != c.level || !strings.Contains(found[0].Text, c.want) || (c.level == LevelError) != (found[0].Remedy != "") {
				t.Errorf("%+v", found)
			}
			if c.approved && !strings.Contains(found[0].Text, "everybody-is-welcome") {
				t.Errorf("%+v does not name the binding", found)
			}
		})
	}
}

// TestRBACOfTheClosedJoin: the file that ships gives the workers' group what a join needs
// and no approval.
func TestRBACOfTheClosedJoin(t *testing.T) {
	text := readFile(t, "../../units/rbac.yaml")
	if !strings.Contains(text, bootstrap.WorkersGroup) || !strings.Contains(text, "name: system:node-bootstrapper") {
		t.Error("the workers' group is not bound")
	}
	if strings.Contains(text, "certificatesigningrequests:nodeclient") {
		t.Error("the workers' group is bound to automatic approval")
	}
}

// TestPoolOfTokenNames: the Secrets that RBAC names are those of the pool, the policy takes
// the same names, and every policy refuses.
func TestPoolOfTokenNames(t *testing.T) {
	rbac, policies := readFile(t, "../../units/rbac.yaml"), readFile(t, "../../units/admission-policy.yaml")
	if got := regexp.MustCompile(`bootstrap-token-\w+`).FindAllString(rbac, -1); !slices.Equal(got, bootstrap.PoolNames()) {
		t.Errorf("rbac.yaml names %d Secrets, the pool has %d: %v", len(got), len(bootstrap.PoolNames()), got)
	}
	m := regexp.MustCompile(`matches\('(\^bootstrap-token-[^']*)'\)`).FindStringSubmatch(policies)
	if m == nil {
		t.Fatal("the policy names no Secrets")
	}
	form := regexp.MustCompile(m[1])
	for n := range 1000 {
		name := fmt.Sprintf("bootstrap-token-asa%03d", n)
		if form.MatchString(name) != slices.Contains(bootstrap.PoolNames(), name) {
			t.Errorf("policy and pool differ about %s", name)
		}
	}
	count := func(text string) int { return strings.Count(policies, text) }
	n := count("kind: ValidatingAdmissionPolicy\n")
	if n != 12 || // of one policy there are two bindings, by the two labels of the control plane
		count("kind: ValidatingAdmissionPolicyBinding\n") != n+1 || count("failurePolicy: Fail\n") != n || count("validationActions: [Deny]\n") != n+1 || count("request.userInfo.username == 'autoscaler-agent'\n")+count("request.userInfo.username != 'autoscaler-agent' ||") != n {
		t.Errorf("of %d policies not all refuse, are bound and are for the agent's user", n)
	}
	if regexp.MustCompile(`resources: \[secrets\]\n  verbs: \[[^\]]*(list|watch)`).MatchString(rbac) {
		t.Error("rbac.yaml lets the agent list Secrets")
	}
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// TestCheckProtected: what csrsigner may not read of the cluster's own names and addresses
// is a finding, with its remedy.
func TestCheckProtected(t *testing.T) {
	server := httptest.NewTLSServer(nil)
	defer server.Close()
	kubeconfig := &rest.Config{Host: server.URL, TLSClientConfig: rest.TLSClientConfig{CAData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})}}
	cluster := func() *fake.Clientset {
		return fake.NewClientset(
			&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "kubernetes"}, Spec: corev1.ServiceSpec{ClusterIPs: []string{"10.96.0.1"}}},
			&networkingv1.ServiceCIDR{ObjectMeta: metav1.ObjectMeta{Name: "kubernetes"}, Spec: networkingv1.ServiceCIDRSpec{CIDRs: []string{"10.96.0.0/12"}}})
	}
	cfg := config.Config{Services: config.Services{CSR: csrsigner.Config{Enabled: true}}}
	for name, c := range map[string]struct {
		verb, resource string
		level          Level
		text           string
	}{
		"all":             {"", "", LevelOK, "service ranges [10.96.0.0/12]"},
		"no endpoints":    {"list", "endpointslices", LevelWarning, "list EndpointSlices"},
		"no ServiceCIDRs": {"list", "servicecidrs", LevelError, "AUTOSCALER_CSR_SERVICE_CIDRS"},
		"no Service":      {"get", "services", LevelError, "read Service default/kubernetes"},
	} {
		client := cluster()
		if c.verb != "" {
			client.PrependReactor(c.verb, c.resource, func(clienttesting.Action) (bool, runtime.Object, error) {
				return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: c.resource}, "", errors.New("no right"))
			})
		}
		got := checkProtected(t.Context(), cfg, kubetest.Client(client), kubeconfig)
		if len(got) != 1 || got[0].Level != c.level || !strings.Contains(got[0].Text, c.text) || (c.level == LevelOK) != (got[0].Remedy == "") {
			t.Errorf("%s: %+v, want %s %q", name, got, c.level, c.text)
		}
	}
	if got := checkProtected(t.Context(), config.Config{}, kubetest.Client(cluster()), kubeconfig); len(got) != 0 {
		t.Errorf("csrsigner is off: %+v", got)
	}
}

// TestRightsOfR9: what R9 reads is granted by the file that ships, and check asks for it.
func TestRightsOfR9(t *testing.T) {
	text := readFile(t, "../../units/rbac.yaml")
	for _, r := range serviceRights(config.Services{CSR: csrsigner.Config{Enabled: true}}) {
		if !strings.Contains(text, r.resource) {
			t.Errorf("%s is asked for and not in rbac.yaml", r)
		}
	}
	list := fmt.Sprint(serviceRights(config.Services{CSR: csrsigner.Config{Enabled: true}}))
	for _, want := range []string{"list servicecidrs.networking.k8s.io", "list endpointslices.discovery.k8s.io in default"} {
		if !strings.Contains(list, want) {
			t.Errorf("%q is not asked for: %s", want, list)
		}
	}
}
