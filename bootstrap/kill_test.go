package bootstrap

import (
	"context"
	"crypto/x509"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/version"
	discoveryfake "k8s.io/client-go/discovery/fake"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"

	"github.com/autoscaler-agent/autoscaler-agent/internal/testing/drawn"
	"github.com/autoscaler-agent/autoscaler-agent/internal/testing/kubetest"
)

// The environment of a child that is killed.
const killFile, killStep = "KILL_TEST_FILE", "KILL_TEST_STEP"

// die is kill -9 of the process itself.
func die() {
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {} // until it has come
}

// TestKillChild is no test of its own: TestKilledAtEachStep runs it as a process.
func TestKillChild(t *testing.T) {
	file, at := os.Getenv(killFile), os.Getenv(killStep)
	if file == "" {
		t.Skip("run by TestKilledAtEachStep")
	}
	cert := certificate(t)
	client := fake.NewClientset(infoMap(cert, "https://api.example.com:6443"))
	client.Discovery().(*discoveryfake.FakeDiscovery).FakedServerVersion = &version.Info{GitVersion: "v1.36.3"}
	log := logrus.New()
	log.SetOutput(io.Discard)
	s := New(Config{File: file, TokenTTL: time.Hour, TokenGroups: []string{WorkersGroup}}, Deps{Client: kubetest.Client(client), Log: log.WithField("service", "bootstrap"),
		Certificate: func(context.Context) (*x509.Certificate, error) { return cert, nil }})
	if at == "publish" { // until somebody kills it
		for n := 0; ; n++ {
			j := join()
			j.Token = fmt.Sprintf("asa00%d.%s", n%4, strings.Repeat(strconv.Itoa(n%10), secretLength))
			j.CAHashes = j.CAHashes[:1+n%2]
			if err := s.publish(t.Context(), j); err != nil {
				t.Fatal(err)
			}
		}
	}
	s.learnt = time.Now() // what other agents left is read only
	steps, last := 0, -1
	if at != "" {
		last, _ = strconv.Atoi(at)
	}
	step := func() {
		if steps++; steps == last {
			die()
		}
	}
	made := metav1.NewTime(time.Now().Add(-time.Minute))
	client.PrependReactor("*", "*", func(a k8stesting.Action) (bool, runtime.Object, error) {
		step()
		if a.GetVerb() == "create" {
			a.(k8stesting.CreateAction).GetObject().(*corev1.Secret).CreationTimestamp = made
		}
		return false, nil, nil
	})
	for _, age := range []time.Duration{0, time.Second} { // make one; rotate it
		s.cfg.TokenMaxAge = age
		if _, err := s.token(t.Context()); err != nil {
			t.Fatal(err)
		}
		made = metav1.Now()
		signInfo(client)
		if err := s.round(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	fmt.Printf("steps=%d\n", steps)
}

// TestKilledAtEachStep: an agent that is killed before any of the calls by which it makes,
// rotates and publishes a token, or in the middle of writing, leaves the published file whole:
// as it was, or as it was to become. What it leaves beside it is removed by the next start.
func TestKilledAtEachStep(t *testing.T) {
	seed := drawn.Seed(t)
	rng := rand.New(rand.NewPCG(seed, 1))
	dir := t.TempDir()
	file := filepath.Join(dir, "worker.env")
	old, err := Render(join())
	if err != nil {
		t.Fatal(err)
	}
	run := func(step string, after time.Duration) (finished bool) {
		t.Helper()
		c := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^TestKillChild$", "-test.v")
		c.Env = append(os.Environ(), killFile+"="+file, killStep+"="+step)
		var out strings.Builder
		c.Stdout, c.Stderr = &out, &out
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		if after > 0 {
			time.AfterFunc(after, func() { _ = c.Process.Kill() })
		}
		err := c.Wait()
		if status, ok := c.ProcessState.Sys().(syscall.WaitStatus); err != nil && (!ok || !status.Signaled()) {
			t.Fatalf("step %s: %v\n%s", step, err, &out)
		}
		return err == nil
	}
	whole := func(when string) {
		t.Helper()
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatalf("%s: %v", when, err)
		}
		j, lacks := ReadJoin(data)
		again, err := Render(j)
		info, _ := os.Stat(file)
		if err != nil || len(lacks) > 0 || string(again) != string(data) || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v %v %v %q", when, err, lacks, info.Mode(), data)
		}
	}
	killed := 0
	for n := 1; ; n++ {
		if err := os.WriteFile(file, old, 0o600); err != nil {
			t.Fatal(err)
		}
		finished := run(strconv.Itoa(n), 0)
		whole(fmt.Sprintf("killed at step %d", n))
		if finished {
			break
		}
		killed++
	}
	torn := 0
	for range 25 {
		run("publish", time.Duration(50+rng.IntN(400))*time.Millisecond)
		whole("killed while it published")
		if entries, _ := filepath.Glob(filepath.Join(dir, ".worker.env.*")); len(entries) > 0 {
			torn++
		}
	}
	if killed < 8 {
		t.Errorf("killed at %d steps only", killed)
	}
	s := &Service{cfg: Config{File: file}, log: logrus.NewEntry(&logrus.Logger{Out: io.Discard, Formatter: &logrus.TextFormatter{}, Hooks: logrus.LevelHooks{}, Level: logrus.PanicLevel})}
	s.clearResidue()
	if left, _ := os.ReadDir(dir); len(left) != 1 {
		t.Errorf("left beside the file: %v", left)
	}
	t.Logf("killed at %d steps, and 25 times while it wrote; %d times a temporary file was left", killed, torn)
}
