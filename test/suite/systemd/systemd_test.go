package systemd

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/autoscaler-agent/autoscaler-agent/test/await"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/world"
)

// host is the container with the agent's cluster and cloud.
type host struct {
	*container
	w       *world.World
	version string // of the package
}

// TestHost plays the life of an installation: package, install, start, scale, hang, reboot,
// upgrade, wrong configuration, uninstall; and the commands of README.md and docs/install.md.
func TestHost(t *testing.T) {
	if os.Getenv("AUTOSCALER_TEST_SYSTEMD") == "" {
		t.Skip("it boots systemd in a container, as root: make e2e-systemd")
	}
	debs, err := filepath.Glob("../../../dist/*-linux-amd64.deb")
	if err != nil || len(debs) != 1 {
		t.Fatalf("debs in dist/: %v, %v (make dist)", debs, err)
	}
	w, err := world.Start(t.Context(), world.Options{Dir: t.TempDir(), Fast: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Stop(context.WithoutCancel(t.Context())); err != nil {
			t.Log(err)
		}
	})
	h := &host{container: newContainer(t), w: w}
	h.put(w.ControlPlane.Kubeconfig(), "/etc/kubernetes/admin.conf")
	h.put(debs[0], "/root/agent.deb")
	h.put(debs[0], "/root/"+filepath.Base(debs[0]))
	h.version = strings.TrimSuffix(strings.TrimPrefix(filepath.Base(debs[0]), "autoscaler-agent-"), "-linux-amd64.deb")
	// The package is installed as the README says.
	if out := h.run(h.verbatim(block(t, "README.md", "## Install it on a cluster")[0])); strings.Contains(out, "rror") {
		t.Errorf("apt-get says %s", out)
	}
	t.Run("install", func(t *testing.T) { h.t = t; h.install() })
	if t.Failed() {
		t.FailNow()
	}
	for _, part := range []struct {
		name string
		play func()
	}{
		{"ready", h.ready}, {"scale", h.scale}, {"documents", h.documents}, {"journal", h.journal}, {"reload", h.reload}, {"files", h.files}, {"disks", h.disks},
		{"stop", h.stop}, {"watchdog", h.watchdog}, {"crash", h.crash}, {"reboot", h.reboot},
		{"upgrade", h.upgrade}, {"configuration", h.configuration}, {"renewal", h.renewal}, {"uninstall", h.uninstall},
	} {
		t.Run(part.name, func(t *testing.T) { h.t = t; part.play() })
	}
	h.t = t
}

// install: a dry run changes nothing, an installation is complete, a second one finds
// everything in place.
func (h *host) install() {
	var flags strings.Builder
	for _, pair := range append(h.w.Clouds[0].Env(), "AUTOSCALER_PROVIDER=asg", "AUTOSCALER_LISTEN=off", "AUTOSCALER_NODECLEANER_OBSERVE_FIRST=0s") {
		fmt.Fprintf(&flags, " --set '%s'", pair)
	}
	before := h.run("find /etc -newer /root/agent.deb -type f | sort")
	if out := h.run("autoscaler-agent install --dry-run" + flags.String()); !strings.Contains(out, "would") {
		h.t.Errorf("a dry run says %s", out)
	}
	if after := h.run("find /etc -newer /root/agent.deb -type f | sort"); after != before {
		h.t.Errorf("a dry run changed\n%s\nto\n%s", before, after)
	}
	h.shellAlone()
	out, err := h.try("autoscaler-agent install" + flags.String())
	h.t.Logf("install (%v):\n%s", err, out)
	if strings.Contains(out, "error    credential") || strings.Count(out, "error  ") != 1 { // the cloud has no group yet
		h.t.Error("check finds more wrong than the missing group")
	}
	for _, pair := range h.w.Clouds[0].Env() {
		if name, value, _ := strings.Cut(pair, "="); strings.Contains(name, "SECRET") && strings.Contains(out, value) {
			h.t.Errorf("the value of %s is printed", name)
		}
	}
	for _, line := range strings.Split(h.run("autoscaler-agent install"+flags.String()+" --output json | tr -d '\\n' | sed 's/},/}\\n/g'"), "\n") {
		if strings.Contains(line, `"done"`) {
			h.t.Errorf("a second installation changes something: %s", line)
		}
	}
	if got := strings.TrimSpace(h.run("stat -c '%a %U %G' /etc/autoscaler-agent /etc/autoscaler-agent/agent.env /etc/autoscaler-agent/kubeconfig /etc/autoscaler-agent/client.pem | sort | uniq -c")); !strings.Contains(got, "3 640 root autoscaler-agent") || !strings.Contains(got, "1 750 root autoscaler-agent") {
		h.t.Errorf("modes are %s", got)
	}
}

