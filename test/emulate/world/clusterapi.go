package world

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/test/await"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/cloud/capi"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/machine"
	core "github.com/autoscaler-agent/autoscaler-agent/test/suite/clusterapi"
)

var _ = register("clusterapi", newClusterAPI)

// capiNamespace holds the Cluster and its machines.
const capiNamespace = "fleet"

// clusterAPI is a management cluster in the same API server as the workload cluster,
// reached by a kubeconfig of its own: Cluster API's real CustomResourceDefinitions, its
// controllers emulated (its own with AUTOSCALER_TEST_CLUSTERAPI=1, see package
// clusterapi), and instances that are machines of the Fleet.
type clusterAPI struct {
	*capi.Cloud
	core       *core.Core // nil: the controllers are emulated
	w          *World
	proxy      *capi.Proxy // counts what the agent asks for
	kubeconfig string
	cancel     context.CancelFunc
	wg         sync.WaitGroup

	mu     sync.Mutex
	raises []Raise
	facts  map[string]*ec2Facts // by machine that runs
}

func newClusterAPI(ctx context.Context, w *World) (Cloud, error) {
	cfg, client := w.ControlPlane.RESTConfig(), w.ControlPlane.Client()
	c := &clusterAPI{w: w, facts: map[string]*ec2Facts{}}
	if os.Getenv("AUTOSCALER_TEST_CLUSTERAPI") == "1" {
		manager, err := core.Build(ctx, w.Progress)
		if err != nil {
			return nil, err
		}
		if c.core, err = core.Start(ctx, w.ControlPlane, manager, w.Dir); err != nil {
			return nil, err
		}
	}
	if err := capi.Install(ctx, cfg, capi.Group, ""); err != nil {
		return nil, err
	}
	if _, err := client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: capiNamespace}}, metav1.CreateOptions{}); err != nil {
		return nil, err
	}
	var err error
	if c.proxy, err = capi.NewProxy(cfg); err != nil {
		return nil, err
	}
	if err := c.account(ctx); err != nil {
		return nil, err
	}
	c.Cloud, err = capi.New(capi.Options{
		Config: cfg, Namespace: capiNamespace, RealCore: c.core != nil, Seed: w.Pace.Seed, Log: w.LogFile("cloud.log"),
		Provision: cmp.Or(w.Pace.Launch+w.Pace.Boot, time.Second), Terminate: cmp.Or(w.Pace.Terminate, time.Second),
		Started: func(i capi.Instance) { go c.boot(i) },
		Ended:   c.ended,
		// As Cluster API's provider for AWS has it, since user data for AWS is what is rendered.
		ProviderID: func(machine string) string { return "aws:///" + capiZone + "/" + machine },
		NodeOf:     c.nodeOf,
		DeleteNode: func(ctx context.Context, name string) error {
			return client.CoreV1().Nodes().Delete(ctx, name, metav1.DeleteOptions{})
		},
	})
	if err != nil {
		return nil, err
	}
	if err := c.PutCluster(ctx, ClusterName, nil); err != nil {
		return nil, err
	}
	watch, cancel := context.WithCancel(context.WithoutCancel(ctx))
	c.cancel = cancel
	c.wg.Go(func() { c.watchRaises(watch) })
	return c, nil
}

// account gives a service account the rights that ship with the unit, and writes its
// kubeconfig.
func (c *clusterAPI) account(ctx context.Context) error {
	cp, client := c.w.ControlPlane, c.w.ControlPlane.Client()
	if err := ApplyUnits(ctx, cp, "rbac-clusterapi.yaml"); err != nil {
		return err
	}
	_, err := client.CoreV1().ServiceAccounts(capiNamespace).Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: AgentUser}}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	_, err = client.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "autoscaler-agent-account"},
		RoleRef:  rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "ClusterRole", Name: "autoscaler-agent-clusterapi"},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Name: AgentUser, Namespace: capiNamespace}}}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	token, err := client.CoreV1().ServiceAccounts(capiNamespace).CreateToken(ctx, AgentUser, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	k := clientcmdapi.NewConfig()
	k.Clusters["management"] = &clientcmdapi.Cluster{Server: c.proxy.URL, CertificateAuthorityData: c.proxy.CA}
	k.AuthInfos[AgentUser] = &clientcmdapi.AuthInfo{Token: token.Status.Token}
	k.Contexts["management"] = &clientcmdapi.Context{Cluster: "management", AuthInfo: AgentUser}
	k.CurrentContext = "management"
	c.kubeconfig = filepath.Join(c.w.Dir, "management.kubeconfig")
	return clientcmd.WriteToFile(*k, c.kubeconfig)
}

