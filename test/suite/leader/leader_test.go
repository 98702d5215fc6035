package leader

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/autoscaler-agent/autoscaler-agent/test/await"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/cloud/aws"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/controlplane"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/world"
	"github.com/autoscaler-agent/autoscaler-agent/test/suite/worker"
)

// TestConfiguration: kubeadm's own strict reader takes what leader-config prints. kubeadm of
// Kubernetes 1.36 reads v1beta4 alone.
func TestConfiguration(t *testing.T) {
	bin, err := controlplane.Binaries(t.Context(), t.Output())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"plain", "full"} {
		out, err := exec.CommandContext(t.Context(), bin.Path(controlplane.Kubeadm), "config", "validate", "--config", "../../../userdata/leader/testdata/"+name+".yaml").CombinedOutput()
		if err != nil || strings.Contains(string(out), "strict decoding error") {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
}

// TestLeader: a bare machine becomes a leader, the agent on it makes a worker come, and a pod
// runs there.
func TestLeader(t *testing.T) {
	r := newRig(t)
	began := time.Now()
	c := r.leader(t)
	api := r.client(t, c)
	r.checkControlPlane(t, c, api)
	t.Logf("a leader %s after it was switched on", time.Since(began).Round(time.Second))
	r.rerun(t, c)

	r.install(t, c)
	r.checkOwnCertificate(t, c)
	r.ready(t, api, "leader")
	t.Logf("check:\n%s", r.check(t, c))

	began = time.Now()
	i := r.grow(t, c, api)
	w := r.worker(t, i)
	r.ready(t, api, i.PrivateDNS)
	pod := runs(t, api)
	t.Logf("pod %s runs on %s %s after it was made", pod.Name, pod.Spec.NodeName, time.Since(began).Round(time.Second))
	if pod.Spec.NodeName != i.PrivateDNS {
		t.Errorf("the pod is on %s", pod.Spec.NodeName)
	}
	if !strings.Contains(w.ConsoleText(), "phase=joined") {
		t.Error("the worker did not say that it joined")
	}
	t.Logf("check, with a worker:\n%s", r.check(t, c))
	r.comesBack(t, c)
	r.renewsCertificates(t, c)
	r.reboots(t, c, api)
	r.renamed(t, c, api)
	r.moved(t, c, w, i.PrivateDNS)
	c = r.diskLost(t, c, w, i.PrivateDNS, snapshot)
	c = r.diskLost(t, c, w, i.PrivateDNS, copied)
	r.inAPod(t, c)
}

// inAPod follows docs/pod.md: the agent runs with the account of a pod.
func (r *rig) inAPod(t *testing.T, c *worker.Container) {
	t.Helper()
	must(t, c, "systemctl disable --now autoscaler-agent")
	page, err := os.ReadFile("../../../docs/pod.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "```\n")
	lines, _, ok := strings.Cut(rest, "```\n")
	if !ok || !strings.Contains(lines, "serviceaccount autoscaler-agent") {
		t.Fatal("docs/pod.md has no commands")
	}
	manifest, err := os.ReadFile("../../../examples/pod/autoscaler-agent.yaml")
	if err != nil {
		t.Fatal(err)
	}
	// Without kube-proxy nothing answers at the address of the Service kubernetes.
	settings := strings.Join(r.cloudEnv(), "\n") + "\nKUBERNETES_SERVICE_HOST=" + r.address + "\nKUBERNETES_SERVICE_PORT=6443\n"
	own, err := c.Read("/etc/autoscaler-agent/agent.env")
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{"agent.env": append(own, "\n"+settings...), "examples/pod/autoscaler-agent.yaml": manifest}
	for _, name := range []string{"rbac.yaml", "admission-policy.yaml"} {
		if files[name], err = os.ReadFile("../../../units/" + name); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range files {
		if err := c.Write("/root/pod/"+name, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	before, check, _ := strings.Cut(lines, "kubectl -n kube-system exec ")
	const kubectl = "cd /root/pod; set -e; export KUBECONFIG=/etc/kubernetes/admin.conf; "
	must(t, c, kubectl+before)
	var out string
	await.Nil(t, "check in the pod is well", func(ctx context.Context) error {
		var err error
		out, err = c.Run(ctx, "sh", "-c", "export HOME=/root; "+kubectl+"kubectl -n kube-system exec "+check)
		if err != nil || !strings.Contains(out, "by the account of its pod") || strings.Contains(out, "\nerror ") {
			return fmt.Errorf("%v\n%s", err, out)
		}
		return nil
	})
	t.Logf("check in a pod:\n%s", out)
}

// comesBack: a leader with another name, and one whose DNS name leads elsewhere, is named.
func (r *rig) comesBack(t *testing.T, c *worker.Container) {
	t.Helper()
	for _, step := range []struct{ change, restore, want string }{
		{"hostname elsewhere", "hostname leader", "it came back with another host name"},
		{"sed -i 's/^10.90.0.10 k8s/10.90.0.99 k8s/' /etc/hosts", "sed -i 's/^10.90.0.99 k8s/10.90.0.10 k8s/' /etc/hosts", "k8s.example.net leads to 10.90.0.99"},
	} {
		must(t, c, step.change)
		out, err := c.Run(t.Context(), append(append([]string{"env"}, r.cloudEnv()...), "autoscaler-agent", "check")...)
		if !strings.Contains(out, step.want) {
			t.Errorf("%s: %v, want %q:\n%s", step.change, err, step.want, out)
		}
		must(t, c, step.restore)
	}
	r.check(t, c)
}

// check is what a person types, with the keys that the unit has.
func (r *rig) check(t *testing.T, c *worker.Container) string {
	t.Helper()
	out, err := c.Run(t.Context(), append(append([]string{"env"}, r.cloudEnv()...), "autoscaler-agent", "check")...)
	for _, about := range []string{"own certificate", "controller manager", "leader", "endpoint"} {
		if !strings.Contains(out, "\nok       "+about+" ") {
			t.Errorf("check does not find that the %s is well", about)
		}
	}
	if err != nil || strings.Contains(out, "\nerror ") {
		t.Errorf("check: %v\n%s", err, out)
	}
	return out
}

// leader renders, boots and runs the script, as docs/leader.md does.
func (r *rig) leader(t *testing.T) *worker.Container {
	t.Helper()
	hook := r.hook(t, "10.244.0.0/24", r.archives, onCgroupV1)
	return r.leaderWith(t, "leader", hook)
}

// onCgroupV1 is for the kubelets of this host.
const onCgroupV1 = "echo 'failCgroupV1: false' >>/etc/kubernetes/kubeadm-init.yaml"

// leaderWith is leader with a hook and a name of the caller's.
func (r *rig) leaderWith(t *testing.T, name, hook string) *worker.Container {
	t.Helper()
	r.renderScript(t, hook)
	agent, err := os.ReadFile(filepath.Join(r.programs, "autoscaler-agent"))
	if err != nil {
		t.Fatal(err)
	}
	r.agent = agent
	c := r.machine(t, name, name, r.address, func(c *worker.Container) error {
		return errors.Join(c.Write("/root/leader.sh", r.script, 0o600), c.Write("/root/autoscaler-agent-linux-amd64", agent, 0o755), c.Write("/etc/cloud/cloud-init.disabled", nil, 0o644))
	}, started(t))
	out := must(t, c, "sh /root/leader.sh 2>&1")
	t.Logf("leader.sh:\n%s", phases(out))
	if regexp.MustCompile(`\b[a-z0-9]{6}\.[a-z0-9]{16}\b`).MatchString(out) {
		t.Error("a join token is printed")
	}
	if !strings.Contains(out, "phase=leader-ready") {
		t.Fatalf("leader.sh did not end:\n%s", tail(out))
	}
	return c
}

// renderScript makes leader.sh for the leader's address.
func (r *rig) renderScript(t *testing.T, hook string) {
	t.Helper()
	args := append([]string{"leader-config", "--endpoint", r.endpoint, "--kubernetes-version", r.parts.Kubernetes, "--os", "debian", "--network", "none",
		"--cert-san", r.address, "--image-pull-policy", "Never", "--ignore-preflight-errors", "SystemVerification,Mem,NumCPU", "--before-init", hook}, r.downloads()...)
	script, err := exec.Command(filepath.Join(r.programs, "autoscaler-agent"), args...).Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		t.Fatalf("%v\n%s", err, exit.Stderr)
	} else if err != nil {
		t.Fatal(err)
	}
	r.script, r.hooked = script, hook
}

// started tells whether a machine's systemd is up.
func started(t *testing.T) func(c *worker.Container) bool {
	return func(c *worker.Container) bool {
		out, _ := c.Run(t.Context(), "systemctl", "is-system-running")
		return strings.Contains(out, "running") || strings.Contains(out, "degraded")
	}
}

// phases are the lines of the script itself.
func phases(out string) string {
	var lines []string
	for line := range strings.Lines(out) {
		if strings.Contains(line, "phase=") || strings.HasPrefix(line, "next:") || strings.HasPrefix(line, "[certs] apiserver serving") {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "")
}

// checkControlPlane: kubeadm's own defaults are what the agent needs, and ours are in force.
func (r *rig) checkControlPlane(t *testing.T, c *worker.Container, api kubernetes.Interface) {
	t.Helper()
	manifest, err := c.Read("/etc/kubernetes/manifests/kube-controller-manager.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"--controllers=*,bootstrapsigner,tokencleaner", "--cluster-signing-key-file=/etc/kubernetes/pki/ca.key"} {
		if !strings.Contains(string(manifest), want) {
			t.Errorf("the controller manager has no %s", want)
		}
	}
	info, err := api.CoreV1().ConfigMaps("kube-public").Get(t.Context(), "cluster-info", metav1.GetOptions{})
	if err != nil || !strings.Contains(info.Data["kubeconfig"], "https://"+r.endpoint) {
		t.Errorf("cluster-info: %v %v", err, info)
	}
	kubelet, err := api.CoreV1().ConfigMaps("kube-system").Get(t.Context(), "kubelet-config", metav1.GetOptions{})
	if err != nil || !strings.Contains(kubelet.Data["kubelet"], "serverTLSBootstrap: true") {
		t.Errorf("kubelet-config: %v", err)
	}
	if _, err := api.AppsV1().Deployments("kube-system").Get(t.Context(), "metrics-server", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
	await.Nil(t, "kubeadm's own token ends", func(ctx context.Context) error {
		list, err := api.CoreV1().Secrets("kube-system").List(ctx, metav1.ListOptions{FieldSelector: "type=bootstrap.kubernetes.io/token"})
		if err == nil && len(list.Items) > 0 {
			err = fmt.Errorf("there is %s", list.Items[0].Name)
		}
		return err
	})
}

// rerun: the script finds its work done.
func (r *rig) rerun(t *testing.T, c *worker.Container) {
	t.Helper()
	before := must(t, c, "sha256sum /etc/kubernetes/pki/ca.crt")
	out := must(t, c, "sh /root/leader.sh 2>&1")
	if strings.Contains(out, "phase=download") || !strings.Contains(out, "phase=leader-ready") {
		t.Errorf("the second run:\n%s", phases(out))
	}
	if after := must(t, c, "sha256sum /etc/kubernetes/pki/ca.crt"); after != before {
		t.Error("the second run made another cluster")
	}
}

// install follows docs/install.md. The emulated cloud's address and keys are the test's own.
func (r *rig) install(t *testing.T, c *worker.Container) {
	t.Helper()
	env := r.cloudEnv()
	unit := "[Service]\n"
	for _, v := range env {
		unit += "Environment=\"" + v + "\"\n"
	}
	if err := c.Write("/etc/systemd/system/autoscaler-agent.service.d/cloud.conf", []byte(unit), 0o600); err != nil {
		t.Fatal(err)
	}
	must(t, c, "install -m 0755 /root/autoscaler-agent-linux-amd64 /usr/local/bin/autoscaler-agent")
	out, err := c.Run(t.Context(), append(append([]string{"env", "HOME=/root"}, env...), "autoscaler-agent", "install", "--set", "AUTOSCALER_PROVIDER=asg",
		"--set", "AUTOSCALER_AWS_CLUSTER_NAME="+world.ClusterName, "--set", "AUTOSCALER_AWS_REGION="+r.cloud.Region(), "--set", "AUTOSCALER_OBSERVE_SLOW=5s", "--set", "AUTOSCALER_SCALING_UNNEEDED_FOR=1h")...)
	t.Logf("install: %v\n%s", err, out)
	must(t, c, "systemctl daemon-reload; systemctl enable --now autoscaler-agent")
	await.Nil(t, "join values are published", func(context.Context) error {
		_, err := c.Run(t.Context(), "test", "-s", "/etc/worker.env")
		return err
	})
}

// checkOwnCertificate: the agent approves the certificate of the leader's own kubelet.
func (r *rig) checkOwnCertificate(t *testing.T, c *worker.Container) {
	t.Helper()
	pem, err := c.Read("/etc/kubernetes/pki/ca.crt")
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	await.Nil(t, "the leader's kubelet serves with a certificate of the cluster", func(ctx context.Context) error {
		d := tls.Dialer{Config: &tls.Config{RootCAs: roots, ServerName: r.address}}
		conn, err := d.DialContext(ctx, "tcp", r.address+":10250")
		if err != nil {
			return err
		}
		return conn.Close()
	})
}

func (r *rig) ready(t *testing.T, api kubernetes.Interface, name string) {
	t.Helper()
	await.Nil(t, name+" is Ready", func(ctx context.Context) error {
		node, err := api.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		for _, c := range node.Status.Conditions {
			if c.Type == corev1.NodeReady && c.Status != corev1.ConditionTrue {
				return errors.New(c.Message)
			}
			if c.Type == corev1.NodeReady {
				return nil
			}
		}
		return errors.New("it has not reported")
	})
}

// userData renders the workers' user data on the leader and puts it into the launch template.
func (r *rig) userData(t *testing.T, c *worker.Container) {
	t.Helper()
	hook, err := os.ReadFile(r.hook(t, "10.244.1.0/24", append([]string{archive(workImage)}, r.sandbox...)))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Write("/root/hook.sh", hook, 0o600); err != nil {
		t.Fatal(err)
	}
	args := append([]string{"autoscaler-agent", "userdata", "render", "--os", "debian", "--before-join", "/root/hook.sh", "--ignore-preflight-errors", "SystemVerification"}, r.downloads()...)
	out, err := c.Run(t.Context(), append(args, "-o", "/root/worker.sh")...)
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	script, err := c.Read("/root/worker.sh")
	if err != nil {
		t.Fatal(err)
	}
	r.cloud.PutLaunchTemplate(aws.LaunchTemplate{Name: group, InstanceType: "m5.large", UserData: string(script), HTTPTokens: "required", HopLimit: 1})
}

// grow makes the agent order a machine, and waits for it.
func (r *rig) grow(t *testing.T, c *worker.Container, api kubernetes.Interface) aws.Instance {
	t.Helper()
	r.order(t, c, api)
	return r.instance(t)
}

// halfACore is a pod of a program that waits.
func halfACore(container string) corev1.PodSpec {
	return corev1.PodSpec{Containers: []corev1.Container{{Name: container, Image: workImage, ImagePullPolicy: corev1.PullNever,
		Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("500m")}}}}}
}

// order makes the workers' user data, and a pod that has no room.
func (r *rig) order(t *testing.T, c *worker.Container, api kubernetes.Interface) {
	t.Helper()
	r.userData(t, c)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "work", Namespace: "default"},
		Spec:       halfACore("work"),
	}
	await.Nil(t, "the pod is made", func(ctx context.Context) error { // its service account comes a moment after the namespace
		_, err := api.CoreV1().Pods("default").Create(ctx, pod, metav1.CreateOptions{})
		return err
	})
}

// worker boots the machine that the cloud launched.
func (r *rig) worker(t *testing.T, i aws.Instance) *worker.Container {
	t.Helper()
	seed := "/var/lib/cloud/seed/nocloud/"
	return r.machine(t, "w", i.PrivateDNS, i.PrivateIP, func(c *worker.Container) error {
		return errors.Join(c.Write(seed+"user-data", []byte(i.UserData), 0o600),
			c.Write(seed+"meta-data", []byte("instance-id: "+i.ID+"\nlocal-hostname: "+i.PrivateDNS+"\n"), 0o644))
	}, func(c *worker.Container) bool { return strings.Contains(c.ConsoleText(), "autoscaler-agent: phase=") })
}

func runs(t *testing.T, api kubernetes.Interface) *corev1.Pod {
	t.Helper()
	var pod *corev1.Pod
	await.Nil(t, "the pod runs", func(ctx context.Context) (err error) {
		pod, err = api.CoreV1().Pods("default").Get(ctx, "work", metav1.GetOptions{})
		if err == nil && pod.Status.Phase != corev1.PodRunning {
			err = fmt.Errorf("%s %+v", pod.Status.Phase, pod.Status.ContainerStatuses)
		}
		return err
	})
	return pod
}