// shellAlone: credentials that the shell alone has do not make the check after an installation
// green, because the unit will not have them.
func (h *host) shellAlone() {
	var env, flags strings.Builder
	for _, pair := range append(h.w.Clouds[0].Env(), "AUTOSCALER_PROVIDER=asg", "AUTOSCALER_LISTEN=off", "AUTOSCALER_NODECLEANER_OBSERVE_FIRST=0s") {
		if name, _, _ := strings.Cut(pair, "="); strings.HasPrefix(name, "AWS_") && strings.Contains(name, "KEY") {
			fmt.Fprintf(&env, " '%s'", pair)
		} else {
			fmt.Fprintf(&flags, " --set '%s'", pair)
		}
	}
	out, err := h.try("env" + env.String() + " autoscaler-agent install" + flags.String())
	if env.Len() == 0 || err == nil || !strings.Contains(strings.ToLower(out), "credential") || !strings.Contains(out, "installed, with errors") {
		h.t.Errorf("with the shell's credentials (%v):\n%s", err, out)
	}
}

// ready: the unit is ready in five seconds, and its commands need no flag.
func (h *host) ready() {
	start := time.Now()
	h.run("systemctl enable --now autoscaler-agent")
	took := time.Since(start)
	h.t.Logf("READY after %s", took.Round(10*time.Millisecond))
	if took > 5*time.Second {
		h.t.Errorf("READY took %s", took)
	}
	h.until("acting", "systemctl show -p StatusText autoscaler-agent | grep -q acting && autoscaler-agent status | grep -q 'acting *yes'")
	h.until("join values", "test -s /etc/worker.env")
	h.t.Logf("exposure: %s", h.run("systemd-analyze security autoscaler-agent --no-pager | tail -1"))
}

// scale: pods bring machines under the unit's sandbox.
func (h *host) scale() {
	data := h.run("autoscaler-agent userdata render")
	if _, err := h.w.Clouds[0].PutWorkers(h.t.Context(), world.Workers{Name: "workers", InstanceType: h.w.Clouds[0].MachineType(), Max: 10, UserData: []byte(data)}); err != nil {
		h.t.Fatal(err)
	}
	h.until("the group", "autoscaler-agent status | grep -q workers")
	h.deploy("web", 2)
	h.pods("web", 2)
	if got := h.launched(); got != 2 {
		h.t.Errorf("%d instances for two pods of one machine each", got)
	}
}

// journal: lines are found by their fields, and the catalog explains them.
func (h *host) journal() {
	for _, line := range []string{
		"journalctl -u autoscaler-agent GROUP=workers --no-pager | grep -q workers",
		"journalctl -u autoscaler-agent SERVICE=scaler --no-pager | grep -q .",
		"journalctl -u autoscaler-agent -o json --no-pager | grep -q '\"RULE\"'",
		"journalctl -x -u autoscaler-agent --no-pager | grep -q '^-- '",
	} {
		h.until(line, line)
	}
}

// watchdog: a process that hangs is replaced. The unit's minute is ten seconds here.
func (h *host) watchdog() {
	h.run("mkdir -p /run/systemd/system/autoscaler-agent.service.d && printf '[Service]\\nWatchdogSec=10s\\n' > /run/systemd/system/autoscaler-agent.service.d/test.conf && systemctl daemon-reload && systemctl restart autoscaler-agent")
	h.run("kill -STOP $(systemctl show -p MainPID --value autoscaler-agent)")
	h.until("the watchdog", "test $(systemctl show -p NRestarts --value autoscaler-agent) -ge 1 && systemctl is-active autoscaler-agent && journalctl -u autoscaler-agent --no-pager | grep -q -i watchdog")
	h.until("acting", "autoscaler-agent status | grep -q 'acting *yes'")
	h.run("rm -r /run/systemd/system/autoscaler-agent.service.d && systemctl daemon-reload && systemctl restart autoscaler-agent")
}

// reboot: the enabled unit comes up again and goes on.
func (h *host) reboot() {
	before := h.launched()
	h.shutdown()
	h.boot()
	h.until("acting", "systemctl is-active autoscaler-agent && autoscaler-agent status | grep -q 'acting *yes'")
	if got := h.launched(); got != before {
		h.t.Errorf("%d instances after a reboot, want the %d of before", got, before)
	}
}

// upgrade: a newer package in the middle of a scale-up buys nothing twice.
func (h *host) upgrade() {
	h.run("rm -rf /root/new && dpkg-deb -R /root/agent.deb /root/new && sed -i 's/^Version: .*/Version: 99.0.0/' /root/new/DEBIAN/control && dpkg-deb -Zgzip -z1 -b /root/new /root/new.deb")
	before := h.launched()
	const purchases = "journalctl -u autoscaler-agent --no-pager -o cat | grep -c 'scale-up workers' || true"
	bought := strings.TrimSpace(h.run(purchases))
	h.deploy("more", 3)
	h.until("the first purchase", "test $("+purchases+") -gt "+bought)
	pid := h.run("systemctl show -p MainPID --value autoscaler-agent")
	h.run("dpkg -i --force-confold /root/new.deb")
	if now := h.run("systemctl show -p MainPID --value autoscaler-agent"); now == pid {
		h.t.Error("the service was not restarted")
	}
	h.pods("more", 3)
	if got := h.launched() - before; got != 3 {
		h.t.Errorf("%d instances for three pods of one machine each", got)
	}
}

