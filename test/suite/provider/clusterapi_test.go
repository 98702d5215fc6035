package provider_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/yaml"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/clusterapi"
	"github.com/autoscaler-agent/autoscaler-agent/internal/testing/providertest"
	"github.com/autoscaler-agent/autoscaler-agent/test/await"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/cloud/capi"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/controlplane"
)

// oldGroup is an API group of its own that only knows v1beta1: Cluster API as it was
// before v1beta2, under CAPI_GROUP.
const oldGroup = "test.k8s.io"

// TestClusterAPI runs the suite against a real API server with Cluster API's real
// CustomResourceDefinitions, under the rights that ship with the unit: with each kind
// that scales, and in each contract. The stories of clusterapi_story_test.go share the
// control plane.
func TestClusterAPI(t *testing.T) {
	cp := controlplane.ForTest(t, controlplane.Options{Fast: true})
	ctx, cancel := context.WithTimeout(context.Background(), await.Limit)
	defer cancel()
	if err := errors.Join(capi.Install(ctx, cp.RESTConfig(), capi.Group, ""), capi.Install(ctx, cp.RESTConfig(), oldGroup, "v1beta1")); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		how            string
		kind           string
		group, version string
		all            bool
	}{
		{"MachineDeployment v1beta2", "MachineDeployment", capi.Group, "v1beta2", true},
		{"MachineDeployment v1beta1 and CAPI_GROUP", "MachineDeployment", oldGroup, "v1beta1", false},
		{"MachineSet", "MachineSet", capi.Group, "v1beta2", false},
		{"MachinePool", "MachinePool", capi.Group, "v1beta2", false},
	} {
		t.Run(c.how, func(t *testing.T) {
			t.Parallel()
			suite := providertest.Suite{
				New: func(t testing.TB) (provider.Provider, providertest.World) {
					w := newCAPIWorld(t, cp, c.kind, c.group, c.version)
					w.suite(t)
					return w.renamed(w.connect(t, clusterapi.Config{ClusterName: "demo", Namespace: w.namespace, Group: c.group})), w
				},
				Settle: func(t testing.TB, w providertest.World) { w.(*capiWorld).settle(t) },
				Cannot: capiCannot,
			}
			if c.all || os.Getenv("AUTOSCALER_TEST_NO_SKIP") == "1" {
				suite.Run(t)
				return
			}
			// The whole suite takes a minute for each of these; every night plays it.
			for _, name := range inShort {
				for _, complaint := range suite.Fails(t, name) {
					t.Errorf("%s: %s", name, complaint)
				}
			}
		})
	}
	for name, story := range capiStories {
		t.Run(name, func(t *testing.T) { story(t, cp) })
	}
}

var capiCannot = map[string]string{
	"SourceIsTold":          capiTellsNoSource,
	"SourceAfterAChange":    capiTellsNoSource,
	"SourceThroughRotation": capiTellsNoSource,
	"SourceTellsUserData":   capiTellsNoSource,
	"MalformedIDIsUnknown":  "Cluster API does not know how the provider IDs of its clouds are written",
	"ReadLagsBehindWrites":  "no resource version is asked for, so an API server's answer is never older than the question",
	"DeleteMoreThanSurplus": "a MachineSet ends machines itself when somebody lowers the count, and knows no protection from it",
}

const capiTellsNoSource = "a MachineDeployment rolls out its changes itself"

// inShort are the cases in which kinds and contracts differ. AUTOSCALER_TEST_NO_SKIP=1
// plays the others for every kind, too.
var inShort = []string{"ReadIsWhole", "TemplateFromZero", "QuotaIsExhausted", "FailedInstance", "ConcurrentResizes", "DeleteTwiceIsOnce", "ConcurrentDeletes"}

// capiWorld is one namespace of the management cluster with its controllers, and a
// service account with the rights of units/rbac-clusterapi.yaml.
type capiWorld struct {
	*capi.Cloud
	cp         *controlplane.ControlPlane
	proxy      *capi.Proxy
	kind       string
	namespace  string
	kubeconfig string // the agent's, through the proxy
	role       *rbacv1.ClusterRole
}

// realCores are the control planes on which Cluster API's own controllers run.
var realCores sync.Map

var _ providertest.World = (*capiWorld)(nil)

var worlds atomic.Int64

func newCAPIWorld(t testing.TB, cp *controlplane.ControlPlane, kind, group, version string) *capiWorld {
	t.Helper()
	ctx := context.Background()
	w := &capiWorld{cp: cp, kind: kind, namespace: fmt.Sprintf("world-%d", worlds.Add(1))}
	client := cp.Client()
	if _, err := client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.namespace}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	var err error
	if w.proxy, err = capi.NewProxy(cp.RESTConfig()); err != nil {
		t.Fatal(err)
	}
	_, real := realCores.Load(cp)
	w.Cloud, err = capi.New(capi.Options{
		Config: cp.RESTConfig(), Namespace: w.namespace, Group: group, Version: version, RealCore: real,
		Provision: 5 * time.Millisecond, Boot: 5 * time.Millisecond, Terminate: 5 * time.Millisecond, Retry: 20 * time.Millisecond, Log: t.Output(),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		w.Cloud.Close()
		w.proxy.Close()
	})
	w.kubeconfig = w.account(t, group)
	return w
}

