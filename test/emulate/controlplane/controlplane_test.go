package controlplane

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/test/await"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// One control plane serves all of these: each part of the test leaves it healthy.
func TestControlPlane(t *testing.T) {
	cp := ForTest(t, Options{Fast: true, NodeLeaseSeconds: 8, NodeMonitorGrace: 6 * time.Second})
	t.Run("version", func(t *testing.T) { testVersion(t, cp) })
	t.Run("a pod without nodes is Unschedulable", func(t *testing.T) { testUnschedulable(t, cp) })
	t.Run("no token stands", func(t *testing.T) { testNoToken(t, cp) })
	t.Run("a token is signed into cluster-info and joins", func(t *testing.T) { testToken(t, cp) })
	t.Run("kill and start the API server", func(t *testing.T) { testKill(t, cp) })
	t.Run("pause and resume the API server", func(t *testing.T) { testPause(t, cp) })
	t.Run("kill and start etcd", func(t *testing.T) { testKillEtcd(t, cp) })
	t.Run("names and states", func(t *testing.T) { testNames(t, cp) })
}

func testVersion(t *testing.T, cp *ControlPlane) {
	v, err := cp.Client().Discovery().ServerVersion()
	if err != nil {
		t.Fatal(err)
	}
	if v.GitVersion != cp.Binaries().Version || v.Major+"."+v.Minor != majorMinor(cp.Binaries().Version) {
		t.Errorf("version %s (%s.%s), want %s", v.GitVersion, v.Major, v.Minor, cp.Binaries().Version)
	}
	info, err := os.Stat(cp.Kubeconfig())
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("admin.conf: %v %v, want mode 0600", info.Mode(), err)
	}
	out, err := exec.Command(cp.Binaries().Path(Kubectl), "--kubeconfig", cp.Kubeconfig(), "get", "--raw", "/readyz").CombinedOutput()
	if err != nil || string(out) != "ok" {
		t.Errorf("kubectl get --raw /readyz: %v %q", err, out)
	}
}

func testUnschedulable(t *testing.T, cp *ControlPlane) {
	ctx := t.Context()
	ns, err := cp.Client().CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "web"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "nginx", Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")}}}}},
	}
	await.Nil(t, "create a pod in a new namespace", func(ctx context.Context) error {
		_, err := cp.Client().CoreV1().Pods(ns.Name).Create(ctx, pod, metav1.CreateOptions{})
		return err
	})
	await.Nil(t, "PodScheduled=False, Unschedulable", func(ctx context.Context) error {
		p, err := cp.Client().CoreV1().Pods(ns.Name).Get(ctx, "web", metav1.GetOptions{})
		if err != nil {
			return err
		}
		for _, c := range p.Status.Conditions {
			if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable {
				return nil
			}
		}
		return fmt.Errorf("conditions %+v", p.Status.Conditions)
	})
}

func testKill(t *testing.T, cp *ControlPlane) {
	before := cp.PID(APIServer)
	if err := cp.KillPart(APIServer); err != nil {
		t.Fatal(err)
	}
	if alive(before) || cp.PID(APIServer) != 0 || cp.State(APIServer) != "stopped" {
		t.Errorf("after a kill: pid %d alive %v, PID() %d, %s", before, alive(before), cp.PID(APIServer), cp.State(APIServer))
	}
	if _, err := cp.Client().CoreV1().Namespaces().Get(t.Context(), "web", metav1.GetOptions{}); err == nil {
		t.Error("a killed API server answers")
	}
	if err := cp.StartPart(t.Context(), APIServer); err != nil {
		t.Fatal(err)
	}
	if cp.PID(APIServer) == before || cp.PID(APIServer) == 0 {
		t.Errorf("pid %d after a start, %d before", cp.PID(APIServer), before)
	}
	await.Nil(t, "the same client to recover", func(ctx context.Context) error {
		_, err := cp.Client().CoreV1().Namespaces().Get(ctx, "web", metav1.GetOptions{})
		return err
	})
	for _, name := range []string{Etcd, ControllerManager, Scheduler} {
		if cp.State(name) != "running" {
			t.Errorf("%s is %s after a restart of the API server", name, cp.State(name))
		}
	}
}

