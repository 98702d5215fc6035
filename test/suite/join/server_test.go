package join

import (
	"bytes"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/autoscaler-agent/autoscaler-agent/bootstrap"
	"github.com/autoscaler-agent/autoscaler-agent/test/await"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/machine"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/world"
)

// TestTokenOfAServer: on Nova each server has a token of its own in its user data, and no
// token is published at all; each ends when its server has joined.
func TestTokenOfAServer(t *testing.T) {
	var mu sync.Mutex
	scripts := map[string][]byte{} // by name of the server
	s := newScene(t, func(c *machine.Config) {
		mu.Lock()
		defer mu.Unlock()
		scripts[c.Name] = c.UserData
	}, "nova")
	w, err := s.client.CoreV1().Secrets("kube-system").Watch(t.Context(), metav1.ListOptions{FieldSelector: "type=bootstrap.kubernetes.io/token"})
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]string{} // tokens by the machine that they were made for
	done := make(chan struct{})
	go func() {
		defer close(done)
		for e := range w.ResultChan() {
			if x, ok := e.Object.(*corev1.Secret); ok && e.Type == watch.Added {
				mu.Lock()
				seen[x.Annotations[bootstrap.MachineAnnotation]] = string(x.Data["token-id"]) + "." + string(x.Data["token-secret"])
				mu.Unlock()
			}
		}
	}()
	t.Cleanup(func() {
		w.Stop()
		<-done
	})
	s.start("AUTOSCALER_BOOTSTRAP_TOKENS=none", "AUTOSCALER_BOOTSTRAP_TOKEN_TTL=1m")
	data, err := s.w.RenderUserData(t.Context(), s.binary, s.w.Clouds[0].RenderFlags()...)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.w.PutWorkers(world.Workers{Name: "workers", Max: 3, UserData: data}); err != nil {
		t.Fatal(err)
	}
	if err := s.w.WaitForGroup(t.Context(), s.binary, "workers"); err != nil {
		t.Fatal(err)
	}
	s.deploy(2)
	await.True(t, "two servers have joined", func() bool { return s.ready() >= 2 })
	mu.Lock()
	if len(seen) != len(scripts) || len(seen) < 2 {
		t.Errorf("%d tokens for %d servers", len(seen), len(scripts))
	}
	for name, script := range scripts {
		for of, token := range seen {
			if has := bytes.Contains(script, []byte(token)); has != (of == name) {
				t.Errorf("the user data of %s has the token of %q: %t", name, of, has)
			}
		}
	}
	mu.Unlock()
	began := time.Now()
	await.True(t, "no token is left", func() bool { return len(s.tokens()) == 0 })
	t.Logf("the tokens were gone %s after the last server was Ready", time.Since(began).Round(time.Second))
	if j := s.published(); j.Token != "" {
		t.Errorf("a token is published: %s", j)
	}
}
