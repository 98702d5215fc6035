package join

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/test/await"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/machine"

	"github.com/autoscaler-agent/autoscaler-agent/userdata"
)

// TestTokenOfAGrowth: with tokens on demand there is none while nothing grows. One comes with
// the growth; it is extended while a machine has not joined, past its own life; and it is gone
// when all have joined. Machines read the published values at their boot.
func TestTokenOfAGrowth(t *testing.T) {
	const life, late = 20 * time.Second, 50 * time.Second
	var booted atomic.Int32
	s := newScene(t, func(c *machine.Config) {
		if booted.Add(1) == 1 {
			c.BootTime = late // longer than two lives of a token
		}
	})
	s.start("AUTOSCALER_BOOTSTRAP_TOKENS=growth", "AUTOSCALER_BOOTSTRAP_TOKEN_TTL="+life.String(), "AUTOSCALER_BOOTSTRAP_SECRET=true")
	await.True(t, "join information is published", func() bool { return s.published().Endpoint != "" })
	if j := s.published(); j.Token != "" || len(s.tokens()) != 0 {
		t.Errorf("there is a token before anything grows: %s", j)
	}
	reads := "JOIN_TOKEN=$(until grep -q '^JOIN_TOKEN=.' " + s.w.WorkerEnv() + "; do sleep 1; done; sed -n 's/^JOIN_TOKEN=//p' " + s.w.WorkerEnv() + ")\n"
	section, err := userdata.JoinSection([]byte(s.userData())) // the format script packs it
	if err != nil {
		t.Fatal(err)
	}
	script := strings.Replace("#!/bin/sh\n"+string(section), "JOIN_TOKEN='abcdef.0123456789abcdef'\n", reads, 1)
	if !strings.Contains(script, reads) {
		t.Fatal("the script has no line with the token")
	}
	s.group("workers", script, 3)
	if err := s.w.WaitForGroup(t.Context(), s.binary, "workers"); err != nil {
		t.Fatal(err)
	}
	s.deploy(3)
	await.True(t, "a token is published", func() bool { return s.published().Token != "" })
	first := s.published()
	if n := len(s.tokens()); n != 1 {
		t.Errorf("%d tokens, want one", n)
	}
	await.True(t, "two of three machines have joined", func() bool { return s.ready() == 2 })
	await.True(t, "the token is extended past its first end", func() bool {
		j := s.published()
		if j.Token != first.Token {
			t.Fatalf("it is another one while a machine has not joined: %s", j)
		}
		return time.Now().After(first.Expires) && j.Expires.After(time.Now())
	})
	if s.ready() != 2 {
		t.Error("the late machine was not late")
	}
	await.True(t, "the late machine has joined", func() bool { return s.ready() == 3 })
	joined := time.Now()
	await.True(t, "the token is gone, and no file has it", func() bool { return len(s.tokens()) == 0 && s.published().Token == "" })
	t.Logf("the token was gone %s after the last machine was Ready", time.Since(joined).Round(time.Second))
	if gone := time.Since(joined); gone > life+30*time.Second {
		t.Errorf("that is more than a life (%s) and a round", life)
	}
	secret := first.Token[7:]
	err = filepath.Walk(s.w.Dir, func(path string, info os.FileInfo, err error) error {
		if err != nil || !info.Mode().IsRegular() || strings.Contains(path, "/controlplane/") || path == s.binary {
			return err
		}
		if text, err := os.ReadFile(path); err != nil || bytes.Contains(text, []byte(secret)) {
			t.Errorf("%s has the token, %v", path, err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