// account makes the service account, gives it the shipped rights, and writes its
// kubeconfig.
func (w *capiWorld) account(t testing.TB, group string) string {
	t.Helper()
	ctx, client := context.Background(), w.cp.Client()
	raw, err := os.ReadFile("../../../units/rbac-clusterapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	doc, _, _ := strings.Cut(string(raw), "\n---\n")
	if err := yaml.UnmarshalStrict([]byte(strings.ReplaceAll(doc, "["+capi.Group+"]", "["+group+"]")), &w.role); err != nil {
		t.Fatal(err)
	}
	w.role.Name += "-" + w.namespace
	// The workload cluster's part of the rights (units/rbac.yaml).
	w.role.Rules = append(w.role.Rules, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"get", "list"}})
	binding := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: w.role.Name},
		RoleRef:  rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "ClusterRole", Name: w.role.Name},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Name: "agent", Namespace: w.namespace}}}
	if w.role, err = client.RbacV1().ClusterRoles().Create(ctx, w.role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := client.RbacV1().ClusterRoleBindings().Create(ctx, binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := client.CoreV1().ServiceAccounts(w.namespace).Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "agent"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	token, err := client.CoreV1().ServiceAccounts(w.namespace).CreateToken(ctx, "agent", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	w.awaitRight(t, "list", true)
	c := clientcmdapi.NewConfig()
	c.Clusters["w"] = &clientcmdapi.Cluster{Server: w.proxy.URL, CertificateAuthorityData: w.proxy.CA}
	c.AuthInfos["agent"] = &clientcmdapi.AuthInfo{Token: token.Status.Token}
	c.Contexts["w"] = &clientcmdapi.Context{Cluster: "w", AuthInfo: "agent"}
	c.CurrentContext = "w"
	to := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*c, to); err != nil {
		t.Fatal(err)
	}
	return to
}

// awaitRight waits until the API server's authorizer knows whether the account may do
// verb to machines.
func (w *capiWorld) awaitRight(t testing.TB, verb string, want bool) {
	t.Helper()
	await.Nil(t, fmt.Sprintf("the right to %s machines is %t", verb, want), func(ctx context.Context) error {
		review, err := w.cp.Client().AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{
			Spec: authorizationv1.SubjectAccessReviewSpec{User: "system:serviceaccount:" + w.namespace + ":agent",
				ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: w.namespace, Verb: verb, Group: w.role.Rules[1].APIGroups[0], Resource: "machines"}}}, metav1.CreateOptions{})
		if err == nil && review.Status.Allowed != want {
			err = errors.New("the authorizer says otherwise")
		}
		return err
	})
}

// suite makes the groups of providertest, and a foreign one of another cluster.
func (w *capiWorld) suite(t testing.TB) {
	t.Helper()
	ctx := context.Background()
	status := map[string]any{"capacity": map[string]any{"cpu": "4", "memory": "16Gi", "ephemeral-storage": "100Gi", "nvidia.com/gpu": "1"},
		"nodeInfo": map[string]any{"architecture": "amd64", "operatingSystem": "linux"}}
	err := errors.Join(w.PutCluster(ctx, "demo", nil), w.PutCluster(ctx, "foreign", nil),
		w.PutTemplate(ctx, "template-workers", "m1.large", status), w.PutTemplate(ctx, "template-others", "m1.small", status))
	for _, g := range []capi.Workers{
		{Name: "workers", Cluster: "demo", Replicas: 2, Min: "0", Max: "10", Template: "template-workers",
			Taints: nil, TemplateLabels: map[string]string{"node-role.kubernetes.io/worker": ""}},
		{Name: "others", Cluster: "demo", Replicas: 1, Min: "1", Max: "3", Template: "template-others"},
		{Name: "foreign", Cluster: "foreign", Replicas: 0, Min: "0", Max: "3", Template: "template-others"},
	} {
		err = errors.Join(err, w.put(ctx, g))
	}
	if err != nil {
		t.Fatal(err)
	}
	w.settle(t)
}

func (w *capiWorld) put(ctx context.Context, g capi.Workers) error {
	switch w.kind {
	case "MachineSet":
		return w.PutSet(ctx, g)
	case "MachinePool":
		return w.PutPool(ctx, g)
	}
	return w.PutDeployment(ctx, g)
}

