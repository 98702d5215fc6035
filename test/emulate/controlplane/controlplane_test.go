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

	"github.com/autoscaler-agent/autoscaler-agent/test/await"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

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
