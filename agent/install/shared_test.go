package install

import (
	"os"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/autoscaler-agent/autoscaler-agent/internal/kube"
	"github.com/autoscaler-agent/autoscaler-agent/internal/testing/kubetest"
)

// settle does the steps to a machine's settings as Install does, and returns their texts by subject.
func settle(t *testing.T, h Host, client *kube.Client, o Options) map[string]Step {
	t.Helper()
	others, err := readShared(t.Context(), client)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(h.path(configDir), 0o750); err != nil { // an earlier step makes it
		t.Fatal(err)
	}
	o.Set = beside(o.Set, others.env)
	steps, err := h.settings(t.Context(), o, client, others)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]Step{}
	if err := Apply(t.Context(), steps, func(s Step) { out[s.About] = s }); err != nil {
		t.Fatal(err)
	}
	return out
}

func (h Host) text(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(h.path(name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// TestSecondLeader: the second machine gets the settings and groups.yaml of the first, and neither
// what is the first machine's own nor another program's variable.
func TestSecondLeader(t *testing.T) {
	client := kubetest.Client(fake.NewClientset())
	first, second := bare(t), bare(t)
	const groups = "controlPlane:\n- node: cp-2\n  addresses: [10.0.0.12]\n"
	first.put(t, groupsFile, groups)
	steps := settle(t, first, client, Options{Set: []Setting{{"AUTOSCALER_PROVIDER", "nova"}, {"AUTOSCALER_NOVA_CLUSTER_NAME", "a b"},
		{"AUTOSCALER_NODE_NAME", "cp-1.example.net"}, {"AUTOSCALER_CSR_SELF_NAMES", "198.51.100.1"}, {"OS_PASSWORD", "s3cret"}}})
	if s := steps["shared"]; s.State != Done || !strings.Contains(s.Text, "publish 2 settings and groups.yaml") {
		t.Errorf("%+v", s)
	}
	m, err := client.CoreV1().ConfigMaps("kube-system").Get(t.Context(), sharedName, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, own := range []string{"s3cret", "OS_PASSWORD", "NODE_NAME", "SELF_NAMES"} {
		if strings.Contains(m.Data[sharedEnv], own) {
			t.Errorf("%s is published: %s", own, m.Data[sharedEnv])
		}
	}
	steps = settle(t, second, client, Options{Set: []Setting{{"AUTOSCALER_NODE_NAME", "cp-2"}}})
	env := second.text(t, envFile)
	for _, want := range []string{"\nAUTOSCALER_PROVIDER=nova\n", "\nAUTOSCALER_NOVA_CLUSTER_NAME=\"a b\"\n", "AUTOSCALER_NODE_NAME=cp-2\n"} {
		if !strings.Contains(env, want) {
			t.Errorf("the second machine lacks %q", want)
		}
	}
	if got := second.text(t, groupsFile); got != groups {
		t.Errorf("groups.yaml is %q", got)
	}
	if st, err := os.Stat(second.path(groupsFile)); err != nil || st.Mode().Perm() != 0o640 {
		t.Errorf("%v %v", st.Mode(), err)
	}
	if s := steps["shared"]; s.State != Present || !strings.Contains(s.Text, "are those of the other leaders") {
		t.Errorf("%+v", s)
	}
	if s := settle(t, second, client, Options{}); s["settings"].State != Present || s["shared"].State != Present || s["groups"].About != "" {
		t.Errorf("the second run: %+v", s)
	}
}

// TestLeadersThatDiffer: what a machine has stays, what differs is named, and only --publish makes
// it the others'.
func TestLeadersThatDiffer(t *testing.T) {
	client := kubetest.Client(fake.NewClientset())
	first, second := bare(t), bare(t)
	settle(t, first, client, Options{Set: []Setting{{"AUTOSCALER_PROVIDER", "nova"}, {"AUTOSCALER_LISTEN", "off"}}})
	second.put(t, groupsFile, "groups: {}\n")
	second.put(t, envFile, "AUTOSCALER_LISTEN=127.0.0.1:9\nAUTOSCALER_AWS_REGION=eu-west-1\n")
	s := settle(t, second, client, Options{})["shared"]
	if s.State != Present || !strings.Contains(s.Text, "its own AUTOSCALER_AWS_REGION, AUTOSCALER_LISTEN, groups.yaml:") {
		t.Errorf("%+v", s)
	}
	if env := second.text(t, envFile); !strings.Contains(env, "AUTOSCALER_LISTEN=127.0.0.1:9\n") || !strings.Contains(env, "AUTOSCALER_PROVIDER=nova\n") {
		t.Errorf("the second machine has\n%s", env)
	}
	if s := settle(t, second, client, Options{Publish: true})["shared"]; s.State != Done {
		t.Errorf("%+v", s)
	}
	others, err := readShared(t.Context(), client)
	if err != nil || others.groups != "groups: {}\n" || !slices.Contains(others.env, Setting{"AUTOSCALER_LISTEN", "127.0.0.1:9"}) {
		t.Errorf("%+v, %v", others, err)
	}
	if s := settle(t, first, client, Options{})["shared"]; s.State != Present || !strings.Contains(s.Text, "AUTOSCALER_LISTEN") {
		t.Errorf("%+v", s)
	}
}

// TestSharedIsJudged: what stands in the ConfigMap is no more than settings that this agent knows.
func TestSharedIsJudged(t *testing.T) {
	for name, c := range map[string]struct{ env, want string }{
		"another program's": {"LD_PRELOAD=/tmp/x\nAWS_SECRET_ACCESS_KEY=k\nAUTOSCALER_PROVIDER=asg\n", ""},
		"unknown":           {"AUTOSCALER_PROVIDER=asg\nAUTOSCALER_FUTURE=1\n", ""},
		"another machine's": {"AUTOSCALER_PROVIDER=asg\nAUTOSCALER_NODE_NAME=cp-1\n", ""},
		"no file":           {"AUTOSCALER_PROVIDER\n\x00", "correct it, or delete the ConfigMap"},
	} {
		client := kubetest.Client(fake.NewClientset(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: sharedName, Namespace: "kube-system"}, Data: map[string]string{sharedEnv: c.env}}))
		got, err := readShared(t.Context(), client)
		if c.want != "" {
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if err != nil || !slices.Equal(got.env, []Setting{{"AUTOSCALER_PROVIDER", "asg"}}) {
			t.Errorf("%s: %+v %v", name, got.env, err)
		}
	}
}

// TestGroupsFileIsReadable: a groups.yaml that root alone reads is given to the agent's group.
func TestGroupsFileIsReadable(t *testing.T) {
	for name, c := range map[string]struct {
		mode, want os.FileMode
		changed    bool
	}{"root's alone": {0o600, 0o640, true}, "the group's": {0o640, 0o640, false}, "everybody's": {0o644, 0o644, false}} {
		h := bare(t)
		h.put(t, groupsFile, "groups: {}\n")
		if err := os.Chmod(h.path(groupsFile), c.mode); err != nil {
			t.Fatal(err)
		}
		steps := settle(t, h, kubetest.Client(fake.NewClientset()), Options{Set: []Setting{{"AUTOSCALER_PROVIDER", "nova"}}})
		if st, err := os.Stat(h.path(groupsFile)); err != nil || st.Mode().Perm() != c.want || (steps["groups"].State == Done) != c.changed {
			t.Errorf("%s: %v %v, %+v", name, st.Mode(), err, steps["groups"])
		}
	}
}