func (w *capiWorld) connect(t testing.TB, c clusterapi.Config) *clusterapi.Provider {
	t.Helper()
	c.Timeout = await.Limit
	p, err := clusterapi.New(context.Background(), c, w.kubeconfig, reservation)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func (w *capiWorld) settle(t testing.TB) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), await.Limit)
	defer cancel()
	if err := w.Settle(ctx); err != nil {
		t.Fatal(err)
	}
}

func (w *capiWorld) resource() string { return strings.ToLower(w.kind) + "s" }

func (w *capiWorld) Target(id cluster.GroupID) int {
	o, err := w.Resource(w.resource()).Get(context.Background(), string(id), metav1.GetOptions{})
	if err != nil {
		return -1
	}
	n, _ := o.Object["spec"].(map[string]any)["replicas"].(int64)
	return int(n)
}

func (w *capiWorld) Alive(id cluster.GroupID) []cluster.InstanceID {
	list, err := w.Resource("machines").List(context.Background(), metav1.ListOptions{})
	if err != nil {
		panic(err)
	}
	going := map[string]bool{}
	for _, m := range list.Items {
		going[m.GetName()] = m.GetDeletionTimestamp() != nil
	}
	var out []cluster.InstanceID
	for _, i := range w.Instances() {
		if i.Group == string(id) && i.Alive && !going[i.Machine] {
			out = append(out, cluster.InstanceID(i.ProviderID))
		}
	}
	slices.Sort(out)
	return out
}

// Foreign lets the group of another cluster, which every case finds beside its own, have
// its machine.
func (w *capiWorld) Foreign(t testing.TB) cluster.InstanceID {
	w.SetTarget("foreign", 1)
	w.settle(t)
	return w.Alive("foreign")[0]
}

func (w *capiWorld) ForeignAlive(id cluster.InstanceID) bool {
	return slices.Contains(w.Alive("foreign"), id)
}

func (w *capiWorld) Node(id cluster.InstanceID) cluster.Node {
	for _, i := range w.Instances() {
		if i.ProviderID == string(id) {
			return cluster.Node{Name: cluster.NodeName(i.Machine), ProviderID: i.ProviderID, Addresses: []string{i.Address, i.Machine}}
		}
	}
	return cluster.Node{}
}

func (w *capiWorld) SetTarget(id cluster.GroupID, n int) {
	patch := fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, n)
	if _, err := w.Resource(w.resource()).Patch(context.Background(), string(id), types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		panic(err)
	}
}

// Kill deletes the Machine object, as kubectl delete machine does.
func (w *capiWorld) Kill(id cluster.InstanceID) {
	name := string(id)[strings.LastIndex(string(id), "/")+1:]
	if err := w.Resource("machines").Delete(context.Background(), name, metav1.DeleteOptions{}); err != nil {
		panic(err)
	}
}

// Vanish waits until the object is gone: Cluster API's own controllers keep it by a
// finalizer until its Machines are.
func (w *capiWorld) Vanish(id cluster.GroupID) {
	ctx, cancel := context.WithTimeout(context.Background(), await.Limit)
	defer cancel()
	if err := w.Resource(w.resource()).Delete(ctx, string(id), metav1.DeleteOptions{}); err != nil {
		panic(err)
	}
	err := wait.PollUntilContextCancel(ctx, 20*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		_, err := w.Resource(w.resource()).Get(ctx, string(id), metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return true, nil
		}
		return false, err
	})
	if err != nil {
		panic(fmt.Errorf("%s does not go: %w", id, err))
	}
}

func (w *capiWorld) Quota(_ testing.TB, on bool) {
	if on {
		w.Cloud.Quota(1)
	} else {
		w.Cloud.Quota(0)
	}
}

func (w *capiWorld) fault(name string, on bool, f capi.Fault) {
	if on {
		w.proxy.Set(name, f)
	} else {
		w.proxy.Clear(name)
	}
}

func (w *capiWorld) Throttle(_ testing.TB, on bool) {
	w.fault("throttle", on, capi.Fault{Code: http.StatusTooManyRequests})
}

func (w *capiWorld) Expire(_ testing.TB, on bool) {
	w.fault("expire", on, capi.Fault{Code: http.StatusUnauthorized})
}

