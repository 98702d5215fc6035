package install

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/autoscaler-agent/autoscaler-agent/bootstrap/secret"
	"github.com/autoscaler-agent/autoscaler-agent/internal/testing/kubetest"
)

// bare is a machine without systemd or Kubernetes.
func bare(t *testing.T) Host {
	return Host{Root: t.TempDir(), Binary: "/usr/bin/autoscaler-agent", GroupID: func(string) (int, bool) { return os.Getgid(), true },
		Run: func(context.Context, string, ...string) (string, error) { return "", errors.New("nothing runs here") }}
}

// TestRefusals: what an installation lacks is one line with its remedy, and nothing is
// written before it is known.
func TestRefusals(t *testing.T) {
	for name, c := range map[string]struct {
		systemd    bool
		kubeconfig string
		set        []Setting
		want       string
	}{
		"no systemd":    {false, "", nil, "systemd does not run here"},
		"no admin.conf": {true, "", nil, "--kubeconfig"},
		"no YAML":       {true, "{", nil, "read kubeconfig"},
		"no server": {true, "apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{name: c, context: {cluster: c, user: u}}]\nclusters: [{name: c, cluster: {server: 'http://127.0.0.1:1'}}]\nusers: [{name: u, user: {}}]\n",
			nil, "connection refused"},
		"misspelt":     {true, "", []Setting{{"AUTOSCALER_LISTN", "off"}}, "not a variable of this agent"},
		"not a name":   {true, "", []Setting{{"listen", "off"}}, "not a variable of this agent"},
		"unknown flag": {true, "", []Setting{{"--expander", "price"}}, "write AUTOSCALER_SCALING_EXPANDER"},
	} {
		t.Run(name, func(t *testing.T) {
			h := bare(t)
			if c.systemd {
				if err := os.MkdirAll(h.path("/run/systemd/system"), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			o := Options{AdminConf: filepath.Join(t.TempDir(), "admin.conf"), Set: c.set}
			if c.kubeconfig != "" {
				if err := os.WriteFile(o.AdminConf, []byte(c.kubeconfig), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			_, err := Install(t.Context(), h, o, time.Now())
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("error %v, want one line with %q", err, c.want)
			}
			if h.exists("/etc") {
				t.Error("something was written")
			}
		})
	}
}

// TestSecretsAreNotShown: another program's variable is named without its value.
func TestSecretsAreNotShown(t *testing.T) {
	h := bare(t)
	step, _, err := h.environment(t.Context(), Options{Set: []Setting{{"AUTOSCALER_PROVIDER", "nova"}, {"AWS_SECRET_ACCESS_KEY", "s3cret"}}}, nil)
	if err != nil || strings.Contains(step.Text, "s3cret") || !strings.Contains(step.Text, "AWS_SECRET_ACCESS_KEY") || !strings.Contains(step.Text, "AUTOSCALER_PROVIDER=nova") {
		t.Errorf("%q, %v", step.Text, err)
	}
}

// TestManifests: every object of the compiled-in manifests has an address.
func TestManifests(t *testing.T) {
	list, err := manifests("admission-policy.yaml", "rbac.yaml", "rbac-open-join.yaml", "rbac-clusterapi.yaml", "rbac-capacity.yaml")
	if err != nil || len(list) < 20 {
		t.Fatalf("%d objects, %v", len(list), err)
	}
	if list[0].Kind != "ValidatingAdmissionPolicy" {
		t.Errorf("the first object is a %s: the policies come before the rights", list[0].Kind)
	}
	for _, o := range list {
		if strings.Contains(o.path(), "//") || strings.HasSuffix(o.path(), "/") {
			t.Errorf("%s: path %s", o.Kind, o.path())
		}
	}
}

// TestNameLeaders: the ClusterRole that is applied names the control plane's Nodes, and has what the manifest has.
func TestNameLeaders(t *testing.T) {
	list, err := manifests("rbac.yaml")
	if err != nil {
		t.Fatal(err)
	}
	plain := string(list[0].data)
	if err := nameLeaders(list, nil); err != nil || string(list[0].data) != plain {
		t.Errorf("without leaders: %v, %s", err, list[0].data)
	}
	leader := func(name string) corev1.Node { return corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}} }
	if err := nameLeaders(list, []corev1.Node{leader("cp-2"), leader("cp-1")}); err != nil {
		t.Fatal(err)
	}
	var was, is rbacv1.ClusterRole
	if err := errors.Join(json.Unmarshal([]byte(plain), &was), json.Unmarshal(list[0].data, &is)); err != nil {
		t.Fatal(err)
	}
	n := len(was.Rules)
	if len(is.Rules) != n+1 || !reflect.DeepEqual(is.Rules[:n], was.Rules) || !slices.Equal(is.Rules[n].ResourceNames, []string{"cp-1", "cp-2"}) || is.Name != "autoscaler-agent" || is.Kind != "ClusterRole" {
		t.Errorf("%s", list[0].data)
	}
}

// TestUnitsNameTheBinary: every unit starts the binary that was installed.
func TestUnitsNameTheBinary(t *testing.T) {
	h := bare(t)
	if err := os.MkdirAll(h.path(ownUnits), 0o755); err != nil {
		t.Fatal(err)
	}
	steps, err := h.unitSteps()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range steps {
		if s.do != nil && strings.HasPrefix(s.Text, "write ") {
			if err := s.do(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, name := range unitFiles[:2] {
		data, err := os.ReadFile(h.path(ownUnits + name))
		if err != nil || !strings.Contains(string(data), "ExecStart=/usr/bin/autoscaler-agent ") || strings.Contains(string(data), "/usr/local") {
			t.Errorf("%s: %v: %s", name, err, data)
		}
	}
	again, err := h.unitSteps()
	if err != nil || again[0].State != Present {
		t.Errorf("%v, %v", again, err)
	}
}

// TestApplyStopsAtAFailure: later steps are not tried.
func TestApplyStopsAtAFailure(t *testing.T) {
	var did []string
	step := func(name string, err error) Step {
		return change(name, name, func(context.Context) error { did = append(did, name); return err })
	}
	var told []string
	err := Apply(t.Context(), []Step{present("a", "x"), step("b", nil), step("c", errors.New("full")), step("d", nil)}, func(s Step) { told = append(told, s.State) })
	if err == nil || !strings.Contains(err.Error(), "c: full") || strings.Join(did, "") != "bc" || strings.Join(told, " ") != "present done" {
		t.Errorf("did %v, told %v, %v", did, told, err)
	}
}

// TestLeavings: uninstall takes the agent's own objects, not those of a Cluster Autoscaler
// or of an operator beside it.
func TestLeavings(t *testing.T) {
	meta := func(name, manager string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: "kube-system", Name: name, ManagedFields: []metav1.ManagedFieldsEntry{{Manager: manager}}}
	}
	token := func(name string) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: meta(name, "x"), Type: "bootstrap.kubernetes.io/token"}
	}
	information := func(labels map[string]string) *corev1.Secret {
		x := &corev1.Secret{ObjectMeta: meta(secret.Name, "x")}
		x.Labels = labels
		return x
	}
	for _, c := range []struct {
		labels map[string]string
		stays  bool
	}{{map[string]string{secret.Label: "true"}, false}, {nil, true}} {
		client := fake.NewClientset(information(c.labels))
		if err := leavings(kubetest.Client(client)).do(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := client.CoreV1().Secrets("kube-system").Get(t.Context(), secret.Name, metav1.GetOptions{}); (err == nil) != c.stays {
			t.Errorf("the join information with labels %v: %v", c.labels, err)
		}
	}
	for manager, stays := range map[string]bool{"autoscaler-agent": false, "cluster-autoscaler": true} {
		client := fake.NewClientset(token("bootstrap-token-asa007"), token("bootstrap-token-asatru"), token("bootstrap-token-abcdef"),
			&corev1.ConfigMap{ObjectMeta: meta("cluster-autoscaler-status", manager)},
			&coordinationv1.Lease{ObjectMeta: meta("autoscaler-agent", "x")}, &coordinationv1.Lease{ObjectMeta: meta("cluster-autoscaler", "x")})
		if err := leavings(kubetest.Client(client)).do(t.Context()); err != nil {
			t.Fatal(err)
		}
		left := []string{}
		secrets, _ := client.CoreV1().Secrets("kube-system").List(t.Context(), metav1.ListOptions{})
		for _, s := range secrets.Items {
			left = append(left, s.Name)
		}
		leases, _ := client.CoordinationV1().Leases("kube-system").List(t.Context(), metav1.ListOptions{})
		for _, l := range leases.Items {
			left = append(left, l.Name)
		}
		if want := []string{"bootstrap-token-abcdef", "bootstrap-token-asatru", "cluster-autoscaler"}; !slices.Equal(left, want) {
			t.Errorf("left %q, want %q", left, want)
		}
		if _, err := client.CoreV1().ConfigMaps("kube-system").Get(t.Context(), "cluster-autoscaler-status", metav1.GetOptions{}); (err == nil) != stays {
			t.Errorf("the status page of %s: %v", manager, err)
		}
	}
}

// TestPagesCountObjects: what docs/install.md and docs/ha.md show of install counts the objects that it applies.
func TestPagesCountObjects(t *testing.T) {
	list, err := manifests("admission-policy.yaml", "rbac.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for page, format := range map[string]string{"install.md": "apply %d objects of admission-policy.yaml, rbac.yaml", "ha.md": "of the %d objects of admission-policy.yaml, rbac.yaml"} {
		text, err := os.ReadFile("../../docs/" + page)
		if want := fmt.Sprintf(format, len(list)); err != nil || !strings.Contains(string(text), want) {
			t.Errorf("docs/%s does not say %q: %v", page, want, err)
		}
	}
}