// The one machine type.
const (
	capiType  = "emulated.xlarge"
	capiZone  = "zone-a"
	capiCores = 4
	capiGiB   = 16
	capiDisk  = 100 << 30
)

// boot starts the machine with the user data of its Secret, and with EC2's metadata service, which that asks who it is.
func (c *clusterAPI) boot(i capi.Instance) {
	secret, err := c.w.ControlPlane.Client().CoreV1().Secrets(capiNamespace).Get(context.Background(), i.Secret, metav1.GetOptions{})
	var facts *ec2Facts
	if err == nil {
		facts, err = serveEC2Facts(i)
	}
	if err == nil {
		c.mu.Lock()
		c.facts[i.Machine] = facts
		c.mu.Unlock()
		_, err = c.w.Fleet.Boot(machine.Config{
			UserData: secret.Data["value"], InstanceID: i.Machine, Name: i.Machine, Zone: capiZone, InstanceType: capiType, IMDSEndpoint: facts.endpoint,
			Capacity:  cluster.Resources{MilliCPU: capiCores * 1000, Memory: c.w.KernelMemory(capiGiB << 30), EphemeralStorage: capiDisk},
			Addresses: []netip.Addr{netip.MustParseAddr(i.Address)},
		})
	}
	if err != nil {
		fmt.Fprintf(c.w.LogFile("machines.log"), "clusterapi: boot %s: %v\n", i.Machine, err)
	}
}

// ended ends a machine and its metadata service.
func (c *clusterAPI) ended(providerID string) {
	name := providerID[strings.LastIndex(providerID, "/")+1:]
	c.w.Fleet.Terminate(name)
	c.mu.Lock()
	defer c.mu.Unlock()
	if facts := c.facts[name]; facts != nil {
		_ = facts.server.Close() // its machine has ended
		delete(c.facts, name)
	}
}

func (c *clusterAPI) nodeOf(ctx context.Context, providerID string) string {
	name := providerID[strings.LastIndex(providerID, "/")+1:]
	n, err := c.w.ControlPlane.Client().CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	if err != nil || n.Spec.ProviderID != providerID {
		return ""
	}
	return n.Name
}

// watchRaises notes every growth of a MachineDeployment's replicas.
func (c *clusterAPI) watchRaises(ctx context.Context) {
	last := map[string]int64{}
	for ctx.Err() == nil {
		w, err := c.Resource("machinedeployments").Watch(ctx, metav1.ListOptions{})
		if err != nil {
			return
		}
		for e := range w.ResultChan() {
			u, ok := e.Object.(*unstructured.Unstructured)
			if !ok {
				continue
			}
			n, _, _ := unstructured.NestedInt64(u.Object, "spec", "replicas")
			if was, known := last[u.GetName()]; known && n > was {
				c.mu.Lock()
				c.raises = append(c.raises, Raise{At: time.Now(), What: "put machinedeployments/scale"})
				c.mu.Unlock()
			}
			last[u.GetName()] = n
		}
	}
}

func (c *clusterAPI) Banner() string {
	if c.core != nil {
		return "Cluster API's own core manager runs, its infrastructure provider is emulated in namespace " + capiNamespace
	}
	return "Cluster API's CustomResourceDefinitions are installed, its controllers are emulated in namespace " + capiNamespace
}

func (c *clusterAPI) Env() []string {
	return []string{
		"AUTOSCALER_CLUSTERAPI_CLOUD_CONFIG=" + c.kubeconfig,
		"AUTOSCALER_CLUSTERAPI_AUTO_DISCOVERY=clusterapi:namespace=" + capiNamespace + ",clusterName=" + ClusterName,
	}
}

func (*clusterAPI) RenderFlags() []string { return nil }
func (*clusterAPI) MachineType() string   { return capiType }