// RefuseDeletes takes the right to annotate Machines away, in the real authorizer.
func (w *capiWorld) RefuseDeletes(t testing.TB, on bool) {
	role := w.role.DeepCopy()
	if on {
		role.Rules[1].Verbs = []string{"list"}
	}
	role.ResourceVersion = ""
	if _, err := w.cp.Client().RbacV1().ClusterRoles().Update(context.Background(), role, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	w.awaitRight(t, "patch", !on)
}

// Forms: the ID that Cluster API writes down is the Node's own; hands and old
// controller managers leave slashes out.
func (w *capiWorld) Forms(id cluster.InstanceID) []string {
	return []string{string(id), strings.Replace(string(id), ":///", "://", 1)}
}

func (w *capiWorld) LimitCapacity(_ testing.TB, on bool) {
	r := capi.Refusal{}
	if on {
		r = capi.Refusal{Reason: "InstanceProvisionFailed", Text: "No valid host was found. There are not enough hosts available."}
	}
	w.Refuse(r)
}

func (w *capiWorld) FailLaunches(_ testing.TB, on bool) {
	r := capi.Refusal{}
	if on {
		r = capi.Refusal{Reason: "InvalidConfiguration", Text: "image ubuntu-24.04 does not exist", Terminal: true}
	}
	w.Refuse(r)
}

func (w *capiWorld) RefuseOneDelete(testing.TB) {
	w.proxy.Set("one", capi.Fault{Code: http.StatusForbidden, Once: true, When: func(r *http.Request) bool { return r.Method == http.MethodPatch }})
}

func (w *capiWorld) ExpireAfter(_ testing.TB, calls int) {
	var made atomic.Int64
	w.proxy.Set("expire", capi.Fault{Code: http.StatusUnauthorized, When: func(*http.Request) bool { return made.Add(1) > int64(calls) }})
}

func (w *capiWorld) Hang(_ testing.TB, on bool) { w.fault("hang", on, capi.Fault{Hang: true}) }

func (w *capiWorld) LoseAnswer(testing.TB) {
	w.proxy.Set("lose", capi.Fault{Drop: true, Once: true, When: func(r *http.Request) bool { return r.Method != http.MethodGet }})
}

func (w *capiWorld) annotate(t testing.TB, name, key string, value any) {
	t.Helper()
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]any{key: value}}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Resource(w.resource()).Patch(context.Background(), name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
}

func (w *capiWorld) Pause(t testing.TB, on bool) {
	value := any("")
	if !on {
		value = nil
	}
	w.annotate(t, "workers", w.role.Rules[1].APIGroups[0]+"/paused", value)
}

func (w *capiWorld) Furnish(t testing.TB) {
	l, x := providertest.FurnishLabel, providertest.FurnishTaint
	w.annotate(t, "workers", "capacity.cluster-autoscaler.kubernetes.io/labels", l[0]+"="+l[1])
	w.annotate(t, "workers", "capacity.cluster-autoscaler.kubernetes.io/taints", x.Key+"="+x.Value+":"+x.Effect)
}

// ChangeTemplate lets the infrastructure provider tell of larger machines. (Another
// template would begin a rollout, which replaces those that are there.)
func (w *capiWorld) ChangeTemplate(t testing.TB) {
	if err := w.Describe(context.Background(), "template-workers", map[string]any{"capacity": map[string]any{"cpu": "8", "memory": "32Gi"}}); err != nil {
		t.Fatal(err)
	}
}

// BreakTemplate is BreakRead.
func (w *capiWorld) BreakTemplate(t testing.TB, on bool) { w.BreakRead(t, on) }

// BreakRead breaks the infrastructure template of Workers.
func (w *capiWorld) BreakRead(_ testing.TB, on bool) {
	w.fault("template", on, capi.Fault{Code: http.StatusInternalServerError,
		When: func(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, "/template-workers") }})
}

// renamed lets the suite call the groups by the names of its own.
func (w *capiWorld) renamed(p provider.Provider) provider.Provider {
	return &renamed{p, w.kind + "/" + w.namespace + "/"}
}

type renamed struct {
	next   provider.Provider
	prefix string
}

func (r *renamed) in(id cluster.GroupID) cluster.GroupID { return cluster.GroupID(r.prefix) + id }

func (r *renamed) out(err error) error {
	for _, e := range provider.Errors(err) {
		e.Group = cluster.GroupID(strings.TrimPrefix(string(e.Group), r.prefix))
	}
	return err
}

func (r *renamed) Groups(ctx context.Context) ([]cluster.NodeGroup, error) {
	groups, err := r.next.Groups(ctx)
	for i := range groups {
		groups[i].ID = cluster.GroupID(strings.TrimPrefix(string(groups[i].ID), r.prefix))
	}
	return groups, r.out(err)
}

func (r *renamed) Instances(ctx context.Context, ids ...cluster.InstanceID) (map[cluster.InstanceID]cluster.Testimony, error) {
	said, err := provider.Ask(ctx, r.next, ids...)
	return said, r.out(err)
}

func (r *renamed) Resize(ctx context.Context, id cluster.GroupID, from, to int) error {
	return r.out(r.next.Resize(ctx, r.in(id), from, to))
}

func (r *renamed) Delete(ctx context.Context, id cluster.GroupID, ids ...cluster.InstanceID) error {
	return r.out(r.next.Delete(ctx, r.in(id), ids...))
}
