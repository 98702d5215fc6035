package ec2_test

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/autoscaler-agent/autoscaler-agent/test/await"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/cloud/aws"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/controlplane"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/machine"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/machine/ec2"
	"github.com/autoscaler-agent/autoscaler-agent/userdata"
)

const (
	token    = "aaaaaa.0123456789abcdef"
	machines = 30
	replicas = 300
)

// A group of thirty instances becomes thirty Nodes that run three hundred pods; all
// that this takes of the host is told in the log.
func TestFleet(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a real control plane")
	}
	cp := controlplane.ForTest(t, controlplane.Options{Fast: true})
	fleet, err := machine.NewFleet(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(fleet.Close)
	opts := aws.Options{LaunchDelay: -1, BootDelay: 100 * time.Millisecond, TerminateDelay: 100 * time.Millisecond}
	(&ec2.Glue{Fleet: fleet, Log: t.Output()}).Attach(&opts)
	cloud, err := aws.New(opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cloud.Close)

	roots := furnish(t, cp, cloud)
	began, cpu := time.Now(), cpuTime()
	group := aws.Group{Name: "workers", Max: machines, Desired: machines, LaunchTemplate: "workers"}
	if err := cloud.PutGroup(group); err != nil {
		t.Fatal(err)
	}
	await.Nil(t, "machines Ready", func(ctx context.Context) error { return ready(ctx, cp, machines) })
	t.Logf("%d machines Ready after %s, %s CPU, RSS %d MiB", machines, time.Since(began).Round(time.Millisecond), cpuTime()-cpu, rss())

	began, cpu = time.Now(), cpuTime()
	deploy(t, cp)
	await.Nil(t, "pods Running", func(ctx context.Context) error {
		d, err := cp.Client().AppsV1().Deployments("default").Get(ctx, "web", metav1.GetOptions{})
		if err != nil || d.Status.AvailableReplicas != replicas {
			return fmt.Errorf("%v, available %d", err, d.Status.AvailableReplicas)
		}
		return nil
	})
	t.Logf("%d pods Running after %s, %s CPU, RSS %d MiB", replicas, time.Since(began).Round(time.Millisecond), cpuTime()-cpu, rss())

	cpu = cpuTime()
	approveAll(t, cp, fleet)
	nodes, err := cp.Client().CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range nodes.Items {
		if _, err := machine.DialServing(t.Context(), &n, roots); err != nil {
			t.Error(err)
		}
		if i, ok := cloud.Instance(strings.Split(n.Spec.ProviderID, "/")[4]); !ok || i.PrivateDNS != n.Name {
			t.Errorf("Node %s has provider ID %s, which is instance %+v", n.Name, n.Spec.ProviderID, i)
		}
	}
	t.Logf("%d serving certificates took %s CPU", len(nodes.Items), cpuTime()-cpu)
	idle(t)

	group.Desired = 0
	if err := cloud.PutGroup(group); err != nil {
		t.Fatal(err)
	}
	await.Nil(t, "machines gone", func(context.Context) error {
		if n := len(fleet.Machines()); n > 0 {
			return fmt.Errorf("%d left", n)
		}
		return nil
	})
}

// furnish makes the join token, reads the CA and makes the launch template.
func furnish(t *testing.T, cp *controlplane.ControlPlane, cloud *aws.Cloud) *x509.CertPool {
	t.Helper()
	text, err := os.ReadFile(cp.CAFile())
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(text)
	ca, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(ca.RawSubjectPublicKeyInfo)
	id, secret, _ := strings.Cut(token, ".")
	_, err = cp.Client().CoreV1().Secrets(metav1.NamespaceSystem).Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "bootstrap-token-" + id},
		Type:       corev1.SecretTypeBootstrapToken,
		StringData: map[string]string{
			"token-id": id, "token-secret": secret, "expiration": time.Now().Add(time.Hour).UTC().Format(time.RFC3339),
			"usage-bootstrap-authentication": "true", "usage-bootstrap-signing": "true",
			"auth-extra-groups": "system:bootstrappers:kubeadm:default-node-token",
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	script, err := userdata.Render(userdata.Spec{
		Cloud: "aws", KubernetesVersion: cp.Binaries().Version, Reservation: userdata.DefaultReservation(),
		Join: userdata.Join{Endpoint: strings.TrimPrefix(cp.RESTConfig().Host, "https://"), Token: token, CACertHashes: []string{"sha256:" + hex.EncodeToString(sum[:])}},
	})
	if err != nil {
		t.Fatal(err)
	}
	cloud.PutLaunchTemplate(aws.LaunchTemplate{Name: "workers", InstanceType: "m5.large", UserData: string(script)})
	roots := x509.NewCertPool()
	roots.AddCert(ca)
	return roots
}

func ready(ctx context.Context, cp *controlplane.ControlPlane, want int) error {
	nodes, err := cp.Client().CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	n := 0
	for _, node := range nodes.Items {
		for _, c := range node.Status.Conditions {
			if c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue {
				n++
			}
		}
	}
	if n != want {
		return fmt.Errorf("%d Ready, want %d", n, want)
	}
	return nil
}

func deploy(t *testing.T, cp *controlplane.ControlPlane) {
	t.Helper()
	n, labels := int32(replicas), map[string]string{"app": "web"}
	_, err := cp.Client().AppsV1().Deployments("default").Create(t.Context(), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: appsv1.DeploymentSpec{
			Replicas: &n, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "nginx", Resources: corev1.ResourceRequirements{
					Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("150m")}}}}}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

func approveAll(t *testing.T, cp *controlplane.ControlPlane, fleet *machine.Fleet) {
	t.Helper()
	api := cp.Client().CertificatesV1().CertificateSigningRequests()
	list, err := api.List(t.Context(), metav1.ListOptions{FieldSelector: "spec.signerName=" + certificatesv1.KubeletServingSignerName})
	if err != nil {
		t.Fatal(err)
	}
	for _, csr := range list.Items {
		csr.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{
			{Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "Test"}}
		if _, err := api.UpdateApproval(t.Context(), csr.Name, &csr, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	await.Nil(t, "certificates in use", func(context.Context) error {
		for _, m := range fleet.Machines() {
			if m.Times().ServingCert.IsZero() {
				return errors.New("not all")
			}
		}
		return nil
	})
}

// idle measures what machines that only heartbeat cost this process.
func idle(t *testing.T) {
	t.Helper()
	const window = 5 * time.Second
	cpu := cpuTime()
	time.Sleep(window) // a measurement, not a wait
	t.Logf("idle with %d machines and %d pods: %.2f %% of a core, RSS %d MiB", machines, replicas, 100*float64(cpuTime()-cpu)/float64(window), rss())
}

// cpuTime is that of this process and of the scripts that it ran.
func cpuTime() time.Duration {
	var sum time.Duration
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var u syscall.Rusage
		if syscall.Getrusage(who, &u) == nil {
			sum += time.Duration(u.Utime.Nano() + u.Stime.Nano())
		}
	}
	return sum
}

// rss is this process's resident memory in MiB, 0 where the host does not tell.
func rss() int {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	var total, resident int
	fmt.Sscan(string(text), &total, &resident)
	return resident * os.Getpagesize() >> 20
}