func testPause(t *testing.T, cp *ControlPlane) {
	if err := cp.PausePart(APIServer); err != nil {
		t.Fatal(err)
	}
	if cp.State(APIServer) != "paused" {
		t.Errorf("state %s", cp.State(APIServer))
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if _, err := cp.Client().CoreV1().Namespaces().Get(ctx, "web", metav1.GetOptions{}); err == nil {
		t.Error("a paused API server answers")
	}
	if err := cp.ResumePart(APIServer); err != nil {
		t.Fatal(err)
	}
	await.Nil(t, "the client to recover", func(ctx context.Context) error {
		_, err := cp.Client().CoreV1().Namespaces().Get(ctx, "web", metav1.GetOptions{})
		return err
	})
}

func testKillEtcd(t *testing.T, cp *ControlPlane) {
	if err := cp.PausePart(Etcd); err != nil {
		t.Fatal(err)
	}
	if err := cp.KillPart(Etcd); err != nil {
		t.Fatalf("kill a paused part: %v", err)
	}
	if err := cp.KillPart(Etcd); err != nil {
		t.Errorf("kill twice: %v", err)
	}
	if err := cp.StartPart(t.Context(), Etcd); err != nil {
		t.Fatal(err)
	}
	await.Nil(t, "a write after the restart of etcd, on the old data", func(ctx context.Context) error {
		ns, err := cp.Client().CoreV1().Namespaces().Get(ctx, "web", metav1.GetOptions{})
		if err != nil {
			return err
		}
		metav1.SetMetaDataLabel(&ns.ObjectMeta, "seen", "again")
		_, err = cp.Client().CoreV1().Namespaces().Update(ctx, ns, metav1.UpdateOptions{})
		return err
	})
}

func testNames(t *testing.T, cp *ControlPlane) {
	if err := cp.StartPart(t.Context(), Etcd); err == nil || !strings.Contains(err.Error(), "runs already") {
		t.Errorf("start of a running part: %v", err)
	}
	if err := cp.KillPart("kubelet"); err == nil || !strings.Contains(err.Error(), "kube-scheduler") {
		t.Errorf("an unknown part: %v, want the names that exist", err)
	}
	if err := cp.PausePart(Scheduler); err != nil {
		t.Fatal(err)
	}
	if err := cp.StopPart(t.Context(), Scheduler); err != nil {
		t.Fatalf("stop a paused part: %v", err)
	}
	if err := cp.PausePart(Scheduler); err == nil || !strings.Contains(err.Error(), "does not run") {
		t.Errorf("pause of a stopped part: %v", err)
	}
	if cp.Log(Scheduler) == "" {
		t.Error("the scheduler said nothing")
	}
}

func alive(pid int) bool { return syscall.Kill(pid, 0) == nil }

func TestStopLeavesNothing(t *testing.T) {
	cp := ForTest(t, Options{Fast: true, KubeadmToken: true})
	list, err := cp.Client().CoreV1().Secrets("kube-system").List(t.Context(), metav1.ListOptions{FieldSelector: "type=bootstrap.kubernetes.io/token"})
	if err != nil || len(list.Items) != 1 || len(list.Items[0].Data["expiration"]) == 0 {
		t.Errorf("KubeadmToken: %d tokens, %v; want one with an expiration", len(list.Items), err)
	}
	var pids []int
	for _, name := range Parts() {
		pids = append(pids, cp.PID(name))
	}
	if err := cp.PausePart(Scheduler); err != nil {
		t.Fatal(err)
	}
	if err := cp.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, pid := range pids {
		if pid == 0 || alive(pid) {
			t.Errorf("process %d is left", pid)
		}
	}
	if _, err := os.Stat(cp.Dir()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("directory %s is left: %v", cp.Dir(), err)
	}
	if err := cp.StartPart(t.Context(), Etcd); err == nil {
		t.Error("a part came back after Stop")
	}
}

// A busy port at the first attempt is not the caller's problem.
func TestPortTakenIsRetried(t *testing.T) {
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	_, text, _ := net.SplitHostPort(busy.Addr().String())
	port, _ := strconv.Atoi(text)
	cp := ForTest(t, Options{Fast: true, pick: func(n int) ([]int, error) {
		ports, err := freePorts(n)
		ports[1] = port
		return ports, err
	}})
	if err := cp.Client().Discovery().RESTClient().Get().AbsPath("/readyz").Do(t.Context()).Error(); err != nil {
		t.Error(err)
	}
	if _, err := Start(t.Context(), Options{APIPort: port}); err == nil || !strings.Contains(err.Error(), "fixed API port") {
		t.Errorf("a taken fixed port: %v", err)
	}
}

func TestFailureShowsTheLog(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cp")
	_, err := Start(t.Context(), Options{Dir: dir, ExtraArgs: map[string][]string{APIServer: {"--no-such-flag"}}})
	if err == nil || !strings.Contains(err.Error(), "unknown flag: --no-such-flag") {
		t.Errorf("%v, want the API server's own words", err)
	}
	if _, err := Start(t.Context(), Options{ExtraArgs: map[string][]string{"kubelet": {"-v=1"}}}); err == nil {
		t.Error("extra arguments for an unknown part were taken")
	}
}

// TestMain lets TestChildrenDieWithParent run this binary as a parent that is
// killed.
func TestMain(m *testing.M) {
	if dir := os.Getenv("CONTROLPLANE_TEST_PARENT"); dir != "" {
		cp, err := Start(context.Background(), Options{Dir: dir, Fast: true})
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		for _, name := range Parts() {
			fmt.Println(cp.PID(name))
		}
		fmt.Println("ready")
		select {}
	}
	os.Exit(m.Run())
}

func TestChildrenDieWithParent(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux kills children with their parent")
	}
	dir := filepath.Join(t.TempDir(), "cp")
	parent := exec.Command(os.Args[0])
	parent.Env = append(os.Environ(), "CONTROLPLANE_TEST_PARENT="+dir)
	var said bytes.Buffer
	out, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { parent.Process.Kill(); parent.Wait() })
	var pids []int
	lines := bufio.NewScanner(io.TeeReader(out, &said))
	for lines.Scan() && lines.Text() != "ready" {
		if pid, err := strconv.Atoi(lines.Text()); err == nil {
			pids = append(pids, pid)
		}
	}
	if len(pids) != len(Parts()) {
		t.Fatalf("the parent said: %s", said.String())
	}
	if _, err := Start(t.Context(), Options{Dir: dir}); err == nil || !strings.Contains(err.Error(), "conflict") {
		t.Errorf("a second control plane in a living one's directory: %v", err)
	}
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	parent.Wait()
	await.Nil(t, "the children to die", func(context.Context) error {
		for _, pid := range pids {
			if alive(pid) && !zombie(pid) {
				return fmt.Errorf("%d lives", pid)
			}
		}
		return nil
	})
	// The dead one's directory is taken over.
	cp := ForTest(t, Options{Fast: true, Dir: dir})
	if err := cp.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(cp.Kubeconfig()); err != nil {
		t.Errorf("Stop did not keep a given directory: %v", err)
	}
}

// zombie: an orphan's new parent may take its time to reap it.
func zombie(pid int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return true
	}
	_, after, _ := strings.Cut(string(text), ") ")
	return strings.HasPrefix(after, "Z") || strings.HasPrefix(after, "X")
}