// configuration: a wrong line stops the agent once, with one clear message and no loop.
func (h *host) configuration() {
	h.run("cp -p /etc/autoscaler-agent/agent.env /root/agent.env && echo 'AUTOSCALE_LISTEN: off' >> /etc/autoscaler-agent/agent.env")
	if out, err := h.try("systemctl restart autoscaler-agent"); err == nil {
		h.t.Errorf("it starts: %s", out)
	}
	if got := strings.TrimSpace(h.run("systemctl show -p ExecMainStatus --value autoscaler-agent")); got != "78" {
		h.t.Errorf("exit code %s", got)
	}
	h.run("journalctl -u autoscaler-agent --no-pager -n 20 | grep 'write AUTOSCALER_LISTEN=VALUE'")
	h.run("cp -p /root/agent.env /etc/autoscaler-agent/agent.env && chown root:root /etc/autoscaler-agent/agent.env && chmod 0600 /etc/autoscaler-agent/agent.env && systemctl reset-failed autoscaler-agent && systemctl start autoscaler-agent") // systemd reads it as root
	h.run("cp -p /root/agent.env /etc/autoscaler-agent/agent.env && systemctl restart autoscaler-agent")
	h.until("acting", "autoscaler-agent status | grep -q 'acting *yes'")
}

// renewal: a certificate that is not good is replaced while the agent runs, by the unit of
// the timer.
func (h *host) renewal() {
	h.run("systemctl is-enabled autoscaler-agent-renew.timer && systemctl start autoscaler-agent-renew.service")
	h.run("cp /etc/autoscaler-agent/client.pem /root/before.pem && : > /etc/autoscaler-agent/client.pem && systemctl start autoscaler-agent-renew.service")
	h.run("test -s /etc/autoscaler-agent/client.pem && ! cmp -s /root/before.pem /etc/autoscaler-agent/client.pem")
	h.run("sudo -u autoscaler-agent true 2>/dev/null; autoscaler-agent check | grep 'API server'")
}

// uninstall: nothing of the agent is left but its package.
func (h *host) uninstall() {
	h.t.Log(h.run("autoscaler-agent uninstall"))
	if out, _ := h.try("ls -d /etc/autoscaler-agent /var/lib/autoscaler-agent /etc/worker.env /etc/systemd/system/autoscaler-agent* 2>/dev/null; getent passwd autoscaler-agent; systemctl is-active autoscaler-agent"); strings.TrimSpace(out) != "inactive" {
		h.t.Errorf("left: %s", out)
	}
	client := h.w.ControlPlane.Client()
	roles, err := client.RbacV1().ClusterRoles().List(h.t.Context(), metav1.ListOptions{})
	if err != nil {
		h.t.Fatal(err)
	}
	for _, r := range roles.Items {
		if strings.Contains(r.Name, "autoscaler-agent") {
			h.t.Errorf("ClusterRole %s is left", r.Name)
		}
	}
	h.run("dpkg --purge autoscaler-agent")
}

// deploy makes pods that want a machine of four processors each.
func (h *host) deploy(name string, replicas int32) {
	h.t.Helper()
	labels := map[string]string{"app": name}
	_, err := h.w.ControlPlane.Client().AppsV1().Deployments("default").Create(h.t.Context(), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.DeploymentSpec{Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "example.test/main", Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("3")}}}}},
		}},
	}, metav1.CreateOptions{})
	if err != nil {
		h.t.Fatal(err)
	}
}

// pods waits until all pods of a deployment run.
func (h *host) pods(name string, want int) {
	h.t.Helper()
	for deadline := time.Now().Add(await.Limit); ; time.Sleep(200 * time.Millisecond) {
		list, err := h.w.ControlPlane.Client().CoreV1().Pods("default").List(h.t.Context(), metav1.ListOptions{LabelSelector: "app=" + name})
		if err != nil {
			h.t.Fatal(err)
		}
		running := 0
		for _, p := range list.Items {
			if p.Status.Phase == corev1.PodRunning {
				running++
			}
		}
		if running == want {
			return
		}
		if time.Now().After(deadline) {
			h.t.Fatalf("%d of %d pods of %s run\n%s", running, want, name, h.run("autoscaler-agent status; journalctl -u autoscaler-agent --no-pager -o cat | tail -40"))
		}
	}
}

func (h *host) launched() int { return len(h.w.Clouds[0].Instances("workers")) }
