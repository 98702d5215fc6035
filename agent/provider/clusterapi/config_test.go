package clusterapi

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/clusterapi/capi"
)

func object(kind, namespace, name, cluster string, labels map[string]string) *capi.Scalable {
	o := &capi.Scalable{Kind: kind, Cluster: cluster}
	o.Namespace, o.Name, o.Labels = namespace, name, labels
	return o
}

// TestDiscoveryForms plays every form that Cluster Autoscaler's documents write.
func TestDiscoveryForms(t *testing.T) {
	objects := map[string]*capi.Scalable{
		"blue":    object(kindDeployment, "blue", "a", "other", nil),
		"test1":   object(kindDeployment, "red", "b", "test1", nil),
		"green":   object(kindDeployment, "red", "c", "other", map[string]string{"color": "green", "shape": "square"}),
		"circle":  object(kindDeployment, "red", "d", "other", map[string]string{"color": "green", "shape": "circle"}),
		"jim":     object(kindDeployment, "staging", "e", "purple", map[string]string{"owner": "jim"}),
		"not jim": object(kindDeployment, "staging", "f", "purple", map[string]string{"owner": "tim"}),
	}
	for _, c := range []struct {
		value string
		want  []string
	}{
		{"clusterapi:namespace=blue", []string{"blue"}},
		{"clusterapi:clusterName=test1", []string{"test1"}},
		{"clusterapi:color=green,shape=square", []string{"green"}},
		{"clusterapi:namespace=staging,clusterName=purple,owner=jim", []string{"jim"}},
		{"clusterapi:namespace=blue clusterapi:clusterName=test1", []string{"blue", "test1"}},
		{"clusterapi:namespace=blue;clusterapi:color=green,shape=circle", []string{"blue", "circle"}},
		{"clusterapi:namespace=blue,clusterapi:clusterName=test1", []string{"blue", "test1"}},
		{"clusterapi:", []string{"blue", "circle", "green", "jim", "not jim", "test1"}},
	} {
		var d Discovery
		if err := d.Decode(c.value); err != nil {
			t.Fatal(err)
		}
		set, err := Config{AutoDiscovery: d}.parse()
		if err != nil {
			t.Errorf("%s: %v", c.value, err)
		}
		var got []string
		for name, o := range objects {
			if slices.ContainsFunc(set.rules, func(r rule) bool { return r.matches(o) }) {
				got = append(got, name)
			}
		}
		slices.Sort(got)
		if !slices.Equal(got, c.want) {
			t.Errorf("%s finds %v, want %v", c.value, got, c.want)
		}
	}
}

// Cluster Autoscaler watches the first namespace only.
func TestEveryNamespaceIsRead(t *testing.T) {
	for value, want := range map[string][]string{
		"clusterapi:namespace=blue clusterapi:namespace=red":    {"blue", "red"},
		"clusterapi:namespace=blue clusterapi:clusterName=test": {""},
	} {
		var d Discovery
		_ = d.Decode(value)
		set, _ := Config{AutoDiscovery: d}.parse()
		if got := set.namespaces(); !slices.Equal(got, want) {
			t.Errorf("%s: reads %q, want %q", value, got, want)
		}
	}
}

func TestValidateNamesEveryMistake(t *testing.T) {
	good := Config{ClusterName: "demo", Timeout: time.Second}
	if err := good.Validate(); err != nil {
		t.Error(err)
	}
	for want, c := range map[string]Config{
		"AUTOSCALER_CLUSTERAPI_CLUSTER_NAME":                {Timeout: time.Second},
		`AUTOSCALER_CLUSTERAPI_AUTO_DISCOVERY: "asg:tag=x"`: {AutoDiscovery: Discovery{"asg:tag=x"}, Timeout: time.Second},
		`"owner" is no key=value`:                           {AutoDiscovery: Discovery{"clusterapi:owner"}, Timeout: time.Second},
		"AUTOSCALER_CLUSTERAPI_SCALE_ZERO_DEFAULT_ARCH":     {ClusterName: "demo", ScaleZeroDefaultArch: "arm", Timeout: time.Second},
		"AUTOSCALER_CLUSTERAPI_GROUP":                       {ClusterName: "demo", Group: "cluster.x-k8s.io/v1beta1", Timeout: time.Second},
		"AUTOSCALER_CLUSTERAPI_VERSION":                     {ClusterName: "demo", Version: "cluster.x-k8s.io/v1beta1", Timeout: time.Second},
		`AUTOSCALER_CLUSTERAPI_VERSION: "v1alpha4": the objects of v1alpha3 and v1alpha4 are not read: write v1beta1 or v1beta2`: {ClusterName: "demo", Version: "v1alpha4", Timeout: time.Second},
		"AUTOSCALER_CLUSTERAPI_MARK_LEAD":                      {ClusterName: "demo", Timeout: time.Second, MarkLead: time.Hour},
		"AUTOSCALER_CLUSTERAPI_TIMEOUT":                        {ClusterName: "demo"},
		"AUTOSCALER_CLUSTERAPI_ADDITIONAL_SYNC_MACHINE_LABELS": {ClusterName: "demo", AdditionalSyncMachineLabels: []string{"("}, Timeout: time.Second},
	} {
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error is %v, want %q in it", err, want)
		}
	}
}