// PutWorkers makes a bootstrap Secret, an infrastructure template whose provider tells
// the capacity, and an annotated MachineDeployment.
func (c *clusterAPI) PutWorkers(ctx context.Context, g Workers) (string, error) {
	_, err := c.w.ControlPlane.Client().CoreV1().Secrets(capiNamespace).Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: g.Name + "-bootstrap", Labels: map[string]string{"cluster.x-k8s.io/cluster-name": ClusterName}},
		Data:       map[string][]byte{"value": g.UserData}}, metav1.CreateOptions{})
	if err != nil {
		return "", err
	}
	err = c.PutTemplate(ctx, g.Name, g.InstanceType, map[string]any{
		"capacity": map[string]any{"cpu": fmt.Sprint(capiCores), "memory": fmt.Sprint(c.w.KernelMemory(capiGiB << 30)), "ephemeral-storage": fmt.Sprint(int64(capiDisk))},
		"nodeInfo": map[string]any{"architecture": "amd64", "operatingSystem": "linux"}})
	if err != nil {
		return "", err
	}
	return "an annotated MachineDeployment", c.PutDeployment(ctx, capi.Workers{
		Name: g.Name, Cluster: ClusterName, Replicas: g.Min, Min: fmt.Sprint(g.Min), Max: fmt.Sprint(g.Max), Template: g.Name, Secret: g.Name + "-bootstrap",
	})
}

func (c *clusterAPI) Group(name string) (Group, bool) {
	o, err := c.Resource("machinedeployments").Get(context.Background(), name, metav1.GetOptions{})
	if err != nil {
		return Group{}, false
	}
	g := Group{}
	n, _, _ := unstructured.NestedInt64(o.Object, "spec", "replicas")
	g.Target = int(n)
	for key, to := range map[string]*int{"min": &g.Min, "max": &g.Max} {
		_, _ = fmt.Sscan(o.GetAnnotations()["cluster.x-k8s.io/cluster-api-autoscaler-node-group-"+key+"-size"], to)
	}
	return g, true
}

func (c *clusterAPI) Instances(group string) []Instance {
	var out []Instance
	for _, i := range c.Cloud.Instances() {
		if group != "" && i.Group != group {
			continue
		}
		state := "running"
		if !i.Alive {
			state = "deleted"
		}
		out = append(out, Instance{ID: i.ProviderID, Group: i.Group, State: state, Alive: i.Alive})
	}
	return out
}

func (c *clusterAPI) Raises() []Raise {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.raises)
}

// Counts are by verb and resource.
func (c *clusterAPI) Counts() map[string]int {
	out := map[string]int{}
	for call, n := range c.proxy.Calls() {
		verb, path, _ := strings.Cut(call, " ")
		_, rest, ok := strings.Cut(path, "/namespaces/"+capiNamespace+"/")
		if !ok {
			continue // discovery
		}
		parts := strings.Split(rest, "/")
		name := parts[0]
		if len(parts) == 3 {
			name += "/" + parts[2]
		}
		if verb == "GET" && len(parts) == 1 {
			verb = "LIST"
		}
		out[strings.ToLower(verb)+" "+name] += n
	}
	return out
}

// Leftovers are Machine objects that nobody needs. The real controllers let a Machine go
// some seconds after its instance and its Node have gone, and get the time.
func (c *clusterAPI) Leftovers() []string {
	deadline := time.Now().Add(await.Limit)
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		left := c.machines()
		if len(left) == 0 || c.core == nil || time.Now().After(deadline) {
			return left
		}
		<-tick.C
	}
}

func (c *clusterAPI) machines() []string {
	list, err := c.Resource("machines").List(context.Background(), metav1.ListOptions{})
	if err != nil {
		return []string{err.Error()}
	}
	var out []string
	for _, m := range list.Items {
		out = append(out, "Machine "+m.GetName())
	}
	return out
}

func (c *clusterAPI) String() string {
	var b strings.Builder
	for _, resource := range []string{"machinedeployments", "machinesets", "machines"} {
		list, err := c.Resource(resource).List(context.Background(), metav1.ListOptions{})
		if err != nil {
			fmt.Fprintln(&b, resource, err)
			continue
		}
		for _, o := range list.Items {
			n, _, _ := unstructured.NestedInt64(o.Object, "spec", "replicas")
			phase, _, _ := unstructured.NestedString(o.Object, "status", "phase")
			fmt.Fprintf(&b, "%s %s replicas %d phase %s annotations %v deleting %t\n", o.GetKind(), o.GetName(), n, phase, o.GetAnnotations(), o.GetDeletionTimestamp() != nil)
		}
	}
	return b.String()
}

func (c *clusterAPI) Close() error {
	c.cancel()
	c.Cloud.Close()
	c.mu.Lock()
	for _, facts := range c.facts {
		_ = facts.server.Close() // the world ends
	}
	c.mu.Unlock()
	c.proxy.Close()
	c.wg.Wait()
	if c.core != nil {
		return c.core.Stop()
	}
	return nil
}
