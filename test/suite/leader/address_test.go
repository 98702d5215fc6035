package leader

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/autoscaler-agent/autoscaler-agent/test/await"
	"github.com/autoscaler-agent/autoscaler-agent/test/suite/worker"
)

// elsewhere is the address with which a leader comes back.
const elsewhere = "10.90.0.11"

// moved switches the leader off and on with another address, points the endpoint's name there, and
// follows docs/leader.md. The worker stays, nothing of the leader has its old address, and etcd
// tells new members the new one.
func (r *rig) moved(t *testing.T, c, w *worker.Container, work string) {
	t.Helper()
	old, began := r.address, time.Now()
	if err := r.again[c](elsewhere); err != nil {
		t.Fatal(err)
	}
	r.address = elsewhere
	await.True(t, "the leader has booted", func() bool { return started(t)(c) })
	r.leads(t, elsewhere, c, w)
	r.namesAddress(t, c)
	if err := etcdPrograms(c); err != nil {
		t.Fatal(err)
	}
	here := strings.NewReplacer("10.0.0.21", elsewhere, "10.0.0.11", old, `10\.0\.0\.11`, strings.ReplaceAll(old, ".", `\.`))
	out := must(t, c, "set -e\n"+here.Replace(section(t, "leader.md", "Another address", "member update")))
	t.Logf("the leader goes on at its other address after %s:\n%s", time.Since(began).Round(time.Second), out)
	if !strings.HasPrefix(r.endpoint, "k8s") {
		r.endpoint = elsewhere + ":6443"
		must(t, w, "set -e\n"+here.Replace(section(t, "leader.md", "Another address", "sed -i 's")))
	}
	api := r.client(t, c)
	r.acts(t, c)
	r.checkOwnCertificate(t, c)
	r.ready(t, api, "leader")
	await.Nil(t, "the leader's Node has its new address", func(ctx context.Context) error {
		n, err := api.CoreV1().Nodes().Get(ctx, "leader", metav1.GetOptions{})
		if err == nil && !slices.Contains(n.Status.Addresses, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: elsewhere}) {
			err = fmt.Errorf("it has %v", n.Status.Addresses)
		}
		return err
	})
	await.Nil(t, "the worker's kubelet reports again", func(ctx context.Context) error {
		lease, err := api.CoordinationV1().Leases("kube-node-lease").Get(ctx, work, metav1.GetOptions{})
		if err == nil && lease.Spec.RenewTime.Before(&metav1.MicroTime{Time: began}) {
			err = fmt.Errorf("last at %s", lease.Spec.RenewTime)
		}
		return err
	})
	r.ready(t, api, work)
	runs(t, api)
	r.check(t, c)
	await.Nil(t, "nothing of the leader has its old address", func(ctx context.Context) error { // the agent publishes within a minute
		left, err := c.Run(ctx, "grep", "-rlw", old, "/etc", "/var/lib/kubelet/config.yaml", "/var/lib/autoscaler-agent/worker.env")
		if err == nil {
			return errors.New(left)
		}
		return nil
	})
	r.clusterHasNot(t, api, old)
	if members := must(t, c, here.Replace(strings.Join(exports(section(t, "leader.md", "Another address", "member update")), "\n"))+"\netcdctl member list"); !strings.Contains(members, "https://"+elsewhere+":2380") || strings.Contains(members, old) {
		t.Errorf("etcd's members: %s", members)
	}
	r.renderScript(t, r.hooked)
}

// leads points the endpoint's name to an address, for machines that run and those to come.
func (r *rig) leads(t *testing.T, address string, machines ...*worker.Container) {
	t.Helper()
	r.front = address
	for _, m := range machines {
		must(t, m, "sed -i '/k8s.example.net/s/.*/"+address+" k8s.example.net/' /etc/hosts")
	}
}

// namesAddress: check tells what has happened.
func (r *rig) namesAddress(t *testing.T, c *worker.Container) {
	t.Helper()
	// The API server may still answer for a while, until its etcd gives up the address that is gone.
	await.Nil(t, "check leads to the page", func(ctx context.Context) error {
		out, err := c.Run(ctx, append(append([]string{"env"}, r.cloudEnv()...), "autoscaler-agent", "check")...)
		if !strings.Contains(out, "Another address") {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	})
}

// exports are the lines of commands that set the environment.
func exports(commands string) []string {
	return slices.DeleteFunc(strings.Split(commands, "\n"), func(line string) bool { return !strings.HasPrefix(line, "export ") })
}

// clusterHasNot: no ConfigMap by which machines join or find the API server has an address.
func (r *rig) clusterHasNot(t *testing.T, api kubernetes.Interface, old string) {
	t.Helper()
	for _, namespace := range []string{"kube-system", "kube-public"} {
		list, err := api.CoreV1().ConfigMaps(namespace).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range list.Items {
			for key, text := range m.Data {
				if strings.Contains(text, old) {
					t.Errorf("%s of ConfigMap %s/%s has the old address", key, namespace, m.Name)
				}
			}
		}
	}
	endpoints, err := api.DiscoveryV1().EndpointSlices("default").Get(t.Context(), "kubernetes", metav1.GetOptions{})
	if err != nil || len(endpoints.Endpoints) != 1 || !slices.Equal(endpoints.Endpoints[0].Addresses, []string{elsewhere}) {
		t.Errorf("the Service kubernetes leads to %v, %v", endpoints.Endpoints, err)
	}
}

// TestEndpointByAddress: a cluster whose endpoint is the leader's address, not a name, goes on at
// another one; its worker needs a command, too.
func TestEndpointByAddress(t *testing.T) {
	r := newRig(t)
	r.endpoint = r.address + ":6443"
	c := r.leader(t)
	api := r.client(t, c)
	r.install(t, c)
	i := r.grow(t, c, api)
	w := r.worker(t, i)
	r.ready(t, api, i.PrivateDNS)
	r.moved(t, c, w, i.PrivateDNS)
}