// TestEnvironmentOfClusterAutoscaler: CAPI_GROUP, CAPI_VERSION and
// CAPI_SCALE_ZERO_DEFAULT_ARCH hold, and the agent's own names win.
func TestEnvironmentOfClusterAutoscaler(t *testing.T) {
	t.Setenv("CAPI_GROUP", "test.k8s.io")
	t.Setenv("CAPI_VERSION", "v1beta1")
	t.Setenv("CAPI_SCALE_ZERO_DEFAULT_ARCH", "s390x")
	s, err := Config{}.parse()
	if err != nil || s.version != "v1beta1" || s.arch != "s390x" {
		t.Errorf("%+v, %v", s, err)
	}
	for got, want := range map[string]string{
		s.keys.minSize():       "test.k8s.io/cluster-api-autoscaler-node-group-min-size",
		s.keys.maxSize():       "test.k8s.io/cluster-api-autoscaler-node-group-max-size",
		s.keys.machine():       "test.k8s.io/machine",
		s.keys.deleteMachine(): "test.k8s.io/delete-machine",
		s.keys.clusterName():   "test.k8s.io/cluster-name",
	} {
		if got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	s, _ = Config{Group: "own.example", Version: "v1beta1", ScaleZeroDefaultArch: "arm64"}.parse()
	if s.keys.group != "own.example" || s.version != "v1beta1" || s.arch != "arm64" {
		t.Errorf("the agent's own names do not win: %+v", s)
	}
	t.Setenv("CAPI_VERSION", "v1alpha3")
	if _, err := (Config{}).parse(); err == nil || !strings.Contains(err.Error(), `CAPI_VERSION: "v1alpha3": the objects of`) {
		t.Errorf("v1alpha3 is taken: %v", err)
	}
	t.Setenv("CAPI_SCALE_ZERO_DEFAULT_ARCH", "sparc")
	if s, _ = (Config{}).parse(); s.arch != "amd64" || !strings.Contains(s.archGuess, "sparc") {
		t.Errorf("an architecture that is none: %+v", s)
	}
	for _, name := range []string{"CAPI_GROUP", "CAPI_VERSION", "CAPI_SCALE_ZERO_DEFAULT_ARCH"} {
		t.Setenv(name, "")
	}
	if s, _ = (Config{}).parse(); s.keys.group != "cluster.x-k8s.io" || s.version != "" || s.arch != "amd64" {
		t.Errorf("defaults: %+v", s)
	}
}

func kubeconfig(t *testing.T, server string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "kubeconfig")
	text := "apiVersion: v1\nkind: Config\ncurrent-context: x\nclusters: [{name: x, cluster: {server: '" + server + "'}}]\ncontexts: [{name: x, context: {cluster: x}}]\n"
	if err := os.WriteFile(to, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return to
}

// TestFiveArrangements: --kubeconfig is AUTOSCALER_KUBECONFIG, --cloud-config and
// --clusterapi-cloud-config-authoritative are the two variables of their names.
func TestFiveArrangements(t *testing.T) {
	defer func() { inCluster = rest.InClusterConfig }()
	inCluster = func() (*rest.Config, error) { return &rest.Config{Host: "https://in-cluster"}, nil }
	workload, management := kubeconfig(t, "https://workload"), kubeconfig(t, "https://management")
	for name, c := range map[string]struct {
		kubeconfig           string
		config               Config
		management, workload string
	}{
		"joined cluster with service account":                                {"", Config{}, "https://in-cluster", "https://in-cluster"},
		"in the workload cluster, --cloud-config":                            {"", Config{CloudConfig: management}, "https://management", "https://in-cluster"},
		"in the management cluster, --clusterapi-cloud-config-authoritative": {workload, Config{CloudConfigAuthoritative: true}, "https://in-cluster", "https://workload"},
		"anywhere, two kubeconfigs":                                          {workload, Config{CloudConfig: management}, "https://management", "https://workload"},
		"anywhere, one kubeconfig":                                           {workload, Config{}, "https://workload", "https://workload"},
	} {
		m, w, err := c.config.configs(c.kubeconfig)
		if err != nil || m.Host != c.management || w.Host != c.workload {
			t.Errorf("%s: %v: management %+v, workload %+v", name, err, m, w)
		}
	}
	inCluster = func() (*rest.Config, error) { return nil, errors.New("not in a pod") }
	if _, _, err := (Config{}).configs(""); err == nil || !strings.Contains(err.Error(), "AUTOSCALER_CLUSTERAPI_CLOUD_CONFIG") {
		t.Errorf("the error does not say what to set: %v", err)
	}
	if _, _, err := (Config{CloudConfig: filepath.Join(t.TempDir(), "none")}).configs(workload); err == nil {
		t.Error("a kubeconfig that is not there")
	}
}
